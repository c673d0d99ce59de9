package oracle

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// bench is what a node has left for the tasks of a plea.
type bench struct {
	cores int64
	cells []cell
}

type cell struct {
	profile string
	free    cluster.Milli
}

// fits reports whether the minimum of the plea finds seats once the evicted tasks have
// left, by trying every node and every kind of device for every task. Where others
// move, all preemptible tasks are seated anew.
func (c *court) fits(p *plea, moving bool) bool {
	tasks := slices.Clone(p.minimum)
	var staying []*cluster.Task
	for _, j := range c.Jobs() {
		for _, t := range j.Tasks() {
			switch {
			case t.Node == nil || slices.Contains(p.evicted, t):
			case moving && j.Preemptible:
				tasks = append(tasks, t)
			default:
				staying = append(staying, t)
			}
		}
	}
	benches := map[string]*bench{}
	var order []*bench
	for _, n := range c.Nodes() {
		b := &bench{cores: n.Ledger(cluster.CPU).Capacity}
		for i := range n.Devices {
			b.cells = append(b.cells, cell{n.Devices[i].Profile, cluster.Whole})
		}
		benches[n.Name] = b
		order = append(order, b)
	}
	for _, t := range staying {
		b := benches[t.Node.Name]
		b.cores -= t.Shape.Resources.Of(cluster.CPU)
		for _, claim := range t.Claims {
			b.cells[claim.Device].free -= claim.Milli
		}
	}
	slices.SortStableFunc(tasks, func(a, b *cluster.Task) int {
		return cmp.Or(cmp.Compare(b.Shape.Need.Devices, a.Shape.Need.Devices), cmp.Compare(b.Shape.Need.Milli(), a.Shape.Need.Milli()))
	})
	steps := maxSeats
	return seatAll(order, tasks, &steps)
}

// seatAll seats the first task on each node in turn, and then the others.
func seatAll(benches []*bench, tasks []*cluster.Task, steps *int) bool {
	if len(tasks) == 0 {
		return true
	}
	shape := tasks[0].Shape
	cores := shape.Resources.Of(cluster.CPU)
	for _, b := range benches {
		if b.cores < cores {
			continue
		}
		for _, cells := range b.choices(&shape.Need) {
			if *steps--; *steps < 0 {
				return false
			}
			b.take(cells, &shape.Need, -1)
			b.cores -= cores
			found := seatAll(benches, tasks[1:], steps)
			b.take(cells, &shape.Need, +1)
			b.cores += cores
			if found {
				return true
			}
		}
	}
	return false
}

// take takes the need out of the cells, or gives it back.
func (b *bench) take(cells []int, need *cluster.Need, sign cluster.Milli) {
	for _, i := range cells {
		b.cells[i].free += sign * need.Milli()
	}
}

// choices are the cells that the need may have: whole devices are alike, and of parts
// of devices with as much left the first stands for all.
func (b *bench) choices(need *cluster.Need) [][]int {
	if need.Devices == 0 {
		return [][]int{nil}
	}
	var fit []int
	for i := range b.cells {
		if b.cells[i].profile == need.Partition && b.cells[i].free >= need.Milli() {
			fit = append(fit, i)
		}
	}
	if len(fit) < need.Devices {
		return nil
	}
	if need.Milli() == cluster.Whole {
		return [][]int{fit[:need.Devices]}
	}
	var out [][]int
	for k, i := range fit { // parts are of one device
		if !slices.ContainsFunc(fit[:k], func(o int) bool { return b.cells[o].free == b.cells[i].free }) {
			out = append(out, []int{i})
		}
	}
	return out
}
