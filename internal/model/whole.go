package model

import (
	"errors"
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate/instance"
	"github.com/berth-project/berth/internal/estimate/nodes"
	"github.com/berth-project/berth/internal/numeral"
)

// wholeNodes lays replicas out on all devices of as many nodes of one group as each
// takes.
type wholeNodes struct {
	spec *Spec
	par  parallelism
	have *hardware
}

// forms has one for each group. A group on which no number of nodes would do has its
// form too, to be refused with its numbers.
func (w *wholeNodes) forms() ([]Form, error) {
	s, groups := w.spec, w.have.groups
	if s.Place.InstanceType != "" {
		t, err := instance.Find(s.Place.InstanceType)
		if err != nil {
			return nil, &Problem{[]any{"spec", "placement", "instanceType"}, err.Error()}
		}
		s.Place.InstanceType = t.Name // as the table writes it, which is as nodes are labelled
		if s.Group == nil {
			plan, err := w.plan(t.Group())
			if err != nil {
				return nil, &Problem{[]any{"spec", "placement", "instanceType"}, fmt.Sprintf("%s is too small for the model: %s", t.Name, err)}
			}
			if groups = w.have.ofType(t.Name); len(groups) == 0 {
				return []Form{w.anywhere(t.Group(), &plan)}, nil // there are no such nodes yet: the provisioner is to make them
			}
		}
	}
	if s.Group != nil {
		return []Form{w.on(*s.Group, s.NodesPerReplica, nil)}, nil
	}
	var out []Form
	for _, g := range groups {
		out = append(out, w.onGroup(g))
	}
	uniform := slices.ContainsFunc(groups, func(g *cluster.Group) bool { return !mixed(g.Key) })
	if !uniform && (s.Source != nil || w.explicit() > 0) {
		f := w.anywhere(cluster.GroupKey{}, &nodes.Plan{Nodes: 1, Tensor: 1, Pipeline: 1, Need: w.explicit()})
		f.Name = "whole nodes"
		if len(groups) > 0 {
			f.Problem, f.tasks[0].shape.Need.Products = notUniform, []string{noOneProduct}
		}
		out = append(out, f)
	}
	return out, nil
}

// notUniform is why nodes that mix products are left out, and noOneProduct the
// product that is requested where there are no others: no device has it.
const (
	notUniform   = "its devices are not of one product"
	noOneProduct = "one product on the whole node"
)

// onGroup is the form on nodes of the group.
func (w *wholeNodes) onGroup(g *cluster.Group) Form {
	key, f := g.Key, Form{Name: "whole nodes of " + g.Key.String(), Group: g.Key.String()}
	if mixed(key) {
		return left(f, notUniform)
	}
	gives := w.giving(g)
	plan, err := w.plan(gives)
	if err == nil {
		return w.on(key, plan.Nodes, &plan)
	}
	if need, usable := w.least(gives); need > usable {
		f = w.on(key, 1, &nodes.Plan{GPUs: 1, Nodes: 1, Tensor: 1, Pipeline: 1, Need: need, Usable: usable})
	}
	return left(f, "%s", err)
}

// giving is the group's key with the memory that each device of the node that has
// most can give: some may be reserved, and unified memory may be less.
func (w *wholeNodes) giving(g *cluster.Group) cluster.GroupKey {
	key, shape := g.Key, w.spec.shape(w.spec.Backend.Host)
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

// anywhere is the form on nodes like those of a group that is not there.
func (w *wholeNodes) anywhere(key cluster.GroupKey, plan *nodes.Plan) Form {
	f := w.on(key, plan.Nodes, plan)
	f.Group, f.whole.Only = "", nil
	return f
}

// errMemoryUnknown is why no number of nodes is planned: a dump may count devices
// and say nothing else about them.
var errMemoryUnknown = errors.New("the memory of its devices is not known: its nodes lack device labels such as " + cluster.LabelMemory)

// plan is how a replica lies on nodes of the group.
func (w *wholeNodes) plan(key cluster.GroupKey) (nodes.Plan, error) {
	var plan nodes.Plan
	if key.Memory <= 0 {
		return plan, errMemoryUnknown
	}
	if total := w.explicit(); total > 0 {
		plan = w.known(key, total)
		if each := cluster.Bytes(key.Memory << 20); w.spec.Memory.Device > each {
			return plan, fmt.Errorf("%s of each device are needed, and %s has %s", gib(w.spec.Memory.Device), key.Product, gib(each))
		}
		if !key.Combines() && plan.GPUs > 1 {
			return plan, fmt.Errorf("one replica needs %s, and one of %s gives %s: parts of devices cannot be combined", gib(total), key, gib(cluster.Bytes(key.Memory<<20)))
		}
	} else {
		r, err := w.replica()
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

// known is how a replica lies on such nodes where the spec says its memory.
func (w *wholeNodes) known(key cluster.GroupKey, total cluster.Bytes) nodes.Plan {
	each := cluster.Bytes(key.Memory << 20)
	plan := nodes.Plan{GPUs: w.devices(), Need: total}
	if w.spec.Memory.Device == 0 {
		plan.GPUs = int((total + each - 1) / each)
	}
	plan.Nodes = (plan.GPUs + key.Count - 1) / key.Count
	plan.Tensor, plan.Pipeline = key.Count, plan.Nodes
	return plan
}

// explicit is the memory of a replica as the spec says; 0: it does not.
func (w *wholeNodes) explicit() cluster.Bytes {
	if w.spec.Memory.Total > 0 {
		return w.spec.Memory.Total
	}
	return w.spec.Memory.Device * cluster.Bytes(w.devices())
}

// devices of a replica, as far as the spec says.
func (w *wholeNodes) devices() int {
	return max(1, w.spec.Place.Devices, max(1, w.spec.Serve.Tensor)*max(1, w.spec.Serve.Pipeline))
}

// replica is what the rule for whole nodes looks at.
func (w *wholeNodes) replica() (nodes.Replica, error) {
	if w.spec.Source == nil {
		return nodes.Replica{}, fmt.Errorf("how much memory it needs is not known: give memory.total, or a source that can be read")
	}
	r := nodes.Replica{Weights: w.spec.Source.Published() + w.spec.Adapters, Tokens: w.spec.Serve.Context}
	if w.spec.Draft != nil {
		r.Weights += w.spec.Draft.Published()
	}
	if a := w.spec.Source.Architecture; a != nil {
		f := w.spec.Serve
		f.Tensor, f.Pipeline = 1, 1
		if f.Context == 0 {
			f.Context = nodes.DefaultTokens
		}
		perToken, err := w.spec.Source.KVPerToken(f)
		if err != nil {
			return r, err
		}
		r.BytesPerToken, r.Heads = cluster.MulDiv(int64(perToken), int64(max(1, w.spec.Serve.Sequences)), 1), a.Heads
	}
	return r, nil
}

// least is what a replica needs of one node at the least and what that gives; 0
// where it is not known.
func (w *wholeNodes) least(key cluster.GroupKey) (need, usable cluster.Bytes) {
	usable = cluster.Bytes(key.Memory << 20)
	switch {
	case w.spec.Memory.Device > 0:
		return w.spec.Memory.Device, usable
	case w.spec.Memory.Total > 0:
		if key.Combines() {
			usable *= cluster.Bytes(key.Count)
		}
		return w.spec.Memory.Total, usable
	}
	r, err := w.replica()
	if err != nil {
		return 0, 0
	}
	return r.Least(key)
}

// on is the form on so many nodes of the group.
func (w *wholeNodes) on(key cluster.GroupKey, perReplica int, plan *nodes.Plan) Form {
	f := Form{Group: key.String(), Tensor: w.par.within(key), Devices: key.Count, Nodes: perReplica}
	f.Pipeline = perReplica
	if key.Combines() {
		f.Pipeline = perReplica * key.Count / f.Tensor
	}
	f.Name = fmt.Sprintf("%s of %s%s", numeral.Count(perReplica, "whole node"), key, division(f.Tensor, f.Pipeline))
	f.whole = &cluster.WholeNodes{Replicas: max(1, w.spec.Replicas), NodesPerReplica: perReplica, Only: &key}
	if plan != nil {
		f.Each = plan.Need / cluster.Bytes(max(1, plan.GPUs))
		f.whole.Memory, f.whole.Usable = plan.Need, plan.Usable
	}
	shape := w.spec.shape(w.spec.Backend.Host)
	shape.Need = cluster.Need{WholeNode: true, Types: w.have.types, Selected: w.spec.Place.Selected}
	f.tasks = []piece{{"node", perReplica, shape}}
	return f
}
