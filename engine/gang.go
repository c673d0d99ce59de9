package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// gang is an alternative on its way into the statement: who is placed, who is
// left, and where the rest may go. Tasks go in the order of the hooks, but
// surplus only when the job and all its subgroups have their minimum.
type gang struct {
	placer     *placer
	stmt       *Statement
	alt        *cluster.Alternative
	in         *scope // nothing of it goes anywhere else
	left       []*cluster.Task
	taskBuffer [4]*cluster.Task // room for those of a small job
	releasing  *cluster.Task    // one that was evicted and is not gone
	failedTask *cluster.Task    // one that failed
	least      int              // that must be placed
	placed     int
	members    []int // placed, by subgroup

	wanted, excluded []bool // subgroups that make the minimum, and those that may not; nil: all, none
	free             bool   // any subgroups may make it

	job  part
	subs []part // of the subgroups; only those with a topology of their own are used

	failed []*Attempt
	alone  *Attempt // one that nobody but the gang itself stands in the way of
	quiet  bool     // nobody wants to know why not
	steps  int      // allocations that tries may still make
	unsure bool     // the exact search did not see everything
}

// part is tasks that share a topology.
type part struct {
	trail []*scope // where its tasks go, the first that takes them; nil: not chosen yet
	full  []exhausted
}

// full says how many scopes of the trail have no room for the shape: more of the
// same will not find any there either.
type exhausted struct {
	shape  *cluster.Shape
	scopes int
}

func (p *part) firstOpen(shape *cluster.Shape) int {
	for i := range p.full {
		if p.full[i].shape == shape {
			return p.full[i].scopes
		}
	}
	return 0
}

func (p *part) markExhausted(shape *cluster.Shape, scopes int) {
	for i := range p.full {
		if p.full[i].shape == shape {
			p.full[i].scopes = scopes
			return
		}
	}
	p.full = append(p.full, exhausted{shape, scopes})
}

// gang takes stock of the alternative.
func (p *placer) gang(alt *cluster.Alternative, in *scope) *gang {
	g := &gang{placer: p, stmt: p.stmt, alt: alt, in: in, least: alt.Min, steps: trialSteps}
	if len(alt.Subgroups) > 0 {
		g.members, g.subs = make([]int, len(alt.Subgroups)), make([]part, len(alt.Subgroups))
	}
	g.left = g.taskBuffer[:0]
	for _, t := range alt.Tasks {
		switch {
		case t.Placed() || t.Status == cluster.Succeeded:
			if alt.Counts(t) {
				g.count(t, +1)
			}
		case t.Status == cluster.Pending:
			g.left = append(g.left, t)
		case t.Status == cluster.Failed:
			g.failedTask = t
		default:
			g.releasing = t
		}
	}
	if len(p.finder.hooks.taskOrders) > 0 {
		slices.SortStableFunc(g.left, p.shortage.compare)
	}
	if alt.Nested() {
		g.wanted = chosen(alt, g.members, nil, 0)
	}
	return g
}

func (g *gang) count(t *cluster.Task, by int) {
	g.placed += by
	if t.Subgroup > 0 {
		g.members[t.Subgroup-1] += by
	}
}

// lacks is how many tasks the subgroup's minimum is short of.
func (g *gang) lacks(sub int) int {
	if g.wanted != nil && !g.wanted[sub] {
		return 0
	}
	return max(0, g.alt.Subgroups[sub].Min-g.members[sub])
}

// open is how many more tasks the minimum needs that no subgroup's speaks for.
func (g *gang) lacksBeyondSubgroups() int {
	n := g.least - g.placed
	for i := range g.members {
		n -= g.lacks(i)
	}
	return max(0, n)
}

// needs is how many more tasks must be placed.
func (g *gang) needs() int {
	if g.free {
		return max(g.least-g.placed, g.alt.Least(func(sub int) int { return g.lacks(sub - 1) }))
	}
	n := g.lacksBeyondSubgroups()
	for i := range g.members {
		n += g.lacks(i)
	}
	return n
}

// part is where the task's topology is kept: its subgroup's, that of the first one
// around it that has one, or else the job's.
func (g *gang) part(t *cluster.Task) *part {
	switch {
	case t.Subgroup == 0:
		return &g.job
	case !g.alt.Subgroups[t.Subgroup-1].Topology.None():
		return &g.subs[t.Subgroup-1]
	}
	return g.around(t.Subgroup)
}

// partOf is the topology of the subgroup, or of the job for 0.
func (g *gang) partOf(sub int) *part {
	if sub == 0 {
		return &g.job
	}
	return &g.subs[sub-1]
}

// hopeful reports whether the task may still find a place.
func (g *gang) hopeful(t *cluster.Task) bool {
	if !g.wants(t.Subgroup) {
		return false
	}
	p := g.part(t)
	if p.trail != nil {
		return p.firstOpen(t.Shape) < len(p.trail)
	}
	outer := g.outermost(t.Subgroup)
	return outer > 0 && len(g.around(outer).trail) > 0 // a subgroup goes where what it is in may
}

// next finds the task to be placed next towards the minimum, -1 if nobody is
// left who could help. Whom a subgroup's minimum needs comes before whom only the
// job's does, unless the hooks say otherwise: the leader first.
func (g *gang) next() int {
	open, any := g.lacksBeyondSubgroups(), -1
	for i, t := range g.left {
		switch {
		case !g.hopeful(t):
		case t.Subgroup > 0 && g.lacks(t.Subgroup-1) > 0:
			if any >= 0 && g.placer.shortage.compare(g.left[any], t) < 0 {
				return any
			}
			return i
		case open > 0 && len(g.members) == 0:
			return i
		case open > 0 && any < 0:
			any = i
		}
	}
	return any
}

// minimum places tasks until the job and each subgroup have their minimum, and
// otherwise returns what stood in the way.
func (g *gang) minimum() *Attempt {
	for g.needs() > 0 {
		i := g.next()
		if i < 0 {
			return g.miss()
		}
		if g.take(i); g.placer.fault.err != nil {
			return g.miss()
		}
	}
	return nil
}

// surplus places so many tasks beyond the minimum, and returns why fewer fit. A
// subgroup that is not needed is placed as a whole.
func (g *gang) surplus(tasks int) *Attempt {
	if g.wanted != nil {
		before := len(g.left)
		g.extend(tasks)
		tasks -= before - len(g.left)
	}
	for i := 0; i < len(g.left) && tasks > 0 && g.placer.fault.err == nil; {
		before := len(g.left)
		if !g.hopeful(g.left[i]) || !g.take(i) {
			i++
		}
		tasks -= before - len(g.left)
	}
	switch {
	case tasks <= 0:
		return nil
	case len(g.failed) > 0:
		return g.failed[0]
	}
	return g.failedSubgroup()
}

// take places one of those that are left, or the part that it is the first of,
// and reports whether it did. Where the minimum is then out of reach, all others
// are given up too.
func (g *gang) take(i int) bool {
	t := g.left[i]
	p := g.part(t)
	if outer := g.outermost(t.Subgroup); outer > 0 {
		if a := g.settle(outer); a != nil {
			g.subs[outer-1].trail = []*scope{}
			g.fail(a)
			g.dropIfHopeless()
			return false
		}
		return true
	}
	for at := p.firstOpen(t.Shape); at < len(p.trail); at++ {
		if g.steps--; g.placer.placeTask(g.alt, t, p.trail[at]) {
			g.count(t, +1)
			if i == 0 {
				g.left = g.left[1:]
			} else {
				g.left = slices.Concat(g.left[:i], g.left[i+1:])
			}
			return true
		}
		p.markExhausted(t.Shape, at+1)
		if g.placer.fault.err != nil {
			break
		}
	}
	a := &Attempt{Task: unplaced(t)}
	if !g.quiet && g.placer.fault.err == nil {
		a = g.explain(t, p)
	}
	g.fail(a)
	g.dropIfHopeless()
	return false
}

// explain says why the task found no place. What was merely preferred is no
// reason: the last scope of a trail is the widest.
func (g *gang) explain(t *cluster.Task, p *part) *Attempt {
	if a := g.placer.finder.before(t); a != nil {
		return a
	}
	a := g.placer.explain(g.alt, t, p.trail[len(p.trail)-1])
	if !a.Never && a.transient() && g.onlyItselfInTheWay() {
		a.Never, g.alone = true, a
	}
	return a
}

// ownDoing reports whether nothing but the gang itself is in the way of any of its tasks.
// Where other jobs are in the way of one task, another may make room by being elsewhere.
func (g *gang) onlyItselfInTheWay() bool {
	if len(g.alt.Tasks) < 2 || !slices.ContainsFunc(g.alt.Tasks, func(t *cluster.Task) bool { return t.Node != nil }) {
		return false
	}
	return !slices.ContainsFunc(oneOfEachShape(g.alt.Tasks), func(t *cluster.Task) bool { return !g.placer.explainer.alone(g.alt, t) })
}

func (g *gang) fail(a *Attempt) {
	a.Alternative = g.alt.Name
	if a.Level == "" {
		a.Placed, a.Min = g.placed, g.least
	}
	g.failed = append(g.failed, a)
}

// giveUp drops everybody who is left where they would not make the minimum.
func (g *gang) dropIfHopeless() {
	if g.needs() == 0 {
		return
	}
	could := make([]int, len(g.members))
	others := 0
	for _, t := range g.left {
		if g.hopeful(t) {
			others++
			if t.Subgroup > 0 {
				could[t.Subgroup-1]++
			}
		}
	}
	hopeless := others < g.needs()
	for i := range could {
		hopeless = hopeless || could[i] < g.lacks(i)
	}
	if hopeless {
		g.left = nil
	}
}

// depleted says that too many tasks failed for the minimum; nil where enough are left.
func (g *gang) depleted() *Attempt {
	if g.failedTask == nil || g.alt.Enough(func(*cluster.Task) bool { return true }) {
		return nil
	}
	left := 0
	for _, t := range g.alt.Tasks {
		if t.Status != cluster.Failed {
			left++
		}
	}
	return &Attempt{Alternative: g.alt.Name, Task: unplaced(g.failedTask), Placed: g.placed, Min: g.least, Nodes: len(g.placer.finder.view.Nodes()),
		Before: &Rejection{Reason: TasksFailed, Want: Quantity{int64(g.least), Count}, Have: Quantity{int64(left), Count}}}
}

// stranded says that so many tasks of a surplus subgroup failed that those left do not
// make its minimum, so that none of them was tried; nil where there is no such subgroup.
func (g *gang) failedSubgroup() *Attempt {
	for _, t := range g.left {
		at := t.Subgroup
		if g.wants(at) {
			continue
		}
		for parent := g.alt.Subgroups[at-1].Parent; !g.wants(parent); parent = g.alt.Subgroups[at-1].Parent {
			at = parent
		}
		sub := &g.alt.Subgroups[at-1]
		return &Attempt{Alternative: g.alt.Name, Task: unplaced(t), Subgroup: sub.Name, Placed: g.members[at-1], Min: sub.Min, Nodes: len(g.placer.finder.view.Nodes()),
			Before: &Rejection{Reason: TasksFailed, Want: Quantity{int64(sub.Min), Count}, Have: Quantity{int64(possible(g.alt)[at-1]), Count}}}
	}
	return nil
}

// miss is what kept the minimum from being placed: the subgroup that is short,
// if one is, or the first task that found no place.
func (g *gang) miss() *Attempt {
	var a *Attempt
	for _, f := range g.failed {
		if sub := f.Task.Subgroup; a == nil || sub > 0 && g.lacks(sub-1) > 0 {
			if a = f; sub > 0 && g.lacks(sub-1) > 0 {
				break
			}
		}
	}
	if a != nil && !a.transient() && g.canDoWithout() {
		// Those who can never be placed are not needed: what the others wait for counts.
		if i := slices.IndexFunc(g.failed, (*Attempt).transient); i >= 0 {
			a = g.failed[i]
		}
	}
	if a == nil {
		a = g.depleted()
	}
	if a == nil {
		if g.releasing == nil {
			g.releasing = g.alt.Tasks[0] // none is left to be placed, and none failed
		}
		return &Attempt{Alternative: g.alt.Name, Task: unplaced(g.releasing), Placed: g.placed, Min: g.least,
			Nodes: len(g.placer.finder.view.Nodes()), Before: &Rejection{Reason: StillLeaving, Cure: Wait}}
	}
	if sub := a.Task.Subgroup; a.Level == "" && sub > 0 && g.lacks(sub-1) > 0 {
		a.Subgroup, a.Placed, a.Min = g.alt.Subgroups[sub-1].Name, g.members[sub-1], g.alt.Subgroups[sub-1].Min
	}
	return a
}

// canDoWithout reports whether the minimum can be made by tasks other than those
// that no waiting would help.
func (g *gang) canDoWithout() bool {
	var never []*cluster.Shape
	for _, f := range g.failed {
		if !f.transient() {
			never = append(never, f.Task.Shape)
		}
	}
	return g.alt.Enough(func(t *cluster.Task) bool { return t.Placed() || !slices.Contains(never, t.Shape) })
}
