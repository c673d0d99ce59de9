package engine

import (
	"math"

	"github.com/berth-project/berth/cluster"
)

// accounts computes what tasks request, and by how much they increase what their queues
// use. It keeps sums that are asked for often.
type accounts struct {
	view     cluster.View
	asks     map[*cluster.Shape]cluster.DeviceEstimate
	unplaced unplacedCharges
	idle     *idleDevices
}

// sum implements Session.Asks.
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

// chargeOf implements Session.ChargeOf.
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

// chargeUnplaced is like chargeOf, and counts only the tasks that are not placed. It is
// called often for the tasks that one job lacks, so these sums are kept and adjusted
// whenever one of the tasks is placed or removed.
func (acc *accounts) chargeUnplaced(q *cluster.Queue, tasks []*cluster.Task, resource string) int64 {
	if len(tasks) == 0 {
		return 0
	}
	k := &acc.unplaced
	if len(k.tasks) != len(tasks) || &k.tasks[0] != &tasks[0] {
		*k = unplacedCharges{tasks: tasks, charges: k.charges[:0], ofOneJob: true}
		if len(tasks) > 1 {
			k.contains = make(map[*cluster.Task]bool, len(tasks))
			for _, t := range tasks {
				k.contains[t] = true
				k.ofOneJob = k.ofOneJob && t.Job == tasks[0].Job
			}
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

// unplacedCharges holds the results of chargeUnplaced for one list of tasks.
type unplacedCharges struct {
	tasks    []*cluster.Task
	contains map[*cluster.Task]bool // of tasks, if there are several
	ofOneJob bool                   // all tasks are of the job of the first
	charges  []charge
}

// charge is an amount of a resource that is charged to a queue.
type charge struct {
	queue *cluster.Queue
	cluster.Amount
}

// adjustUnplaced updates the kept sums: sign is -1 if the task was placed, and 1 if it no
// longer is.
func (acc *accounts) adjustUnplaced(t *cluster.Task, sign int64) {
	k := &acc.unplaced
	if len(k.charges) == 0 || k.ofOneJob && t.Job != k.tasks[0].Job || t != k.tasks[0] && !k.contains[t] {
		return
	}
	for i := range k.charges {
		k.charges[i].Value += sign * acc.chargeOf(k.charges[i].queue, []*cluster.Task{t}, k.charges[i].Name)
	}
}

// emptied returns the map of estimates, empty, for the next session, unless it is large: clearing it
// in each session would take longer than making another one.
func (acc *accounts) emptied() map[*cluster.Shape]cluster.DeviceEstimate {
	const few = 64
	if len(acc.asks) > few {
		return nil
	}
	clear(acc.asks)
	return acc.asks
}

func (acc *accounts) devicesOf(shape *cluster.Shape) cluster.DeviceEstimate {
	a, known := acc.asks[shape]
	if !known {
		if acc.asks == nil {
			acc.asks = map[*cluster.Shape]cluster.DeviceEstimate{}
		}
		a = acc.view.DeviceEstimate(shape)
		acc.asks[shape] = a
	}
	return a
}

// devicesLacking returns the least that the tasks may need of devices, whatever the names of
// the resources, in thousandths of a device.
func (acc *accounts) devicesLacking(tasks []*cluster.Task) int64 {
	sum := int64(0)
	for _, t := range tasks {
		sum += acc.devicesOf(t.Shape).Least
	}
	return sum
}

// free returns how much of all devices is neither held nor reserved, in thousandths of a
// device. Closed nodes and lost devices do not count.
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

// idleDevices keeps the result of accounts.free from session to session. Only the nodes that
// changed since its version are added up again.
type idleDevices struct {
	view    cluster.View
	version uint64
	bySlot  []int64 // by slot
	sum     int64
}
