package oracle

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// freeNode is what is free on a node for the tasks of a request.
type freeNode struct {
	cores int64
	cells []freeDevice
}

type freeDevice struct {
	profile string
	free    cluster.Milli
}

// fits reports whether the minimum of the request can be placed without the evicted tasks,
// by trying every node and every different device for every task. If moving is set, all
// preemptible tasks may be placed elsewhere.
func (c *quotaCheck) fits(p *quotaRequest, moving bool) bool {
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
	freeNodes := map[string]*freeNode{}
	var order []*freeNode
	for _, n := range c.Nodes() {
		b := &freeNode{cores: n.Ledger(cluster.CPU).Capacity}
		for i := range n.Devices {
			b.cells = append(b.cells, freeDevice{n.Devices[i].Profile, cluster.Whole})
		}
		freeNodes[n.Name] = b
		order = append(order, b)
	}
	for _, t := range staying {
		b := freeNodes[t.Node.Name]
		b.cores -= t.Shape.Resources.Of(cluster.CPU)
		for _, claim := range t.Claims {
			b.cells[claim.Device].free -= claim.Milli
		}
	}
	slices.SortStableFunc(tasks, func(a, b *cluster.Task) int {
		return cmp.Or(cmp.Compare(b.Shape.Need.Devices, a.Shape.Need.Devices), cmp.Compare(b.Shape.Need.Milli(), a.Shape.Need.Milli()))
	})
	steps := maxSeats
	return placeAll(order, tasks, &steps)
}

// placeAll tries the first task on each node, and for each the remaining tasks.
func placeAll(freeNodes []*freeNode, tasks []*cluster.Task, steps *int) bool {
	if len(tasks) == 0 {
		return true
	}
	shape := tasks[0].Shape
	cores := shape.Resources.Of(cluster.CPU)
	for _, b := range freeNodes {
		if b.cores < cores {
			continue
		}
		for _, cells := range b.choices(&shape.Need) {
			if *steps--; *steps < 0 {
				return false
			}
			b.take(cells, &shape.Need, -1)
			b.cores -= cores
			found := placeAll(freeNodes, tasks[1:], steps)
			b.take(cells, &shape.Need, +1)
			b.cores += cores
			if found {
				return true
			}
		}
	}
	return false
}

// take subtracts the need from the devices, or adds it.
func (b *freeNode) take(cells []int, need *cluster.Need, sign cluster.Milli) {
	for _, i := range cells {
		b.cells[i].free += sign * need.Milli()
	}
}

// choices returns the sets of devices to try for the need. Whole devices are equal, so that
// one set is enough. For parts, one device is enough of those with equal free room.
func (b *freeNode) choices(need *cluster.Need) [][]int {
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
	for k, i := range fit { // a task with a part of a device uses one device
		if !slices.ContainsFunc(fit[:k], func(o int) bool { return b.cells[o].free == b.cells[i].free }) {
			out = append(out, []int{i})
		}
	}
	return out
}
