package model

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/estimate/instance"
	"github.com/berth-project/berth/estimate/nodes"
)

// wholeNodes adds a form for each group: all devices of as many of its nodes as
// a replica takes. A group on which no number of nodes would do has its form
// too, to be refused with its numbers.
func (p *planner) wholeNodes() error {
	if p.Group != nil {
		p.whole(*p.Group, p.NodesPerReplica, nil)
		return nil
	}
	groups := p.groups
	if p.Place.InstanceType != "" {
		t, err := instance.Find(p.Place.InstanceType)
		if err != nil {
			return &Problem{[]any{"spec", "placement", "instanceType"}, err.Error()}
		}
		p.Place.InstanceType = t.Name // as the table writes it, which is as nodes are labelled
		plan, err := p.plan(t.Group())
		if err != nil {
			return &Problem{[]any{"spec", "placement", "instanceType"}, fmt.Sprintf("%s is too small for the model: %s", t.Name, err)}
		}
		if groups = p.ofType(t.Name); len(groups) == 0 {
			// Nobody is there yet: the provisioner is asked for them.
			p.whole(t.Group(), plan.Nodes, &plan)
			p.forms[len(p.forms)-1].whole.Only = nil
			return nil
		}
	}
	for _, g := range groups {
		plan, err := p.plan(g.Key)
		if err == nil {
			p.whole(g.Key, plan.Nodes, &plan)
			continue
		}
		need, usable := p.short(g.Key)
		if need == 0 {
			p.left(Form{Name: "whole nodes of " + g.Key.String(), Group: g.Key.String()}, "%s", err)
			continue
		}
		p.whole(g.Key, 1, &nodes.Plan{GPUs: 1, Nodes: 1, Tensor: 1, Pipeline: 1, Need: need, Usable: usable})
		p.forms[len(p.forms)-1].Problem = err.Error()
	}
	return nil
}

// plan is how a replica lies on nodes of the group.
func (p *planner) plan(key cluster.Key) (nodes.Plan, error) {
	if total := p.explicit(); total > 0 {
		node := cluster.Bytes(key.Memory<<20) * cluster.Bytes(key.Count)
		if !combines(key) {
			node = cluster.Bytes(key.Memory << 20)
		}
		n := int(min((total+node-1)/node, mostNodes+1))
		if !combines(key) && n > 1 || n > mostNodes {
			return nodes.Plan{}, fmt.Errorf("one replica needs %s, and a node of %s gives %s", gib(total), key, gib(node))
		}
		return nodes.Plan{GPUs: n * key.Count, Nodes: n, Tensor: key.Count, Pipeline: n, Need: total}, nil
	}
	r, err := p.replica()
	if err != nil {
		return nodes.Plan{}, err
	}
	return r.On(key)
}

// explicit is the memory of a replica that somebody gave; 0: nobody did.
func (p *planner) explicit() cluster.Bytes {
	if p.Memory.Total > 0 {
		return p.Memory.Total
	}
	return p.Memory.Device * cluster.Bytes(max(1, p.Place.Devices, p.Serve.Tensor*max(1, p.Serve.Pipeline)))
}

// replica is what the rule for whole nodes looks at.
func (p *planner) replica() (nodes.Replica, error) {
	if p.Source == nil {
		return nodes.Replica{}, fmt.Errorf("how much memory it needs is not known: give memory.total, or a source that can be read")
	}
	r := nodes.Replica{Weights: p.Source.Weights.Total() + p.Adapters, Tokens: p.Serve.Context}
	if p.Draft != nil {
		r.Weights += p.Draft.Weights.Total()
	}
	if a := p.Source.Architecture; a != nil {
		f := p.Serve
		f.Tensor, f.Pipeline = 1, 1
		if f.Context == 0 {
			f.Context = nodes.DefaultTokens
		}
		perToken, err := p.Source.KVPerToken(f)
		if err != nil {
			return r, err
		}
		r.BytesPerToken, r.Heads = int64(perToken)*int64(max(1, p.Serve.Sequences)), a.Heads
	}
	return r, nil
}

// short is what a replica needs of a single device and what that gives, where
// devices cannot be combined; 0 where it is not a matter of size.
func (p *planner) short(key cluster.Key) (need, usable cluster.Bytes) {
	r, err := p.replica()
	if err != nil || combines(key) {
		return 0, 0
	}
	return r.Single(key)
}

// ofType are the groups of which nodes are of the instance type.
func (p *planner) ofType(name string) []*cluster.Group {
	var out []*cluster.Group
	for _, g := range p.groups {
		for _, n := range g.Nodes {
			if n.Labels[instanceTypeLabel] == name {
				out = append(out, g)
				break
			}
		}
	}
	return out
}

// whole adds the form on so many nodes of the group.
func (p *planner) whole(key cluster.Key, perReplica int, plan *nodes.Plan) {
	f := Form{
		Name: fmt.Sprintf("%s of %s", count(perReplica, "whole node"), key), Group: key.String(),
		Tensor: 1, Pipeline: perReplica, Devices: key.Count, Nodes: perReplica,
	}
	w := &cluster.WholeNodes{Replicas: max(1, p.Replicas), NodesPerReplica: perReplica, Only: &key}
	if plan != nil {
		f.Tensor, f.Pipeline = plan.Tensor, plan.Pipeline
		f.Each = plan.Need / cluster.Bytes(max(1, plan.GPUs))
		w.Memory, w.Usable = plan.Need, plan.Usable
	}
	shape := p.shape(p.Backend.Host)
	shape.Need = cluster.Need{WholeNode: true, Types: p.types, Selected: p.Place.Selected}
	f.whole = w
	f.tasks = []piece{{"node", perReplica, shape}}
	p.forms = append(p.forms, f)
}
