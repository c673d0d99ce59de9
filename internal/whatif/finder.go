package whatif

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/wire"
)

// finder looks for changes that help, and collects what was tried.
type finder struct {
	lab     *lab
	phrases explain.Phrases
	helps   []*change // the changes that help, in the order in which they were found
	fails   []failure // changes that do not help and may be reported
	// remaining is why an empty node rejects the task even after all changes, if that
	// rejection has a cure. The cure is then none of the changes that were tried. It is nil if
	// an empty node of some type could take the task.
	remaining *engine.Rejection
	untried   []string // kinds of changes that were not tried, or not all of them, because no tries were left
}

type failure struct {
	change *change
	why    string // why the workload is still refused
}

// search tries changes of every kind. If no single change helps, it tries several together.
// It reports whether the request contradicts itself (see combine).
func (f *finder) search(c *explain.Entitlement, knobs []Knob) (conflict bool) {
	l, w := f.lab, f.lab.workload
	promote, relax := &promoter{lab: l, workload: w, found: f, entitlement: c}, &relaxer{l, w, f}
	evict, shrink := &evictor{l, w, f}, &shrinker{w, f}
	grow, turn := &grower{lab: l, workload: w, found: f}, &knobTurner{l, w, f, knobs}
	total, steps := l.budget, l.stepBudget
	for _, s := range []struct {
		changes string
		try     func()
	}{
		{"a later time", promote.waitForTime},
		{"higher limits of queues", promote.raiseBounds},
		{"higher quotas", promote.raiseQuotas},
		{"a higher priority", promote.raisePriority},
		{"fewer conditions", relax.relax},
		{"other workloads removed", evict.evict},
		{"more nodes", grow.grow},
		{"other settings of the model", turn.turn},
		{"a smaller request", shrink.shrink},
	} {
		left := total - l.tries
		if total < defaultTries { // each kind of change gets some of the few tries
			left = min(left, max(2, left/3))
		}
		l.allow(left, (steps-l.steps)/3)
		if s.try(); l.noTriesLeft() && l.err == nil && (s.changes != "other settings of the model" || len(knobs) > 0) {
			f.untried = append(f.untried, s.changes)
		}
	}
	if len(f.helps) == 0 && total > 0 {
		l.allow(mostPriorities, steps/3)
		promote.overtake()
	}
	if len(f.helps) > 0 || l.err != nil {
		return false
	}
	l.allow(defaultTries/2, steps/2)
	if w.shape().ServesModel() {
		turn.turnAndGrow()
		return false
	}
	return (&combiner{l, w, f, grow, relax}).combine()
}

// addHelp records a change that helps, unless no arguments make it: then no field of the input does.
func (f *finder) addHelp(c *change) {
	if f.lab.objects != nil && len(f.lab.arguments(c)) == 0 {
		return
	}
	f.helps = append(f.helps, c)
	f.lab.helped = len(f.helps)
	if f.lab.cheapest == nil || c.cost < f.lab.cheapest.cost {
		f.lab.cheapest = c
	}
}

func (f *finder) addFailure(c *change, v verdict) {
	if v.refusal != nil {
		f.fails = append(f.fails, failure{c, f.phrases.Brief(v.refusal)})
	}
}

// try tries the change, and records it if it helps.
func (f *finder) try(c *change) verdict {
	v := f.lab.try(c)
	if v.fits {
		f.addHelp(c)
	}
	return v
}

// addTogether records a change that joins several changes and is known to help. It tries the
// change once more, even if no tries are left, to find out which workloads would be evicted.
func (f *finder) addTogether(c *change) {
	f.lab.budget, f.lab.least = max(f.lab.budget, f.lab.tries+1), f.lab.tries+1
	f.lab.try(c)
	f.addHelp(c)
}

// largestThatFits finds by bisection the highest i in [0, n) for which the change at(i) helps,
// records that change, and returns it. A change with a smaller i must help if one with a
// larger i does. If the tries are used up, the result is the highest i that was found to
// help, which may be 0. It returns nil if n is 0, if no try is left at the beginning, or if
// at(0) does not help or cannot be applied. No other change is tried then.
func (f *finder) largestThatFits(n int, at func(i int) *change) *change {
	if n == 0 || f.lab.noTriesLeft() {
		return nil
	}
	best := at(0)
	if v := f.lab.try(best); !v.fits {
		f.addFailure(best, v)
		return nil
	}
	low, high := 0, n // at(low) is known to help; at(high) is not
	for high-low > 1 && !f.lab.noTriesLeft() {
		mid := (low + high) / 2
		if c := at(mid); f.lab.try(c).fits {
			low, best = mid, c
		} else {
			high = mid
		}
	}
	f.addHelp(best)
	return best
}

// trials returns the changes that are reported, at most six: first at most five that help,
// the lowest cost first, then at most two that do not help. At most two changes that help are
// of the same kind, or three for a model. A change that does not help is left out if a change
// of its kind is already listed.
func (f *finder) trials() []wire.Trial {
	const mostLines, mostFits, mostFails = 6, 5, 2
	mostOfKind := 2
	if f.lab.workload.shape().ServesModel() {
		mostOfKind = 3 // several settings of a model may help
	}
	var out []wire.Trial
	kinds := map[wire.ChangeKind]int{}
	helps := slices.Clone(f.helps)
	slices.SortStableFunc(helps, func(a, b *change) int { return cmp.Compare(a.cost, b.cost) })
	for _, c := range helps {
		if kinds[c.kind] == mostOfKind || len(out) == mostFits {
			continue
		}
		kinds[c.kind]++
		evicts := f.lab.evicts(c)
		out = append(out, wire.Trial{Fits: true, Kind: c.kind, Change: c.text, Evicts: evicts, Arguments: f.lab.arguments(c), Brief: c.inBrief(), Loses: c.removes + len(evicts)})
	}
	fails := 0
	interest := []wire.ChangeKind{wire.EvictOthers, wire.SmallerRequest, wire.AddNodes, wire.RaiseLimit, wire.LiftCondition}
	slices.SortStableFunc(f.fails, func(a, b failure) int {
		return cmp.Compare(slices.Index(interest, a.change.kind), slices.Index(interest, b.change.kind))
	})
	for _, x := range f.fails {
		if kinds[x.change.kind] > 0 || fails == mostFails || len(out) == mostLines {
			continue
		}
		kinds[x.change.kind]++
		fails++
		out = append(out, wire.Trial{Kind: x.change.kind, Change: x.change.text, Because: x.why, Arguments: f.lab.arguments(x.change)})
	}
	return out
}
