package model

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/numeral"
)

// MostNodes bounds the nodes that one replica is spread over, and MostTasks the
// tasks of a model, of all replicas in all forms.
const (
	MostNodes = 64
	MostTasks = 1_000_000
)

// severalNodes adds a form for each group whose nodes together hold a replica:
// all devices of each node, and the fewest nodes that do.
func (p *planner) severalNodes() {
	if !p.Place.Distributed {
		p.left(Form{Name: "several nodes"}, "placement.distributed is not set")
		return
	}
	var found []Form
	for _, g := range p.groups {
		if !g.Key.Combines() {
			continue
		}
		if mixed(g.Key) {
			p.left(Form{Name: "several nodes of " + g.Key.String(), Group: g.Key.String()}, "%s", notUniform)
			continue
		}
		if f := p.spread(g); f.Problem != "" {
			p.forms = append(p.forms, f)
		} else {
			found = append(found, f)
		}
	}
	// Next to each other they are one choice, so this is only the order in which they are told.
	slices.SortStableFunc(found, func(a, b Form) int { return cmp.Compare(a.Devices*a.Nodes, b.Devices*b.Nodes) })
	p.forms = append(p.forms, found...)
}

// given is what each device of the node of the group that has most gives.
func (p *planner) given(g *cluster.Group, share cluster.Milli) cluster.Bytes {
	most := cluster.Bytes(0)
	for i := range p.have {
		if k := &p.have[i]; k.group == g && k.count == g.Key.Count {
			most = max(most, k.share(share))
		}
	}
	return most
}

// spread lays a replica out over nodes of the group.
func (p *planner) spread(g *cluster.Group) Form {
	key, each := g.Key, g.Key.Count
	f := Form{Name: "several nodes of " + key.String(), Devices: each, Group: key.String()}
	fail := func(format string, args ...any) Form {
		f.Problem = fmt.Sprintf(format, args...)
		return f
	}
	tensor, stages := p.split(each)
	from, to := 2, MostNodes
	switch {
	case p.Serve.Tensor > 0 || p.Serve.Pipeline > 0:
		if tensor = max(1, p.Serve.Tensor); each%tensor != 0 {
			return fail("its %d devices are not divisible by tensor parallelism %d", each, tensor)
		}
		stages = each / tensor
		if p.Serve.Pipeline > 0 {
			if p.Serve.Pipeline%stages != 0 || p.Serve.Pipeline/stages < 2 {
				return fail("%s are not divided evenly over nodes of %d", numeral.Count(tensor*p.Serve.Pipeline, "device"), each)
			}
			from, to = p.Serve.Pipeline/stages, p.Serve.Pipeline/stages
		}
	case p.Place.Devices > 0:
		if p.Place.Devices%each != 0 || p.Place.Devices/each < 2 {
			return fail("%s are not divided evenly over nodes of %d", numeral.Count(p.Place.Devices, "device"), each)
		}
		from, to = p.Place.Devices/each, p.Place.Devices/each
	}
	if why := p.divides(tensor); why != "" {
		return fail("%s", why)
	}
	if bound := p.layers() / stages; p.Source != nil && p.Source.Architecture != nil && bound < to {
		to = bound
	}
	var problem string
	for nodes := from; nodes <= to; nodes++ {
		f.Tensor, f.Pipeline, f.Nodes = tensor, stages*nodes, nodes
		var err error
		if f.Each, f.Parts, err = p.need(tensor, stages*nodes); err != nil {
			return fail("%s", err)
		}
		c := p.claim(tensor, &f)
		has := p.given(g, c.Share)
		if has < c.Enough {
			problem = fmt.Sprintf("on %s each device would need %s and gives %s", numeral.Count(nodes, "node"), gib(c.Enough), gib(has))
			continue
		}
		f.Name = fmt.Sprintf("%d nodes of %s (tp %d, pp %d)", nodes, key, tensor, stages*nodes)
		shape := p.shape(p.Backend.Host)
		shape.Need = cluster.Need{WholeNode: true, Share: c.Share, SumAtLeast: c.Enough * cluster.Bytes(each), Types: p.types, Selected: p.Place.Selected}
		f.tasks = []piece{{"leader", 1, shape}, {"worker", nodes - 1, shape}}
		f.whole = &cluster.WholeNodes{
			Replicas: 1, NodesPerReplica: nodes, Only: &key, Apart: true,
			Memory: c.Enough * cluster.Bytes(each*nodes), Usable: has * cluster.Bytes(each),
		}
		return f
	}
	if problem == "" {
		problem = fmt.Sprintf("%s cannot be divided over %s", numeral.Count(p.layers(), "layer"), numeral.Count(from, "node"))
	}
	return fail("%s", problem)
}
