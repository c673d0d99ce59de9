package engine

import "math/bits"

// keptAnswers has answers of a ranking by pattern: nodes with a pattern that was judged before are not
// judged again. It is a table in which each pattern has one place, so that a newer answer may replace
// that of another pattern.
type keptAnswers struct {
	places   []keptAnswer // their number is a power of two
	replaced int          // how many answers of other patterns were replaced since the table grew
}

// keptAnswer is the answer for the nodes of a pattern. Four of them share a cache line: looking up
// answers waits mostly for memory.
type keptAnswer struct {
	key     int64  // unsettledKey if a cheap test rejects the nodes
	pattern uint32 // 0: there is none
	code    uint16
}

// fewestKept and mostKept limit the places of a table. A large cluster may have more: one for
// nodesPerKept nodes.
const (
	fewestKept   = 64
	mostKept     = 4096
	nodesPerKept = 8
)

// place returns the place of the pattern, which may have the answer for another one.
func (k *keptAnswers) place(pattern uint32) uint32 { return pattern & uint32(len(k.places)-1) }

// find returns the answer for the pattern, or nil.
func (k *keptAnswers) find(pattern uint32) *keptAnswer {
	if len(k.places) == 0 {
		return nil
	}
	if a := &k.places[k.place(pattern)]; a.pattern == pattern {
		return a
	}
	return nil
}

// keep adds an answer and returns it, until the next call. The table is for a ranking of so many nodes.
func (k *keptAnswers) keep(a keptAnswer, nodes int) *keptAnswer {
	if len(k.places) == 0 || k.replaced >= len(k.places)/8 && len(k.places) < max(mostKept, 1<<bits.Len(uint(nodes/nodesPerKept))) {
		k.grow()
	}
	at := &k.places[k.place(a.pattern)]
	if at.pattern != 0 && at.pattern != a.pattern {
		k.replaced++
	}
	*at = a
	return at
}

// grow doubles the table.
func (k *keptAnswers) grow() {
	before := *k
	*k = keptAnswers{places: make([]keptAnswer, max(fewestKept, 2*len(before.places)))}
	for _, a := range before.places {
		if a.pattern != 0 {
			k.places[k.place(a.pattern)] = a
		}
	}
}

// forget drops all answers.
func (k *keptAnswers) forget() {
	clear(k.places)
	k.replaced = 0
}

// forgetScores drops the answers for feasible nodes.
func (k *keptAnswers) forgetScores() {
	for i := range k.places {
		if k.places[i].code == 0 {
			k.places[i] = keptAnswer{}
		}
	}
}

// judgeOnce returns the key and the code of the peers of an entry. It judges one of them, unless an
// answer for their pattern is kept.
func (x *index) judgeOnce(r *ranking, i int) (int64, uint16) {
	p := &r.division.list[i]
	if a := r.kept.find(p.pattern); a != nil {
		if a.key == unsettledKey {
			r.unsettled.add(i)
		} else {
			r.unsettled.remove(i)
		}
		return a.key, a.code
	}
	n := x.view.At(p.nodes.first())
	if a := r.statics.answers[p.spec]; a != unjudged && a != staticallyRejected && x.quickly(r, n) {
		r.unsettled.add(i)
		r.kept.keep(keptAnswer{unsettledKey, p.pattern, unsettledCode}, len(r.division.at))
		return unsettledKey, unsettledCode
	}
	r.unsettled.remove(i)
	return x.judgeSettled(r, i, n)
}
