package engine

import "slices"

// Unasked is a hook that is never called in this profile.
type Unasked struct {
	Plugin string
	Hook   string // the method that registered it, such as AddReclaimable
	Why    string // which registration of another hook is missing
}

// Unasked returns the hooks of the session that are never called, because no plugin of the
// profile registers the hook that would cause the calls.
func (h *Hooks) Unasked() []Unasked {
	if len(h.adapters) > 0 && (len(h.means) == 0 || len(h.adapters) > 1) {
		return nil // an adapter of a plugin may cause calls of any of them
	}
	var out []Unasked
	names := [purposes]string{Reclaim: "AddReclaimable", Preempt: "AddPreemptable", Move: "AddMovable"}
	for p, list := range h.victims {
		if slices.ContainsFunc(h.means, func(m Means) bool { return m.Purpose == Purpose(p) }) {
			continue
		}
		for i := range list {
			out = append(out, Unasked{list[i].plugin, names[p], "no plugin of the profile evicts victims for this purpose (Hooks.AddMeans)"})
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
