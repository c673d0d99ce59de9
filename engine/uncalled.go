package engine

import "slices"

// UncalledHook is a hook that is never called in this profile.
type UncalledHook struct {
	Plugin string
	Hook   string // the method that registered it, such as AddReclaimable
	Why    string // which registration of another hook is missing
}

// uncalledHooks returns the hooks of the session that are never called, because no plugin of the
// profile registers the hook that would cause the calls.
func uncalledHooks(h *Hooks) []UncalledHook {
	if len(h.adapters) > 0 && (len(h.evictionPurposes) == 0 || len(h.adapters) > 1) {
		return nil // an adapter of a plugin may cause calls of any of them
	}
	var out []UncalledHook
	names := [purposes]string{Reclaim: "AddReclaimable", Preempt: "AddPreemptable", Move: "AddMovable"}
	for p, list := range h.victims {
		if slices.ContainsFunc(h.evictionPurposes, func(m EvictionPurpose) bool { return m.Purpose == Purpose(p) }) {
			continue
		}
		for i := range list {
			out = append(out, UncalledHook{list[i].plugin, names[p], "no plugin of the profile evicts victims for this purpose (Hooks.AddEvictionPurpose)"})
		}
	}
	if len(h.adapters) == 0 {
		for i := range h.victimCosts {
			out = append(out, UncalledHook{h.victimCosts[i].plugin, "AddVictimCost", "no plugin of the profile makes room (Hooks.AddEvictionPurpose, Hooks.AddAdapter)"})
		}
		for i := range h.surpluses {
			out = append(out, UncalledHook{h.surpluses[i].plugin, "AddSurplus", "no plugin of the profile makes room (Hooks.AddEvictionPurpose, Hooks.AddAdapter)"})
		}
	}
	return out
}
