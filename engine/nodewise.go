package engine

import (
	"cmp"
	"errors"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// nodewise searches node by node: it makes room for one task after the other, each on
// the node where that costs least.
type nodewise struct {
	planning
	exits *exits

	looks   int // nodes that were looked at closely and have no plan
	weighed []Option
	scratch []*cluster.Task
	prices  []price
	sums    map[string]int64 // of what is lacking, by resource
}

// greedy makes room task by task: where a node takes the task as things are it is
// placed there, else where that costs least. For jobs that must stay within a group or
// a domain the cheapest of them counts. It returns the victims, or nil.
func (w *nodewise) greedy() []*Victim {
	var best []*Victim
	var least cost
	for i, in := range w.scopes() {
		if i == maxScopes || w.fault.err != nil {
			break
		}
		mark := w.stmt.Checkpoint()
		plan := w.planWithin(in)
		spent := w.leaver.victims.costOf(plan)
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

// scopes are where the job may be placed as a whole: one group, or one domain.
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

func (w *nodewise) planWithin(in *scope) []*Victim {
	var plan []*Victim
	w.weighed = nil // what was weighed in other scopes has no plan
	for _, t := range w.want.lacks {
		fits := w.finder.best(t, in) != nil
		if fits && len(w.finder.hooks.reservers) > 0 { // one of them may turn all nodes down
			mark := w.stmt.Checkpoint()
			fits = w.placer.placeTask(w.want.alt(), t, in)
			w.stmt.Rollback(mark)
		}
		if !fits {
			h := w.heap(t, in)
			e := h.cheapest(w, t)
			if e == nil || w.fault.err != nil {
				return nil
			}
			w.noteOptions(h, t, e)
			if !w.leaver.leaveInOrder(e.plan) {
				return nil
			}
			plan = append(plan, e.plan...)
		}
		if !w.placer.placeTask(w.want.alt(), t, in) {
			return nil
		}
		if hasMoves(plan) && !w.trial.landed(plan) {
			return nil
		}
	}
	return plan
}

// look finds out which victims would have to leave for the task to fit the node. Three
// orders are tried: that of rivals, and with the largest or the smallest first, since
// these free less beyond what is needed, or take fewer tasks. Where plugins say what
// victims cost, two orders by that come before the last two.
func (w *nodewise) look(t *cluster.Task, n *cluster.Node) ([]*Victim, cost) {
	line := w.exits.rivalsOn(n)
	slices.SortFunc(line, func(a, b rival) int { return a.compare(&b) })
	best := w.lookIn(t, n, line, false)
	if best == nil && w.exits.way&moving != 0 {
		best = w.lookIn(t, n, line, true) // gangs that can move only as a whole
	}
	spent := w.planCost(t, n, best)
	if best != nil && w.leaver.victims.priced() {
		best, spent = w.lookByCost(t, n, line, best, spent)
	}
	if best == nil || !slices.ContainsFunc(line, func(c rival) bool { return size(line[0].task) != size(c.task) }) {
		return best, spent
	}
	for _, sign := range [...]int{1, -1} {
		slices.SortStableFunc(line, func(a, b rival) int {
			return cmp.Or(cmp.Compare(b.tier, a.tier), cmp.Compare(a.task.Job.Priority, b.task.Job.Priority), sign*cmp.Compare(size(b.task), size(a.task)))
		})
		if other := w.lookIn(t, n, line, false); other != nil {
			if c := w.planCost(t, n, other); c.compare(&spent) < 0 {
				best, spent = other, c
			}
		}
	}
	return best, spent
}

// spent is what the plan for one task on one node costs.
func (w *nodewise) planCost(t *cluster.Task, n *cluster.Node, plan []*Victim) cost {
	c := w.leaver.victims.costOf(plan)
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
	c.beyond += max(0, here-max(0, w.accounts.devicesOf(t.Shape).Least-idleOn(n)))
	return c
}

// idleOn is how much of the node's devices is free, in thousandths.
func idleOn(n *cluster.Node) int64 {
	sum := int64(0)
	for i := range n.Devices {
		sum += int64(max(0, n.Devices[i].FreeMilli()))
	}
	return sum
}

// lookIn makes rivals leave in the order given until the task fits the node, first
// those that may be evicted, then those that may move. Victims without which it fits
// as well then stay, the last first. Whole says that all members of a gang move.
func (w *nodewise) lookIn(t *cluster.Task, n *cluster.Node, line []rival, whole bool) []*Victim {
	filters, _, _ := w.finder.taskHooks(t)
	if rejection := w.rejection(filters, t, n); rejection != nil && rejection.Cure&Evict == 0 {
		return nil
	}
	least := w.fewestVictims(t, n, line)
	mark := w.stmt.Checkpoint()
	defer w.stmt.Rollback(mark)
	var plan []*Victim
	fits := false
	add := func(v *Victim) bool {
		before := w.stmt.Checkpoint()
		if !w.leaver.leave(v) {
			return false
		}
		rejection := w.rejection(filters, t, n)
		if rejection != nil && rejection.Cure&Evict == 0 { // the task must be near the victim
			w.stmt.Rollback(before)
			return false
		}
		plan, fits = append(plan, v), rejection == nil
		return true
	}
	for progress := true; progress && !fits; { // one that may not leave yet may once others have
		progress = false
		for i := 0; i < len(line) && !fits; i++ {
			if c := &line[i]; c.evicts && c.task.Runs() && add(VictimOf(c.task)) {
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
		if whole && !c.task.Job.Spares(c.task) {
			gang = wholeJob(c.task.Job, Move).Tasks
		}
		for _, t := range gang {
			add(mover(t))
		}
	}
	if !fits {
		return nil
	}
	again := func(rest []*Victim) bool {
		w.stmt.Rollback(mark)
		if !w.leaver.leaveInOrder(rest) {
			return false
		}
		return w.rejection(filters, t, n) == nil
	}
	if len(plan) > 1 && leavingFrom(n, plan) > least {
		plan = dropUnneeded(plan, w.leaver.victims.droppable(plan, false), again)
	}
	if hasMoves(plan) && (!again(plan) || !w.placeOn(t, n) || !w.trial.land(plan)) {
		return nil
	}
	return plan
}

// rejection is what the filters or, where they let the task pass, the Reservers say
// against the node.
func (w *nodewise) rejection(filters []hook[TaskFilter], t *cluster.Task, n *cluster.Node) *Rejection {
	r, _ := w.finder.rejectAt(filters, t, n)
	if r != nil || len(w.finder.hooks.reservers) == 0 {
		return r
	}
	claims, ok := n.Choose(t.Shape, w.finder.deviceScore(t.Shape, n))
	if !ok {
		return nil // a profile without a filter for devices: Place will say so
	}
	mark := w.stmt.Checkpoint()
	var why *unreserved
	if err := w.stmt.Allocate(t, n, claims); errors.As(err, &why) {
		return why.rejection
	}
	w.stmt.Rollback(mark)
	return nil
}

// fewest is how many of the rivals have to leave at least for the task to fit the node.
func (w *nodewise) fewestVictims(t *cluster.Task, n *cluster.Node, line []rival) int {
	tasks := w.scratch[:0]
	for i := range line {
		tasks = append(tasks, line[i].task)
	}
	w.scratch = tasks
	least, _ := fewest(t.Shape, n, tasks)
	return least
}

// leavingFrom is how many tasks of the plan leave the node.
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

// placeOn allocates the task on the node, to see what is left for others.
func (w *nodewise) placeOn(t *cluster.Task, n *cluster.Node) bool {
	claims, ok := n.Choose(t.Shape, w.finder.deviceScore(t.Shape, n))
	return ok && w.stmt.Allocate(t, n, claims) == nil
}

// weigh remembers the other nodes that would have done, to be told.
func (w *nodewise) noteOptions(h *nodeHeap, t *cluster.Task, chosen *entryPlan) {
	if len(w.weighed) >= maxNamed {
		return
	}
	add := func(e *entryPlan) {
		o := Option{Task: t.Name, Node: w.view.At(e.slot).Name, Chosen: e == chosen, Cost: reportedCost(w.view, e.plan, e.cost)}
		for _, v := range e.plan {
			for _, t := range v.Tasks {
				o.Go = append(o.Go, t.ID)
			}
		}
		w.weighed = append(w.weighed, o)
	}
	add(chosen)
	if w.placer.explainer.all {
		aside := *w // what is only told uses up nothing
		for _, e := range h.otherNodes(&aside, t, 3) {
			add(e)
		}
	}
}

// heap returns the nodes for the task. Jobs that ask alike share it until something is
// decided.
func (w *nodewise) heap(t *cluster.Task, in *scope) *nodeHeap {
	key := heapKey{way: w.exits.way, lastResort: w.want.last, queue: w.want.job.Queue, priority: w.want.job.Priority, shape: t.Shape, in: in,
		devices: w.requested(w.accounts.devicesOf(t.Shape).Name), cores: w.requested(cluster.CPU)}
	filters, _, _ := w.finder.taskHooks(t)
	if len(filters) > 0 {
		return newNodeHeap(w.view, in) // what it costs depends on where the others of the gang are
	}
	if in != nil && in.group != nil || len(w.want.job.Displaced) > 0 || w.want.job.Running() {
		key.job = w.want.job
	}
	return w.heaps.heapFor(key, w.leaver.victims.clerk.decided, func() *nodeHeap { return newNodeHeap(w.view, in) })
}

// sum is how much of the resource the job asks for with all that is lacking.
func (w *nodewise) requested(resource string) int64 {
	sum, known := w.sums[resource]
	if !known {
		if w.sums == nil {
			w.sums = map[string]int64{}
		}
		sum = w.accounts.sum(w.want.lacks, resource)
		w.sums[resource] = sum
	}
	return sum
}

// mostLooks is how many nodes without a plan are looked at.
func (w *nodewise) mostLooks() int {
	if w.exits.way == evicting|moving {
		return maxLooksMixed
	}
	return maxLooks
}
