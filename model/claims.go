package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/estimate/instance"
)

// Labels, annotations and the taint of nodes that a provisioner makes for a model.
const (
	instanceTypeLabel = "node.kubernetes.io/instance-type"
	osLabel           = "kubernetes.io/os"
	nodePoolLabel     = "karpenter.sh/nodepool"
	keepAnnotation    = "karpenter.sh/do-not-disrupt"
	modelLabel        = "berth.dev/model"
	taintKey          = "sku"
	taintValue        = "gpu"
)

// Provision is what a provisioner is to do for a model with an instance type: so
// many NodeClaims to create, and those of these nodes to remove.
type Provision struct {
	Model        string `json:"model"`
	InstanceType string `json:"instanceType"`
	PerReplica   int    `json:"nodesPerReplica"`
	Wanted       int    `json:"wanted"` // nodes in all
	Ready        int    `json:"ready"`  // of these, how many are there for it
	Create       int    `json:"create,omitempty"`
	// Remove are nodes that were made for this model and hold nothing of it.
	Remove []string `json:"remove,omitempty"`
	// NodeClaim is what each that is created looks like.
	NodeClaim *NodeClaim `json:"nodeClaim,omitempty"`
}

// String says it in a sentence.
func (v Provision) String() string {
	nodes := fmt.Sprintf("%s wants %s of %s, %d for each replica; %d ready", v.Model, count(v.Wanted, "node"), v.InstanceType, v.PerReplica, v.Ready)
	switch {
	case v.Create > 0:
		return fmt.Sprintf("%s: %s to create.", nodes, count(v.Create, "NodeClaim"))
	case len(v.Remove) > 0:
		return fmt.Sprintf("%s: %s to remove, %s.", nodes, count(len(v.Remove), "NodeClaim"), strings.Join(v.Remove, ", "))
	}
	return nodes + "."
}

// NodeClaim is what is said of a node that is to be made.
type NodeClaim struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	Taints       []string          `json:"taints"`
	Requirements map[string]string `json:"requirements"` // label and the value it must have
}

// Provisions says what a provisioner is to do, once the session has placed what
// it could. A node is ready for one model only: for the one that is on it, or
// for the first that could use it.
func Provisions(plans []*Plan, s *cluster.State) []Provision {
	var out []Provision
	taken := map[*cluster.Node]bool{}
	for _, p := range plans {
		for n := range p.nodes(s) {
			taken[n] = true
		}
	}
	for _, p := range plans {
		if p.Spec.Place.InstanceType != "" {
			out = append(out, p.provision(s, taken))
		}
	}
	return out
}

func (p *Plan) provision(s *cluster.State, taken map[*cluster.Node]bool) Provision {
	name := p.Spec.Place.InstanceType
	if t, err := instance.Find(name); err == nil {
		name = t.Name
	}
	v := Provision{Model: p.Spec.ID, InstanceType: name, PerReplica: p.perReplica(s)}
	v.Wanted = v.PerReplica * p.Spec.Replicas
	own := p.nodes(s)
	v.Ready = len(own)
	for _, n := range s.Nodes() {
		if own[n] || taken[n] || n.Labels[instanceTypeLabel] != name || n.Closed() || !matches(p.Spec.Place.Selector, n) || !idle(n) {
			continue
		}
		switch {
		case v.Ready < v.Wanted:
			taken[n] = true
			v.Ready++
		case n.Labels[modelLabel] == labelValue(p.Spec.ID):
			v.Remove = append(v.Remove, n.Name)
		}
	}
	if v.Create = max(0, v.Wanted-v.Ready); v.Create > 0 {
		v.NodeClaim = p.nodeClaim(name)
	}
	return v
}

// nodes that replicas are on.
func (p *Plan) nodes(s *cluster.State) map[*cluster.Node]bool {
	out := map[*cluster.Node]bool{}
	for _, j := range p.Jobs {
		if j := s.Job(j.ID); j != nil && !j.Retired {
			for _, t := range j.Tasks() {
				if t.Node != nil {
					out[t.Node] = true
				}
			}
		}
	}
	return out
}

// perReplica is how many nodes a replica takes: in the form that one runs in, or
// in the first.
func (p *Plan) perReplica(s *cluster.State) int {
	if p.Spec.Group != nil {
		return p.Spec.NodesPerReplica
	}
	for _, j := range p.Jobs {
		if j := s.Job(j.ID); j != nil && j.Chosen >= 0 {
			return len(j.Tasks())
		}
	}
	for _, f := range p.Forms {
		if f.whole != nil && f.Problem == "" {
			return f.Nodes
		}
	}
	return 0
}

func matches(selector map[string]string, n *cluster.Node) bool {
	for k, v := range selector {
		if have, ok := n.Labels[k]; !ok || have != v {
			return false
		}
	}
	return true
}

// idle reports whether nobody holds any device of the node.
func idle(n *cluster.Node) bool {
	return len(n.Devices) > 0 && !slices.ContainsFunc(n.Devices, func(d cluster.Device) bool { return !d.Idle() })
}

// labelValue is the model's ID as a label can say it.
func labelValue(id string) string {
	out := []byte(id[len("model/"):])
	for i, c := range out {
		if c == '/' {
			out[i] = '_' // no name has one, so it stays unique
		}
	}
	return string(out)
}

func (p *Plan) nodeClaim(instanceType string) *NodeClaim {
	labels := map[string]string{nodePoolLabel: "berth", modelLabel: labelValue(p.Spec.ID)}
	for k, v := range p.Spec.Place.Selector {
		labels[k] = v
	}
	return &NodeClaim{
		Labels:       labels,
		Annotations:  map[string]string{keepAnnotation: strconv.FormatBool(true)},
		Taints:       []string{taintKey + "=" + taintValue + ":" + string(cluster.NoSchedule)},
		Requirements: map[string]string{nodePoolLabel: "berth", instanceTypeLabel: instanceType, osLabel: "linux"},
	}
}
