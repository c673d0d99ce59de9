package engine

import (
	"fmt"
)

// fault is why the session is void: a plugin broke its contract. Nil: it is not.
type fault struct{ err error }

// fail voids the session; the first failure counts.
func (x *fault) fail(plugin string, format string, args ...any) {
	if x.err == nil {
		x.err = fmt.Errorf("plugin %s: %s", plugin, fmt.Sprintf(format, args...))
	}
}

// unguarded voids the session where the filters admitted a task to a node without room for it.
func (x *fault) unguarded(err error) {
	if x.err == nil {
		x.err = fmt.Errorf("no filter of the profile saw that %w; a plugin that rejects nodes without room is missing", err)
	}
}

// sign notes whose rejection it is. One without a reason voids the session: what it is
// for could not be told.
func (x *fault) sign(plugin string, r *Rejection) *Rejection {
	if r.Plugin = plugin; r.Reason == "" {
		x.fail(plugin, "a rejection has no reason; a reason is a constant such as NoSuchRack")
	}
	return r
}
