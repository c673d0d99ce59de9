package engine

import (
	"cmp"
	"errors"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// nodewise searches for a plan node by node: it makes room for one task after the other,
// each on the node where that costs least.
type nodewise struct {
	planning
	ways *evictionWays

	evicted    bool // victims of the plan so far are evicted in the statement
	looks      int  // nodes for which a plan was searched for and not found
	weighed    []Option
	keeps      bool             // evictions that look finds may stay in the statement
	sums       []cluster.Amount // what the lacking tasks request together, of the resources that were asked for
	sumsMemory [2]cluster.Amount
	once       *staying // nil if evictions do not stay when greedy returns
	nodewiseMemory
}

// nodewiseMemory is lists that are used again for the next node.
type nodewiseMemory struct {
	scratch []*cluster.Task
	prices  []price
	line    []rival
}

// greedy makes room task by task. A task that fits a node without victims is placed there;
// otherwise room is made on the node where that costs least. If the job must stay within a
// node group or a domain, each is tried and the cheapest counts. It returns the victims, or
// nil if there is no plan, and rolls back its changes unless they stay: see
// staying.
func (w *nodewise) greedy() []*Victim {
	var best []*Victim
	var least cost
	scopes := w.scopes()
	for i, in := range scopes {
		if i == maxScopes || w.fault.err != nil {
			break
		}
		mark := w.stmt.Checkpoint()
		w.placer.sketches = true
		plan := w.planWithin(in, len(scopes) == 1)
		w.placer.sketches = false
		if w.once != nil && w.once.stays {
			return plan
		}
		if len(scopes) == 1 {
			w.stmt.Rollback(mark)
			return plan
		}
		spent := w.evictor.victims.costOf(plan)
		spent.beyond = w.stmt.beyond(mark)
		w.stmt.Rollback(mark)
		if plan == nil {
			continue
		}
		if best == nil || spent.compare(&least) < 0 {
			best, least = plan, spent
		}
	}
	return best
}

// scopes returns the scopes in which the whole job may be placed: node groups, domains, or
// the whole cluster.
func (w *nodewise) scopes() []*scope {
	alt := w.want.alt()
	var out []*scope
	switch {
	case alt.Whole != nil:
		home := w.placer.homeGroup(w.want.job, alt)
		for _, g := range w.view.Groups() {
			if (home == nil || g.Key == *home) && (!namesGroup(alt) || g.Key == *alt.Whole.Only) {
				out = append(out, &scope{group: g})
			}
		}
	case alt.Topology.Required != "":
		for _, in := range w.finder.split(nil, alt.Topology.Required) {
			if !slices.ContainsFunc(alt.Tasks, func(t *cluster.Task) bool { return t.Placed() && !in.has(t.At()) }) {
				out = append(out, in)
			}
		}
	default:
		out = everywhere
	}
	return out
}

// planWithin is greedy in one scope. It leaves its changes in the statement. If only is set, there
// is no other scope to compare the plan with, so its last task need not be placed: the plan is
// tried in any case.
func (w *nodewise) planWithin(in *scope, only bool) []*Victim {
	var plan []*Victim
	moves, kept := false, false
	w.weighed, w.evicted = nil, false // the options of other scopes do not belong to this plan
	for i, t := range w.want.lacks {
		fits := w.finder.best(t, in) != nil
		if fits && len(w.finder.hooks.reservers) > 0 { // a Reserver may reject all nodes
			mark := w.stmt.Checkpoint()
			fits = w.placer.placeTask(w.want.alt(), t, in)
			w.stmt.Rollback(mark)
		}
		if !fits {
			h := w.heap(t, in)
			w.keeps = !w.placer.explainer.all // other options are searched for otherwise
			e := h.cheapest(w, t)
			w.keeps = false
			if e == nil || w.fault.err != nil {
				return nil
			}
			w.noteOptions(h, t, e)
			if kept = e.kept; !kept && !w.evictor.evictInOrder(e.plan) {
				return nil
			}
			plan, w.evicted, moves = append(plan, e.plan...), true, moves || hasMoves(e.plan)
		}
		if only && !moves && i == len(w.want.lacks)-1 && len(w.finder.hooks.reservers) == 0 {
			if w.finder.before(t) != nil || w.finder.best(t, in) == nil {
				return nil
			}
			if w.once != nil {
				w.once.stays = kept && len(plan) == 1 && plan[0] == w.once.first
			}
			break
		}
		if !w.placer.placeTask(w.want.alt(), t, in) {
			return nil
		}
		if moves && !w.trial.canReserveMoves(plan) {
			return nil
		}
	}
	return plan
}

// look finds the cheapest victims that make the task fit the node. Candidates are tried in
// three orders: the order of rivals, the largest first, which takes fewer tasks, and the
// smallest first, which frees less room beyond what is needed. If plugins give costs to
// victims, two orders by cost are tried after the first. look reports whether the victims are
// evicted, which they are only if keeps is set and no other plan was tried.
func (w *nodewise) look(t *cluster.Task, n *cluster.Node) (plan []*Victim, spent cost, kept bool) {
	line := w.ways.rivalsOn(n, w.line)
	w.line = line
	slices.SortFunc(line, func(a, b rival) int { return a.compare(&b) })
	idle, alike := idleOn(n), !slices.ContainsFunc(line, func(c rival) bool { return size(line[0].task) != size(c.task) })
	best, kept := w.lookAndKeep(t, n, line, false, w.keeps && alike && !w.evictor.victims.priced())
	if best == nil && w.ways.way&moving != 0 {
		best = w.lookIn(t, n, line, true) // some gangs can move only as a whole
	}
	spent = w.planCost(t, n, idle, best)
	if best != nil && w.evictor.victims.priced() {
		best, spent = w.lookByCost(t, n, line, best, spent)
	}
	if best == nil || alike {
		return best, spent, kept
	}
	for _, sign := range [...]int{1, -1} {
		slices.SortStableFunc(line, func(a, b rival) int {
			return cmp.Or(cmp.Compare(b.tier, a.tier), cmp.Compare(a.task.Job.Priority, b.task.Job.Priority), sign*cmp.Compare(size(b.task), size(a.task)))
		})
		if other := w.lookIn(t, n, line, false); other != nil {
			if c := w.planCost(t, n, idle, other); c.compare(&spent) < 0 {
				best, spent = other, c
			}
		}
	}
	return best, spent, false
}

// planCost returns what the plan for one task on one node costs. idle is what idleOn returned
// before any victim was evicted.
func (w *nodewise) planCost(t *cluster.Task, n *cluster.Node, idle int64, plan []*Victim) cost {
	c := w.evictor.victims.costOf(plan)
	here := int64(0)
	for _, v := range plan {
		if v.Purpose == Move {
			continue
		}
		for _, o := range v.Tasks {
			if o.Node == n {
				here += freed([]*cluster.Task{o})
			} else {
				c.beyond += freed([]*cluster.Task{o})
			}
		}
	}
	c.beyond += max(0, here-max(0, w.accounts.devicesOf(t.Shape).Least-idle))
	return c
}

// idleOn returns how much of the node's devices is free, in thousandths of a device.
func idleOn(n *cluster.Node) int64 {
	sum := int64(0)
	for i := range n.Devices {
		sum += int64(max(0, n.Devices[i].FreeMilli()))
	}
	return sum
}

// lookIn evicts rivals in the given order until the task fits the node, and then moves
// rivals if it does not fit yet. It then drops the victims without which the task fits as
// well, the last first. If whole is set, all members of a gang move together. It returns nil
// if the task cannot be made to fit, and rolls back its changes.
func (w *nodewise) lookIn(t *cluster.Task, n *cluster.Node, line []rival, whole bool) []*Victim {
	plan, _ := w.lookAndKeep(t, n, line, whole, false)
	return plan
}

// lookAndKeep is lookIn. If keep is set, it does not roll back the evictions of a plan if these
// are all its changes, and then reports true.
func (w *nodewise) lookAndKeep(t *cluster.Task, n *cluster.Node, line []rival, whole, keep bool) (plan []*Victim, kept bool) {
	filters, _, _ := w.finder.taskHooks(t)
	if rejection := w.rejection(filters, t, n); rejection != nil && rejection.Cure&Evict == 0 {
		return nil, false
	}
	least := w.fewestVictims(t, n, line)
	mark := w.stmt.Checkpoint()
	defer func() {
		if !kept {
			w.stmt.Rollback(mark)
		}
	}()
	fits := false
	add := func(v *Victim) bool {
		before := w.stmt.Checkpoint()
		if keep && len(plan) == 0 && least <= 1 {
			w.evictor.once = w.once
		}
		ok := w.evictor.evict(v)
		if w.evictor.once = nil; !ok {
			return false
		}
		rejection := w.rejection(filters, t, n)
		if rejection != nil && rejection.Cure&Evict == 0 { // without the victim, evictions cannot help: the task must be near it
			w.stmt.Rollback(before)
			keep = false
			return false
		}
		plan, fits = append(plan, v), rejection == nil
		return true
	}
	for progress := true; progress && !fits; { // the verdict NotYet may change once other victims are evicted
		progress = false
		for i := 0; i < len(line) && !fits; i++ {
			if c := &line[i]; c.evicts && c.task.Runs() && add(w.evictor.victims.of(c.task)) {
				progress = true
			}
		}
	}
	for i := 0; i < len(line) && !fits; i++ {
		c := &line[i]
		if !c.moves || !c.task.Runs() {
			continue
		}
		gang := []*cluster.Task{c.task}
		if whole && !c.task.Job.IsSurplus(c.task) {
			gang = wholeJob(c.task.Job, Move).Tasks
		}
		for _, t := range gang {
			add(mover(t))
		}
	}
	if !fits {
		return nil, false
	}
	if keep && !hasMoves(plan) && (len(plan) == 1 || leavingFrom(n, plan) <= least) {
		return plan, w.fault.err == nil
	}
	again := func(rest []*Victim) bool {
		w.stmt.Rollback(mark)
		if !w.evictor.evictInOrder(rest) {
			return false
		}
		return w.rejection(filters, t, n) == nil
	}
	if len(plan) > 1 && leavingFrom(n, plan) > least {
		plan = dropUnneeded(plan, w.evictor.victims.droppable(plan, false), again)
	}
	if hasMoves(plan) && (!again(plan) || !w.placeOn(t, n) || !w.trial.reserveMoves(plan)) {
		return nil, false
	}
	return plan, false
}

// rejection returns why the filters or, if the task passes them, the Reservers reject the
// node for the task. It returns nil if none does.
func (w *nodewise) rejection(filters []*hook[TaskFilter], t *cluster.Task, n *cluster.Node) *Rejection {
	r, _ := w.finder.rejectAt(filters, t, n)
	if r != nil || len(w.finder.hooks.reservers) == 0 {
		return r
	}
	claims, ok := w.finder.devices(t.Shape, n)
	if !ok {
		return nil // the profile has no filter for devices: Place fails the session
	}
	mark := w.stmt.Checkpoint()
	var why *unreserved
	if err := w.stmt.Allocate(t, n, claims); errors.As(err, &why) {
		return why.rejection
	}
	w.stmt.Rollback(mark)
	return nil
}

// fewestVictims returns a lower bound of how many rivals must be evicted or moved for the
// task to fit the node.
func (w *nodewise) fewestVictims(t *cluster.Task, n *cluster.Node, line []rival) int {
	tasks := w.scratch[:0]
	for i := range line {
		tasks = append(tasks, line[i].task)
	}
	w.scratch = tasks
	least, _ := fewest(t.Shape, n, tasks)
	return least
}

// leavingFrom returns how many tasks of the plan are on the node.
func leavingFrom(n *cluster.Node, plan []*Victim) int {
	count := 0
	for _, v := range plan {
		for _, t := range v.Tasks {
			if t.Node == n {
				count++
			}
		}
	}
	return count
}

// placeOn allocates the task on the node, so that tasks that move cannot use its room.
func (w *nodewise) placeOn(t *cluster.Task, n *cluster.Node) bool {
	claims, ok := w.finder.devices(t.Shape, n)
	return ok && w.stmt.Allocate(t, n, claims) == nil
}

// noteOptions keeps the chosen node for explanations and, if the session explains, up to
// three other nodes on which room could have been made.
func (w *nodewise) noteOptions(h *nodeHeap, t *cluster.Task, chosen *heapNode) {
	if len(w.weighed) >= maxNamed {
		return
	}
	add := func(e *heapNode) {
		o := Option{Task: t.Name, Node: w.view.At(e.slot).Name, Chosen: e == chosen, Cost: reportedCost(w.view, e.plan, e.cost)}
		for _, v := range e.plan {
			for _, t := range v.Tasks {
				o.Victims = append(o.Victims, t.ID)
			}
		}
		w.weighed = append(w.weighed, o)
	}
	add(chosen)
	if w.placer.explainer.all {
		aside := *w // a copy, so that explanations do not count toward the bounds of the search
		for _, e := range h.otherNodes(&aside, t, 3) {
			add(e)
		}
	}
}

// heap returns the nodes ordered by the cost of room for the task. Jobs with equal requests
// share a heap until the next decision.
func (w *nodewise) heap(t *cluster.Task, in *scope) *nodeHeap {
	w.heaps.dropOld(w.evictor.victims.clerk.decided)
	key := heapKey{way: w.ways.way, lastResort: w.want.last, queue: w.want.job.Queue, priority: w.want.job.Priority, shape: t.Shape, in: in,
		devices: w.requested(w.accounts.devicesOf(t.Shape).Name), cores: w.requested(cluster.CPU)}
	filters, _, _ := w.finder.taskHooks(t)
	if w.finder.keeper.farSighted(filters) {
		return newNodeHeap(w.view, in) // the cost depends on where other tasks of the gang are
	}
	key.usable = w.finder.keeper.usable(w.want.job)
	if in != nil && in.group != nil || len(w.want.job.Displaced) > 0 || w.want.job.Running() {
		key.job = w.want.job
	}
	return w.heaps.heapFor(key, w)
}

// requested returns how much of the resource all lacking tasks of the job request.
func (w *nodewise) requested(resource string) int64 {
	for i := range w.sums {
		if w.sums[i].Name == resource {
			return w.sums[i].Value
		}
	}
	if w.sums == nil {
		w.sums = w.sumsMemory[:0]
	}
	sum := w.accounts.sum(w.want.lacks, resource)
	w.sums = append(w.sums, cluster.Amount{Name: resource, Value: sum})
	return sum
}

// mostLooks returns how many nodes without a plan may be looked at before the search ends.
func (w *nodewise) mostLooks() int {
	if w.ways.way == evicting|moving {
		return maxLooksMixed
	}
	return maxLooks
}
