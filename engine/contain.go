package engine

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
)

// contain ends a session in which a plugin panicked: what was committed stands, the open
// statement is taken back, and the session is void. A panic of any other code goes on. It
// is deferred by whatever asks plugins. Nothing is kept in step for it while hooks are
// asked: the hook is found by the functions on the stack.
func (s *Session) contain() {
	p := recover()
	if p == nil {
		return
	}
	by := findCulprit(s.engine.plugins, s.Hooks)
	if by == nil {
		panic(p)
	}
	if s.fault.err == nil {
		s.fault.err = fmt.Errorf("plugin %s: %s panicked at %s: %v", by.plugin, by.hook, by.where, p)
	}
	s.Hooks.handlers, s.Hooks.reservers = nil, nil // they may be what panicked
	if st := s.clerk.open; st != nil {
		st.Discard()
	}
	s.engine.index.forget()
	s.engine.backlog = nil
}

// culprit is a plugin that panicked.
type culprit struct{ plugin, hook, where string }

// findCulprit finds the plugin that panicked by the stack; nil where the panic is not one's.
// The hook is what was registered; else the function is named, which a hook has prepared.
func findCulprit(plugins []weighted, h *Hooks) *culprit {
	const frames = 64
	pcs := make([]uintptr, frames)
	stack := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	var found *culprit
	for more := true; more; {
		var f runtime.Frame
		f, more = stack.Next()
		if plugin := pluginOf(plugins, f.Function); plugin != "" && found == nil {
			found = &culprit{plugin, f.Function[strings.LastIndexByte(f.Function, '/')+1:], fmt.Sprintf("%s:%d", f.File[strings.LastIndexByte(f.File, '/')+1:], f.Line)}
		}
		if found == nil {
			continue
		}
		if strings.HasPrefix(f.Function, enginePath+".") {
			return found
		}
		visitHooks(h, func(hook, plugin string, fn any) {
			if v := reflect.ValueOf(fn); !v.IsNil() && v.Pointer() == f.Entry {
				found.plugin, found.hook = plugin, hook
			}
		})
	}
	return found
}

// enginePath is the path of this package.
var enginePath = reflect.TypeOf(Session{}).PkgPath()

// pluginOf is the plugin of the profile that the function belongs to; "": it is of none.
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

// pathOf is the path of the package that the plugin is of.
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

// visitHooks visits all functions that plugins have registered, with the hook they registered with.
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
	for i := range h.handlers {
		visit("AddEventHandler", h.handlers[i].plugin, h.handlers[i].fn.AllocateFunc)
		visit("AddEventHandler", h.handlers[i].plugin, h.handlers[i].fn.DeallocateFunc)
	}
	for i := range h.reservers {
		visit("AddReserve", h.reservers[i].plugin, h.reservers[i].fn.Reserve)
		visit("AddReserve", h.reservers[i].plugin, h.reservers[i].fn.Unreserve)
	}
}

func visitAll[F any](visit func(hook, plugin string, fn any), name string, list []hook[F]) {
	for i := range list {
		h := &list[i]
		visit(h.registered(name), h.plugin, h.fn)
	}
}

// registered is the name of the method that the hook was registered with, one of several
// that lead to the same list.
func (h *hook[F]) registered(name string) string {
	switch {
	case h.static:
		return strings.Replace(name, "Shape", "Static", 1)
	case h.siblings:
		return "AddSiblingOrder"
	}
	return name
}
