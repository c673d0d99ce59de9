package engine

// spareHooks are the hooks of the last session that was closed. The next session uses their lists
// again: a list that grows hook by hook is allocated and copied several times.
type spareHooks struct{ last *Hooks }

// keep notes the hooks of a session that is closed, and which calls no hook any more.
func (s *spareHooks) keep(h *Hooks) { s.last = h }

// take returns hooks with empty lists.
func (s *spareHooks) take() *Hooks {
	h := s.last
	if h == nil {
		return &Hooks{}
	}
	s.last = nil
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
	return h
}

// empty removes the entries of the list. They are not cleared: the plugins are the same in each
// session, and their hooks replace those of the last one.
func empty[T any](list *[]T) { *list = (*list)[:0] }
