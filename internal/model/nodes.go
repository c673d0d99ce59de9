package model

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/english"
)

// MostNodes bounds the nodes that one replica is spread over, and MostTasks the
// tasks of a model, of all replicas in all forms.
const (
	MostNodes = 64
	MostTasks = 1_000_000
)

// severalNodes lays a replica out over whole nodes of one group: all devices of each
// node, and the fewest nodes that together hold it.
type severalNodes struct {
	spec *Spec
	size sizing
	par  parallelism
	have *hardware
}

// forms has one for each group whose devices can be combined.
func (v *severalNodes) forms() []Form {
	if !v.spec.Place.Distributed {
		return []Form{left(Form{Name: "several nodes"}, "placement.distributed is not set")}
	}
	var out, found []Form
	for _, g := range v.have.groups {
		if !g.Key.Combines() {
			continue
		}
		if f := v.spread(g); f.Problem != "" {
			out = append(out, f)
		} else {
			found = append(found, f)
		}
	}
	// Next to each other they are one choice, so this is only the order in which they are listed.
	slices.SortStableFunc(found, func(a, b Form) int { return cmp.Compare(a.Devices*a.Nodes, b.Devices*b.Nodes) })
	return append(out, found...)
}

// spread lays a replica out over nodes of the group.
func (v *severalNodes) spread(g *cluster.Group) Form {
	s, key, each := v.spec, g.Key, g.Key.Count
	f := Form{Name: "several nodes of " + key.String(), Group: key.String()}
	if mixed(key) {
		return left(f, notUniform)
	}
	f.Devices = each
	tensor, stages := v.par.split(each)
	from, to := 2, MostNodes
	switch {
	case s.Serve.Tensor > 0 || s.Serve.Pipeline > 0:
		if tensor = max(1, s.Serve.Tensor); each%tensor != 0 {
			return left(f, "its %d devices are not divisible by tensor parallelism %d", each, tensor)
		}
		stages = each / tensor
		if s.Serve.Pipeline > 0 {
			if s.Serve.Pipeline%stages != 0 || s.Serve.Pipeline/stages < 2 {
				return left(f, "%s are not divided evenly over nodes of %d", english.Count(tensor*s.Serve.Pipeline, "device"), each)
			}
			from, to = s.Serve.Pipeline/stages, s.Serve.Pipeline/stages
		}
	case s.Place.Devices > 0:
		if s.Place.Devices%each != 0 || s.Place.Devices/each < 2 {
			return left(f, "%s are not divided evenly over nodes of %d", english.Count(s.Place.Devices, "device"), each)
		}
		from, to = s.Place.Devices/each, s.Place.Devices/each
	}
	if why := v.par.divides(tensor); why != "" {
		return left(f, "%s", why)
	}
	if bound := v.par.layers() / stages; s.Source != nil && s.Source.Architecture != nil && bound < to {
		to = bound
	}
	var problem string
	for nodes := from; nodes <= to; nodes++ {
		f.Tensor, f.Pipeline, f.Nodes = tensor, stages*nodes, nodes
		c, err := v.size.claim(&f)
		if err != nil {
			return left(f, "%s", err)
		}
		has := v.have.given(g, c.Share)
		if has < c.Enough {
			problem = fmt.Sprintf("on %s each device would need %s and gives %s", english.Count(nodes, "node"), gib(c.Enough), gib(has))
			continue
		}
		f.Name = fmt.Sprintf("%d nodes of %s (tp %d, pp %d)", nodes, key, tensor, stages*nodes)
		shape := s.shape(s.Backend.Host)
		shape.Need = cluster.Need{WholeNode: true, Share: c.Share, SumAtLeast: c.Enough * cluster.Bytes(each), Types: v.have.types, Selected: s.Place.Selected}
		f.tasks = []piece{{"leader", 1, shape}, {"worker", nodes - 1, shape}}
		f.whole = &cluster.WholeNodes{
			Replicas: 1, NodesPerReplica: nodes, Only: &key, Apart: true,
			Memory: c.Enough * cluster.Bytes(each*nodes), Usable: has * cluster.Bytes(each),
		}
		return f
	}
	if problem == "" {
		problem = fmt.Sprintf("%s cannot be divided over %s", english.Count(v.par.layers(), "layer"), english.Count(from, "node"))
	}
	return left(f, "%s", problem)
}
