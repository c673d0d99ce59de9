package engine

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// bound returns a lower bound of the cost of making room for the shape on the node. It
// returns nil if the shape would not fit even if every possible victim were evicted.
func (w *nodewise) bound(s *cluster.Shape, n *cluster.Node) *heapNode {
	all, prices := w.scratch[:0], w.prices[:0]
	var last *cluster.Job // the job of the last class that was looked up; most tasks of a node are of one class
	might := true
	for _, t := range n.Tasks {
		if !w.evictor.victims.mayBeVictim(t, w.want.job) {
			continue
		}
		if w.ways.might != nil && (last == nil || last.Class() != t.Job.Class()) {
			last, might = t.Job, w.ways.might.class(t.Job.Class())
		}
		if might {
			all = append(all, t)
		}
	}
	w.scratch = all
	count, possible := fewest(s, n, all)
	if len(all) == 0 || !possible {
		return nil // the answers of the hooks cannot matter
	}
	leaving := all[:0]
	moves := false
	for _, t := range all {
		if i := slices.IndexFunc(prices, func(p price) bool { return p.whole == t.Job }); i >= 0 {
			prices[i].here++
			leaving = append(leaving, t)
			continue
		}
		p := price{here: 1, all: 1}
		if w.ways.way&moving != 0 && w.evictor.mightMove(t) {
			moves = true
		} else if v := w.evictor.victims.of(t); w.ways.way&evicting != 0 && w.evictor.mightBeEvicted(v) {
			if p.all, p.freed = len(v.Tasks), freed(v.Tasks); v.Whole {
				p.whole = v.Job
			}
			if w.evictor.victims.priced() {
				if p.cost = w.evictor.victims.costOfTask(t); v.Whole {
					p.cost = w.evictor.victims.costOfTasks(v.Tasks)
				}
			}
		} else {
			continue
		}
		prices = append(prices, p)
		leaving = append(leaving, t)
	}
	if w.prices = prices; len(leaving) == 0 {
		return nil
	}
	if len(leaving) < len(all) {
		if count, possible = fewest(s, n, leaving); !possible {
			return nil
		}
	}
	e := w.heaps.node()
	e.slot = n.Slot()
	if moves { // a plan may consist of moves alone
		e.cost = noCost()
		if e.cost.moved.tasks = 1; w.ways.way == moving {
			e.cost.moved.tasks = int32(count)
		}
		return e
	}
	e.cost = w.cheapestOf(leaving, count)
	if w.evictor.victims.priced() {
		e.cost.victims = leastTotal(prices, count, func(p price) int64 { return p.cost })
	}
	e.cost.tasks = int32(leastTotal(prices, count, func(p price) int64 { return int64(p.all) }))
	e.cost.beyond = max(0, leastTotal(prices, count, func(p price) int64 { return p.freed })-w.accounts.devicesOf(s).Least)
	if !slices.ContainsFunc(prices, func(p price) bool { return p.whole == nil }) {
		e.cost.jobs = int32(max(1, leastTotal(prices, count, func(price) int64 { return 1 }))) // each victim is a whole job
	}
	return e
}

// price is what one victim costs and gives, as seen from one node.
type price struct {
	whole *cluster.Job // the job, if it can only be evicted as a whole; nil if the task is evicted alone
	here  int          // how many of the victim's tasks are on the node
	all   int          // how many tasks are evicted with it, on all nodes
	freed int64        // how much of devices these tasks hold, in thousandths of a device
	cost  int64        // what VictimCost hooks answer; in a subgroup for the task alone, since each has its own price
}

// leastTotal returns a lower bound of what is paid if count tasks of the node have to be
// evicted. It takes the victims with the lowest price per task on the node first, and the
// last one in part. The result is not below the price of the cheapest victim.
func leastTotal(prices []price, count int, pays func(price) int64) int64 {
	first := pays(prices[0])
	if !slices.ContainsFunc(prices, func(p price) bool { return p.here != 1 || pays(p) != first }) {
		return max(first, first*int64(min(count, len(prices)))) // the usual case, which needs no order
	}
	slices.SortStableFunc(prices, func(a, b price) int {
		return cmp.Compare(pays(a)*int64(b.here), pays(b)*int64(a.here))
	})
	sum, one := int64(0), pays(prices[0])
	for i := range prices {
		one = min(one, pays(prices[i]))
	}
	for i := range prices {
		p := prices[i]
		if count <= p.here {
			return max(one, sum+pays(p)*int64(count)/int64(p.here))
		}
		sum += pays(p)
		count -= p.here
	}
	return max(one, sum)
}

// cheapestOf returns a lower bound of the tier, priority and age that evicting count of the
// tasks costs: any such choice contains a task that is at least as expensive as the
// count-th cheapest.
func (w *nodewise) cheapestOf(tasks []*cluster.Task, count int) cost {
	var buffer [16]int64
	each, young := buffer[:0], int64(0)
	for _, t := range tasks {
		each = append(each, grade(strength(w.evictor.victims.tierOf(t.Job.Queue)), t.Job.Priority))
		young = min(young, -t.Started)
	}
	slices.Sort(each)
	n := surveyedNode{grade: each[min(max(count, 1), len(each))-1], young: young}
	return n.cost()
}

// fewest returns a lower bound of how many of the tasks must be evicted before the shape
// fits the node. It returns false if the shape would not fit even without all of them.
func fewest(s *cluster.Shape, n *cluster.Node, leaving []*cluster.Task) (int, bool) {
	for _, want := range s.Resources {
		l := n.Ledger(want.Name)
		if want.Value <= 0 || l != nil && l.Free() >= want.Value {
			continue
		}
		if l == nil || l.Capacity < want.Value {
			return 0, false
		}
		free := l.Free()
		for _, t := range leaving {
			free += t.Holds(want.Name)
		}
		if free < want.Value {
			return 0, false
		}
	}
	return s.Fewest(n, leaving)
}
