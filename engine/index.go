package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// index remembers, for each shape in use, all nodes ranked: the feasible ones by
// score, then the others by how near they are. Asked again, it looks only at
// nodes that changed since. It lives as long as the engine.
type index struct {
	state    *cluster.State
	session  *Session
	hooks    string // which hooks the answers came from
	epoch    uint64 // grows when hooks or published parameters change
	params   map[string]uint64
	rankings map[*cluster.Shape]*ranking
	codes    []code
	clock    uint64
}

// code is a kind of rejection, small enough to keep for every node.
type code struct {
	plugin     string
	order      int // of the predicate in the profile
	reason     Reason
	cure       Cure
	precedence uint8
}

// maxRankings bounds memory: a ranking costs about 10 bytes a node. The one
// asked longest ago goes first.
const maxRankings = 1024

// maxCodes is far more than all plugins have reasons.
const maxCodes = 4096

func newIndex() *index {
	return &index{params: map[string]uint64{}, rankings: map[*cluster.Shape]*ranking{}, codes: make([]code, 1)}
}

// ranking is one shape's view of all nodes.
type ranking struct {
	tree
	shape    *cluster.Shape
	known    uint64 // version of State it is up to date with
	epoch    uint64
	session  *Session // whose hooks are compiled in
	asked    uint64
	codes    []uint16 // by slot: why not, 0 for feasible or absent
	counts   []int32  // by code
	feasible int
	nodes    int

	predicates []predicate
	orders     []hook[ShapeOrderFn]
	weight     int64
}

type predicate struct {
	hook[ShapePredicateFn]
	seen []uint16 // codes this predicate has given: few
	left int64    // predicates from this one on, itself included
}

// open prepares the index for a session.
func (x *index) open(s *Session) {
	if x.state != s.State {
		x.state = s.State
		clear(x.rankings)
	}
	x.session = s
	var b strings.Builder
	for _, h := range s.hooks.shapePredicates {
		fmt.Fprintf(&b, "p %s\n", h.plugin)
	}
	for _, h := range s.hooks.shapeOrders {
		fmt.Fprintf(&b, "o %s %d\n", h.plugin, h.weight)
	}
	if x.hooks != b.String() {
		x.hooks = b.String()
		x.epoch++
	}
}

func (x *index) publish(plugin string, parameters uint64) {
	if x.params[plugin] != parameters {
		x.params[plugin] = parameters
		x.epoch++
	}
}

// ranking returns the shape's ranking, up to date.
func (x *index) ranking(shape *cluster.Shape) *ranking {
	r := x.rankings[shape]
	if r == nil {
		x.evictOldest()
		r = &ranking{shape: shape}
		x.rankings[shape] = r
	}
	x.clock++
	r.asked = x.clock
	if r.session != x.session {
		x.compile(r)
	}
	if r.epoch != x.epoch || r.keys == nil {
		r.epoch = x.epoch
		x.rebuild(r)
	} else if r.known != x.state.Version() {
		x.refresh(r)
	}
	return r
}

func (x *index) evictOldest() {
	if len(x.rankings) < maxRankings {
		return
	}
	var oldest *ranking
	for _, r := range x.rankings {
		if oldest == nil || r.asked < oldest.asked {
			oldest = r
		}
	}
	delete(x.rankings, oldest.shape)
}

// compile takes in the session's hooks that matter for the shape.
func (x *index) compile(r *ranking) {
	h := &x.session.hooks
	r.session = x.session
	r.predicates, r.orders, r.weight = r.predicates[:0], r.orders[:0], 0
	for _, p := range h.shapePredicates {
		if p.shapes == nil || p.shapes(r.shape) {
			r.predicates = append(r.predicates, predicate{hook: p, left: int64(len(h.shapePredicates) - p.order)})
		}
	}
	for _, o := range h.shapeOrders {
		if o.shapes == nil || o.shapes(r.shape) {
			r.orders = append(r.orders, o)
			r.weight += o.weight
		}
	}
}

// rebuild judges every node.
func (x *index) rebuild(r *ranking) {
	n := x.state.Slots()
	r.keys = slices.Grow(r.keys[:0], n)[:n]
	r.codes = slices.Grow(r.codes[:0], n)[:n]
	r.counts = r.counts[:0]
	r.feasible, r.nodes = 0, 0
	for slot := range n {
		key, c := x.judge(r, x.state.At(slot))
		r.keys[slot], r.codes[slot] = key, c
		r.count(key, c, +1)
	}
	r.build(x.state.Ranks())
	r.known = x.state.Version()
}

// refresh judges the nodes that changed.
func (x *index) refresh(r *ranking) {
	if n := x.state.Slots(); n > len(r.keys) {
		for len(r.keys) < n {
			r.keys = append(r.keys, absent)
			r.codes = append(r.codes, 0)
		}
		r.build(x.state.Ranks())
	}
	ranks := x.state.Ranks()
	x.state.Changed(r.known, func(slot int) {
		if x.state.Born(slot) > r.known {
			// Another node under another name: its old place in the order means nothing.
			r.count(r.keys[slot], r.codes[slot], -1)
			r.set(slot, absent, ranks)
			r.codes[slot] = 0
		}
		key, c := x.judge(r, x.state.At(slot))
		if key == r.keys[slot] && c == r.codes[slot] {
			return
		}
		r.count(r.keys[slot], r.codes[slot], -1)
		r.count(key, c, +1)
		r.codes[slot] = c
		r.set(slot, key, ranks)
	})
	r.known = x.state.Version()
}

func (r *ranking) count(key int64, c uint16, by int32) {
	if key == absent {
		return
	}
	r.nodes += int(by)
	if c == 0 {
		r.feasible += int(by)
		return
	}
	for int(c) >= len(r.counts) {
		r.counts = append(r.counts, 0)
	}
	r.counts[c] += by
}

// judge gives the node its key for the shape.
func (x *index) judge(r *ranking, n *cluster.Node) (int64, uint16) {
	if n == nil {
		return absent, 0
	}
	for i := range r.predicates {
		p := &r.predicates[i]
		if rejection := p.fn(r.shape, n); rejection != nil {
			return missKey(p.left, rejection), x.code(p, rejection)
		}
	}
	total := int64(0)
	for i := range r.orders {
		o := &r.orders[i]
		score := o.fn(r.shape, n)
		if !(score >= 0 && score <= 100) {
			x.session.fail(o.plugin, "a score of %v for node %s is not between 0 and 100", score, n.Name)
			return absent, 0
		}
		total += o.weight * int64(score*1000+0.5)
	}
	return total, 0
}

// missKey orders misses: the fewer filters were left the nearer, then the smaller the gap.
func missKey(left int64, r *Rejection) int64 { return -1 - left<<20 - r.gap() }

// code finds the number of this kind of rejection, or gives it one.
func (x *index) code(p *predicate, r *Rejection) uint16 {
	for _, c := range p.seen {
		if k := &x.codes[c]; k.reason == r.Reason && k.cure == r.Cure && k.precedence == r.Precedence {
			return c
		}
	}
	want := code{plugin: p.plugin, order: p.order, reason: r.Reason, cure: r.Cure, precedence: r.Precedence}
	i := slices.Index(x.codes, want)
	if i < 0 {
		if i = len(x.codes); i > maxCodes {
			x.session.fail(p.plugin, "gives too many different reasons; a reason is a constant")
			return 1
		}
		x.codes = append(x.codes, want)
	}
	p.seen = append(p.seen, uint16(i))
	return uint16(i)
}
