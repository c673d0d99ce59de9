package engine

import (
	"cmp"
	"maps"
	"reflect"
)

// Reopener is a plugin that need not register its hooks in every session. Reopen does all that
// OnSessionOpen does for a session, except that it registers nothing, and reports whether the hooks
// that the plugin registered last can stay. It is called if the last session was of the same State. If
// all plugins of the engine are Reopeners and return true, the session has the hooks of the last
// one, which saves a part of the time of a small session. Otherwise OnSessionOpen of each plugin is
// called, also after its Reopen returned true. Hooks must therefore not refer to the Session with
// which they were registered.
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
	if s.options.Search == Twin {
		if e.hooks.checked = !e.hooks.checked; e.hooks.checked {
			e.checkReopen(s)
		}
	}
	return s.fault.err == nil
}

// checkReopen checks in every second twin session that Reopen prepared everything: OnSessionOpen of each
// plugin, which is called as well, must register the same hooks and publish the same parameters. If it
// does not, the session fails. The other twin sessions use the hooks of the last one, as all other
// sessions do.
func (e *Engine) checkReopen(s *Session) {
	last, keeper, published := s.Hooks, s.finder.keeper, maps.Clone(e.index.params)
	s.Hooks = &Hooks{fault: s.fault, publish: e.publish}
	e.register(s)
	now := s.Hooks
	s.Hooks, e.hooks.latest = last, last
	const wrong = "OnSessionOpen %s, but Reopen returned true and did not; do the same in Reopen, or return false"
	for plugin, parameters := range e.index.params {
		if before, known := published[plugin]; s.fault.err == nil && (!known || before != parameters) {
			s.fault.fail(plugin, wrong, "publishes other parameters")
		}
	}
	if k := s.finder.keeper; s.fault.err == nil && (k.hook.plugin != keeper.hook.plugin || k.why != keeper.why) {
		s.fault.fail(cmp.Or(k.hook.plugin, keeper.hook.plugin), wrong, "calls Earmarks.Keep")
	}
	if plugin := otherHook(&last.registered, &now.registered); plugin != "" && s.fault.err == nil {
		s.fault.fail(plugin, "OnSessionOpen registers other hooks than in the last session, but Reopen returned true; return false")
	}
	last.registered = now.registered // the plugins have prepared these
	staticFirst(last)
	e.observers = last.observers
}

// otherHook returns the plugin of the first hook that the two do not have in common, or "" if there is
// none.
func otherHook(last, now *registered) string {
	a, b := reflect.ValueOf(last).Elem(), reflect.ValueOf(now).Elem()
	for i := range a.NumField() {
		if plugin := otherIn(a.Field(i), b.Field(i)); plugin != "" {
			return plugin
		}
	}
	return ""
}

// otherIn is otherHook for one list, or an array of lists.
func otherIn(last, now reflect.Value) string {
	for i := range max(last.Len(), now.Len()) {
		switch {
		case last.Kind() == reflect.Array:
			if plugin := otherIn(last.Index(i), now.Index(i)); plugin != "" {
				return plugin
			}
		case i >= last.Len():
			return namedIn(now.Index(i))
		case i >= now.Len() || !alike(last.Index(i), now.Index(i)):
			return namedIn(last.Index(i))
		}
	}
	return ""
}

// namedIn returns the plugin of an entry of a list.
func namedIn(entry reflect.Value) string {
	if entry.Kind() == reflect.Struct {
		if plugin := entry.FieldByName("plugin"); plugin.IsValid() {
			return plugin.String()
		}
	}
	return "engine"
}

// alike reports whether two values are equal. Functions are compared by their code, which does not
// show on what they operate.
func alike(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Func:
		return a.Pointer() == b.Pointer()
	case reflect.Struct:
		for i := range a.NumField() {
			if !alike(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Interface, reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() && b.IsNil()
		}
		return a.Elem().Type() == b.Elem().Type() && alike(a.Elem(), b.Elem())
	case reflect.Map:
		return a.Pointer() == b.Pointer() // of a profile, which is the same one in each session
	}
	return a.Equal(b)
}
