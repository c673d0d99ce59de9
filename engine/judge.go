package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// code is a kind of rejection. Rankings keep its number for every entry.
type code struct {
	plugin     string
	reason     Reason
	cure       Cure
	precedence int8
}

// maxCodes is far more than the number of reasons of all plugins. A plugin that exceeds it
// computes its reasons instead of using constants.
const maxCodes = 4096

// judge returns the key and the code of the node for the shape. Static filters are called only if the
// spec was not judged, and static scores only when a node with the spec first passes all filters.
func (x *index) judge(r *ranking, spec int, n *cluster.Node) (int64, uint16) {
	switch r.statics.answers[spec] {
	case unjudged:
		if key, c := x.filter(r, r.staticFilters, n); c != 0 {
			r.statics.answers[spec] = staticallyRejected
			if !r.division.byNode() {
				r.statics.keepRejection(spec, key, c)
			}
			return key, c
		}
		r.statics.answers[spec] = unscored
	case staticallyRejected:
		rejected := r.statics.rejections[spec]
		return rejected.key, rejected.code
	}
	if key, c := x.filter(r, r.filters, n); c != 0 {
		return key, c
	}
	return x.score(r, spec, n), 0
}

// score returns the key of the node, which passes all filters; absent if a score is out of range.
func (x *index) score(r *ranking, spec int, n *cluster.Node) int64 {
	static, known := r.statics.scored(spec)
	if !known {
		var ok bool
		if static, ok = x.points(r, r.staticScorers, n); !ok {
			return absent
		}
		r.statics.score(spec, static)
	}
	points, ok := x.points(r, r.scorers, n)
	if !ok {
		return absent
	}
	return static + points
}

// filter calls the filters in order and returns the key and the code of the rejection that
// counts: see rejectAt. The code is 0 if the node passes.
func (x *index) filter(r *ranking, filters []compiledFilter, n *cluster.Node) (int64, uint16) {
	var remaining, key int64
	var curable uint16 // the code of the first rejection of a static filter that waiting may cure
	for i := range filters {
		p := &filters[i]
		rejection := p.fn(r.shape, n)
		if x.twin {
			answer := int64(0)
			if rejection != nil {
				answer = int64(x.codeOf(p, rejection))
			}
			r.note(n, p.order, true, answer)
		}
		if rejection == nil {
			continue
		}
		if curable == 0 {
			remaining = p.remaining
		}
		if !p.static || !rejection.Cure.Transient() {
			return missKey(remaining, rejection), x.codeOf(p, rejection)
		}
		if curable == 0 {
			key, curable = missKey(remaining, rejection), x.codeOf(p, rejection)
		}
	}
	return key, curable
}

// points adds up weighted scores. It returns false if a score is out of range, which fails
// the session.
func (x *index) points(r *ranking, scorers []*hook[ShapeScore], n *cluster.Node) (int64, bool) {
	total := int64(0)
	for _, o := range scorers {
		score := o.fn(r.shape, n)
		if !(score >= 0 && score <= 100) {
			x.fault.fail(o.plugin, "a score of %v for node %s is not between 0 and 100", score, n.Name)
			return 0, false
		}
		if x.twin {
			r.note(n, o.order, false, milli(score))
		}
		total += o.weight * milli(score)
	}
	return total, true
}

// missKey returns the key of a rejected node, which is negative. A node is nearer to being
// feasible the fewer filters remained, and then the smaller the gap of the rejection is.
func missKey(remaining int64, r *Rejection) int64 { return -1 - remaining<<20 - r.gap() }

// codeOf returns the number of this kind of rejection. A new kind gets the next number.
func (x *index) codeOf(p *compiledFilter, r *Rejection) uint16 {
	for _, c := range p.codes {
		if k := &x.codes[c]; k.reason == r.Reason && k.cure == r.Cure && k.precedence == r.Precedence {
			return c
		}
	}
	x.fault.sign(p.plugin, r)
	want := code{plugin: p.plugin, reason: r.Reason, cure: r.Cure, precedence: r.Precedence}
	i := slices.Index(x.codes, want)
	if i < 0 {
		if i = len(x.codes); i > maxCodes {
			x.fault.fail(p.plugin, "its filters return more than %d different reasons; use constants as reasons", maxCodes)
			return 1
		}
		x.codes = append(x.codes, want)
	}
	p.codes = append(p.codes, uint16(i))
	return uint16(i)
}
