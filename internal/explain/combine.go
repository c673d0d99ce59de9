package explain

import (
	"slices"
	"strconv"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/numeral"
)

// combiner is for requests that no single change helps.
type combiner struct {
	lab      *lab
	workload *workload
	found    *finder
	grow     *grower
	relax    *relaxer
}

// combine grants everything at once, and then takes back one thing after another
// that is not needed. What is left is a set of changes none of which can be left
// out. It reports whether the request conflicts with itself: no kind of node would
// take it even then.
func (x *combiner) combine() (conflict bool) {
	all, m := x.everything()
	if m == nil {
		x.found.beyond = x.grow.beyond()
		return x.found.beyond == nil
	}
	nodes, _ := x.grow.fewest(*m, all...)
	if nodes == nil {
		return false // others are in the way, or the tries ran out: no proof
	}
	needed := slices.Clone(all)
	for i := 0; i < len(needed); {
		fewer := slices.Delete(slices.Clone(needed), i, i+1)
		if x.lab.try(append(slices.Clone(fewer), nodes)...).fits {
			needed = fewer
		} else {
			i++
		}
	}
	if len(needed) > 0 && x.lab.try(needed...).fits {
		nodes = nil
	} else if c, _ := x.grow.fewest(*m, needed...); c != nil {
		nodes = c
	}
	if nodes != nil {
		needed = append(needed, nodes)
	}
	x.found.tryJoined(x.exactLimits(needed))
	return false
}

// beyond is a rejection that is left where everything is granted, and which nodes of
// another kind, another request, time or evictions cure: no proof that nothing can help,
// since what exactly cures it is known to its plugin alone. Nil: none is.
func (g *grower) beyond() *engine.Rejection {
	if g.left == nil || len(g.left.Attempts) == 0 {
		return nil
	}
	a := &g.left.Attempts[0]
	r := a.Before
	if r == nil && len(a.Nearest) > 0 {
		r = &a.Nearest[0].Rejection
	}
	if r == nil || r.Cure == 0 {
		return nil
	}
	return r
}

// exactLimits replaces "without the limit" by the limit that is enough, and
// joins the changes into one.
func (x *combiner) exactLimits(changes []*change) *change {
	for i, c := range changes {
		if c.kind != RaiseLimit {
			continue
		}
		bounds := x.workload.bounds()
		uses := make([]int64, len(bounds))
		v := x.lab.tryAnd(func(s *cluster.State) {
			for k, b := range bounds {
				uses[k] = b.used(s)
			}
		}, changes...)
		if !v.fits {
			break
		}
		for k, b := range bounds {
			used := uses[k]
			if b.to(-1).text != c.text || used <= b.amount.Value {
				continue
			}
			exact := slices.Clone(changes)
			exact[i] = b.to(used)
			if x.lab.try(exact...).fits {
				changes = exact
			}
		}
	}
	return join(changes)
}

func join(changes []*change) *change {
	if len(changes) == 1 {
		return changes[0]
	}
	out := &change{kind: changes[0].kind}
	for _, c := range changes {
		out.cost += c.cost
	}
	out.text = List(mapped(changes, func(c *change) string { return c.text }), len(changes))
	out.apply = func(s *cluster.State) error {
		for _, c := range changes {
			if err := c.apply(s); err != nil {
				return err
			}
		}
		return nil
	}
	return out
}

// everything is all that could be granted, dearest first so that it is the first
// to be taken back, and the kind of node to add; nil if no kind would ever do.
func (x *combiner) everything() ([]*change, *Machine) {
	limits := mapped(x.workload.bounds(), func(b bound) *change { return b.to(-1) })
	if list := x.grow.machines(nil); len(list) > 0 {
		return append(x.relax.ties(), limits...), &list[0]
	}
	conditions := x.relax.conditions()
	if list := x.grow.machines(lifted); len(list) > 0 {
		return append(conditions, limits...), &list[0]
	}
	// No kind of node is large enough: ask for what the largest has.
	var best *Machine
	var smaller *change
	for _, n := range templates(x.workload.state.Nodes()) {
		edit := cut(n)
		if !x.grow.holds(n, func(s *cluster.Shape) { lifted(s); edit(s) }) || (best != nil && size(n) <= size(best.Template)) {
			continue
		}
		name := ""
		if g := n.Group(); g != nil {
			name = g.Key.String()
		}
		best = &Machine{Name: name, Template: n, exact: true}
		smaller = &change{SmallerAsk, cutText(x.workload.shape(), edit), 60, x.workload.reshape(edit)}
	}
	if best == nil {
		return nil, nil
	}
	return append(append([]*change{smaller}, conditions...), limits...), best
}

// lifted drops every condition on where a task may run, and keeps what it needs there.
func lifted(s *cluster.Shape) {
	s.Selector, s.Required, s.Cell = nil, nil, ""
	s.Tolerations = []cluster.Toleration{{Operator: "Exists"}}
	s.Isolation = cluster.Isolation{}
	s.Need.Products, s.Need.SameProduct, s.Need.Partition, s.Need.Resource = nil, false, "", ""
}

// cut bounds a request by what the node has when it is empty.
func cut(n *cluster.Node) func(*cluster.Shape) {
	return func(s *cluster.Shape) {
		if !s.Need.WholeNode && s.Need.Layers == nil {
			devices, largest := counted(n)
			s.Need.Devices = min(s.Need.Devices, devices)
			s.Need.Memory = min(s.Need.Memory, largest)
			s.Need.SumAtLeast = min(s.Need.SumAtLeast, cluster.Bytes(s.Need.Devices)*largest)
		}
		for _, r := range s.Resources {
			s.Resources = s.Resources.With(r.Name, min(r.Value, n.Capacity(r.Name)))
		}
	}
}

// counted are the node's devices that are asked for by count: how many there are, and
// how much memory the largest has.
func counted(n *cluster.Node) (devices int, largest cluster.Bytes) {
	var any cluster.Need
	for i := range n.Devices {
		if d := &n.Devices[i]; any.Kind(d) {
			devices, largest = devices+1, max(largest, d.Memory)
		}
	}
	return devices, largest
}

// cutText says what is left of the request.
func cutText(shape *cluster.Shape, edit func(*cluster.Shape)) string {
	was, is := *shape, *shape
	edit(&is)
	var out []string
	if is.Need.Devices != was.Need.Devices {
		out = append(out, numeral.Count(is.Need.Devices, "device")+" instead of "+strconv.Itoa(was.Need.Devices))
	}
	if is.Need.Memory != was.Need.Memory {
		out = append(out, Memory(is.Need.Memory)+" per device instead of "+Memory(was.Need.Memory))
	}
	if is.Need.SumAtLeast != was.Need.SumAtLeast {
		out = append(out, Memory(is.Need.SumAtLeast)+" in all instead of "+Memory(was.Need.SumAtLeast))
	}
	for _, r := range was.Resources {
		if v := is.Resources.Of(r.Name); v == 0 && r.Value > 0 {
			out = append(out, "no "+r.Name)
		} else if v != r.Value {
			out = append(out, resourceText(r.Name, v)+" instead of "+resourceText(r.Name, r.Value))
		}
	}
	return "with " + List(out, 4)
}
