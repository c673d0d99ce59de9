package engine

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// MaxVictimCost is the highest value that a VictimCost may return.
const MaxVictimCost = 1_000_000

// VictimCost returns what it costs to evict or move the task, in a unit that the plugin
// chooses: a whole number from 0 to MaxVictimCost, which is 1,000,000. Any other value fails
// the session with an error that names the plugin. The cost may depend on the task, its job,
// its node and the time of the session. It must not depend on the job that room is made for, on
// other victims or on other decisions of the session: the hook is called at most once per task
// in a session, and only for tasks that might be evicted or moved.
type VictimCost func(*cluster.Task) int64

// AddVictimCost registers a cost of victims beyond their tier and priority, such as the work
// since the last checkpoint, which is lost. Among plans that evict tasks of equal tiers and
// priorities, the plan with the lowest cost is chosen, even if it frees more room than is needed
// or evicts more tasks. Tasks that move are compared after all tasks that are evicted:
// first their number and priorities, then their cost, then their age. A gang costs as much as
// its tasks together. The hook is called for tasks and not for victims, so that the cost of a
// plan does not depend on the order in which its tasks are evicted.
//
// Combining: each cost is multiplied by the plugin's weight, and all costs are added up over
// all plugins and all tasks of a plan. The plan with the lowest sum is chosen; of equal sums,
// the plan that frees the least room beyond what is needed.
func (h *Hooks) AddVictimCost(fn VictimCost) { add(h, &h.victimCosts, fn, fn == nil) }

// priced reports whether a plugin registered a VictimCost.
func (v *victims) priced() bool { return len(v.hooks.victimCosts) > 0 }

// costOfTask returns the VictimCost of the task, added up over all plugins with their weights.
func (v *victims) costOfTask(t *cluster.Task) int64 {
	if !v.priced() {
		return 0
	}
	sum, known := v.costs[t]
	if known {
		return sum
	}
	for i := range v.hooks.victimCosts {
		h := &v.hooks.victimCosts[i]
		returned := h.fn(t)
		if returned < 0 || returned > MaxVictimCost {
			v.clerk.fault.fail(h.plugin, "a cost of %d for task %s is not between 0 and %d", returned, t.ID, MaxVictimCost)
			returned = 0
		}
		sum += h.weight * returned
	}
	if v.costs == nil {
		v.costs = map[*cluster.Task]int64{}
	}
	v.costs[t] = sum
	return sum
}

// costOfTasks returns the sum of the VictimCosts of the tasks.
func (v *victims) costOfTasks(tasks []*cluster.Task) int64 {
	sum := int64(0)
	if v.priced() {
		for _, t := range tasks {
			sum += v.costOfTask(t)
		}
	}
	return sum
}

// droppable returns the victims of the plan in the reverse of the order in which dropUnneeded
// tries to drop them. If plugins give costs to victims, the most expensive is last, so that it
// is dropped first. If ranked is set, tier and priority are compared before the cost: victims
// of the strongest tier and the highest priority are last.
func (v *victims) droppable(plan []*Victim, ranked bool) []*Victim {
	if !v.priced() {
		return plan
	}
	type item struct {
		victim *Victim
		cost   cost
	}
	items := make([]item, len(plan))
	for i, x := range plan {
		c := v.costOf(plan[i : i+1])
		if items[i] = (item{x, cost{victims: c.victims}}); ranked {
			items[i].cost.tier, items[i].cost.priority = c.tier, c.priority
		}
	}
	slices.SortStableFunc(items, func(a, b item) int { return a.cost.compare(&b.cost) })
	out := make([]*Victim, len(items))
	for i := range items {
		out[i] = items[i].victim
	}
	return out
}

// lookByCost searches for a plan with a lower VictimCost, without victims of a stronger tier or
// a higher priority than those of the known plan. It tries two orders: by cost, and by cost in
// proportion to the room that the victim holds. It returns the cheaper plan.
func (w *nodewise) lookByCost(t *cluster.Task, n *cluster.Node, line []rival, best []*Victim, spent cost) ([]*Victim, cost) {
	if spent.tasks == 0 {
		return best, spent // the known plan only moves tasks
	}
	type offer struct {
		rival
		holds uint64 // the size of the tasks on the node that are evicted with it, plus 1
	}
	offers := make([]offer, len(line))
	for i, c := range line {
		c.evicts = c.evicts && strength(tierOf(w.view, c.task.Job.Queue)) <= spent.tier && c.task.Job.Priority <= spent.priority
		offers[i] = offer{c, 1}
		for _, o := range VictimOf(c.task).Tasks {
			if o.Node == n {
				offers[i].holds += uint64(size(o))
			}
		}
	}
	for _, order := range [...]func(a, b offer) int{
		func(a, b offer) int { return cmp.Compare(a.cost, b.cost) },
		func(a, b offer) int { return compareRatio(uint64(a.cost), a.holds, uint64(b.cost), b.holds) },
	} {
		slices.SortStableFunc(offers, order)
		by := make([]rival, len(offers))
		for i := range offers {
			by[i] = offers[i].rival
		}
		if other := w.lookIn(t, n, by, false); other != nil {
			if c := w.planCost(t, n, idleOn(n), other); c.compare(&spent) < 0 {
				best, spent = other, c
			}
		}
	}
	return best, spent
}

// compareRatio compares a/b with c/d without overflow or rounding.
func compareRatio(a, b, c, d uint64) int {
	leftHigh, left := bits.Mul64(a, d)
	rightHigh, right := bits.Mul64(c, b)
	return cmp.Or(cmp.Compare(leftHigh, rightHigh), cmp.Compare(left, right))
}
