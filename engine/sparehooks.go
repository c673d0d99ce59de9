package engine

// spareHooks are the lists of hooks of the last session that was closed. The next session uses
// them again: a list that grows hook by hook is allocated and copied several times.
type spareHooks struct{ lists *Hooks }

// keep notes the lists of a session that is closed, and which calls no hook any more.
func (s *spareHooks) keep(h *Hooks) { s.lists = h }

// take gives h empty lists.
func (s *spareHooks) take(h *Hooks) {
	was := s.lists
	if was == nil {
		return
	}
	s.lists = nil
	h.queueOrders, h.jobPriorities, h.jobOrders = emptied(was.queueOrders), emptied(was.jobPriorities), emptied(was.jobOrders)
	h.surpluses, h.taskOrders = emptied(was.surpluses), emptied(was.taskOrders)
	h.preFilters, h.shapeFilters, h.taskFilters = emptied(was.preFilters), emptied(was.shapeFilters), emptied(was.taskFilters)
	h.shapeScores, h.taskScores, h.deviceScores = emptied(was.shapeScores), emptied(was.taskScores), emptied(was.deviceScores)
	h.groupFilters, h.groupScores = emptied(was.groupFilters), emptied(was.groupScores)
	h.exclusions, h.instanceScores = emptied(was.exclusions), emptied(was.instanceScores)
	for i := range h.victims {
		h.victims[i] = emptied(was.victims[i])
	}
	h.victimCosts, h.evictionPurposes = emptied(was.victimCosts), emptied(was.evictionPurposes)
	h.adapters, h.sweeps, h.standings = emptied(was.adapters), emptied(was.sweeps), emptied(was.standings)
	h.handlers = emptied(was.handlers)
}

// emptied returns the list without its entries.
func emptied[T any](list []T) []T {
	clear(list)
	return list[:0]
}
