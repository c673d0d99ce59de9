package engine

import "github.com/berth-project/berth/cluster"

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
			return 1<<63 - 1
		}
		sum = total
	}
	return sum
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
		if job.Chosen >= 0 && i != job.Chosen {
			continue
		}
		lacks := s.Lacking(&job.Alternatives[i])
		enough := len(lacks) > 0
		for _, t := range lacks {
			d := s.devicesOf(t.Shape)
			if d.Value > 0 && s.free(d.Name) < s.Asks(lacks, d.Name) {
				enough = false
				break
			}
		}
		if enough {
			return true
		}
	}
	return false
}

// free is how much of a device resource nobody was promised, in thousandths.
func (s *Session) free(resource string) int64 {
	if s.idle == nil {
		s.idle = map[string]*idle{}
	}
	f := s.idle[resource]
	if f == nil {
		f = &idle{}
		s.idle[resource] = f
	}
	s.State.Changed(f.known, func(slot int) {
		for slot >= len(f.nodes) {
			f.nodes = append(f.nodes, 0)
		}
		f.sum -= f.nodes[slot]
		f.nodes[slot] = 0
		if n := s.State.At(slot); n != nil && !n.Unschedulable {
			for i := range n.Devices {
				if d := &n.Devices[i]; !d.Lost && d.Resource == resource {
					f.nodes[slot] += int64(max(0, d.FreeMilli()))
				}
			}
		}
		f.sum += f.nodes[slot]
	})
	f.known = s.State.Version()
	return f.sum
}

// idle keeps a sum over all nodes in step with the books.
type idle struct {
	known uint64
	nodes []int64 // by slot
	sum   int64
}
