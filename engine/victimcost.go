package engine

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// MaxVictimCost is the most that a VictimCost may answer.
const MaxVictimCost = 1_000_000

// VictimCost says what it costs to evict the task, or to move it, in a unit that the
// plugin chooses: a whole number from 0 to MaxVictimCost, which is 1,000,000. Anything
// else fails the session and names the plugin. The answer may depend on the task, its job,
// its node and the time of the session. It must not depend on the job that waits, on other
// victims or on anything else that is decided in the session: a task is asked about once in
// a session, and only if it might leave.
type VictimCost func(*cluster.Task) int64

// AddVictimCost registers what victims cost beside their tier and their priority, such as
// the work since the last checkpoint, which is lost. Of plans that evict tasks of equal
// tiers and priorities, the one whose tasks cost least is taken, even if it frees more
// than is needed or evicts more tasks. Tasks that move count after all that is evicted:
// what they cost is compared after their number and their priorities, and before their
// age. A gang costs what its tasks cost together. It is asked about tasks and not about
// victims, so that a plan costs the same in whichever order its tasks leave.
//
// Combining: multiplied with the plugin's weight, and added over all plugins and all
// tasks of a plan; the lowest sum wins, and of equal sums the plan that frees least beyond
// what is needed.
func (h *Hooks) AddVictimCost(fn VictimCost) { add(h, &h.victimCosts, fn) }

// priced reports whether plugins say what victims cost.
func (v *victims) priced() bool { return len(v.hooks.victimCosts) > 0 }

// costOfTask is what plugins say that the task costs.
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
		said := h.fn(t)
		if said < 0 || said > MaxVictimCost {
			v.clerk.fault.fail(h.plugin, "a cost of %d for task %s is not between 0 and %d", said, t.ID, MaxVictimCost)
			said = 0
		}
		sum += h.weight * said
	}
	if v.costs == nil {
		v.costs = map[*cluster.Task]int64{}
	}
	v.costs[t] = sum
	return sum
}

// costOfTasks is what plugins say that the tasks cost together.
func (v *victims) costOfTasks(tasks []*cluster.Task) int64 {
	sum := int64(0)
	if v.priced() {
		for _, t := range tasks {
			sum += v.costOfTask(t)
		}
	}
	return sum
}

// droppable is the plan in the order in which keep tries to do without its victims, from
// the last on. Where plugins say what victims cost, the dearest is the last; ranked says
// that those of a stronger tier, then those of a higher priority come after all others.
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

// lookByCost looks for a plan that plugins say costs less, with victims of no stronger
// tier and no higher priority than those of the plan that is known. Two orders are
// tried: the cheapest first, and first those that cost least for what they hold.
func (w *nodewise) lookByCost(t *cluster.Task, n *cluster.Node, line []rival, best []*Victim, spent cost) ([]*Victim, cost) {
	if spent.tasks == 0 {
		return best, spent // nothing is evicted
	}
	type offer struct {
		rival
		holds uint64 // the size of what would leave the node with it, and 1
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
			if c := w.planCost(t, n, other); c.compare(&spent) < 0 {
				best, spent = other, c
			}
		}
	}
	return best, spent
}

// compareRatio compares a/b with c/d.
func compareRatio(a, b, c, d uint64) int {
	leftHigh, left := bits.Mul64(a, d)
	rightHigh, right := bits.Mul64(c, b)
	return cmp.Or(cmp.Compare(leftHigh, rightHigh), cmp.Compare(left, right))
}
