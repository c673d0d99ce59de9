package engine

import (
	"math"

	"github.com/berth-project/berth/cluster"
)

// accounts is what tasks ask for and what they are charged in the accounts of queues.
type accounts struct {
	view   cluster.View
	shapes map[*cluster.Shape]cluster.DeviceAsk
	still  still
	idle   *idle
}

// sum is how much of the resource the tasks ask for together. What a task takes
// of a device is known once it has one; until then the most that a device of its
// kind would give stands for it.
func (acc *accounts) sum(tasks []*cluster.Task, resource string) int64 {
	sum := int64(0)
	for _, t := range tasks {
		v := t.Shape.Resources.Of(resource)
		if d := acc.devicesOf(t.Shape); d.Name == resource || d.Product == resource && resource != "" {
			v += d.Value
		}
		total, ok := cluster.AddOverflow(sum, v)
		if !ok {
			return math.MaxInt64
		}
		sum = total
	}
	return sum
}

// chargeOf is what the tasks, once placed, count as in the queue's account of the
// resource. It differs from what they ask for where they ask for MIG slices: those
// that the queue has no terms for count as their fraction of nvidia.com/gpu.
func (acc *accounts) chargeOf(q *cluster.Queue, tasks []*cluster.Task, resource string) int64 {
	sum := acc.sum(tasks, resource)
	if resource != cluster.DefaultDeviceResource {
		return sum
	}
	for _, t := range tasks {
		if d := acc.devicesOf(t.Shape); d.OfGPU > 0 && !q.Names(d.Name) {
			total, ok := cluster.AddOverflow(sum, d.OfGPU)
			if !ok {
				return math.MaxInt64
			}
			sum = total
		}
	}
	return sum
}

// chargeStill is chargeOf for those of the tasks that are not placed. It is asked often
// about the tasks that one job lacks, so the sums are kept in step.
func (acc *accounts) chargeStill(q *cluster.Queue, tasks []*cluster.Task, resource string) int64 {
	if len(tasks) == 0 {
		return 0
	}
	k := &acc.still
	if len(k.tasks) != len(tasks) || &k.tasks[0] != &tasks[0] {
		*k = still{tasks: tasks, of: make(map[*cluster.Task]bool, len(tasks))}
		for _, t := range tasks {
			k.of[t] = true
		}
	}
	for i := range k.sums {
		if k.sums[i].queue == q && k.sums[i].Name == resource {
			return k.sums[i].Value
		}
	}
	sum := int64(0)
	for i := range tasks {
		if tasks[i].Status == cluster.Pending {
			sum += acc.chargeOf(q, tasks[i:i+1], resource)
		}
	}
	k.sums = append(k.sums, charge{q, cluster.Amount{Name: resource, Value: sum}})
	return sum
}

// still is what tasks would be charged that are not placed, as far as it was asked about.
type still struct {
	tasks []*cluster.Task
	of    map[*cluster.Task]bool
	sums  []charge
}

// charge is an amount in a queue's account.
type charge struct {
	queue *cluster.Queue
	cluster.Amount
}

// follow takes in that the task is placed, or is not any more.
func (acc *accounts) follow(t *cluster.Task, sign int64) {
	k := &acc.still
	if len(k.sums) == 0 || !k.of[t] {
		return
	}
	for i := range k.sums {
		k.sums[i].Value += sign * acc.chargeOf(k.sums[i].queue, []*cluster.Task{t}, k.sums[i].Name)
	}
}

func (acc *accounts) devicesOf(shape *cluster.Shape) cluster.DeviceAsk {
	a, known := acc.shapes[shape]
	if !known {
		if acc.shapes == nil {
			acc.shapes = map[*cluster.Shape]cluster.DeviceAsk{}
		}
		a = acc.view.DeviceAsk(shape)
		acc.shapes[shape] = a
	}
	return a
}

// devicesLacking is the least that would do for the tasks of devices, whatever
// their names, in thousandths.
func (acc *accounts) devicesLacking(tasks []*cluster.Task) int64 {
	sum := int64(0)
	for _, t := range tasks {
		sum += acc.devicesOf(t.Shape).Least
	}
	return sum
}

// free is how much of all devices nobody was promised, in thousandths.
func (acc *accounts) free() int64 {
	f := acc.idle
	if f.view != acc.view {
		*f = idle{view: acc.view}
	}
	acc.view.Recent().Nodes(f.known, func(slot int) {
		for slot >= len(f.nodes) {
			f.nodes = append(f.nodes, 0)
		}
		f.sum -= f.nodes[slot]
		f.nodes[slot] = 0
		if n := acc.view.At(slot); n != nil && !n.Closed() {
			for i := range n.Devices {
				if d := &n.Devices[i]; !d.Lost {
					f.nodes[slot] += int64(max(0, d.FreeMilli()))
				}
			}
		}
		f.sum += f.nodes[slot]
	})
	f.known = acc.view.Version()
	return f.sum
}

// idle keeps a sum over all nodes in step with the State, from session to session.
type idle struct {
	view  cluster.View
	known uint64
	nodes []int64 // by slot
	sum   int64
}
