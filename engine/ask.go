package engine

import "github.com/berth-project/berth/cluster"

// Asks is how much of the resource the tasks ask for together. What a task takes
// of a device is known once it has one; until then the most that a device of its
// kind would give stands for it.
func (s *Session) Asks(tasks []*cluster.Task, resource string) int64 {
	sum := int64(0)
	for _, t := range tasks {
		v := t.Shape.Resources.Of(resource)
		if d := s.devicesOf(t.Shape); d.Name == resource {
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

// devicesOf is what the shape asks of devices, in thousandths, and under which
// name: of several, the one that most nodes have.
func (s *Session) devicesOf(shape *cluster.Shape) cluster.Amount {
	if shape.Need.None() {
		return cluster.Amount{}
	}
	if a, known := s.asks[shape]; known {
		return a
	}
	var best cluster.Amount
	most := 0
	for _, g := range s.State.Groups() {
		n := g.Nodes[0] // nodes of a group have the same devices
		for i := range n.Devices {
			d := &n.Devices[i]
			if !shape.Need.Usable(d) || d.Resource != best.Name && len(g.Nodes) <= most {
				continue
			}
			a := cluster.Amount{Name: d.Resource, Value: shape.Ask(n, d)}
			if d.Resource == best.Name {
				a.Value = max(a.Value, best.Value)
			}
			best, most = a, max(most, len(g.Nodes))
		}
	}
	if s.asks == nil {
		s.asks = map[*cluster.Shape]cluster.Amount{}
	}
	s.asks[shape] = best
	return best
}

// FreeFor reports whether as much is free, wherever it is, as some form of the
// job lacks of devices for its minimum: if not, moving others is of no use.
func (s *Session) FreeFor(job *cluster.Job) bool {
	for i := range job.Alternatives {
		if job.Chosen >= 0 && i != job.Chosen {
			continue
		}
		lacks := s.lacking(&job.Alternatives[i])
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
