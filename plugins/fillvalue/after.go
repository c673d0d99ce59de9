package fillvalue

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// after returns the rooms that may be left after a task of the shape was placed on the node, which
// has the room r: one for each choice of devices that makes a difference. If any device will do, it
// looks at the room alone, and keeps the answer for all nodes with this room.
func (f *fleet) after(r *room, s *cluster.Shape, n *cluster.Node) []*room {
	if len(s.Need.Selected) > 0 || s.Isolation.GPU != "" {
		return f.afterOn(r, s, n)
	}
	if next, ok := f.next[taken{r, s}]; ok {
		return next
	}
	var out []*room
	prices := f.pricesOf(s)
	kinds := r.machine.kinds
	one := s.Need.Devices == 1 && !s.Need.None()
	for i, milli := range r.free {
		p := prices[kinds[i]]
		if !one || p == 0 || milli < p || i > 0 && kinds[i-1] == kinds[i] && r.free[i-1] == milli {
			continue // the devices of a kind are sorted
		}
		a := f.without(r, s)
		a.free[i] -= p
		out = append(out, f.share(a))
	}
	if !one {
		a := f.without(r, s)
		left := s.Wanted(len(kinds))
		for i, milli := range r.free {
			if p := prices[kinds[i]]; left > 0 && p > 0 && milli >= p {
				a.free[i] -= p
				left--
			}
		}
		out = append(out, f.share(a))
	}
	if f.next == nil || len(f.next) >= maxNext {
		f.next = map[taken][]*room{}
	}
	f.next[taken{r, s}] = out
	return out
}

// pricesOf returns what a task of the shape takes of a device, by kind: 0 if it cannot use the kind.
func (f *fleet) pricesOf(s *cluster.Shape) []cluster.Milli {
	if f.pricedFor != s {
		f.pricedFor, f.prices = s, f.prices[:0]
	}
	for i := len(f.prices); i < len(f.kinds); i++ {
		var p cluster.Milli
		if d := &f.kinds[i]; !s.Need.None() && s.Usable(d) {
			p = max(1, s.Price(d))
		}
		f.prices = append(f.prices, p)
	}
	return f.prices
}

// afterOn is after for a shape that only some devices of the node may satisfy.
func (f *fleet) afterOn(r *room, s *cluster.Shape, n *cluster.Node) []*room {
	if s.Need.Devices != 1 {
		return []*room{f.with(r, s, n, -1)}
	}
	var out []*room
	for i := range n.Devices {
		if d := &n.Devices[i]; s.Takes(d) {
			if next := f.with(r, s, n, i); !slices.Contains(out, next) {
				out = append(out, next)
			}
		}
	}
	return out
}

// without returns a copy of the room without the cores and the memory that a task of the shape
// takes. The copy is valid until the next call.
func (f *fleet) without(r *room, s *cluster.Shape) *room {
	a := &f.scratch
	*a = room{
		machine: r.machine, free: append(a.free[:0], r.free...),
		cpu:    less(r.cpu, s.Resources.Of(cluster.CPU), r.machine.cpu/cpuParts),
		memory: less(r.memory, s.Resources.Of(cluster.Memory), int64(r.machine.memory)/memoryParts),
	}
	if f.counting {
		a.tasks = min(r.tasks+1, maxTasks)
	}
	return a
}

// less returns what is left of a free amount after a task takes what it requests: at least one part of
// the machine, because a task would otherwise cost nothing where it takes cores that devices need.
func less(free, request, part int64) int64 {
	if request <= 0 {
		return free
	}
	return max(0, free-max(request, part))
}

// with returns the room that is left after a task of the shape takes the device with the index or,
// if the index is -1, the first devices that have room.
func (f *fleet) with(r *room, s *cluster.Shape, n *cluster.Node, device int) *room {
	a := f.without(r, s)
	order := f.nodes[n.Slot()].order
	left := s.Wanted(len(order))
	if device >= 0 {
		left = 1
	}
	for _, i := range order {
		d := &n.Devices[i]
		if left == 0 {
			break
		}
		if device >= 0 && int(d.Index) != device || !s.Takes(d) {
			continue
		}
		// The room has the devices of a kind in another order: take one that is as free.
		kind, milli := f.kindOf(d), freeOf(d)
		for j := range a.free {
			if r.machine.kinds[j] == kind && a.free[j] == milli {
				if a.free[j] = max(0, milli-s.Price(d)); closes(s) {
					a.free[j] = 0
				}
				left--
				break
			}
		}
	}
	return f.share(a)
}
