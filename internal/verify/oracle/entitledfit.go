package oracle

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// freeNode is what is free on a node.
type freeNode struct {
	cores   int64 // in thousandths
	devices []freeDevice
}

// freeDevice is what is free of a device or of a MIG slice.
type freeDevice struct {
	profile string // of a MIG slice; "" for a device
	free    cluster.Milli
}

// fits reports whether the minimum of the request can be placed without the evicted tasks,
// by trying every node and every different device for every task. If moving is set, all
// preemptible tasks may be placed elsewhere.
func (c *quotaCheck) fits(p *quotaRequest, moving bool) bool {
	tasks := slices.Clone(p.minimum)
	var staying []*cluster.Task
	for _, j := range c.state.Jobs() {
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
	byName := map[string]*freeNode{}
	var nodes []*freeNode
	for _, n := range c.state.Nodes() {
		free := &freeNode{cores: n.Ledger(cluster.CPU).Capacity}
		for i := range n.Devices {
			free.devices = append(free.devices, freeDevice{n.Devices[i].Profile, cluster.Whole})
		}
		byName[n.Name] = free
		nodes = append(nodes, free)
	}
	for _, t := range staying {
		n := byName[t.Node.Name]
		n.cores -= t.Shape.Resources.Of(cluster.CPU)
		for _, claim := range t.Claims {
			n.devices[claim.Device].free -= claim.Milli
		}
	}
	slices.SortStableFunc(tasks, func(a, b *cluster.Task) int {
		return cmp.Or(cmp.Compare(b.Shape.Need.Devices, a.Shape.Need.Devices), cmp.Compare(b.Shape.Need.Milli(), a.Shape.Need.Milli()))
	})
	steps := maxFitSteps
	return placeAll(nodes, tasks, &steps)
}

// placeAll reports whether all tasks can be placed. It tries the first task on each node, and
// for each of these locations the remaining tasks. It returns false if it runs out of steps.
func placeAll(nodes []*freeNode, tasks []*cluster.Task, steps *int) bool {
	if len(tasks) == 0 {
		return true
	}
	shape := tasks[0].Shape
	cores := shape.Resources.Of(cluster.CPU)
	for _, n := range nodes {
		if n.cores < cores {
			continue
		}
		for _, devices := range n.choices(&shape.Need) {
			if *steps--; *steps < 0 {
				return false
			}
			n.take(devices, &shape.Need, -1)
			n.cores -= cores
			found := placeAll(nodes, tasks[1:], steps)
			n.take(devices, &shape.Need, +1)
			n.cores += cores
			if found {
				return true
			}
		}
	}
	return false
}

// take subtracts the need from the devices, or adds it.
func (n *freeNode) take(devices []int, need *cluster.Need, sign cluster.Milli) {
	for _, i := range devices {
		n.devices[i].free += sign * need.Milli()
	}
}

// choices returns the sets of devices to try for the need. Whole devices are equal, so one set
// of them is enough. For a part of a device, one of several devices with equal free room is
// enough.
func (n *freeNode) choices(need *cluster.Need) [][]int {
	if need.Devices == 0 {
		return [][]int{nil}
	}
	var fit []int
	for i := range n.devices {
		if n.devices[i].profile == need.Partition && n.devices[i].free >= need.Milli() {
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
	for k, i := range fit { // a task that requests a part of a device requests one device
		if !slices.ContainsFunc(fit[:k], func(o int) bool { return n.devices[o].free == n.devices[i].free }) {
			out = append(out, []int{i})
		}
	}
	return out
}
