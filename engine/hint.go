package engine

// Wake is a set of kinds of change that may make a rejection go away. Patient sessions
// leave refused jobs alone until such a change.
type Wake uint8

// The kinds of change. A new number that the plugin publishes and other terms of a queue
// or of a budget wake in any case; so does the job's back-off, of five minutes at most.
const (
	WakeNodes  Wake = 1 << iota // any change of a node: what it is, or what is held of it
	WakeJobs                    // any change of a job: it came, it ended, its tasks stand elsewhere, its spec is another
	WakeQueues                  // any change of what a queue uses
	WakeTime                    // the time that Session.WakeAt asked for in the session before has come
)

// AddWake says which changes may make rejections of the plugin's task-form filters,
// PreFilters and Reservers go away. Rejections of shape-form filters need no hint: they
// can go away only when the node changes. Without a hint, any change of a node counts.
//
// Combining: a refused job is tried again after a change of a kind that a plugin named
// whose filters look at its tasks.
func (h *Hooks) AddWake(kinds Wake) {
	if h.opening == nil {
		h.misused("AddWake", "it was called after the session had opened; call it in OnSessionOpen")
		return
	}
	if h.hints == nil {
		h.hints = hints{}
	}
	h.hints[h.opening.Name()] |= kinds
}

// hints are what plugins said with AddWake, by name.
type hints map[string]Wake

// wakes is what may make rejections of the plugin go away.
func (h hints) wakes(plugin string) Wake {
	if w, hinted := h[plugin]; hinted {
		return w
	}
	return WakeNodes
}
