package engine

// Wake is a set of kinds of change that may cure a rejection. Patient sessions do not try a
// refused job again before such a change.
type Wake uint8

// The kinds of change. Whatever a plugin names, a refused job is also tried again when the
// plugin publishes a new number, when the spec of a queue or budget changes, and when the
// job's back-off ends, which takes five minutes at most. A job that was refused permanently
// has no back-off, unless only surplus tasks were refused.
const (
	WakeNodes  Wake = 1 << iota // any change of a node: its spec, or what tasks hold of it
	WakeJobs                    // any change of a job: it is added, it ends, its tasks are placed or evicted, or its spec changes
	WakeQueues                  // any change of what a queue uses
	WakeTime                    // the time that the last session requested with Session.WakeAt has come
)

// AddWake registers which changes may cure the rejections of the plugin's task-form filters,
// PreFilters and Reservers. Rejections of shape-form filters need no hint, since only a
// change of the node can cure them. Without a hint, any change of a node counts. Patient
// sessions try a refused job again only after such a change. If a hint is too narrow, jobs
// wait until their back-off ends. A job that was refused permanently has no back-off, and
// waits until another change causes a new try.
//
// Combining: a refused job is tried again after a change of any kind that was named by a
// plugin with filters that are called for its tasks.
func (h *Hooks) AddWake(kinds Wake) {
	if h.opening == nil {
		misused(h, "AddWake", "it was called after OnSessionOpen; call it in OnSessionOpen")
		return
	}
	if hint := h.hints.of(h.opening.name); hint != nil {
		hint.wakes |= kinds
		return
	}
	h.hints = append(h.hints, hint{h.opening.name, kinds})
}

// hints holds what plugins registered with AddWake, one entry for each plugin.
type hints []hint

type hint struct {
	plugin string
	wakes  Wake
}

// of returns the hint of the plugin, or nil if there is none.
func (h hints) of(plugin string) *hint {
	for i := range h {
		if h[i].plugin == plugin {
			return &h[i]
		}
	}
	return nil
}

// wakes returns which changes may cure rejections of the plugin.
func (h hints) wakes(plugin string) Wake {
	if hint := h.of(plugin); hint != nil {
		return hint.wakes
	}
	return WakeNodes
}
