package engine

import (
	"cmp"
	"reflect"
)

// Reopener is a plugin that need not register its hooks in every session. Reopen does what
// OnSessionOpen does for a session, except that it registers nothing, and reports whether
// OnSessionOpen would register the same functions as it did last, for the same State. If all
// plugins of the engine are Reopeners and return true, the session has the hooks of the last
// session, which saves a part of the time of a small session. Otherwise OnSessionOpen of each plugin
// is called as usual, also after its Reopen returned true. Hooks must therefore not refer to the
// Session with which they were registered.
type Reopener interface {
	Reopen(*Session) bool
}

// FixedHooks is embedded in a plugin that registers the same functions in every session, which need
// nothing of the session. It makes the plugin a Reopener.
type FixedHooks struct{}

// Reopen returns true.
func (FixedHooks) Reopen(*Session) bool { return true }

// reopen calls Reopen of each plugin. It reports whether the session has the hooks of the last one.
func (e *Engine) reopen(s *Session) (same bool) {
	if len(e.reopeners) < len(e.plugins) {
		return false
	}
	defer s.contain()
	defer func() { s.Hooks.reopening = nil }()
	for i, r := range e.reopeners {
		s.Hooks.reopening = &e.plugins[i]
		if !r.Reopen(s) || s.fault.err != nil {
			return false
		}
	}
	return s.options.Search != Twin || e.registersAgain(s)
}

// registersAgain calls OnSessionOpen of each plugin as well. It fails the session if the hooks are
// not those of the last session, which all plugins announced in Reopen.
func (e *Engine) registersAgain(s *Session) bool {
	last := s.Hooks
	s.Hooks = &Hooks{fault: s.fault, publish: e.publish}
	e.register(s)
	now := s.Hooks
	s.Hooks, e.hooks.latest = last, last
	if plugin := otherHook(last, now); plugin != "" && s.fault.err == nil {
		s.fault.fail(plugin, "OnSessionOpen registers other hooks than in the last session, but Reopen returned true; return false")
	}
	return s.fault.err == nil
}

// otherHook returns the plugin of the first hook that the two sessions do not have in common, or "" if
// there is none. It compares the functions by their code, which does not show on what they operate.
func otherHook(last, now *Hooks) string {
	victims := func(p Purpose) string { return unlike(last.victims[p], now.victims[p]) }
	return cmp.Or(
		unlike(last.queueOrders, now.queueOrders),
		unlike(last.jobPriorities, now.jobPriorities),
		unlike(last.jobOrders, now.jobOrders),
		unlike(last.surpluses, now.surpluses),
		unlike(last.taskOrders, now.taskOrders),
		unlike(last.preFilters, now.preFilters),
		unlike(last.shapeFilters, now.shapeFilters),
		unlike(last.taskFilters, now.taskFilters),
		unlike(last.shapeScores, now.shapeScores),
		unlike(last.domainScores, now.domainScores),
		unlike(last.taskScores, now.taskScores),
		unlike(last.deviceScores, now.deviceScores),
		unlike(last.groupFilters, now.groupFilters),
		unlike(last.groupScores, now.groupScores),
		unlike(last.exclusions, now.exclusions),
		unlike(last.instanceScores, now.instanceScores),
		victims(Reclaim), victims(Preempt), victims(Move),
		unlike(last.victimCosts, now.victimCosts),
		unlike(last.adapters, now.adapters),
		unlike(last.sweeps, now.sweeps),
		unlike(last.standings, now.standings),
		unlike(last.handlers, now.handlers),
		unlike(last.reservers, now.reservers),
		unlike(last.learners, now.learners),
		unlike(last.observers, now.observers),
	)
}

// unlike is otherHook for the hooks of one type.
func unlike[F any](last, now []hook[F]) string {
	for i := range max(len(last), len(now)) {
		switch {
		case i >= len(last):
			return now[i].plugin
		case i >= len(now):
			return last[i].plugin
		}
		a, b := &last[i], &now[i]
		if a.plugin != b.plugin || a.static != b.static || a.equal.declared != b.equal.declared || codeOf(a.function()) != codeOf(b.function()) {
			return b.plugin
		}
	}
	return ""
}

// codeOf returns the address of the function's code, or 0 if it is not a function.
func codeOf(fn any) uintptr {
	if v := reflect.ValueOf(fn); v.Kind() == reflect.Func {
		return v.Pointer()
	}
	return 0
}
