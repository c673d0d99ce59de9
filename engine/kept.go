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
	replaced int          // how many answers of other patterns were replaced since the table grew
}

// keptAnswer is the answer for the nodes of a pattern.
type keptAnswer struct {
	pattern uint32 // 0: there is none
	code    uint16
	key     int64 // without scores of domains
	static  static
}

// fewestKept and mostKept limit the places of a table. A large cluster may have more: one for
// slotsPerKept slots.
const (
	fewestKept   = 64
	mostKept     = 4096
	slotsPerKept = 8
)

// at returns the place of the pattern, which may have the answer for another one.
func (k *keptAnswers) at(pattern uint32) *keptAnswer {
	return &k.places[pattern&uint32(len(k.places)-1)]
}

// find returns the answer for the pattern, or nil. The pattern 0 has none.
func (k *keptAnswers) find(pattern uint32) *keptAnswer {
	if len(k.places) == 0 || pattern == 0 {
		return nil
	}
	if a := k.at(pattern); a.pattern == pattern {
		return a
	}
	return nil
}

// keep adds an answer. The table is for a ranking of so many slots.
func (k *keptAnswers) keep(a keptAnswer, slots int) {
	if len(k.places) == 0 || k.replaced >= len(k.places)/8 && len(k.places) < max(mostKept, 1<<bits.Len(uint(slots/slotsPerKept))) {
		k.grow()
	}
	at := k.at(a.pattern)
	if at.pattern != 0 && at.pattern != a.pattern {
		k.replaced++
	}
	*at = a
}

// grow doubles the table.
func (k *keptAnswers) grow() {
	before := k.places
	k.places, k.replaced = make([]keptAnswer, max(fewestKept, 2*len(before))), 0
	for _, a := range before {
		if a.pattern != 0 {
			*k.at(a.pattern) = a
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
		if anew || a.static.answer != unscored {
			r.statics.set(slot, a.static)
		}
		return a.key, a.code
	}
	p.yield.judged++
	key, c := x.judge(r, slot, n, anew)
	r.kept.keep(keptAnswer{pattern, c, key, r.statics.at(slot)}, len(r.keys))
	return key, c
}
