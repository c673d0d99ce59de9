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
// some devices of each node. Those with the fewest devices over all nodes come first. onNode
// is the forms on one node, which may be enough.
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
	slices.SortStableFunc(found, func(a, b Form) int { return cmp.Compare(a.Devices*a.Nodes, b.Devices*b.Nodes) })
	partial := v.partialForms()
	least := slices.IndexFunc(found, func(f Form) bool { return f.Problem == "" })
	smaller := len(partial)
	if least >= 0 {
		smaller = slices.IndexFunc(append(partial, found[least]), func(f Form) bool { return f.Devices*f.Nodes >= found[least].Devices*found[least].Nodes })
	}
	return slices.Concat(out, partial[:smaller], found, partial[smaller:])
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
	tensor, stages := v.parallel.split(each)
	from, to := 2, MaxNodesPerReplica
	switch {
	case s.Serving.Tensor > 0 || s.Serving.Pipeline > 0:
		if tensor = max(1, s.Serving.Tensor); each%tensor != 0 {
			return withProblem(f, "its %d devices are not divisible by tensor parallelism %d", each, tensor)
		}
		stages = each / tensor
		if s.Serving.Pipeline > 0 {
			if s.Serving.Pipeline%stages != 0 || s.Serving.Pipeline/stages < 2 {
				return withProblem(f, "%s are not divided evenly over nodes of %d", english.Count(tensor*s.Serving.Pipeline, "device"), each)
			}
			from, to = s.Serving.Pipeline/stages, s.Serving.Pipeline/stages
		}
	case s.Place.Devices > 0:
		if s.Place.Devices%each != 0 || s.Place.Devices/each < 2 {
			return withProblem(f, "%s are not divided evenly over nodes of %d", english.Count(s.Place.Devices, "device"), each)
		}
		from, to = s.Place.Devices/each, s.Place.Devices/each
	}
	if why := v.parallel.tensorProblem(tensor); why != "" {
		return withProblem(f, "%s", why)
	}
	if bound := v.parallel.layers() / stages; s.Source != nil && s.Source.Architecture != nil && bound < to {
		to = bound
	}
	class := v.hardware.largestClass(g)
	if class == nil {
		return withProblem(f, "no node has %s that it runs on", english.Count(each, "device"))
	}
	var problem string
	for nodes := from; nodes <= to; nodes++ {
		f.Tensor, f.Pipeline, f.Nodes = tensor, stages*nodes, nodes
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
		f.Name = fmt.Sprintf("%d nodes of %s (tp %d, pp %d)", nodes, kind, tensor, stages*nodes)
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
		problem = fmt.Sprintf("%s cannot be divided over %s", english.Count(v.parallel.layers(), "layer"), english.Count(from, "node"))
	}
	return withProblem(f, "%s", problem)
}
