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

// points turns a score into weighted milli-points and holds plugins to the range.
func (x *fault) points(plugin string, weight int64, score float64) int64 {
	if !(score >= 0 && score <= 100) { // NaN included
		x.fail(plugin, "a score of %v is not between 0 and 100", score)
		return 0
	}
	return weight * milli(score)
}

// milli rounds a score to thousandths. The conversion keeps machines that would
// fuse the product and the sum from rounding differently.
func milli(score float64) int64 { return int64(float64(score*1000) + 0.5) }
