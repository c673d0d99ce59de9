package whatif

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/berth-project/berth/internal/wire"
)

// combiner makes several changes together. It is used if no single change helps.
type combiner struct {
	lab      *lab
	workload *workload
	found    *finder
	grow     *grower
	relax    *relaxer
}

// combine makes all changes of allChanges together and adds enough nodes. If the
// workload then fits, combine tries for each change whether it can be left out, and for the
// nodes too. It records the rest as one change. That change may contain more than is needed
// if the tries are used up, because what could not be tried is kept. If the workload does not
// fit, nothing is recorded.
//
// It reports whether the request contradicts itself: no empty node of any type takes the task
// even after all changes, and the last of these rejections has no cure. If that rejection has
// a cure, it is recorded in finder.remaining instead.
func (x *combiner) combine() (conflict bool) {
	all, m := x.allChanges()
	if m == nil {
		x.found.remaining = x.grow.curableRejection()
		return x.found.remaining == nil
	}
	nodes, v, _, _ := x.grow.enough(*m, all...)
	if !v.fits {
		return false // this proves no contradiction: other pending workloads may take the added nodes, or no tries are left
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
	} else if c, v := x.grow.fewest(*m, needed...); v.fits {
		nodes = c
	}
	if nodes != nil {
		needed = append(needed, nodes)
	}
	x.found.addTogether(x.exactLimits(needed))
	return false
}

// curableRejection returns why emptyNodeTakes last returned false, if that rejection has a
// cure. The plugin then names a type of cure, such as Grow, and only the plugin knows what
// exactly would help. If no empty node was tested, because no node has devices, a node without
// devices is tested. It returns nil if the rejection has no cure, or if there is none.
func (g *grower) curableRejection() *engine.Rejection {
	if g.lastRefusal == nil {
		g.emptyNodeTakes(g.workload.state.Nodes()[0], dropConditions)
	}
	if g.lastRefusal == nil || len(g.lastRefusal.Attempts) == 0 {
		return nil
	}
	a := &g.lastRefusal.Attempts[0]
	r := a.Before
	if r == nil && len(a.Nearest) > 0 {
		r = &a.Nearest[0].Rejection
	}
	if r == nil || r.Cure == 0 {
		return nil
	}
	return r
}

// exactLimits replaces each change that removes a limit by one that raises the limit just as
// far as needed, if that was tried and helps. It joins all changes into one.
func (x *combiner) exactLimits(changes []*change) *change {
	for i, c := range changes {
		if c.kind != wire.RaiseLimit {
			continue
		}
		bounds := x.workload.bounds()
		uses := make([]int64, len(bounds))
		v := x.lab.tryAndRead(func(s *cluster.State) {
			for k, b := range bounds {
				uses[k] = b.used(s)
			}
		}, changes...)
		if !v.fits {
			break
		}
		for k, b := range bounds {
			used := uses[k]
			if b.raisedTo(-1).text != c.text || used <= b.amount.Value {
				continue
			}
			exact := slices.Clone(changes)
			exact[i] = b.raisedTo(used)
			if x.lab.try(exact...).fits {
				changes = exact
			}
		}
	}
	return join(changes)
}

// join returns one change that makes all of the changes. A single change is returned as it
// is.
func join(changes []*change) *change {
	if len(changes) == 1 {
		return changes[0]
	}
	out := &change{kind: changes[0].kind, parts: changes}
	for _, c := range changes {
		out.cost += c.cost
		out.arguments = append(out.arguments, c.arguments...)
		out.opened = append(out.opened, c.opened...)
		out.scaled = append(out.scaled, c.scaled...)
		out.removes += c.removes
	}
	if out.brief = explain.List(wire.Map(changes, (*change).inBrief), len(changes)); len(changes) > 2 {
		out.brief = fmt.Sprintf("%d changes together", len(changes))
	}
	out.text = explain.List(wire.Map(changes, func(c *change) string { return c.text }), len(changes))
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

// allChanges returns the changes that are made together, and the type of node of which nodes
// are added. The order matters, because combine tries to leave out the first change first: a
// smaller request, then the conditions of the request, then limits. Limits and required
// affinities to other jobs are always dropped, because the test of an empty node does not
// include them. Other conditions are dropped only if no empty node could take the task with
// them, and the request is reduced only if that is not enough. The node type is nil if no
// empty node could take the task even then.
func (x *combiner) allChanges() ([]*change, *nodeType) {
	limits := wire.Map(x.workload.bounds(), func(b bound) *change { return b.raisedTo(-1) })
	if list := x.grow.nodeTypes(nil); len(list) > 0 {
		return append(x.relax.affinities(), limits...), &list[0]
	}
	conditions := x.relax.conditions()
	if list := x.grow.nodeTypes(dropConditions); len(list) > 0 {
		return append(conditions, limits...), &list[0]
	}
	// No node is large enough. The request is reduced to what the largest node has.
	var best *nodeType
	var smaller *change
	for _, nodes := range x.grow.nodesByGroup() {
		list := templates(nodes)
		for _, n := range list {
			if devices, _ := countedDevices(n); devices == 0 && x.workload.shape().Need.Devices > 0 {
				continue // a request for no device is another request
			}
			edit := reduceTo(n)
			holds := func(n *cluster.Node) bool {
				return x.grow.emptyNodeTakes(n, func(s *cluster.Shape) { dropConditions(s); edit(s) })
			}
			if best != nil && roughSize(n) <= roughSize(best.template) || !holds(n) {
				continue
			}
			exact := !slices.ContainsFunc(list, func(n *cluster.Node) bool { return !holds(n) })
			best = &nodeType{name: groupName(n), template: n, exact: exact}
			smaller = newChange(wire.SmallerRequest, reducedText(x.workload.shape(), edit), 60, x.workload.editShape(x.workload.attempt.Task.Role, edit))
		}
	}
	if best == nil {
		return nil, nil
	}
	return append(append([]*change{smaller}, conditions...), limits...), best
}

// dropConditions removes the conditions of a shape on the labels, taints and cell of a node
// and on the isolation, products, NVLink domain and partitions of devices. It keeps the amounts that a task
// requests, and the device types and selected devices of a model.
func dropConditions(s *cluster.Shape) {
	s.Selector, s.Required, s.Cell = nil, nil, ""
	s.Tolerations = []cluster.Toleration{{Operator: "Exists"}}
	s.Isolation = cluster.Isolation{}
	s.Need.Products, s.Need.SameProduct, s.Need.SameLink, s.Need.Partition, s.Need.Resource = nil, false, false, "", ""
}

// reduceTo returns an edit that reduces a request to what the node has when it is empty.
func reduceTo(n *cluster.Node) func(*cluster.Shape) {
	return func(s *cluster.Shape) {
		if !s.Need.WholeNode && s.Need.Layers == nil {
			devices, largest := countedDevices(n)
			s.Need.Devices = min(s.Need.Devices, devices)
			s.Need.Memory = min(s.Need.Memory, largest)
			s.Need.SumAtLeast = min(s.Need.SumAtLeast, cluster.Bytes(s.Need.Devices)*largest)
		}
		for _, r := range s.Resources {
			s.Resources = s.Resources.With(r.Name, min(r.Value, n.Capacity(r.Name)))
		}
	}
}

// countedDevices returns how many devices of the node can be requested by number alone, which
// excludes MIG slices with a profile, and how much memory the largest of them has.
func countedDevices(n *cluster.Node) (devices int, largest cluster.Bytes) {
	var any cluster.Need
	for i := range n.Devices {
		if d := &n.Devices[i]; any.Kind(d) {
			devices, largest = devices+1, max(largest, d.Memory)
		}
	}
	return devices, largest
}

// reducedText returns a text such as "with 8 devices instead of 16": what the edit leaves of
// the request.
func reducedText(shape *cluster.Shape, edit func(*cluster.Shape)) string {
	was, is := *shape, *shape
	edit(&is)
	var out []string
	if is.Need.Devices != was.Need.Devices {
		out = append(out, english.Count(is.Need.Devices, "device")+" instead of "+strconv.Itoa(was.Need.Devices))
	}
	if is.Need.Memory != was.Need.Memory {
		out = append(out, quantity.Memory(is.Need.Memory)+" per device instead of "+quantity.Memory(was.Need.Memory))
	}
	if is.Need.SumAtLeast != was.Need.SumAtLeast {
		out = append(out, quantity.Memory(is.Need.SumAtLeast)+" in all instead of "+quantity.Memory(was.Need.SumAtLeast))
	}
	for _, r := range was.Resources {
		if v := is.Resources.Of(r.Name); v == 0 && r.Value > 0 {
			out = append(out, "no "+r.Name)
		} else if v != r.Value {
			out = append(out, quantity.Resource(r.Name, v)+" instead of "+quantity.Resource(r.Name, r.Value))
		}
	}
	return "with " + explain.List(out, 4)
}
