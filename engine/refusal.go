package engine

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// Refusal is a job turned down in this session, with its rejections summed up. It
// holds names and copies, so that it stays true while the State changes.
type Refusal struct {
	Job string // its ID
	// Reason is the one that matters most: see headline.
	Reason Reason
	// Permanent refusals stay until something changes; waiting does not help.
	Permanent bool
	// Surplus: the job's minimum is placed, only tasks beyond it are not.
	Surplus bool
	// Attempts has one entry for each alternative that was tried; those that are one
	// choice between groups share one.
	Attempts []Attempt
	// Retry is when a patient session tries it again at the latest; 0: when something
	// changes that may help.
	Retry int64
	// Delayed is until when the job evicts and moves nothing, where its preemption
	// delay was what kept it from making room; 0: it tried.
	Delayed int64
	// Spared are the jobs that might have been victims and were protected, by purpose.
	Spared []Sparing
	// Settled: nothing that runs ends by itself, and sessions decide nothing any more,
	// so time alone does not help. The engine does not know that; a course does.
	Settled bool
}

// says reports whether the other refusal says the same of the job.
func (r *Refusal) says(o *Refusal) bool {
	x, y := *r, *o
	x.Retry, y.Retry = 0, 0
	return reflect.DeepEqual(&x, &y)
}

// Refusal is what a patient session said last of a job that waits, and when it is
// tried again at the latest; nil where none has refused it.
func (e *Engine) Refusal(job *cluster.Job) *Refusal {
	if e.backlog == nil || job.Slot() >= len(e.backlog.waiters) {
		return nil
	}
	n := e.backlog.waiters[job.Slot()]
	if n == nil || n.job != job || n.bucket == nil {
		return nil
	}
	r := *n.refusal
	if n.bucket.said > n.said {
		r = *n.bucket.refusal.about(job) // another like it was tried for it
	}
	r.Retry = n.bucket.parked.RetryAt
	return &r
}

// Attempt is one alternative that could not be placed.
type Attempt struct {
	Alternative string
	Task        Unplaced    // the first that found no place
	Placed, Min int         // tasks that had found one before, and how many must
	Nodes       int         // that were looked at
	Before      *Rejection  // turned down before any node was looked at
	Counts      []Tally     // nodes turned down, in filter order
	Nearest     []Miss      // nearest first: ten, or all where the session explains
	Whole       bool        // whole nodes of one group are asked for
	Groups      []GroupMiss // for whole nodes: each group, and what is wrong with it; there may be none
	// Subgroup is the one that is short; Placed and Min are then its own.
	Subgroup string
	// Level is the label whose domains are all too small; Domains are the best
	// of them, ten at most, and Nodes, Counts and Nearest are about the first.
	Level   string
	Domains []DomainMiss
	// Never: even with everybody else gone there is no room for the minimum.
	Never bool

	from, to int  // the alternatives that it is about
	untold   bool // the nearest misses are found once the job stays refused
}

// Unplaced is a task that found no place, and what it asks for.
type Unplaced struct {
	cluster.TaskRef
	Role     string
	Index    int
	Subgroup int            // its place among the alternative's, counted from 1; 0: in none
	Shape    *cluster.Shape // shapes never change
}

// unplaced copies what a refusal says of the task; there may be none where the session failed.
func unplaced(t *cluster.Task) Unplaced {
	if t == nil {
		return Unplaced{}
	}
	return Unplaced{t.Ref(), t.Role, t.Index, t.Subgroup, t.Shape}
}

// Tally counts rejections of one kind.
type Tally struct {
	Plugin string
	Reason Reason
	Cure   Cure
	Nodes  int

	precedence int8
}

// Miss is a node that was turned down.
type Miss struct {
	Node      string
	Rejection Rejection
}

// GroupMiss is a group that was turned down. Rejection is nil where the group
// would do once enough of its nodes are free.
type GroupMiss struct {
	Key       cluster.Key
	Nodes     int // of the group that passed the node filters
	Rejection *Rejection
}

// DomainMiss is a domain that has no room for all that must be in one.
type DomainMiss struct {
	Value string
	Nodes int
	Fits  int // tasks that it would hold, those that are there included
	Lacks int // nodes that are missing, as many as would hold the rest; 0: no node of the kind is known
}

// nearestMisses is how many misses a refusal keeps unless all are asked for.
const nearestMisses = 10

// explainer says why jobs are refused.
type explainer struct {
	finder *finder
	all    bool                       // every miss is told, and not only the nearest
	misses map[*cluster.Shape]*misses // what was found out
}

// explain sums up why no node would take the task.
func (e *explainer) explain(alt *cluster.Alternative, t *cluster.Task, in *scope, later uint64) *Attempt {
	byScan := e.finder.search == Scan || in != nil || e.tasksDecide(t)
	a := e.summary(t, in, byScan, later)
	if e.finder.search == Twin && !byScan {
		e.compare(a, e.summary(t, in, true, 0))
	}
	if slices.ContainsFunc(a.Counts, func(c Tally) bool { return c.Cure.Transient() }) {
		a.Never = e.never(alt, t, in)
	}
	return a
}

// tasksDecide reports whether a task-form filter may have turned a node down: it is
// only asked where no shape-form filter has.
func (e *explainer) tasksDecide(t *cluster.Task) bool {
	filters, _, _ := e.finder.taskHooks(t)
	return len(filters) > 0 && e.finder.index.ranking(t.Shape).feasible > 0
}

func (e *explainer) summary(t *cluster.Task, in *scope, byScan bool, later uint64) *Attempt {
	a := &Attempt{Task: unplaced(t), Nodes: len(e.finder.state.Nodes())}
	if in != nil {
		a.Nodes = len(e.finder.members(in))
	}
	if byScan {
		e.explainScan(a, t, in)
	} else {
		e.explainIndex(a, t, later)
	}
	return a
}

// compare fails the session where index and scan explain differently.
func (e *explainer) compare(index, scan *Attempt) {
	if !slices.Equal(index.Counts, scan.Counts) || !index.untold && !slices.Equal(index.Nearest, scan.Nearest) {
		e.finder.fault.fail("engine", "index and scan explain %s differently: %v, nearest %v; %v, nearest %v",
			index.Task.ID(), index.Counts, index.Nearest, scan.Counts, scan.Nearest)
	}
}

// misses are why no node takes a shape, as of a version of the nodes and an epoch of
// the index. Refusals of many jobs share them: they never change.
type misses struct {
	version, epoch uint64
	counts         []Tally
	nearest        []Miss // nil until they are told
}

// explainIndex reads counts and nearest misses off the ranking; what was worked out is
// kept while it holds. Nearest misses cost more than all the rest, so they are put off
// while the job may still get room.
func (e *explainer) explainIndex(a *Attempt, t *cluster.Task, later uint64) {
	m := e.missesOf(t.Shape)
	if a.Counts = m.counts; later > 0 && later == m.version {
		a.untold = true
		return
	}
	a.Nearest = e.nearest(m, t.Shape)
}

// tellNearest finds the nearest misses that were put off. The State is as it was then.
func (e *explainer) tellNearest(job *cluster.Job, r *Refusal) {
	for i := range r.Attempts {
		a := &r.Attempts[i]
		if !a.untold {
			continue
		}
		shape := a.Task.Shape
		a.untold, a.Nearest = false, e.nearest(e.missesOf(shape), shape)
		if e.finder.search == Twin {
			e.compare(a, e.summary(&cluster.Task{Job: job, Shape: shape}, nil, true, 0))
		}
	}
}

// missesOf counts why no node takes the shape, as things are.
func (e *explainer) missesOf(shape *cluster.Shape) *misses {
	version, x := e.finder.state.Version(), e.finder.index
	if m := e.misses[shape]; m != nil && m.version == version && m.epoch == x.epoch {
		return m
	}
	m := &misses{version: version, epoch: x.epoch}
	for c, n := range x.ranking(shape).counts {
		if n > 0 {
			k := &x.codes[c]
			m.counts = append(m.counts, Tally{k.plugin, k.reason, k.cure, int(n), k.precedence})
		}
	}
	e.sortTallies(m.counts)
	m.counts = slices.Clip(m.counts)
	if e.misses == nil {
		e.misses = map[*cluster.Shape]*misses{}
	}
	e.misses[shape] = m
	return m
}

// nearest are the nodes that came nearest to taking the shape.
func (e *explainer) nearest(m *misses, shape *cluster.Shape) []Miss {
	if m.nearest == nil {
		e.finder.index.ranking(shape).walk(e.finder.state.Ranks(), func(slot int) bool {
			n := e.finder.state.At(slot)
			if rejection, _ := e.finder.rejectShape(shape, n); rejection != nil {
				m.nearest = append(m.nearest, Miss{n.Name, *rejection})
			}
			return e.all || len(m.nearest) < nearestMisses
		})
		m.nearest = slices.Clip(m.nearest)
	}
	return m.nearest
}

// explainScan asks every node again: task-form filters have no ranking.
func (e *explainer) explainScan(a *Attempt, t *cluster.Task, in *scope) {
	type miss struct {
		Miss
		left int
	}
	var misses []miss
	filters, _, _ := e.finder.taskHooks(t)
	for _, n := range e.finder.state.Nodes() {
		if !in.has(n) {
			continue
		}
		r, left := e.finder.rejectAt(filters, t, n)
		if r == nil {
			continue
		}
		misses = append(misses, miss{Miss{n.Name, *r}, left})
		i := slices.IndexFunc(a.Counts, func(c Tally) bool {
			return c.Plugin == r.Plugin && c.Reason == r.Reason && c.Cure == r.Cure && c.precedence == r.Precedence
		})
		if i < 0 {
			i = len(a.Counts)
			a.Counts = append(a.Counts, Tally{r.Plugin, r.Reason, r.Cure, 0, r.Precedence})
		}
		a.Counts[i].Nodes++
	}
	e.sortTallies(a.Counts)
	slices.SortStableFunc(misses, func(a, b miss) int {
		return cmp.Or(cmp.Compare(a.left, b.left), cmp.Compare(a.Rejection.gap(), b.Rejection.gap()))
	})
	for i, m := range misses {
		if i == nearestMisses && !e.all {
			return
		}
		a.Nearest = append(a.Nearest, m.Miss)
	}
}

// filterOrder is each filter plugin's place: shape-form filters run first.
func (e *explainer) filterOrder() map[string]int {
	order := map[string]int{}
	for _, h := range e.finder.hooks.prePredicates {
		order[h.plugin] = 0
	}
	for _, h := range e.finder.hooks.shapePredicates {
		order[h.plugin] = 1 + h.order
	}
	for _, h := range e.finder.hooks.predicates {
		if _, known := order[h.plugin]; !known {
			order[h.plugin] = 1 + len(e.finder.hooks.shapePredicates) + h.order
		}
	}
	return order
}

func (e *explainer) sortTallies(list []Tally) {
	if len(list) < 2 {
		return
	}
	order := e.filterOrder()
	slices.SortFunc(list, func(a, b Tally) int {
		return cmp.Or(cmp.Compare(order[a.Plugin], order[b.Plugin]), strings.Compare(string(a.Reason), string(b.Reason)), cmp.Compare(a.Cure, b.Cure), cmp.Compare(a.precedence, b.precedence))
	})
}

// verdicts says of nodes whether shape-form filters turn the task down, and
// whether waiting may cure it: off the index, or by asking where the index is
// what is being checked.
func (f *finder) verdicts(t *cluster.Task) verdict {
	if f.search != Indexed {
		return func(n *cluster.Node) (bool, bool) {
			r, _ := f.rejectAt(nil, t, n)
			return r != nil, r != nil && r.Cure.Transient()
		}
	}
	x := f.index
	r := x.ranking(t.Shape)
	return func(n *cluster.Node) (bool, bool) {
		c := r.codes[n.Slot()]
		return c != 0, c != 0 && x.codes[c].cure.Transient()
	}
}

// refusal sums attempts up.
func (e *explainer) refusal(job *cluster.Job, attempts []Attempt, surplus bool) *Refusal {
	r := &Refusal{Job: job.ID, Attempts: attempts, Surplus: surplus, Permanent: true}
	var all []cause
	for i := range attempts {
		transient := attempts[i].transient()
		r.Permanent = r.Permanent && !transient
		for _, c := range attempts[i].tallies() {
			rank := 0
			switch {
			case c.Cure.Transient() && transient:
				rank = 1 // some node could
			case c.Cure.Transient():
				rank = -1 // the gang's own doing, and no cause
			}
			all = append(all, cause{c, rank})
		}
	}
	r.Reason = headline(all)
	return r
}

// Cure is everything that would help one of the attempts.
func (r *Refusal) Cure() Cure {
	var out Cure
	for i := range r.Attempts {
		a := &r.Attempts[i]
		for _, c := range a.tallies() {
			if !a.transient() {
				c.Cure &^= Wait | Evict
			}
			out |= c.Cure
		}
	}
	return out
}

// cause is a tally and how much it matters.
type cause struct {
	Tally
	rank int
}

// tallies are the attempt's rejections, those of groups and of the job included.
func (a *Attempt) tallies() []Tally {
	out := slices.Clone(a.Counts)
	if b := a.Before; b != nil {
		out = append(out, Tally{b.Plugin, b.Reason, b.Cure, a.Nodes, b.Precedence})
	}
	if a.Whole {
		out = out[:0]
		for _, g := range a.Groups {
			x := g.Rejection
			if x == nil && a.Unheld() != nil {
				return []Tally{*a.Unheld()}
			} else if x == nil {
				return []Tally{{Reason: GroupInUse, Cure: Wait | Evict, Nodes: g.Nodes}}
			}
			if x.Cure.Transient() {
				out = append(out, Tally{x.Plugin, x.Reason, x.Cure, g.Nodes, x.Precedence})
			}
		}
		out = append(out, Tally{Reason: NoSuitableGroup, Cure: Grow, Nodes: a.Nodes})
	}
	if a.Level != "" {
		cure := Wait | Evict
		if a.Never {
			cure = Grow
		}
		return []Tally{{Reason: NoDomainFits, Cure: cure, Nodes: a.Nodes}}
	}
	if len(out) == 0 {
		out = append(out, Tally{Reason: NoNodes, Cure: Grow})
	}
	return out
}

// Unheld is what there is to wait for where nobody holds what is waited for, such
// as a node that is not ready; nil where somebody does, or there is nothing. Of
// several it is what most nodes are waited for.
func (a *Attempt) Unheld() *Tally {
	var out *Tally
	for i := range a.Counts {
		switch c := &a.Counts[i]; {
		case c.Cure&Evict != 0:
			return nil
		case c.Cure.Transient() && (out == nil || c.Nodes > out.Nodes):
			out = c
		}
	}
	return out
}

func (a *Attempt) transient() bool {
	return !a.Never && slices.ContainsFunc(a.tallies(), func(c Tally) bool { return c.Cure.Transient() })
}

// headline picks the reason that matters most: what waiting can cure before what
// it cannot, since some node could; then the one that says more; then the one most nodes gave.
func headline(all []cause) Reason {
	best := slices.MaxFunc(all, func(a, b cause) int {
		return cmp.Or(
			cmp.Compare(a.rank, b.rank),
			cmp.Compare(a.precedence, b.precedence),
			cmp.Compare(a.Nodes, b.Nodes),
			-strings.Compare(string(a.Reason), string(b.Reason)),
		)
	})
	return best.Reason
}
