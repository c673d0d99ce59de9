package engine

import "github.com/berth-project/berth/cluster"

// spareHooks are the hooks of the last session that was closed. The next session has the same hooks
// if all plugins say so (see Reopener). Otherwise it uses their lists again: a list that grows hook
// by hook is allocated and copied several times.
type spareHooks struct {
	last   *Hooks
	intact bool         // no hook is missing, and none has been replaced
	view   cluster.View // of the session
	latest *Hooks       // those that plugins registered last
	// checked says that the last twin session checked whether Reopen is right.
	checked bool
}

// keep notes the hooks of a session that is closed, and which calls no hook any more. Failed says
// that the session has failed: a plugin may not have registered all of its hooks.
func (s *spareHooks) keep(closed *Session, failed bool) {
	s.last, s.view, s.intact = closed.Hooks, closed.View, !failed && closed.options.Timings == nil
}

// take returns the hooks of the last session, or new ones, and whether they are the ones that the
// plugins registered last, for the same State.
func (s *spareHooks) take(v cluster.View) (h *Hooks, valid bool) {
	h, valid = s.last, s.intact && s.view == v && s.last == s.latest
	if s.last = nil; h == nil {
		return &Hooks{}, false
	}
	return h, valid
}

// removeAll removes all hooks.
func removeAll(h *Hooks) {
	empty(&h.queueOrders)
	empty(&h.jobPriorities)
	empty(&h.jobOrders)
	empty(&h.surpluses)
	empty(&h.taskOrders)
	empty(&h.preFilters)
	empty(&h.shapeFilters)
	empty(&h.taskFilters)
	empty(&h.shapeScores)
	empty(&h.domainScores)
	empty(&h.taskScores)
	empty(&h.deviceScores)
	empty(&h.groupFilters)
	empty(&h.groupScores)
	empty(&h.exclusions)
	empty(&h.instanceScores)
	for i := range h.victims {
		empty(&h.victims[i])
	}
	empty(&h.victimCosts)
	empty(&h.evictionPurposes)
	empty(&h.adapters)
	empty(&h.sweeps)
	empty(&h.standings)
	empty(&h.handlers)
	empty(&h.learners)
	h.reservers, h.hints = h.reservers[:0], h.hints[:0]
	h.lastPlugin, h.lastEquality, h.equalLabels = nil, nil, h.equalLabels[:0]
	h.observers = nil // the engine calls those of the last session until the next one is opened
}

// empty removes the entries of the list. They are not cleared: the plugins are the same in each
// session, and their hooks replace those of the last one.
func empty[T any](list *[]T) { *list = (*list)[:0] }
