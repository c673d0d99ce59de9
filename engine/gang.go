package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// gang is the state of placing one alternative of a job: which tasks are placed, which are
// left, and in which scopes these may be placed. Tasks are placed in the order of the
// TaskOrder hooks, and surplus only when the job and all its subgroups have their minimum.
type gang struct {
	placer     *placer
	stmt       *Statement
	alt        *cluster.Alternative
	in         *scope           // all tasks are kept to this scope
	left       []*cluster.Task  // the pending tasks that are not placed yet
	taskBuffer [4]*cluster.Task // memory for left, enough for most jobs
	releasing  *cluster.Task    // a task that was evicted and still holds its room; nil if there is none
	failedTask *cluster.Task    // a task that failed; nil if there is none
	least      int              // the minimum of the job
	placed     int              // how many tasks count for the minimum
	members    []int            // the same by subgroup

	wanted, excluded []bool // subgroups that make up the minimum, and subgroups that must not; nil means all, and none
	free             bool   // any choice of subgroups may make up the minimum

	job  placementPart
	subs []placementPart // by subgroup; only those with a topology of their own are used

	failed []*Attempt
	alone  *Attempt // the attempt that only tasks of the gang itself prevented; nil if there is none
	quiet  bool     // failed attempts are not explained
	steps  int      // how many allocations trials of domains may still make
	unsure bool     // the exact search did not cover all arrangements
}

// placementPart is the tasks of a job or subgroup that share a topology.
type placementPart struct {
	scopeList []*scope // the scopes in which its tasks are placed, tried in order; nil if they are not chosen yet
	full      []exhausted
}

// exhausted says how many scopes at the beginning of a scopeList have no room for the shape, so
// that further tasks of the shape are not tried there.
type exhausted struct {
	shape  *cluster.Shape
	scopes int
}

// firstOpen returns the index of the first scope of the list that may have room for the
// shape.
func (p *placementPart) firstOpen(shape *cluster.Shape) int {
	for i := range p.full {
		if p.full[i].shape == shape {
			return p.full[i].scopes
		}
	}
	return 0
}

// markExhausted records that the first scopes of the list have no room for the shape.
func (p *placementPart) markExhausted(shape *cluster.Shape, scopes int) {
	for i := range p.full {
		if p.full[i].shape == shape {
			p.full[i].scopes = scopes
			return
		}
	}
	p.full = append(p.full, exhausted{shape, scopes})
}

// gang returns the state of placing the alternative in the scope. It counts the tasks that
// are placed already.
func (p *placer) gang(alt *cluster.Alternative, in *scope) *gang {
	spare := p.stmt.clerk.spare
	var g *gang
	if n := len(spare.gangs); n > 0 {
		g, spare.gangs = spare.gangs[n-1], spare.gangs[:n-1]
	} else {
		g = &gang{}
	}
	*g = gang{placer: p, stmt: p.stmt, alt: alt, in: in, least: alt.Min, steps: trialSteps}
	if len(alt.Subgroups) > 0 {
		g.members, g.subs = make([]int, len(alt.Subgroups)), make([]placementPart, len(alt.Subgroups))
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

// lacks returns how many more tasks the subgroup needs for its minimum.
func (g *gang) lacks(sub int) int {
	if g.wanted != nil && !g.wanted[sub] {
		return 0
	}
	return max(0, g.alt.Subgroups[sub].Min-g.members[sub])
}

// lacksBeyondSubgroups returns how many more tasks the minimum of the job needs in addition to
// those that the minima of its subgroups need.
func (g *gang) lacksBeyondSubgroups() int {
	n := g.least - g.placed
	for i := range g.members {
		n -= g.lacks(i)
	}
	return max(0, n)
}

// needs returns how many more tasks must be placed for all minima.
func (g *gang) needs() int {
	if g.free {
		return max(g.least-g.placed, g.alt.LeastSum(func(sub int) int { return g.lacks(sub - 1) }))
	}
	n := g.lacksBeyondSubgroups()
	for i := range g.members {
		n += g.lacks(i)
	}
	return n
}

// partFor returns the part with the topology that holds for the task: that of its subgroup, of the
// nearest enclosing subgroup that has a topology, or else of the job.
func (g *gang) partFor(t *cluster.Task) *placementPart {
	switch {
	case t.Subgroup == 0:
		return &g.job
	case !g.alt.Subgroups[t.Subgroup-1].Topology.None():
		return &g.subs[t.Subgroup-1]
	}
	return g.around(t.Subgroup)
}

// partOf returns the part of the subgroup, or of the job if sub is 0.
func (g *gang) partOf(sub int) *placementPart {
	if sub == 0 {
		return &g.job
	}
	return &g.subs[sub-1]
}

// hopeful reports whether the task might still be placed.
func (g *gang) hopeful(t *cluster.Task) bool {
	if !g.wants(t.Subgroup) {
		return false
	}
	p := g.partFor(t)
	if p.scopeList != nil {
		return p.firstOpen(t.Shape) < len(p.scopeList)
	}
	outer := g.outermost(t.Subgroup)
	return outer > 0 && len(g.around(outer).scopeList) > 0 // its domain is chosen within the scopes of what encloses it
}

// next returns the index of the task to be placed next towards the minimum, or -1 if no task
// that is left can help. A task that the minimum of its subgroup needs is placed before one
// that only the minimum of the job needs, unless the TaskOrder hooks put the latter first,
// such as a leader.
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

// minimum places tasks until the job and each subgroup have their minimum. It returns nil if
// they have, and otherwise the attempt that failed.
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

// surplus places the given number of surplus tasks. It returns nil if all of them are placed,
// and otherwise the attempt that failed. A subgroup that the minimum does not need is placed
// with its own minimum or not at all.
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

// take places the i-th of the tasks that are left, and reports whether it did. If the task is
// the first of a subgroup that has no domain yet, it places the minimum of that
// subgroup. If the minimum can no longer be reached after a failure, all tasks that are left
// are dropped.
func (g *gang) take(i int) bool {
	t := g.left[i]
	p := g.partFor(t)
	if outer := g.outermost(t.Subgroup); outer > 0 {
		if a := g.chooseSubgroupDomain(outer); a != nil {
			g.subs[outer-1].scopeList = []*scope{}
			g.fail(a)
			g.dropIfHopeless()
			return false
		}
		return true
	}
	for at := p.firstOpen(t.Shape); at < len(p.scopeList); at++ {
		if g.steps--; g.placer.placeTask(g.alt, t, p.scopeList[at]) {
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
	if g.quiet || g.placer.fault.err != nil {
		g.fail(&Attempt{Task: unplaced(t)})
	} else {
		g.fail(g.explain(t, p))
	}
	g.dropIfHopeless()
	return false
}

// explain returns why the task was not placed. It explains the last scope of the list, which
// is the widest, since scopes that were only preferred are no reason for a refusal.
func (g *gang) explain(t *cluster.Task, p *placementPart) *Attempt {
	if a := g.placer.finder.before(t); a != nil {
		return a
	}
	a := g.placer.explain(g.alt, t, p.scopeList[len(p.scopeList)-1])
	if !a.Never && a.transient() && g.onlyItselfInTheWay() {
		a.Never, g.alone = true, a
	}
	return a
}

// onlyItselfInTheWay reports whether only tasks of the gang itself prevent the placement of
// its tasks, so that waiting cannot help. If another job is in the way of any task of the
// gang, that task may be placed elsewhere later and so make room for the others.
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

// dropIfHopeless drops all tasks that are left, if they are too few for the minimum.
func (g *gang) dropIfHopeless() {
	if g.needs() == 0 {
		return
	}
	bySubgroup := make([]int, len(g.members))
	total := 0
	for _, t := range g.left {
		if g.hopeful(t) {
			total++
			if t.Subgroup > 0 {
				bySubgroup[t.Subgroup-1]++
			}
		}
	}
	hopeless := total < g.needs()
	for i := range bySubgroup {
		hopeless = hopeless || bySubgroup[i] < g.lacks(i)
	}
	if hopeless {
		g.left = nil
	}
}

// depleted returns an attempt that says that too many tasks have failed for the minimum. It
// returns nil if enough are left.
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

// failedSubgroup returns an attempt that says that too many tasks of a surplus subgroup have
// failed for its minimum, so that its other tasks were not tried. It returns nil if there is
// no such subgroup.
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

// miss returns the attempt that prevented the minimum: of a task in a subgroup that lacks its
// minimum, if there is one, and otherwise of the first task that was not placed.
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
		// The minimum does not need the tasks that can never be placed, so the reason for
		// which other tasks wait counts.
		if i := slices.IndexFunc(g.failed, (*Attempt).transient); i >= 0 {
			a = g.failed[i]
		}
	}
	if a == nil {
		a = g.depleted()
	}
	if a == nil {
		if g.releasing == nil {
			g.releasing = g.alt.Tasks[0] // the attempt needs a task, and no task is pending or failed
		}
		return &Attempt{Alternative: g.alt.Name, Task: unplaced(g.releasing), Placed: g.placed, Min: g.least,
			Nodes: len(g.placer.finder.view.Nodes()), Before: &Rejection{Reason: StillReleasing, Cure: Wait}}
	}
	if sub := a.Task.Subgroup; a.Level == "" && sub > 0 && g.lacks(sub-1) > 0 {
		a.Subgroup, a.Placed, a.Min = g.alt.Subgroups[sub-1].Name, g.members[sub-1], g.alt.Subgroups[sub-1].Min
	}
	return a
}

// canDoWithout reports whether the minimum can be reached without the tasks that were refused
// permanently.
func (g *gang) canDoWithout() bool {
	var never []*cluster.Shape
	for _, f := range g.failed {
		if !f.transient() {
			never = append(never, f.Task.Shape)
		}
	}
	return g.alt.Enough(func(t *cluster.Task) bool { return t.Placed() || !slices.Contains(never, t.Shape) })
}
