package model

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/english"
)

const (
	// MaxNodesPerReplica is the largest number of nodes over which one replica is divided.
	MaxNodesPerReplica = 64
	// MaxTasks is the largest number of tasks of a model, over all replicas, forms and cells.
	MaxTasks = 1_000_000
)

// severalNodes lists the forms of a replica over several nodes. A form uses all devices of
// nodes of one group, the fewest nodes that hold the replica, or equally many devices of
// each node.
type severalNodes struct {
	spec     *Spec
	size     sizing
	parallel parallelism
	hardware *hardware
}

// forms returns one form for each group with devices that can be combined, and forms that use
// some devices of each node. Those on the fewest nodes come first, because stages on different
// nodes exchange data over the network, then those with the fewest devices. Forms with
// different numbers of devices on nodes come last, and only if no single node can hold the
// replica. onNode is the forms on one node, which may be enough.
func (v *severalNodes) forms(onNode []Form) []Form {
	if why := v.spec.notOverNodes(onNode); why != "" {
		return []Form{withProblem(Form{Name: "several nodes"}, "%s", why)}
	}
	var out, found []Form
	for _, g := range v.hardware.groups {
		if !g.Key.Combines() {
			continue
		}
		if f := v.formOnGroup(g); f.tasks == nil {
			out = append(out, f)
		} else {
			found = append(found, f)
		}
	}
	// The engine tries adjacent forms on whole nodes as one choice, so this order affects
	// only the listing.
	slices.SortStableFunc(found, byNodes)
	partial := v.partialForms()
	least := slices.IndexFunc(found, func(f Form) bool { return f.Problem == "" })
	smaller := len(partial)
	if least >= 0 {
		smaller = slices.IndexFunc(append(partial, found[least]), func(f Form) bool { return byNodes(f, found[least]) >= 0 })
	}
	out = slices.Concat(out, partial[:smaller], found, partial[smaller:])
	if !slices.ContainsFunc(onNode, Form.isOnDevices) {
		out = append(out, v.unevenForms()...)
	}
	return out
}

// byNodes orders forms by their number of nodes and then by their number of devices.
func byNodes(a, b Form) int {
	return cmp.Or(cmp.Compare(a.Nodes, b.Nodes), cmp.Compare(a.Devices*a.Nodes, b.Devices*b.Nodes))
}

// tensorForStages returns the largest tensor parallelism with which this many stages take several
// whole nodes with this many devices; 1 if there is none.
func (v *severalNodes) tensorForStages(each, stages int) int {
	for _, t := range slices.Backward(v.parallel.tensorSizes(each)) {
		if t*stages%each == 0 && t*stages >= 2*each {
			return t
		}
	}
	return 1
}

// notWholeNodes says why this many devices are not all devices of several nodes with so many each.
func notWholeNodes(devices, each int) string {
	if devices < 2*each {
		return fmt.Sprintf("it takes %s, and two whole nodes have %d", english.Count(devices, "device"), 2*each)
	}
	return fmt.Sprintf("it takes %d devices, which is not a multiple of the %d of a node", devices, each)
}

// formOnGroup returns the form of a replica over nodes of the group.
func (v *severalNodes) formOnGroup(g *cluster.Group) Form {
	s, key, each := v.spec, g.Key, g.Key.Count
	kind := key.String()
	f := Form{Name: "several nodes of " + kind, Group: kind}
	if isMixed(key) {
		return withProblem(f, notUniform)
	}
	f.Devices = each
	split, why := v.splitNodes(each)
	if why != "" {
		return withProblem(f, "%s", why)
	}
	class := v.hardware.largestClass(g)
	if class == nil {
		return withProblem(f, "no node has %s that it runs on", english.Count(each, "device"))
	}
	var problem string
	for nodes := split.from; nodes <= split.to; nodes++ {
		f.Tensor, f.Pipeline, f.Nodes = split.tensor, each*nodes/split.tensor, nodes
		if why := v.parallel.problem(f.Tensor, f.Pipeline); why != "" {
			return withProblem(f, "%s", why)
		}
		c, err := v.size.claim(&f, class.accelerator)
		if err != nil {
			return withProblem(f, "%s", err)
		}
		has := class.shareBytes(c.Share)
		if has < c.Enough {
			need, gives := gibPair(c.Enough, has)
			problem = fmt.Sprintf("on %s each device would need %s and gives %s", english.Count(nodes, "node"), need, gives)
			continue
		}
		f.Name = fmt.Sprintf("%d nodes of %s%s", nodes, kind, parallelismSuffix(f.Tensor, f.Pipeline, 1))
		shape := s.shape(s.Backend.Host)
		shape.Need = cluster.Need{WholeNode: true, Share: c.Share, SumAtLeast: c.Enough * cluster.Bytes(each), Types: v.hardware.types, Selected: s.Place.Selected}
		f.tasks = []roleTasks{{"leader", 1, &shape}, {"worker", nodes - 1, &shape}}
		f.whole = &cluster.WholeNodes{
			Replicas: 1, NodesPerReplica: nodes, Only: &key, Apart: true,
			Memory: c.Enough * cluster.Bytes(each*nodes), Usable: has * cluster.Bytes(each),
		}
		if nodes > len(g.Nodes) {
			return withProblem(f, "it takes %d nodes of %s, and the cluster has %d", nodes, key, len(g.Nodes))
		}
		return f
	}
	if problem == "" {
		problem = fmt.Sprintf("%s cannot be divided over %s", english.Count(v.parallel.layers(), "layer"), english.Count(split.from, "node"))
	}
	return withProblem(f, "%s", problem)
}

// nodesSplit is how a replica is divided over whole nodes: the tensor parallelism, and the
// numbers of nodes that are tried.
type nodesSplit struct{ tensor, from, to int }

// splitNodes returns how a replica is divided over whole nodes with this many devices, or says
// why it cannot be divided. Tensor parallelism is within a node unless the spec sets one that is
// a multiple of the node's devices.
func (v *severalNodes) splitNodes(each int) (nodesSplit, string) {
	s := v.spec
	tensor, stages := v.parallel.split(each)
	out := nodesSplit{tensor, 2, MaxNodesPerReplica}
	devices := s.Place.Devices // of a replica; 0: not fixed
	if s.Serving.Tensor > 0 || s.Serving.Pipeline > 0 {
		if out.tensor, devices = s.Serving.Tensor, 0; out.tensor == 0 {
			out.tensor = v.tensorForStages(each, s.Serving.Pipeline)
		}
		if each%out.tensor != 0 && out.tensor%each != 0 {
			return out, fmt.Sprintf("its %d devices are not divisible by tensor parallelism %d", each, out.tensor)
		}
		stages = max(1, each/out.tensor)
		if s.Serving.Pipeline > 0 || out.tensor > each {
			devices = out.tensor * max(1, s.Serving.Pipeline)
		}
	}
	if devices > 0 {
		if devices%each != 0 || devices/each < 2 {
			return out, notWholeNodes(devices, each)
		}
		out.from, out.to = devices/each, devices/each
	}
	if why := v.parallel.tensorProblem(out.tensor); why != "" {
		return out, why
	}
	if a := v.parallel.layers() / stages; s.Source != nil && s.Source.Architecture != nil && out.tensor <= each {
		out.to = min(out.to, a)
	}
	return out, ""
}
