package engine

import (
	"fmt"
)

// fault holds the error that failed the session, such as a plugin that broke its contract.
// The error is nil if the session has not failed.
type fault struct{ err error }

// fail fails the session. Only the first error is kept.
func (x *fault) fail(plugin string, format string, args ...any) {
	if x.err == nil {
		x.err = fmt.Errorf("plugin %s: %s", plugin, fmt.Sprintf(format, args...))
	}
}

// unguarded fails the session because the filters let a task pass on a node that has no room
// for it.
func (x *fault) unguarded(err error) {
	if x.err == nil {
		x.err = fmt.Errorf("no filter of the profile rejected the node: %w; a plugin that rejects nodes without room is missing", err)
	}
}

// sign sets the plugin of the rejection. A rejection without a reason fails the session,
// because it could not be explained to users.
func (x *fault) sign(plugin string, r *Rejection) *Rejection {
	if r.Plugin = plugin; r.Reason == "" {
		x.fail(plugin, "a rejection has no reason; set Reason to a constant such as NoSuchRack")
	}
	return r
}

// points multiplies a score with the weight, in thousandths of a point. A score that is not
// between 0 and 100 fails the session.
func (x *fault) points(plugin string, weight int64, score float64) int64 {
	if !(score >= 0 && score <= 100) { // NaN included
		x.fail(plugin, "a score of %v is not between 0 and 100", score)
		return 0
	}
	return weight * milli(score)
}

// milli converts a score to thousandths of a point. The explicit conversion to float64 keeps
// compilers from fusing the product and the sum, so that all machines round the same.
func milli(score float64) int64 { return int64(float64(score*1000) + 0.5) }
