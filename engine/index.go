package engine

import (
	"math"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// index remembers, for each shape in use, all nodes ranked: the feasible ones by
// score, then the others by how near they are. Asked again, it looks only at
// nodes that changed since. It lives as long as the engine.
type index struct {
	view       cluster.View
	hooks      *Hooks
	fault      *fault
	signatures []signature // which hooks the answers came from
	epoch      uint64      // grows when hooks or published parameters change
	params     map[string]uint64
	rankings   map[*cluster.Shape]*ranking
	codes      []code
	clock      uint64
	sessions   uint64 // opened so far
	twin       bool   // what hooks answer is kept, to tell which of them differs
}

// code is a kind of rejection, small enough to keep for every node.
type code struct {
	plugin     string
	reason     Reason
	cure       Cure
	precedence int8
}

// maxEntries bounds memory: a ranking has an entry of about 20 bytes for each
// node. When there are more, the ranking asked longest ago goes; a few always stay.
const (
	maxEntries  = 25_000_000
	minRankings = 16
)

// maxCodes is far more than all plugins have reasons.
const maxCodes = 4096

func newIndex() *index {
	return &index{epoch: 1, params: map[string]uint64{}, rankings: map[*cluster.Shape]*ranking{}, codes: make([]code, 1)}
}

// ranking is one shape's view of all nodes.
type ranking struct {
	tree
	shape      *cluster.Shape
	version    uint64 // version of State it is up to date with
	epoch      uint64
	session    uint64 // whose hooks are compiled in
	lastUsed   uint64
	staticKeys []int64  // by slot: the key as far as static hooks go, a miss, points, or unscored
	codes      []uint16 // by slot: why not, 0 for feasible or absent
	counts     []int32  // by code
	feasible   int
	nodes      int
	said       said // in twin sessions

	// What matters for the shape, static hooks apart from the others.
	filters, staticFilters []compiledFilter
	scorers, staticScorers []hook[ShapeScore]
}

type compiledFilter struct {
	hook[ShapeFilter]
	codes     []uint16 // codes this predicate has given: few
	remaining int64    // taskFilters from this one on, itself included
}

// open prepares the index for a session.
func (x *index) open(view cluster.View, h *Hooks, fault *fault, twin bool) {
	if x.view != view {
		x.view = view
		clear(x.rankings)
	}
	x.hooks, x.fault, x.twin = h, fault, twin
	x.sessions++
	if !x.sameHooks(h) {
		x.epoch++
	}
}

// signature is as much of a hook as tells whether answers of the last session still hold.
type signature struct {
	kind          byte // predicate, order or order of devices
	plugin        string
	weight        int64
	static, bound bool
}

// same reports whether the hooks are those of the last session, and remembers them.
func (x *index) sameHooks(h *Hooks) bool {
	at, same := 0, true
	sign := func(now signature) {
		switch {
		case at == len(x.signatures):
			x.signatures, same = append(x.signatures, now), false
		case x.signatures[at] != now:
			x.signatures[at], same = now, false
		}
		at++
	}
	for i := range h.shapeFilters {
		p := &h.shapeFilters[i]
		sign(signature{'p', p.plugin, 0, p.static, false})
	}
	for i := range h.shapeScores {
		o := &h.shapeScores[i]
		sign(signature{'o', o.plugin, o.weight, o.static, o.isBound})
	}
	for i := range h.deviceScores { // scores may ask for Session.Devices
		sign(signature{'g', h.deviceScores[i].plugin, h.deviceScores[i].weight, false, false})
	}
	same = same && at == len(x.signatures)
	x.signatures = x.signatures[:at]
	return same
}

// forget drops all rankings: one of them may be half judged.
func (x *index) forget() { clear(x.rankings) }

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
		x.dropOldest()
		r = &ranking{shape: shape}
		x.rankings[shape] = r
	}
	x.clock++
	r.lastUsed = x.clock
	if r.session != x.sessions {
		x.compile(r)
	}
	if r.epoch != x.epoch || r.keys == nil {
		r.epoch = x.epoch
		x.rebuild(r)
	} else if r.version != x.view.Version() {
		x.refresh(r)
	}
	if x.fault.err != nil {
		r.epoch = 0 // what was judged while a plugin broke the rules is not to be remembered
	}
	return r
}

func (x *index) dropOldest() {
	if n := len(x.rankings); n < minRankings || n*x.view.Recent().Slots() < maxEntries {
		return
	}
	var oldest *ranking
	for _, r := range x.rankings {
		if oldest == nil || r.lastUsed < oldest.lastUsed {
			oldest = r
		}
	}
	delete(x.rankings, oldest.shape)
}

// compile takes in the session's hooks that matter for the shape.
func (x *index) compile(r *ranking) {
	h := x.hooks
	r.session = x.sessions
	r.filters, r.staticFilters = r.filters[:0], r.staticFilters[:0]
	r.scorers, r.staticScorers = r.scorers[:0], r.staticScorers[:0]
	for _, p := range h.shapeFilters {
		if p.shapes != nil && !p.shapes(r.shape) {
			continue
		}
		list := &r.filters
		if p.static {
			list = &r.staticFilters
		}
		*list = append(*list, compiledFilter{hook: p, remaining: int64(len(h.shapeFilters) - p.order)})
	}
	for _, o := range h.shapeScores {
		if o.shapes != nil && !o.shapes(r.shape) {
			continue
		}
		list := &r.scorers
		if o.static {
			list = &r.staticScorers
		}
		*list = append(*list, o)
	}
}

// rebuild judges every node.
func (x *index) rebuild(r *ranking) {
	n := x.view.Recent().Slots()
	r.keys = slices.Grow(r.keys[:0], n)[:n]
	r.staticKeys = slices.Grow(r.staticKeys[:0], n)[:n]
	r.codes = slices.Grow(r.codes[:0], n)[:n]
	r.counts = r.counts[:0]
	r.feasible, r.nodes = 0, 0
	for slot := range n {
		key, c := x.judge(r, slot, true)
		r.keys[slot], r.codes[slot] = key, c
		r.count(key, c, +1)
	}
	r.build(x.view.Recent().Ranks())
	r.version = x.view.Version()
}

// refresh judges the nodes that changed.
func (x *index) refresh(r *ranking) {
	if n := x.view.Recent().Slots(); n > len(r.keys) {
		for len(r.keys) < n {
			r.keys = append(r.keys, absent)
			r.staticKeys = append(r.staticKeys, absent)
			r.codes = append(r.codes, 0)
		}
		r.build(x.view.Recent().Ranks())
	}
	ranks := x.view.Recent().Ranks()
	x.view.Recent().Nodes(r.version, func(slot int) {
		n := x.view.At(slot)
		anew := n == nil || n.SpecVersion() > r.version
		if !anew && r.staticKeys[slot] < 0 {
			return // turned down for what it is: what it holds does not matter
		}
		if anew && x.view.Recent().Born(slot) > r.version {
			// Another node under another name: its old place in the order means nothing.
			r.count(r.keys[slot], r.codes[slot], -1)
			r.set(slot, absent, ranks)
			r.codes[slot] = 0
		}
		key, c := x.judge(r, slot, anew)
		if key == r.keys[slot] && c == r.codes[slot] {
			return
		}
		r.count(r.keys[slot], r.codes[slot], -1)
		r.count(key, c, +1)
		r.codes[slot] = c
		r.set(slot, key, ranks)
	})
	r.version = x.view.Version()
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

// unscored stands for the static scores of a node that has had no room since its spec
// was last judged.
const unscored = math.MaxInt64

// judge gives the slot's node its key for the shape. Static filters are asked only
// if the node is to be judged anew, and static scores once it has room.
func (x *index) judge(r *ranking, slot int, anew bool) (int64, uint16) {
	n := x.view.At(slot)
	if n == nil {
		return absent, 0
	}
	if anew {
		if key, c := x.filter(r, r.staticFilters, n); c != 0 {
			r.staticKeys[slot] = key
			return key, c
		}
		r.staticKeys[slot] = unscored
	}
	if key, c := x.filter(r, r.filters, n); c != 0 {
		return key, c
	}
	if r.staticKeys[slot] == unscored {
		points, ok := x.points(r, r.staticScorers, n)
		if !ok {
			return absent, 0
		}
		r.staticKeys[slot] = points
	}
	points, ok := x.points(r, r.scorers, n)
	if !ok {
		return absent, 0
	}
	return r.staticKeys[slot] + points, 0
}

// filter asks filters in order; the first rejection becomes a key and a code. Of
// static filters one that waiting does not cure has the say: see rejectAt.
func (x *index) filter(r *ranking, filters []compiledFilter, n *cluster.Node) (int64, uint16) {
	var left, key int64
	var waiting uint16
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
		if waiting == 0 {
			left = p.remaining
		}
		if !p.static || !rejection.Cure.Transient() {
			return missKey(left, rejection), x.codeOf(p, rejection)
		}
		if waiting == 0 {
			key, waiting = missKey(left, rejection), x.codeOf(p, rejection)
		}
	}
	return key, waiting
}

// points adds up scores; false means that one broke the rules and the session is void.
func (x *index) points(r *ranking, scorers []hook[ShapeScore], n *cluster.Node) (int64, bool) {
	total := int64(0)
	for i := range scorers {
		o := &scorers[i]
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

// missKey orders misses: the fewer filters were left the nearer, then the smaller the gap.
func missKey(left int64, r *Rejection) int64 { return -1 - left<<20 - r.gap() }

// code finds the number of this kind of rejection, or gives it one.
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
			x.fault.fail(p.plugin, "gives too many different reasons; a reason is a constant")
			return 1
		}
		x.codes = append(x.codes, want)
	}
	p.codes = append(p.codes, uint16(i))
	return uint16(i)
}
