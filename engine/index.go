package engine

import (
	"github.com/berth-project/berth/cluster"
)

// index keeps, for each shape in use, a ranking of all nodes: the feasible nodes by score,
// then the rejected ones by how near they are to being feasible. Nodes that are equal are peers and
// have one entry. When a ranking is used again, only the peers that it does not know are judged. The
// index lives as long as the engine.
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
	codes      []code                  // by number; 0 and unsettledCode are not used
	clock      uint64                  // counts uses of rankings
	sessions   uint64                  // how many sessions were opened
	twin       bool                    // answers of hooks are kept, to find out which of them differs
	single     division                // each node has no peers
	equal      division                // equal nodes are peers
	variety    variety                 // by which one of them is used
	entries    int                     // how many entries all rankings have
	kept       map[passingKey]*passing // nodes of groups that pass the filters
	blocks     []int32                 // memory of refreshMany and rescore
	changed    []*cluster.Node         // memory of update
	sharing    bool                    // equal nodes may be judged together
	domains    domains
}

// maxEntries bounds memory: an entry of a ranking takes about 22 bytes, and everything else of a ranking
// is counted as so many entries, at least fixedEntries. If there are more, the ranking that was used least
// recently is dropped, as long as there are more than minRankings.
const (
	maxEntries   = 25_000_000
	fixedEntries = 1_000
	minRankings  = 16
)

func newIndex() *index {
	x := &index{epoch: 1, params: map[string]uint64{}, learnt: map[string][]int64{}, rankings: map[*cluster.Shape]*ranking{}, codes: make([]code, unsettledCode+1), variety: newVariety()}
	x.equal.patterns = &patterns{}
	return x
}

// ranking ranks all nodes for one shape. It has an entry for the peers of each number of its division.
type ranking struct {
	tree
	shape    *cluster.Shape
	division *division
	shares   bool // equal nodes have the same keys and codes
	// exceptDomains is set if equal nodes would have the same keys and codes without scores of domains. The
	// ranking then has an entry for each node, and keeps answers without these scores; keptGeneration is the
	// generation of index.equal that their patterns are of.
	exceptDomains  bool
	keptGeneration uint64
	generation     uint64 // of the division
	version        uint64 // the version of the division that it is up to date with
	reranks        uint64 // Recent.Reranks at that version
	epoch          uint64
	scoreEpoch     uint64
	session        uint64      // the number of the session that its hooks are of
	lastUsed       uint64      // the value of index.clock at its last use
	span           uint64      // the last span in which index.variety has counted it
	counted        int         // how many entries index.entries has of it
	statics        statics     // what static hooks answered, by division.spec
	codes          []uint16    // by entry: why the nodes are rejected; 0 if they are feasible, or there are none
	sizes          []int32     // by entry: how many nodes there are; nil if there is at most one
	kept           keptAnswers // of nodes that are equal
	counts         []int32     // by code: how many nodes are rejected
	feasible       int         // how many nodes are feasible
	tallies        []Tally     // for explanations: the counts with their reasons; nil if they are not known
	nearest        nearestNodes
	unsettled      unsettled
	walks          int         // how many walks visit its nodes at the moment
	answers        hookAnswers // the answers of hooks, in twin sessions
	compared       uint64      // in twin sessions: the version of State at which equal nodes were compared

	domainScorers []*hook[domainScore] // those that are called for the shape
	domainKeys    []int64              // by slot: what they add to the key of a feasible node
	domainClock   uint64               // the version of domains that the keys are up to date with

	// The hooks that are called for the shape.
	filters, staticFilters []compiledFilter
	quick                  []*hook[ShapeFilter] // those of filters that have a cheap test
	scorers, staticScorers []*hook[ShapeScore]
}

// compiledFilter is a filter that is called for the shape of a ranking.
type compiledFilter struct {
	*hook[ShapeFilter]
	codes     []uint16 // the codes of its rejections so far, which are few
	remaining int64    // how many shape-form filters there are from this one on
}

// open prepares the index for a session. A new State drops all rankings. Same says that the hooks are
// those of the last session.
func (x *index) open(view cluster.View, h *Hooks, fault *fault, same, twin bool) {
	anew := x.view != view
	if anew {
		x.view = view
		x.forget()
	}
	if twin && !x.twin { // answers of hooks were not kept meanwhile
		for _, r := range x.rankings {
			r.answers, r.compared = nil, 0
		}
	}
	x.hooks, x.fault, x.twin = h, fault, twin
	x.sessions++
	if same {
		return
	}
	sharing, changed := x.equal.patterns.open(h)
	if x.sharing = sharing; changed {
		x.equal.forget()
	}
	if !x.sameHooks(h) {
		x.epoch++
	}
	x.domains.open(h)
	if anew && x.sharing { // so that the first decision does not take longer than others
		x.equal.follow(view)
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
	x.entries = 0
}

func (x *index) publish(plugin string, parameters uint64) {
	if x.params[plugin] != parameters {
		x.params[plugin] = parameters
		x.epoch++
	}
}

// ranking returns the shape's ranking, up to date, unless a walk visits it at the moment.
func (x *index) ranking(shape *cluster.Shape) *ranking {
	r := x.rankings[shape]
	if r != nil && r.walks > 0 {
		return r // a hook that the walk calls requests it
	}
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
		r.kept.forgetScores()
	}
	d, since := x.divisionOf(r), r.version
	d.follow(x.view)
	if r.exceptDomains {
		if x.equal.follow(x.view); r.keptGeneration != x.equal.generation {
			r.kept.forget()
			r.keptGeneration = x.equal.generation
		}
	}
	if r.epoch != x.epoch || r.division != d || r.generation != d.generation {
		r.epoch, r.scoreEpoch, r.division = x.epoch, x.scoreEpoch, d
		x.rebuild(r)
	} else if r.version != d.now() || r.reranks != x.view.Recent().Reranks() {
		x.refresh(r)
	}
	if r.shares {
		x.variety.note(r)
	}
	if len(r.domainScorers) > 0 && r.domainClock != x.domains.clock {
		x.refreshDomains(r)
	}
	if r.scoreEpoch != x.scoreEpoch {
		x.rescore(r, since)
	}
	if x.twin {
		x.compareEqual(r)
	}
	if r.shares && (r.division == &x.single) != x.variety.few {
		x.regroup(r)
	}
	size := len(r.keys) + len(r.kept.places) + len(r.statics.answers)/8 + fixedEntries
	x.entries += size - r.counted
	r.counted = size
	if x.fault.err != nil {
		r.epoch = 0 // answers of a session that failed are not remembered
	}
	return r
}

// divisionOf returns the division by which the ranking is brought up to date. If all nodes must be judged,
// or many, equal nodes are judged once.
func (x *index) divisionOf(r *ranking) *division {
	switch {
	case !r.shares:
		return &x.single
	case r.epoch != x.epoch || r.division == &x.single && areMany(x.view.Version()-r.version, len(r.keys)):
		return &x.equal
	}
	return r.division
}

func (x *index) dropOldest() {
	if len(x.rankings) < minRankings || x.entries < maxEntries {
		return
	}
	var oldest *ranking
	for _, r := range x.rankings {
		if oldest == nil || r.lastUsed < oldest.lastUsed {
			oldest = r
		}
	}
	x.entries -= oldest.counted
	delete(x.rankings, oldest.shape)
}

// compile lists the hooks of the session that are called for the shape. They are listed in each session
// again, because hooks may matter for other shapes than before.
func (x *index) compile(r *ranking) {
	h := x.hooks
	r.session = x.sessions
	x.domainHooks(r)
	shares := x.sharing && len(r.shape.Need.Selected) == 0 // devices are selected by their IDs, in which equal nodes differ
	r.filters, r.staticFilters, r.quick = r.filters[:0], r.staticFilters[:0], r.quick[:0]
	r.scorers, r.staticScorers = r.scorers[:0], r.staticScorers[:0]
	for _, p := range h.filters {
		if p.shapes != nil && !p.shapes(r.shape) {
			continue
		}
		shares = shares && p.equal.declared
		list := &r.filters
		if p.static {
			list = &r.staticFilters
		}
		if p.quick != nil {
			r.quick = append(r.quick, p)
		}
		*list = append(*list, compiledFilter{hook: p, remaining: int64(len(h.filters) - p.order)})
	}
	for i := range h.shapeScores {
		o := &h.shapeScores[i]
		if o.shapes != nil && !o.shapes(r.shape) {
			continue
		}
		shares = shares && o.equal.declared
		list := &r.scorers
		if o.static {
			list = &r.staticScorers
		}
		*list = append(*list, o)
	}
	inDomains := len(r.domainScorers) > 0 // equal nodes may be in other domains
	if now := shares && !inDomains; r.shares != now {
		r.shares, r.epoch = now, 0
	}
	if now := shares && inDomains; r.exceptDomains != now {
		r.exceptDomains, r.epoch = now, 0
	}
}

// keyAt returns the key of the node in the slot.
func (r *ranking) keyAt(slot int) int64 { return r.keys[r.division.of(slot)] }

// codeAt returns the code of the node in the slot.
func (r *ranking) codeAt(slot int) uint16 { return r.codes[r.division.of(slot)] }
