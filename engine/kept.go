package engine

import (
	"math/bits"

	"github.com/berth-project/berth/cluster"
)

// keptAnswers has answers of a ranking by pattern: a node that changed and is now equal to one that
// was judged before is not judged. It is a table in which each pattern has one place, so that a
// newer answer may replace that of another pattern.
type keptAnswers struct {
	places   []keptAnswer // their number is a power of two
	points   []int64      // by place: the points of static scores, of answers that are scoredOtherwise; nil if there are none
	replaced int          // how many answers of other patterns were replaced since the table grew
}

// keptAnswer is the answer for the nodes of a pattern. Four of them share a cache line: looking up
// answers waits mostly for memory.
type keptAnswer struct {
	key     int64  // without scores of domains
	pattern uint32 // 0: there is none
	code    uint16
	static  staticAnswer
}

// fewestKept and mostKept limit the places of a table. A large cluster may have more: one for
// slotsPerKept slots.
const (
	fewestKept   = 64
	mostKept     = 4096
	slotsPerKept = 8
)

// place returns the place of the pattern, which may have the answer for another one.
func (k *keptAnswers) place(pattern uint32) uint32 { return pattern & uint32(len(k.places)-1) }

// find returns the answer for the pattern, or nil. The pattern 0 has none.
func (k *keptAnswers) find(pattern uint32) *keptAnswer {
	if len(k.places) == 0 || pattern == 0 {
		return nil
	}
	if a := &k.places[k.place(pattern)]; a.pattern == pattern {
		return a
	}
	return nil
}

// staticOf returns the answer of the static hooks for the pattern of a.
func (k *keptAnswers) staticOf(a *keptAnswer) static {
	if a.static == scoredOtherwise {
		return static{a.static, k.points[k.place(a.pattern)]}
	}
	return static{answer: a.static}
}

// keep adds an answer. The points are those of the static scores. The table is for a ranking of so
// many slots.
func (k *keptAnswers) keep(a keptAnswer, points int64, slots int) {
	if len(k.places) == 0 || k.replaced >= len(k.places)/8 && len(k.places) < max(mostKept, 1<<bits.Len(uint(slots/slotsPerKept))) {
		k.grow()
	}
	if at := k.places[k.place(a.pattern)].pattern; at != 0 && at != a.pattern {
		k.replaced++
	}
	k.set(a, points)
}

func (k *keptAnswers) set(a keptAnswer, points int64) {
	at := k.place(a.pattern)
	k.places[at] = a
	if a.static != scoredOtherwise {
		return
	}
	if k.points == nil {
		k.points = make([]int64, len(k.places))
	}
	k.points[at] = points
}

// grow doubles the table.
func (k *keptAnswers) grow() {
	before := *k
	*k = keptAnswers{places: make([]keptAnswer, max(fewestKept, 2*len(before.places)))}
	for i := range before.places {
		if a := &before.places[i]; a.pattern != 0 {
			k.set(*a, before.staticOf(a).points)
		}
	}
}

// forget drops all answers.
func (k *keptAnswers) forget() {
	clear(k.places)
	k.replaced = 0
}

// yield measures whether it is worth its time to find out the patterns of nodes that changed.
type yield struct {
	asked  int  // how many nodes an answer was needed for
	spelt  int  // for how many a pattern was computed
	judged int  // how many were judged
	sparse bool // it is not worth its time
}

// yieldSpan is after how many nodes it is decided whether patterns are worth their time. If they are
// not, it is tried again when yieldPause nodes have changed.
const (
	yieldSpan  = 4096
	yieldPause = 16 * yieldSpan
)

// skips reports whether patterns are not worth their time for so many nodes that changed. Computing
// a pattern takes a little longer than judging a node, and finding an answer a tenth of it.
func (y *yield) skips(changed int) bool {
	switch {
	case y.sparse:
		if y.asked += changed; y.asked >= yieldPause {
			*y = yield{}
		}
	case y.asked >= yieldSpan:
		sparse := 13*y.spelt+10*y.judged > 9*y.asked
		*y = yield{sparse: sparse}
	}
	return y.sparse
}

// judgeOnce is judge, but it judges only one of several equal nodes. The slot must have a node.
func (x *index) judgeOnce(r *ranking, slot int, n *cluster.Node, anew bool) (int64, uint16) {
	p := &x.patterns
	pattern := p.of(n, slot, x.view.Recent().NodeVersion(slot))
	p.yield.asked++
	if a := r.kept.find(pattern); a != nil {
		if x.twin {
			x.compareEqual(r, a, n, anew)
		}
		if anew || a.static != unscored {
			r.statics.set(slot, r.kept.staticOf(a))
		}
		return a.key, a.code
	}
	p.yield.judged++
	key, c := x.judge(r, slot, n, anew)
	static := r.statics.at(slot)
	r.kept.keep(keptAnswer{key, pattern, c, static.answer}, static.points, len(r.keys))
	return key, c
}
