package engine

import (
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
	codes      []code // by number; 0 and unsettledCode are not used
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

// maxEntries bounds memory: a ranking has an entry of about 12 bytes for each node, or of about 20
// if static scores give many different points, and the answers that it keeps for patterns, which take
// as much as keptEntries entries. If there are more entries, the ranking that was used least recently
// is dropped, as long as there are more than minRankings.
const (
	maxEntries  = 25_000_000
	keptEntries = 1_000
	minRankings = 16
)

func newIndex() *index {
	return &index{epoch: 1, params: map[string]uint64{}, learnt: map[string][]int64{}, rankings: map[*cluster.Shape]*ranking{}, codes: make([]code, unsettledCode+1)}
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
	unsettled   unsettled

	shares  bool        // equal nodes are judged together: all its hooks are declared with EqualNodes
	kept    keptAnswers // if shares is set
	answers hookAnswers // the answers of hooks, in twin sessions

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
	r.filters, r.staticFilters, r.quick = r.filters[:0], r.staticFilters[:0], r.quick[:0]
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
		r.shares = r.shares && o.equal.declared
		list := &r.scorers
		if o.static {
			list = &r.staticScorers
		}
		*list = append(*list, o)
	}
}
