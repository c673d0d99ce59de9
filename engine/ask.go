package engine

import (
	"math"

	"github.com/berth-project/berth/cluster"
)

// Asks is how much of the resource the tasks ask for together. What a task takes
// of a device is known once it has one; until then the most that a device of its
// kind would give stands for it.
func (s *Session) Asks(tasks []*cluster.Task, resource string) int64 {
	sum := int64(0)
	for _, t := range tasks {
		v := t.Shape.Resources.Of(resource)
		if d := s.devicesOf(t.Shape); d.Name == resource || d.Product == resource && resource != "" {
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

// ChargeOf is what the tasks, once placed, count as in the queue's account of the
// resource. It differs from what they ask for where they ask for MIG slices: those
// that the queue has no terms for count as their fraction of nvidia.com/gpu.
func (s *Session) ChargeOf(q *cluster.Queue, tasks []*cluster.Task, resource string) int64 {
	sum := s.Asks(tasks, resource)
	if resource != cluster.DefaultDeviceResource {
		return sum
	}
	for _, t := range tasks {
		if d := s.devicesOf(t.Shape); d.OfGPU > 0 && !q.Names(d.Name) {
			total, ok := cluster.AddOverflow(sum, d.OfGPU)
			if !ok {
				return math.MaxInt64
			}
			sum = total
		}
	}
	return sum
}

// ChargeStill is ChargeOf for those of the tasks that are not placed. It is asked often
// about the tasks that one job lacks, so the sums are kept in step.
func (s *Session) ChargeStill(q *cluster.Queue, tasks []*cluster.Task, resource string) int64 {
	if len(tasks) == 0 {
		return 0
	}
	k := &s.still
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
			sum += s.ChargeOf(q, tasks[i:i+1], resource)
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
func (k *still) follow(s *Session, t *cluster.Task, sign int64) {
	if len(k.sums) == 0 || !k.of[t] {
		return
	}
	for i := range k.sums {
		k.sums[i].Value += sign * s.ChargeOf(k.sums[i].queue, []*cluster.Task{t}, k.sums[i].Name)
	}
}

func (s *Session) devicesOf(shape *cluster.Shape) cluster.DeviceAsk {
	a, known := s.asks[shape]
	if !known {
		if s.asks == nil {
			s.asks = map[*cluster.Shape]cluster.DeviceAsk{}
		}
		a = s.State.DeviceAsk(shape)
		s.asks[shape] = a
	}
	return a
}

// FreeFor reports whether as much is free, wherever it is, as some form of the
// job lacks of devices for its minimum: if not, moving others is of no use.
func (s *Session) FreeFor(job *cluster.Job) bool {
	for i := range job.Alternatives {
		if job.Chosen >= 0 && i != job.Chosen || job.Chosen < 0 && job.Alternatives[i].Running {
			continue
		}
		if lacks := s.Lacking(&job.Alternatives[i]); len(lacks) > 0 && s.free() >= s.devicesLacking(lacks) {
			return true
		}
	}
	return false
}

// devicesLacking is the least that would do for the tasks of devices, whatever
// their names, in thousandths.
func (s *Session) devicesLacking(tasks []*cluster.Task) int64 {
	sum := int64(0)
	for _, t := range tasks {
		sum += s.devicesOf(t.Shape).Least
	}
	return sum
}

// free is how much of all devices nobody was promised, in thousandths.
func (s *Session) free() int64 {
	f := &s.engine.idle
	if f.state != s.State {
		*f = idle{state: s.State}
	}
	s.State.Changed(f.known, func(slot int) {
		for slot >= len(f.nodes) {
			f.nodes = append(f.nodes, 0)
		}
		f.sum -= f.nodes[slot]
		f.nodes[slot] = 0
		if n := s.State.At(slot); n != nil && !n.Closed() {
			for i := range n.Devices {
				if d := &n.Devices[i]; !d.Lost {
					f.nodes[slot] += int64(max(0, d.FreeMilli()))
				}
			}
		}
		f.sum += f.nodes[slot]
	})
	f.known = s.State.Version()
	return f.sum
}

// idle keeps a sum over all nodes in step with the State, from session to session.
type idle struct {
	state *cluster.State
	known uint64
	nodes []int64 // by slot
	sum   int64
}
