package model

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/english"
)

// MostNodes is the most nodes over which one replica is divided. MostTasks is the most
// tasks of a model, over all replicas and forms.
const (
	MostNodes = 64
	MostTasks = 1_000_000
)

// severalNodes lists the forms of a replica over several nodes of one group. A form uses
// all devices of each node, and the fewest nodes that hold the replica.
type severalNodes struct {
	spec     *Spec
	size     sizing
	par      parallelism
	hardware *hardware
}

// forms returns one form for each group with devices that can be combined.
func (v *severalNodes) forms() []Form {
	if !v.spec.Place.Distributed {
		return []Form{withProblem(Form{Name: "several nodes"}, "placement.distributed is not set")}
	}
	var out, found []Form
	for _, g := range v.hardware.groups {
		if !g.Key.Combines() {
			continue
		}
		if f := v.spread(g); f.Problem != "" {
			out = append(out, f)
		} else {
			found = append(found, f)
		}
	}
	// Adjacent forms on whole nodes are one choice for the engine, so this order affects only the listing.
	slices.SortStableFunc(found, func(a, b Form) int { return cmp.Compare(a.Devices*a.Nodes, b.Devices*b.Nodes) })
	return append(out, found...)
}

// spread returns the form of a replica over nodes of the group.
func (v *severalNodes) spread(g *cluster.Group) Form {
	s, key, each := v.spec, g.Key, g.Key.Count
	f := Form{Name: "several nodes of " + key.String(), Group: key.String()}
	if isMixed(key) {
		return withProblem(f, notUniform)
	}
	f.Devices = each
	tensor, stages := v.par.split(each)
	from, to := 2, MostNodes
	switch {
	case s.Serve.Tensor > 0 || s.Serve.Pipeline > 0:
		if tensor = max(1, s.Serve.Tensor); each%tensor != 0 {
			return withProblem(f, "its %d devices are not divisible by tensor parallelism %d", each, tensor)
		}
		stages = each / tensor
		if s.Serve.Pipeline > 0 {
			if s.Serve.Pipeline%stages != 0 || s.Serve.Pipeline/stages < 2 {
				return withProblem(f, "%s are not divided evenly over nodes of %d", english.Count(tensor*s.Serve.Pipeline, "device"), each)
			}
			from, to = s.Serve.Pipeline/stages, s.Serve.Pipeline/stages
		}
	case s.Place.Devices > 0:
		if s.Place.Devices%each != 0 || s.Place.Devices/each < 2 {
			return withProblem(f, "%s are not divided evenly over nodes of %d", english.Count(s.Place.Devices, "device"), each)
		}
		from, to = s.Place.Devices/each, s.Place.Devices/each
	}
	if why := v.par.tensorProblem(tensor); why != "" {
		return withProblem(f, "%s", why)
	}
	if bound := v.par.layers() / stages; s.Source != nil && s.Source.Architecture != nil && bound < to {
		to = bound
	}
	var problem string
	for nodes := from; nodes <= to; nodes++ {
		f.Tensor, f.Pipeline, f.Nodes = tensor, stages*nodes, nodes
		c, err := v.size.claim(&f)
		if err != nil {
			return withProblem(f, "%s", err)
		}
		has := v.hardware.largestShare(g, c.Share)
		if has < c.Enough {
			problem = fmt.Sprintf("on %s each device would need %s and gives %s", english.Count(nodes, "node"), gib(c.Enough), gib(has))
			continue
		}
		f.Name = fmt.Sprintf("%d nodes of %s (tp %d, pp %d)", nodes, key, tensor, stages*nodes)
		shape := s.shape(s.Backend.Host)
		shape.Need = cluster.Need{WholeNode: true, Share: c.Share, SumAtLeast: c.Enough * cluster.Bytes(each), Types: v.hardware.types, Selected: s.Place.Selected}
		f.tasks = []roleTasks{{"leader", 1, shape}, {"worker", nodes - 1, shape}}
		f.whole = &cluster.WholeNodes{
			Replicas: 1, NodesPerReplica: nodes, Only: &key, Apart: true,
			Memory: c.Enough * cluster.Bytes(each*nodes), Usable: has * cluster.Bytes(each),
		}
		return f
	}
	if problem == "" {
		problem = fmt.Sprintf("%s cannot be divided over %s", english.Count(v.par.layers(), "layer"), english.Count(from, "node"))
	}
	return withProblem(f, "%s", problem)
}
