package model

import (
	"errors"
	"fmt"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/estimate/instance"
	"github.com/berth-project/berth/estimate/nodes"
	"github.com/berth-project/berth/numeral"
)

// wholeNodes adds a form for each group: all devices of as many of its nodes as
// a replica takes. A group on which no number of nodes would do has its form
// too, to be refused with its numbers.
func (p *planner) wholeNodes() error {
	groups := p.groups
	if p.Place.InstanceType != "" {
		t, err := instance.Find(p.Place.InstanceType)
		if err != nil {
			return &Problem{[]any{"spec", "placement", "instanceType"}, err.Error()}
		}
		p.Place.InstanceType = t.Name // as the table writes it, which is as nodes are labelled
		if p.Group == nil {
			plan, err := p.plan(t.Group())
			if err != nil {
				return &Problem{[]any{"spec", "placement", "instanceType"}, fmt.Sprintf("%s is too small for the model: %s", t.Name, err)}
			}
			if groups = p.ofType(t.Name); len(groups) == 0 {
				p.anywhere(t.Group(), &plan) // nobody is there yet: the provisioner is asked for them
				return nil
			}
		}
	}
	if p.Group != nil {
		p.whole(*p.Group, p.NodesPerReplica, nil)
		return nil
	}
	uniform := 0
	for _, g := range groups {
		if mixed(g.Key) {
			p.left(Form{Name: "whole nodes of " + g.Key.String(), Group: g.Key.String()}, "%s", notUniform)
			continue
		}
		uniform++
		p.onGroup(g)
	}
	if uniform == 0 && (p.Source != nil || p.explicit() > 0) {
		p.anywhere(cluster.Key{}, &nodes.Plan{Nodes: 1, Tensor: 1, Pipeline: 1, Need: p.explicit()})
		f := &p.forms[len(p.forms)-1]
		f.Name = "whole nodes"
		if len(groups) > 0 {
			f.Problem, f.tasks[0].shape.Need.Products = notUniform, []string{noOneProduct}
		}
	}
	return nil
}

// notUniform is why nodes that mix products are left out, and noOneProduct what is
// asked for where there are no others: nothing has it.
const (
	notUniform   = "its devices are not of one product"
	noOneProduct = "one product on the whole node"
)

// onGroup adds the form on nodes of the group.
func (p *planner) onGroup(g *cluster.Group) {
	key, gives := g.Key, p.giving(g)
	plan, err := p.plan(gives)
	if err == nil {
		p.whole(key, plan.Nodes, &plan)
		return
	}
	need, usable := p.least(gives)
	if need <= usable {
		p.left(Form{Name: "whole nodes of " + key.String(), Group: key.String()}, "%s", err)
		return
	}
	p.whole(key, 1, &nodes.Plan{GPUs: 1, Nodes: 1, Tensor: 1, Pipeline: 1, Need: need, Usable: usable})
	p.forms[len(p.forms)-1].Problem = err.Error()
}

// giving is the group's key with the memory that each device of the node that has
// most can give: some may be reserved, and unified memory may be less.
func (p *planner) giving(g *cluster.Group) cluster.Key {
	key, shape := g.Key, p.shape(p.Backend.Host)
	if !key.Combines() { // a replica has one device
		return key
	}
	var most cluster.Bytes
	for _, n := range g.Nodes {
		most = max(most, shape.DeviceMemory(n))
	}
	key.Memory = min(key.Memory, int64(most>>20)/int64(key.Count))
	return key
}

// anywhere adds the form on nodes like that of a group that is not there.
func (p *planner) anywhere(key cluster.Key, plan *nodes.Plan) {
	p.whole(key, plan.Nodes, plan)
	f := &p.forms[len(p.forms)-1]
	f.Group, f.whole.Only = "", nil
}

// errMemoryUnknown is why no number of nodes is planned: a dump may count devices
// and say nothing else about them.
var errMemoryUnknown = errors.New("the memory of its devices is not known: its nodes lack device labels such as " + cluster.LabelMemory)

// plan is how a replica lies on nodes of the group.
func (p *planner) plan(key cluster.Key) (nodes.Plan, error) {
	var plan nodes.Plan
	if key.Memory <= 0 {
		return plan, errMemoryUnknown
	}
	if total := p.explicit(); total > 0 {
		plan = p.known(key, total)
		if each := cluster.Bytes(key.Memory << 20); p.Memory.Device > each {
			return plan, fmt.Errorf("%s of each device are needed, and %s has %s", gib(p.Memory.Device), key.Product, gib(each))
		}
		if !key.Combines() && plan.GPUs > 1 {
			return plan, fmt.Errorf("one replica needs %s, and one of %s gives %s: parts of devices cannot be combined", gib(total), key, gib(cluster.Bytes(key.Memory<<20)))
		}
	} else {
		r, err := p.replica()
		if err != nil {
			return plan, err
		}
		if plan, err = r.On(key); err != nil {
			return plan, err
		}
	}
	if plan.Nodes > MostNodes {
		return plan, fmt.Errorf("one replica would take %s nodes, and is divided over %d at most", numeral.Thousands(plan.Nodes), MostNodes)
	}
	return plan, nil
}

// known is how a replica of which somebody said the memory lies on such nodes.
func (p *planner) known(key cluster.Key, total cluster.Bytes) nodes.Plan {
	each := cluster.Bytes(key.Memory << 20)
	plan := nodes.Plan{GPUs: p.devices(), Need: total}
	if p.Memory.Device == 0 {
		plan.GPUs = int((total + each - 1) / each)
	}
	plan.Nodes = (plan.GPUs + key.Count - 1) / key.Count
	plan.Tensor, plan.Pipeline = key.Count, plan.Nodes
	return plan
}

// explicit is the memory of a replica that somebody gave; 0: nobody did.
func (p *planner) explicit() cluster.Bytes {
	if p.Memory.Total > 0 {
		return p.Memory.Total
	}
	return p.Memory.Device * cluster.Bytes(p.devices())
}

// devices of a replica, as far as somebody said.
func (p *planner) devices() int {
	return max(1, p.Place.Devices, max(1, p.Serve.Tensor)*max(1, p.Serve.Pipeline))
}

// replica is what the rule for whole nodes looks at.
func (p *planner) replica() (nodes.Replica, error) {
	if p.Source == nil {
		return nodes.Replica{}, fmt.Errorf("how much memory it needs is not known: give memory.total, or a source that can be read")
	}
	r := nodes.Replica{Weights: p.Source.Published() + p.Adapters, Tokens: p.Serve.Context}
	if p.Draft != nil {
		r.Weights += p.Draft.Published()
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
		r.BytesPerToken, r.Heads = cluster.MulDiv(int64(perToken), int64(max(1, p.Serve.Sequences)), 1), a.Heads
	}
	return r, nil
}

// least is what a replica needs of one node at the least and what that gives; 0
// where it is not known.
func (p *planner) least(key cluster.Key) (need, usable cluster.Bytes) {
	usable = cluster.Bytes(key.Memory << 20)
	switch {
	case p.Memory.Device > 0:
		return p.Memory.Device, usable
	case p.Memory.Total > 0:
		if key.Combines() {
			usable *= cluster.Bytes(key.Count)
		}
		return p.Memory.Total, usable
	}
	r, err := p.replica()
	if err != nil {
		return 0, 0
	}
	return r.Least(key)
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

// withinNode is the tensor parallelism within a node: the largest that divides its
// devices and the model.
func (p *planner) withinNode(key cluster.Key) int {
	if key.Combines() {
		for t := key.Count; t > 1; t-- {
			if key.Count%t == 0 && p.divides(t) == "" {
				return t
			}
		}
	}
	return 1
}

// whole adds the form on so many nodes of the group.
func (p *planner) whole(key cluster.Key, perReplica int, plan *nodes.Plan) {
	f := Form{Group: key.String(), Tensor: p.withinNode(key), Devices: key.Count, Nodes: perReplica}
	f.Pipeline = perReplica
	if key.Combines() {
		f.Pipeline = perReplica * key.Count / f.Tensor
	}
	f.Name = fmt.Sprintf("%s of %s%s", numeral.Count(perReplica, "whole node"), key, division(f.Tensor, f.Pipeline))
	w := &cluster.WholeNodes{Replicas: max(1, p.Replicas), NodesPerReplica: perReplica, Only: &key}
	if plan != nil {
		f.Each = plan.Need / cluster.Bytes(max(1, plan.GPUs))
		w.Memory, w.Usable = plan.Need, plan.Usable
	}
	shape := p.shape(p.Backend.Host)
	shape.Need = cluster.Need{WholeNode: true, Types: p.types, Selected: p.Place.Selected}
	f.whole = w
	f.tasks = []piece{{"node", perReplica, shape}}
	p.forms = append(p.forms, f)
}
