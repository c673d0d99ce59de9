package engine

import "slices"

// Unasked is a hook that is never asked in this profile.
type Unasked struct {
	Plugin string
	Hook   string // the method that registered it
	Why    string
}

// Unasked lists the hooks of the session that can never be asked, since no other hook of
// the profile leads to them.
func (h *Hooks) Unasked() []Unasked {
	if len(h.adapters) > 0 && (len(h.means) == 0 || len(h.adapters) > 1) {
		return nil // an adapter of a plugin may ask any of them
	}
	var out []Unasked
	names := [purposes]string{Reclaim: "AddReclaimable", Preempt: "AddPreemptable", Move: "AddMovable"}
	for p, list := range h.victims {
		if slices.ContainsFunc(h.means, func(m Means) bool { return m.Purpose == Purpose(p) }) {
			continue
		}
		for i := range list {
			out = append(out, Unasked{list[i].plugin, names[p], "no plugin of the profile has victims leave for this purpose (Hooks.AddMeans)"})
		}
	}
	if len(h.adapters) == 0 {
		for i := range h.victimCosts {
			out = append(out, Unasked{h.victimCosts[i].plugin, "AddVictimCost", "no plugin of the profile makes room (Hooks.AddMeans, Hooks.AddAdapter)"})
		}
		for i := range h.surpluses {
			out = append(out, Unasked{h.surpluses[i].plugin, "AddSurplus", "no plugin of the profile makes room (Hooks.AddMeans, Hooks.AddAdapter)"})
		}
	}
	return out
}
