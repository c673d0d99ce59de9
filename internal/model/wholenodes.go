package model

import (
	"errors"
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/estimate/instance"
	"github.com/berth-project/berth/internal/estimate/nodes"
)

// wholeNodes lists the forms of replicas that have whole nodes of one group to
// themselves.
type wholeNodes struct {
	spec     *Spec
	parallel parallelism
	hardware *hardware
}

// forms returns one form for each group, or one form in all if the instance type has no
// nodes yet or the group was chosen earlier. A group on which no number of nodes is enough
// has a form too, so that its refusal has figures.
func (w *wholeNodes) forms() ([]Form, error) {
	s, groups := w.spec, w.hardware.groups
	if s.Place.InstanceType != "" {
		t, err := instance.Find(s.Place.InstanceType)
		if err != nil {
			return nil, &Problem{[]any{"spec", "placement", "instanceType"}, err.Error()}
		}
		s.Place.InstanceType = t.Name // the table's spelling is that of the node label
		if s.Group == nil {
			division, err := w.division(t.Group())
			if err != nil {
				return nil, &Problem{[]any{"spec", "placement", "instanceType"}, fmt.Sprintf("%s is too small for the model: %s", t.Name, err)}
			}
			if groups = w.hardware.groupsWithInstanceType(t.Name); len(groups) == 0 {
				return []Form{w.onMissingGroup(t.Group(), &division)}, nil // no such node exists yet; the provisioner must create them
			}
		}
	}
	if s.Group != nil {
		return []Form{w.onNodes(*s.Group, s.NodesPerReplica, nil)}, nil
	}
	var out []Form
	for _, g := range groups {
		out = append(out, w.onGroup(g))
	}
	uniform := slices.ContainsFunc(groups, func(g *cluster.Group) bool { return !isMixed(g.Key) })
	if !uniform && (s.Source != nil || w.memoryGiven() > 0) {
		f := w.onMissingGroup(cluster.GroupKey{}, &nodes.Division{Nodes: 1, Tensor: 1, Pipeline: 1, Need: w.memoryGiven()})
		f.Name = "whole nodes"
		if len(groups) > 0 {
			f.Problem, f.tasks[0].shape.Need.Products = notUniform, []string{noOneProduct}
		}
		out = append(out, f)
	}
	return out, nil
}

// notUniform is the problem of nodes that have devices of several products. noOneProduct
// is a product that no device has. It is requested if all nodes are mixed, so that the
// refusal names the cause.
const (
	notUniform   = "its devices are not of one product"
	noOneProduct = "one product on the whole node"
)

// onGroup returns the form on nodes of the group.
func (w *wholeNodes) onGroup(g *cluster.Group) Form {
	key, f := g.Key, Form{Name: "whole nodes of " + g.Key.String(), Group: g.Key.String()}
	if isMixed(key) {
		return withProblem(f, notUniform)
	}
	gives := w.usableKey(g)
	division, err := w.division(gives)
	if err == nil {
		return w.onNodes(key, division.Nodes, &division)
	}
	if need, usable := w.leastNeed(gives); need > usable {
		f = w.onNodes(key, 1, &nodes.Division{GPUs: 1, Nodes: 1, Tensor: 1, Pipeline: 1, Need: need, Usable: usable})
	}
	return withProblem(f, "%s", err)
}

// usableKey returns the group's key with the memory that each device can give, on the
// node where that is most. It can be less than the device has, because memory may be
// reserved or unified with the node's.
func (w *wholeNodes) usableKey(g *cluster.Group) cluster.GroupKey {
	key, shape := g.Key, w.spec.shape(w.spec.Backend.Host)
	if !key.Combines() { // a replica uses one device
		return key
	}
	var most cluster.Bytes
	for _, n := range g.Nodes {
		most = max(most, shape.DeviceMemory(n))
	}
	key.Memory = min(key.Memory, int64(most>>20)/int64(key.Count))
	return key
}

// onMissingGroup returns the form on nodes like those of a group that does not exist
// yet. The form is not restricted to a group.
func (w *wholeNodes) onMissingGroup(key cluster.GroupKey, division *nodes.Division) Form {
	f := w.onNodes(key, division.Nodes, division)
	f.Group, f.whole.Only = "", nil
	return f
}

// errMemoryUnknown is returned if a group has devices of unknown memory. A dump of a
// cluster may count devices without describing them.
var errMemoryUnknown = errors.New("the memory of its devices is not known: its nodes lack device labels such as " + cluster.LabelMemory)

// division returns how a replica is divided over nodes of the group.
func (w *wholeNodes) division(key cluster.GroupKey) (nodes.Division, error) {
	var d nodes.Division
	if key.Memory <= 0 {
		return d, errMemoryUnknown
	}
	if total := w.memoryGiven(); total > 0 {
		d = w.divisionForMemory(key, total)
		if each := cluster.Bytes(key.Memory << 20); w.spec.Memory.Device > each {
			need, has := gibPair(w.spec.Memory.Device, each)
			return d, fmt.Errorf("%s of each device are needed, and %s has %s", need, key.Product, has)
		}
		if !key.Combines() && d.GPUs > 1 {
			need, gives := gibPair(total, cluster.Bytes(key.Memory<<20))
			return d, fmt.Errorf("one replica needs %s, and one of %s gives %s: parts of devices cannot be combined", need, key, gives)
		}
	} else {
		r, err := w.replica()
		if err != nil {
			return d, err
		}
		if d, err = r.Divide(key); err != nil {
			return d, err
		}
	}
	if d.Nodes > MaxNodesPerReplica {
		return d, fmt.Errorf("one replica would take %s nodes, and is divided over %d at most", english.Thousands(d.Nodes), MaxNodesPerReplica)
	}
	return d, nil
}

// divisionForMemory returns how a replica is divided over nodes of the group if the spec
// sets its memory.
func (w *wholeNodes) divisionForMemory(key cluster.GroupKey, total cluster.Bytes) nodes.Division {
	each := cluster.Bytes(key.Memory << 20)
	d := nodes.Division{GPUs: w.devicesGiven(), Need: total}
	if w.spec.Memory.Device == 0 {
		d.GPUs = int((total + each - 1) / each)
	}
	d.Nodes = (d.GPUs + key.Count - 1) / key.Count
	d.Tensor, d.Pipeline = key.Count, d.Nodes
	return d
}

// memoryGiven returns the memory of a replica that the spec sets; 0: it sets none.
func (w *wholeNodes) memoryGiven() cluster.Bytes {
	if w.spec.Memory.Total > 0 {
		return w.spec.Memory.Total
	}
	return w.spec.Memory.Device * cluster.Bytes(w.devicesGiven())
}

// devicesGiven returns the devices of a replica that the spec sets; 1 if it sets none.
func (w *wholeNodes) devicesGiven() int {
	return max(1, w.spec.Place.Devices, max(1, w.spec.Serving.Tensor)*max(1, w.spec.Serving.Pipeline))
}

// replica returns the figures of a replica from which package nodes computes the division.
func (w *wholeNodes) replica() (nodes.Replica, error) {
	if w.spec.Source == nil {
		return nodes.Replica{}, fmt.Errorf("the memory that it needs is not known; set memory.total, or a source that can be read")
	}
	r := nodes.Replica{Weights: w.spec.Source.PublishedSize() + w.spec.Adapters, Tokens: w.spec.Serving.Context}
	if w.spec.Draft != nil {
		r.Weights += w.spec.Draft.PublishedSize()
	}
	if a := w.spec.Source.Architecture; a != nil {
		f := w.spec.Serving
		f.Tensor, f.Pipeline = 1, 1
		if f.Context == 0 {
			f.Context = nodes.DefaultTokens
		}
		perToken, err := w.spec.Source.KVPerToken(f)
		if err != nil {
			return r, err
		}
		r.BytesPerToken, r.Heads = cluster.MulDiv(int64(perToken), int64(max(1, w.spec.Serving.Sequences)), 1), a.Heads
	}
	return r, nil
}

// leastNeed returns the least memory that a replica needs of one node, and what the node
// can give. If the spec sets the memory of each device, it returns these figures for one
// device. Both are 0 if they are not known.
func (w *wholeNodes) leastNeed(key cluster.GroupKey) (need, usable cluster.Bytes) {
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
	return r.LeastNeed(key)
}

// onNodes returns the form on this many nodes of the group. division is nil if the group
// was chosen earlier.
func (w *wholeNodes) onNodes(key cluster.GroupKey, perReplica int, division *nodes.Division) Form {
	f := Form{Group: key.String(), Tensor: w.parallel.withinNode(key), Devices: key.Count, Nodes: perReplica}
	f.Pipeline = perReplica
	if key.Combines() {
		f.Pipeline = perReplica * key.Count / f.Tensor
	}
	f.Name = fmt.Sprintf("%s of %s%s", english.Count(perReplica, "whole node"), key, parallelismSuffix(f.Tensor, f.Pipeline, 1))
	f.whole = &cluster.WholeNodes{Replicas: max(1, w.spec.Replicas), NodesPerReplica: perReplica, Only: &key}
	if division != nil {
		f.PerDevice = division.Need / cluster.Bytes(max(1, division.GPUs))
		f.whole.Memory, f.whole.Usable = division.Need, division.Usable
	}
	shape := w.spec.shape(w.spec.Backend.Host)
	shape.Need = cluster.Need{WholeNode: true, Types: w.hardware.types, Selected: w.spec.Place.Selected}
	f.tasks = []roleTasks{{"node", perReplica, &shape}}
	return f
}
