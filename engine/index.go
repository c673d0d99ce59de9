package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// index keeps, for each shape in use, a ranking of all nodes: the feasible nodes by score,
// then the rejected ones by how near they are to being feasible. When a ranking is used
// again, only the nodes that changed since are judged. The index lives as long as the
// engine.
type index struct {
	view       cluster.View
	hooks      *Hooks
	fault      *fault
	signatures []signature        // of the hooks that gave the remembered answers
	epoch      uint64             // grows when hooks or published parameters change; rankings of earlier epochs are invalid
	params     map[string]uint64  // the numbers that plugins published
	scoreEpoch uint64             // grows when learnt parameters change; scores of earlier epochs are invalid
	learnt     map[string][]int64 // the parameters that plugins have learnt
	rankings   map[*cluster.Shape]*ranking
	codes      []code // by number; 0 is not used
	clock      uint64 // counts uses of rankings
	sessions   uint64 // how many sessions were opened
	twin       bool   // answers of hooks are kept, to find out which of them differs
	patterns   patterns
	kept       map[passingKey]*passing // nodes of groups that pass the filters
	blocks     []int32                 // memory of refreshMany
	changed    []*cluster.Node         // memory of update
	sharing    bool                    // equal nodes may be judged together
	domains    domains
}

// code is a kind of rejection. Rankings keep its number for every node.
type code struct {
	plugin     string
	reason     Reason
	cure       Cure
	precedence int8
}

// maxEntries bounds memory: a ranking has an entry of about 12 bytes for each node, or of about 20
// if static scores give many different points, and the answers that it keeps for patterns, which take
// as much as keptEntries entries. If there are more entries, the ranking that was used least recently
// is dropped, as long as there are more than minRankings.
const (
	maxEntries  = 25_000_000
	keptEntries = 1_000
	minRankings = 16
)

// maxCodes is far more than the number of reasons of all plugins. A plugin that exceeds it
// computes its reasons instead of using constants.
const maxCodes = 4096

func newIndex() *index {
	return &index{epoch: 1, params: map[string]uint64{}, learnt: map[string][]int64{}, rankings: map[*cluster.Shape]*ranking{}, codes: make([]code, 1)}
}

// ranking ranks all nodes for one shape.
type ranking struct {
	tree
	shape      *cluster.Shape
	version    uint64 // the version of State that it is up to date with
	epoch      uint64
	scoreEpoch uint64
	session    uint64   // the number of the session that its hooks are of
	lastUsed   uint64   // the value of index.clock at its last use
	statics    statics  // what static hooks answered
	codes      []uint16 // by slot: why the node is rejected; 0 if it is feasible or absent
	counts     []int32  // by code: how many nodes are rejected
	feasible   int      // how many nodes are feasible
	nodes      int      // how many nodes there are
	// For explanations: the counts with their reasons, and the rejected nodes that are nearest to
	// being feasible; nil if they are not known. lastNearest is the slot of the last of these.
	tallies     []Tally
	nearest     []Miss
	lastNearest int

	shares  bool        // equal nodes are judged together: all its hooks are declared with EqualNodes
	kept    keptAnswers // if shares is set
	answers hookAnswers // the answers of hooks, in twin sessions

	domainScorers []*hook[domainScore] // those that are called for the shape
	domainKeys    []int64              // by slot: what they add to the key of a feasible node
	domainClock   uint64               // the version of domains that the keys are up to date with

	// The hooks that are called for the shape.
	filters, staticFilters []compiledFilter
	scorers, staticScorers []*hook[ShapeScore]
}

// compiledFilter is a filter that is called for the shape of a ranking.
type compiledFilter struct {
	*hook[ShapeFilter]
	codes     []uint16 // the codes of its rejections so far, which are few
	remaining int64    // how many shape-form filters there are from this one on
}

// open prepares the index for a session. A new State drops all rankings.
func (x *index) open(view cluster.View, h *Hooks, fault *fault, twin bool) {
	anew := x.view != view
	if anew {
		x.view = view
		x.forget()
		x.patterns.forget()
	}
	x.hooks, x.fault, x.twin = h, fault, twin
	x.sessions++
	x.sharing = x.patterns.open(h)
	if !x.sameHooks(h) {
		x.epoch++
	}
	x.domains.open(h)
	if anew && x.sharing { // so that the first decision does not take longer than others
		x.patterns.all(view)
	}
}

// signature identifies a hook. If the signatures of all hooks are the same as in the last
// session, the remembered answers are still valid.
type signature struct {
	kind          byte // 'p' for a filter, 'w' for a filter of AddWholeFilter, 'o' for a node score, 'g' for a device score, 'm' for a score of domains
	plugin        string
	weight        int64
	static, bound bool
	level         string // of a domain score
}

// sameHooks reports whether the hooks are those of the last session, and remembers them.
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
	for _, p := range h.filters {
		sign(signature{kind: 'p', plugin: p.plugin, static: p.static})
	}
	for i := range h.taskFilters {
		if p := &h.taskFilters[i]; p.whole {
			sign(signature{kind: 'w', plugin: p.plugin})
		}
	}
	for i := range h.shapeScores {
		o := &h.shapeScores[i]
		sign(signature{kind: 'o', plugin: o.plugin, weight: o.weight, static: o.static, bound: o.isBound})
	}
	for i := range h.deviceScores { // node scores may depend on them, by Session.Devices
		sign(signature{kind: 'g', plugin: h.deviceScores[i].plugin, weight: h.deviceScores[i].weight})
	}
	for i := range h.domainScores {
		o := &h.domainScores[i]
		sign(signature{kind: 'm', plugin: o.plugin, weight: o.weight, level: o.fn.level})
	}
	same = same && at == len(x.signatures)
	x.signatures = x.signatures[:at]
	return same
}

// forget drops all rankings. After a panic, one of them may be judged only in part.
func (x *index) forget() {
	clear(x.rankings)
	clear(x.kept)
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
		x.dropOldest()
		r = &ranking{shape: shape}
		x.rankings[shape] = r
	}
	x.clock++
	r.lastUsed = x.clock
	if r.session != x.sessions {
		x.compile(r)
	}
	if len(r.domainScorers) > 0 {
		x.domains.follow(x.view)
	}
	if r.scoreEpoch != x.scoreEpoch {
		r.kept.forget()
	}
	if r.epoch != x.epoch || r.keys == nil {
		r.epoch, r.scoreEpoch = x.epoch, x.scoreEpoch
		x.rebuild(r)
	} else if r.version != x.view.Version() {
		x.refresh(r)
	}
	if len(r.domainScorers) > 0 && r.domainClock != x.domains.clock {
		x.refreshDomains(r)
	}
	if r.scoreEpoch != x.scoreEpoch {
		x.rescore(r)
	}
	if x.fault.err != nil {
		r.epoch = 0 // answers of a session that failed are not remembered
	}
	return r
}

func (x *index) dropOldest() {
	if n := len(x.rankings); n < minRankings || n*(x.view.Recent().Slots()+keptEntries) < maxEntries {
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

// compile lists the hooks of the session that are called for the shape.
func (x *index) compile(r *ranking) {
	h := x.hooks
	r.session = x.sessions
	x.domainHooks(r)
	r.shares = x.sharing && len(r.shape.Need.Selected) == 0 // devices are selected by their IDs, in which equal nodes differ
	r.filters, r.staticFilters = r.filters[:0], r.staticFilters[:0]
	r.scorers, r.staticScorers = r.scorers[:0], r.staticScorers[:0]
	for _, p := range h.filters {
		if p.shapes != nil && !p.shapes(r.shape) {
			continue
		}
		r.shares = r.shares && p.equal.declared
		list := &r.filters
		if p.static {
			list = &r.staticFilters
		}
		*list = append(*list, compiledFilter{hook: p, remaining: int64(len(h.filters) - p.order)})
	}
	for i := range h.shapeScores {
		o := &h.shapeScores[i]
		if o.shapes != nil && !o.shapes(r.shape) {
			continue
		}
		r.shares = r.shares && o.equal.declared
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
	r.statics.reset(n)
	r.codes = slices.Grow(r.codes[:0], n)[:n]
	r.counts, r.tallies, r.nearest = r.counts[:0], nil, nil
	r.feasible, r.nodes = 0, 0
	r.kept.forget()
	once := x.sharesAnswers(r)
	for slot := range n {
		var key int64
		var c uint16
		n := x.view.At(slot)
		if once && n != nil {
			key, c = x.judgeOnce(r, slot, n, true)
		} else {
			key, c = x.judge(r, slot, n, true)
		}
		key = x.withDomain(r, slot, n, key, c)
		r.keys[slot], r.codes[slot] = key, c
		r.count(key, c, +1)
	}
	r.build(x.view.Recent().Ranks())
	r.version, r.domainClock = x.view.Version(), x.domains.clock
}

// refresh judges the nodes that changed.
func (x *index) refresh(r *ranking) {
	recent := x.view.Recent()
	slots, lag := recent.Slots(), x.view.Version()-r.version // at most this many nodes changed
	grown := slots > len(r.keys)
	for len(r.keys) < slots {
		r.keys = append(r.keys, absent)
		r.codes = append(r.codes, 0)
	}
	r.statics.grow(slots)
	if lag > uint64(max(leastMany, slots/manyChanges)) {
		x.refreshMany(r)
		return
	}
	ranks := recent.Ranks()
	if grown {
		r.build(ranks)
	}
	// Slots that have a node with another name are emptied before any node is judged. Their old
	// keys must not be compared by the ranks of their new nodes.
	if recent.NodesAdded() > r.version {
		recent.Nodes(r.version, func(slot int) {
			if recent.AddedVersion(slot) > r.version {
				r.outdate(slot, r.keys[slot], absent, ranks)
				r.count(r.keys[slot], r.codes[slot], -1)
				r.set(slot, absent, ranks)
				r.codes[slot] = 0
			}
		})
	}
	once := lag >= fewChanges && r.shares && !x.patterns.yield.skips(int(lag)) && x.sharesAnswers(r)
	recent.Nodes(r.version, func(slot int) {
		if key, c, changed := x.judgeChanged(r, slot, once, ranks); changed {
			r.set(slot, key, ranks)
			r.codes[slot] = c
		}
	})
	r.version = x.view.Version()
}

// With fewer changes than fewChanges, equal nodes are not looked for. If more than leastMany slots,
// and more than one in manyChanges, may have changed, all slots are visited in order, and the tree
// is built again, which is faster than following the list of changes and updating the tree for each
// of them. Equal nodes are then looked for even if that was not worth its time before.
const (
	fewChanges  = 8
	manyChanges = 8
	leastMany   = 1000
)

// refreshMany is refresh for many changes.
func (x *index) refreshMany(r *ranking) {
	recent, once := x.view.Recent(), x.sharesAnswers(r)
	ranks := recent.Ranks()
	r.nearest = nil
	x.blocks = x.blocks[:0]
	for slot := range r.keys {
		if recent.NodeVersion(slot) <= r.version {
			continue
		}
		key, c, changed := x.judgeChanged(r, slot, once, ranks)
		if changed {
			r.keys[slot], r.codes[slot] = key, c
		}
		// A slot may have a node with another rank, even if its key is the same.
		if b := int32(slot / fanout); len(x.blocks) == 0 || x.blocks[len(x.blocks)-1] != b {
			x.blocks = append(x.blocks, b)
		}
	}
	r.update(x.blocks, ranks)
	r.version = x.view.Version()
}

// sharesAnswers reports whether equal nodes are judged once for the ranking. If so, it prepares the
// patterns for all its slots.
func (x *index) sharesAnswers(r *ranking) bool {
	if !r.shares {
		return false
	}
	if x.patterns.last > lastNumber {
		x.patterns.forget()
		x.patterns.last = 0
		for _, other := range x.rankings {
			other.kept.forget()
		}
	}
	x.patterns.begin(len(r.keys))
	return true
}

// judgeChanged judges the node in the slot after it changed. If its key or its code is another one
// than before, judgeChanged counts it and reports true.
func (x *index) judgeChanged(r *ranking, slot int, once bool, ranks []int64) (int64, uint16, bool) {
	n := x.view.At(slot)
	anew := true
	switch {
	case n == nil:
	case once:
		anew = x.patterns.specVersion(n, slot, x.view.Recent().NodeVersion(slot)) > r.version
	default:
		anew = n.SpecVersion() > r.version
	}
	if !anew && r.statics.answers[slot] == staticallyRejected {
		return 0, 0, false // a static filter rejects the node, whatever tasks hold of it
	}
	var key int64
	var c uint16
	if once && n != nil {
		key, c = x.judgeOnce(r, slot, n, anew)
	} else {
		key, c = x.judge(r, slot, n, anew)
	}
	key = x.withDomain(r, slot, n, key, c)
	r.outdate(slot, r.keys[slot], key, ranks)
	if key == r.keys[slot] && c == r.codes[slot] {
		return key, c, false
	}
	r.count(r.keys[slot], r.codes[slot], -1)
	r.count(key, c, +1)
	return key, c, true
}

// outdate drops the nearest misses if the node in the slot, of which the key changes, is or becomes
// one of them, or may be rejected in another way with the same key.
func (r *ranking) outdate(slot int, old, key int64, ranks []int64) {
	if r.nearest == nil {
		return
	}
	if most, last := max(old, key), r.keys[r.lastNearest]; most > last || most == last && ranks[slot] <= ranks[r.lastNearest] {
		r.nearest = nil
	}
}

func (r *ranking) count(key int64, c uint16, by int32) {
	if key == absent {
		return
	}
	r.tallies = nil
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

// judge returns the key and the code of the slot's node, which may be nil, for the shape. Static filters are
// called only if anew is set, and static scores only when the node first passes all filters.
func (x *index) judge(r *ranking, slot int, n *cluster.Node, anew bool) (int64, uint16) {
	if n == nil {
		return absent, 0
	}
	if anew {
		if key, c := x.filter(r, r.staticFilters, n); c != 0 {
			r.statics.answers[slot] = staticallyRejected
			return key, c
		}
		r.statics.answers[slot] = unscored
	}
	if key, c := x.filter(r, r.filters, n); c != 0 {
		return key, c
	}
	if r.statics.answers[slot] == unscored {
		points, ok := x.points(r, r.staticScorers, n)
		if !ok {
			return absent, 0
		}
		r.statics.score(slot, points)
	}
	points, ok := x.points(r, r.scorers, n)
	if !ok {
		return absent, 0
	}
	return r.statics.at(slot).points + points, 0
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
