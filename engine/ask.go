package engine

import (
	"math"

	"github.com/berth-project/berth/cluster"
)

// accounts is what tasks ask for and what they are charged in the accounts of queues.
type accounts struct {
	view     cluster.View
	asks     map[*cluster.Shape]cluster.DeviceAsk
	unplaced unplacedCharges
	idle     *idleDevices
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
func (acc *accounts) chargeUnplaced(q *cluster.Queue, tasks []*cluster.Task, resource string) int64 {
	if len(tasks) == 0 {
		return 0
	}
	k := &acc.unplaced
	if len(k.tasks) != len(tasks) || &k.tasks[0] != &tasks[0] {
		*k = unplacedCharges{tasks: tasks, contains: make(map[*cluster.Task]bool, len(tasks))}
		for _, t := range tasks {
			k.contains[t] = true
		}
	}
	for i := range k.charges {
		if k.charges[i].queue == q && k.charges[i].Name == resource {
			return k.charges[i].Value
		}
	}
	sum := int64(0)
	for i := range tasks {
		if tasks[i].Status == cluster.Pending {
			sum += acc.chargeOf(q, tasks[i:i+1], resource)
		}
	}
	k.charges = append(k.charges, charge{q, cluster.Amount{Name: resource, Value: sum}})
	return sum
}

// still is what tasks would be charged that are not placed, as far as it was asked about.
type unplacedCharges struct {
	tasks    []*cluster.Task
	contains map[*cluster.Task]bool
	charges  []charge
}

// charge is an amount in a queue's account.
type charge struct {
	queue *cluster.Queue
	cluster.Amount
}

// follow takes in that the task is placed, or is not any more.
func (acc *accounts) adjustUnplaced(t *cluster.Task, sign int64) {
	k := &acc.unplaced
	if len(k.charges) == 0 || !k.contains[t] {
		return
	}
	for i := range k.charges {
		k.charges[i].Value += sign * acc.chargeOf(k.charges[i].queue, []*cluster.Task{t}, k.charges[i].Name)
	}
}

func (acc *accounts) devicesOf(shape *cluster.Shape) cluster.DeviceAsk {
	a, known := acc.asks[shape]
	if !known {
		if acc.asks == nil {
			acc.asks = map[*cluster.Shape]cluster.DeviceAsk{}
		}
		a = acc.view.DeviceAsk(shape)
		acc.asks[shape] = a
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
		*f = idleDevices{view: acc.view}
	}
	acc.view.Recent().Nodes(f.version, func(slot int) {
		for slot >= len(f.bySlot) {
			f.bySlot = append(f.bySlot, 0)
		}
		f.sum -= f.bySlot[slot]
		f.bySlot[slot] = 0
		if n := acc.view.At(slot); n != nil && !n.Closed() {
			for i := range n.Devices {
				if d := &n.Devices[i]; !d.Lost {
					f.bySlot[slot] += int64(max(0, d.FreeMilli()))
				}
			}
		}
		f.sum += f.bySlot[slot]
	})
	f.version = acc.view.Version()
	return f.sum
}

// idle keeps a sum over all nodes in step with the State, from session to session.
type idleDevices struct {
	view    cluster.View
	version uint64
	bySlot  []int64 // by slot
	sum     int64
}
