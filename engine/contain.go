package engine

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
)

// contain ends a session in which a plugin panicked. Committed statements stay, open
// statements are undone, and the session fails with an error that names the plugin. A panic
// in any other code continues. Functions that call plugins defer contain. The hook is found
// from the functions on the stack, so that calling a hook costs nothing more.
func (s *Session) contain() {
	p := recover()
	if p == nil {
		return
	}
	by := findPanicSource(s.engine.plugins, s.Hooks)
	if by == nil {
		panic(p)
	}
	if s.fault.err == nil {
		s.fault.err = fmt.Errorf("plugin %s: %s panicked at %s: %v", by.plugin, by.hook, by.where, p)
	}
	s.Hooks.handlers, s.Hooks.reservers = nil, nil // one of them may have panicked; the next session does not keep these hooks
	for !s.closed && len(s.clerk.open) > 0 {       // the parts of a closed session may be those of another one
		s.clerk.open[len(s.clerk.open)-1].Discard()
	}
	s.engine.index.forget()
	s.engine.backlog = nil
}

// panicSource says which plugin and hook panicked, and at which file and line.
type panicSource struct{ plugin, hook, where string }

// findPanicSource finds the plugin that panicked from the stack, between the panic and the
// call of the engine. It returns nil if the stack has no code of a plugin. A registered
// function identifies the plugin and the hook. Otherwise, as with a function that a hook
// returned, the first function of a plugin's package is named.
func findPanicSource(plugins []weighted, h *Hooks) *panicSource {
	const frames = 64
	pcs := make([]uintptr, frames)
	stack := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	var found *panicSource
	for more := true; more; {
		var f runtime.Frame
		f, more = stack.Next()
		if isEntryPoint(f.Function) {
			return found
		}
		if strings.HasPrefix(f.Function, enginePath+".") {
			continue
		}
		where := fmt.Sprintf("%s:%d", f.File[strings.LastIndexByte(f.File, '/')+1:], f.Line)
		if found == nil {
			if plugin := pluginOf(plugins, f.Function); plugin != "" {
				found = &panicSource{plugin, f.Function[strings.LastIndexByte(f.Function, '/')+1:], where}
			}
		}
		if hook, plugin := registeredAt(h, f.Entry); plugin != "" {
			if found != nil {
				where = found.where
			}
			return &panicSource{plugin, hook, where}
		}
	}
	return found
}

// isEntryPoint reports whether the function is one that callers of the engine call.
func isEntryPoint(function string) bool {
	name, own := strings.CutPrefix(function, enginePath+".")
	return own && (strings.HasPrefix(name, "(*Session).Run") || strings.HasPrefix(name, "(*Session).Close") || strings.HasPrefix(name, "(*Engine).Open"))
}

// registeredAt returns the hook with a function that begins at the address, and its plugin.
// Closures of the same code share an address: if several plugins registered such closures,
// the names of all of them are returned, joined by "or".
func registeredAt(h *Hooks, entry uintptr) (hook, plugin string) {
	visitHooks(h, func(name, of string, fn any) {
		if v := reflect.ValueOf(fn); v.IsNil() || v.Pointer() != entry {
			return
		}
		if hook == "" {
			hook, plugin = name, of
		} else if of != plugin && !strings.HasSuffix(plugin, " or "+of) {
			plugin += " or " + of
		}
	})
	return hook, plugin
}

// enginePath is the path of this package.
var enginePath = reflect.TypeOf(Session{}).PkgPath()

// pluginOf returns the name of the plugin that has the function in its package, or "".
func pluginOf(plugins []weighted, function string) string {
	if strings.HasPrefix(function, enginePath+".") {
		return ""
	}
	for i := range plugins {
		if strings.HasPrefix(function, pathOf(plugins[i].Plugin)+".") {
			return plugins[i].Name()
		}
	}
	return ""
}

// pathOf returns the import path of the plugin's package.
func pathOf(p Plugin) string {
	if p, ok := p.(*policy); ok {
		name := runtime.FuncForPC(reflect.ValueOf(p.open).Pointer()).Name()
		folder := strings.LastIndexByte(name, '/') + 1
		return name[:folder+strings.IndexByte(name[folder:], '.')]
	}
	t := reflect.TypeOf(p)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath()
}

// visitHooks visits the functions that plugins registered with the Add methods below, each
// with the name of the method. It does not visit functions that belong to another hook, such
// as last resorts, class rules and upper bounds. A panic in one of these is attributed to the
// plugin by the package of the function.
func visitHooks(h *Hooks, visit func(hook, plugin string, fn any)) {
	visitAll(visit, "AddQueueOrder", h.queueOrders)
	visitAll(visit, "AddJobPriority", h.jobPriorities)
	visitAll(visit, "AddJobOrder", h.jobOrders)
	visitAll(visit, "AddSurplus", h.surpluses)
	visitAll(visit, "AddTaskOrder", h.taskOrders)
	visitAll(visit, "AddPreFilter", h.preFilters)
	visitAll(visit, "AddShapeFilter", h.shapeFilters)
	visitAll(visit, "AddTaskFilter", h.taskFilters)
	visitAll(visit, "AddShapeScore", h.shapeScores)
	visitAll(visit, "AddDomainScore", h.domainScores)
	visitAll(visit, "AddTaskScore", h.taskScores)
	visitAll(visit, "AddDeviceScore", h.deviceScores)
	visitAll(visit, "AddGroupFilter", h.groupFilters)
	visitAll(visit, "AddGroupScore", h.groupScores)
	visitAll(visit, "AddExclusion", h.exclusions)
	visitAll(visit, "AddInstanceScore", h.instanceScores)
	visitAll(visit, "AddReclaimable", h.victims[Reclaim])
	visitAll(visit, "AddPreemptable", h.victims[Preempt])
	visitAll(visit, "AddMovable", h.victims[Move])
	visitAll(visit, "AddVictimCost", h.victimCosts)
	visitAll(visit, "AddAdapter", h.adapters)
	visitAll(visit, "AddSweep", h.sweeps)
	visitAll(visit, "AddStanding", h.standings)
	for i := range h.learners {
		l := h.learners[i].function().(learner)
		visit("AddLearner", h.learners[i].plugin, l.use)
		visit("AddLearner", h.learners[i].plugin, l.learn)
	}
	for i := range h.handlers {
		e := h.handlers[i].function().(EventHandler)
		visit("AddEventHandler", h.handlers[i].plugin, e.AllocateFunc)
		visit("AddEventHandler", h.handlers[i].plugin, e.DeallocateFunc)
	}
	for i := range h.reservers {
		r := h.reservers[i].function().(Reserver)
		visit("AddReserve", h.reservers[i].plugin, r.Reserve)
		visit("AddReserve", h.reservers[i].plugin, r.Unreserve)
		visit("AddReserve", h.reservers[i].plugin, r.Devices)
	}
}

func visitAll[F any](visit func(hook, plugin string, fn any), name string, list []hook[F]) {
	for i := range list {
		h := &list[i]
		visit(h.registered(name), h.plugin, h.function())
	}
}

// function returns the function that the plugin registered.
func (h *hook[F]) function() any {
	if h.origin != nil {
		return h.origin
	}
	return h.fn
}

// registered returns the name of the Add method that the hook was registered with. Several
// methods add to the same list; name is the most common one.
func (h *hook[F]) registered(name string) string {
	switch {
	case h.static:
		return strings.Replace(name, "Shape", "Static", 1)
	case h.siblings:
		return "AddSiblingOrder"
	}
	return name
}
