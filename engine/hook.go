package engine

import (
	"cmp"
	"fmt"

	"github.com/berth-project/berth/cluster"
)

// hook is a function that a plugin registered, with what the engine needs to call it.
type hook[F any] struct {
	fn     F
	origin any // the function that the plugin registered, if fn is another one that wraps it
	plugin string
	weight int64
	// shapes and tasks report for which shapes or tasks the hook is called; nil means all.
	shapes     func(*cluster.Shape) bool
	tasks      func(*cluster.Task, *cluster.Job) bool
	static     bool
	whole      bool         // a task-form filter that AddWholeFilter registered
	siblings   bool         // a comparison of queues: it is called only for queues with the same parent
	freeze     FrozenOrder  // of such a comparison; nil if bids cannot be frozen
	changes    BidChanges   // of such a comparison; nil if it is not known which bids have changed
	isBound    bool         // the function is the upper bound of another score: nodes are ranked by it, and it adds nothing to their scores
	upperBound ShapeScore   // of a task-form score; nil means 100
	quick      QuickReject  // of a shape-form filter; nil if it has no cheap test
	class      ClassRule    // of a VictimRule: the classes that it may allow; nil means any
	queues     QueueRule    // of a VictimRule: the queues that have these classes; nil means any
	first      FirstVictims // of a VictimRule: the classes that may have the first victim
	last       *LastResort  // of a VictimRule: what replaces it if no plan was found
	profiles   *members     // the profiles whose jobs it is called for; nil means all
	order      int          // its index among the hooks of its type, in the order in which they are called
	equal      equality     // of a shape-form hook or a device score
}

// misused fails the session because a plugin called the Add method hook wrongly.
func misused(h *Hooks, hook, format string, args ...any) {
	plugin := "engine"
	if p := calledNow(h); p != nil {
		plugin = p.Name()
	}
	h.fault.fail(plugin, hook+": "+format, args...)
}

// calledNow returns the plugin that is in OnSessionOpen or in Reopen, or nil.
func calledNow(h *Hooks) *weighted { return cmp.Or(h.opening, h.reopening) }

// add appends the function to the list, as a hook of the plugin that is in OnSessionOpen, and
// returns the hook. Missing says that the function is nil. A wrong call fails the session and
// returns a hook that is never called.
func add[F any](h *Hooks, list *[]hook[F], fn F, missing bool) *hook[F] {
	if h.opening == nil {
		misused(h, "a hook", "it was registered after OnSessionOpen; register hooks in OnSessionOpen")
		return &hook[F]{}
	}
	if missing {
		misused(h, fmt.Sprintf("%T", fn), "the function is nil; register a function")
		return &hook[F]{}
	}
	order := len(*list)
	if order < cap(*list) {
		*list = (*list)[:order+1]
	} else {
		*list = append(*list, hook[F]{})
	}
	k := &(*list)[order]
	k.reuse(fn, h.opening)
	k.order = order
	return k
}

// reuse makes the hook that the list had here in the last session, or an empty one, a new hook of
// the plugin. In most sessions it is the same hook, and writing the fields that differ is cheaper
// than writing all of them while memory is being collected.
func (k *hook[F]) reuse(fn F, p *weighted) {
	if k.plugin != p.name || k.origin != nil || k.freeze != nil || k.changes != nil || k.upperBound != nil ||
		k.class != nil || k.queues != nil || k.first.Classes != nil || k.last != nil || k.profiles != nil {
		*k = hook[F]{plugin: p.name}
	}
	if k.shapes != nil {
		k.shapes = nil
	}
	if k.tasks != nil {
		k.tasks = nil
	}
	if k.quick != nil {
		k.quick = nil
	}
	k.fn, k.weight, k.static, k.whole, k.siblings, k.isBound, k.equal = fn, p.weight, false, false, false, false, equality{}
}

// addEqual is add for a hook of which EqualNodes may be declared.
func addEqual[F any](h *Hooks, list *[]hook[F], fn F, missing bool) *hook[F] {
	k := add(h, list, fn, missing)
	h.lastPlugin, h.lastEquality = h.opening, &k.equal
	return k
}
