package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/estimate/instance"
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
	nodes := fmt.Sprintf("%s wants %s of %s, %d for each replica; %d ready", v.Model, english.Count(v.Wanted, "node"), v.InstanceType, v.PerReplica, v.Ready)
	switch {
	case v.Create > 0:
		return fmt.Sprintf("%s: %s to create.", nodes, english.Count(v.Create, "NodeClaim"))
	case len(v.Remove) > 0:
		return fmt.Sprintf("%s: %s to remove, %s.", nodes, english.Count(len(v.Remove), "NodeClaim"), strings.Join(v.Remove, ", "))
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

// NodeRequest is what a model requests of a provisioner, as a plain value.
type NodeRequest struct {
	Model        string `json:"model"`
	InstanceType string `json:"instanceType,omitempty"` // "": it requests nothing, and its replicas are on nodes
	Replicas     int    `json:"replicas,omitempty"`
	// NodesPerReplica holds until a replica has a form, or for good where Fixed.
	NodesPerReplica int               `json:"nodesPerReplica,omitempty"`
	Fixed           bool              `json:"fixed,omitempty"`
	Selector        map[string]string `json:"selector,omitempty"`
	Jobs            []string          `json:"jobs,omitempty"` // its replicas, by ID
}

// NodeRequests are those of all models, where at least one has an instance type.
func NodeRequests(plans []*Plan) []NodeRequest {
	if !slices.ContainsFunc(plans, func(p *Plan) bool { return p.Spec.Place.InstanceType != "" }) {
		return nil
	}
	out := make([]NodeRequest, len(plans))
	for i, p := range plans {
		r := NodeRequest{Model: p.Spec.ID, InstanceType: p.Spec.Place.InstanceType, Replicas: p.Spec.Replicas, Selector: p.Spec.Place.Selector}
		if r.Fixed = p.Spec.Group != nil; r.Fixed {
			r.NodesPerReplica = p.Spec.NodesPerReplica
		} else if f := slices.IndexFunc(p.Forms, func(f Form) bool { return f.whole != nil && f.Problem == "" }); f >= 0 {
			r.NodesPerReplica = p.Forms[f].Nodes
		}
		for _, j := range p.Jobs {
			r.Jobs = append(r.Jobs, j.ID)
		}
		out[i] = r
	}
	return out
}

// Provisions says what a provisioner is to do, once the session has placed what
// it could. A node is ready for one model only: for the one that is on it, or
// for the first that could use it.
func Provisions(requests []NodeRequest, s *cluster.State) []Provision {
	var out []Provision
	taken := map[*cluster.Node]bool{}
	for i := range requests {
		for n := range requests[i].nodes(s) {
			taken[n] = true
		}
	}
	for i := range requests {
		if requests[i].InstanceType != "" {
			out = append(out, requests[i].provision(s, taken))
		}
	}
	return out
}

// Create is how many nodes are to be made for each model, by its ID.
func Create(provisions []Provision) map[string]int {
	out := map[string]int{}
	for i := range provisions {
		out[provisions[i].Model] = provisions[i].Create
	}
	return out
}

func (r *NodeRequest) provision(s *cluster.State, taken map[*cluster.Node]bool) Provision {
	name := r.InstanceType
	if t, err := instance.Find(name); err == nil {
		name = t.Name
	}
	v := Provision{Model: r.Model, InstanceType: name, PerReplica: r.perReplica(s)}
	v.Wanted = v.PerReplica * r.Replicas
	own := r.nodes(s)
	v.Ready = len(own)
	for _, n := range s.Nodes() {
		if own[n] || taken[n] || n.Labels[instanceTypeLabel] != name || n.Closed() || !matches(r.Selector, n) || !idle(n) {
			continue
		}
		switch {
		case v.Ready < v.Wanted:
			taken[n] = true
			v.Ready++
		case n.Labels[modelLabel] == labelValue(r.Model):
			v.Remove = append(v.Remove, n.Name)
		}
	}
	if v.Create = max(0, v.Wanted-v.Ready); v.Create > 0 {
		v.NodeClaim = r.nodeClaim(name)
	}
	return v
}

// nodes that replicas are on.
func (r *NodeRequest) nodes(s *cluster.State) map[*cluster.Node]bool {
	out := map[*cluster.Node]bool{}
	for _, id := range r.Jobs {
		if j := s.Job(id); j != nil && !j.Retired {
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
func (r *NodeRequest) perReplica(s *cluster.State) int {
	if r.Fixed {
		return r.NodesPerReplica
	}
	for _, id := range r.Jobs {
		if j := s.Job(id); j != nil && j.Chosen >= 0 {
			return len(j.Tasks())
		}
	}
	return r.NodesPerReplica
}

func matches(selector map[string]string, n *cluster.Node) bool {
	for k, v := range selector {
		if have, ok := n.Labels[k]; !ok || have != v {
			return false
		}
	}
	return true
}

// idle reports whether the node has devices, and no task holds any of them.
func idle(n *cluster.Node) bool {
	return len(n.Devices) > 0 && !slices.ContainsFunc(n.Devices, func(d cluster.Device) bool { return !d.Idle() })
}

// labelValue is the model's ID as a label can say it.
func labelValue(id string) string {
	out := []byte(strings.TrimPrefix(id, "model/"))
	for i, c := range out {
		if c == '/' {
			out[i] = '_' // no name has one, so it stays unique
		}
	}
	return string(out)
}

func (r *NodeRequest) nodeClaim(instanceType string) *NodeClaim {
	labels := map[string]string{nodePoolLabel: "berth", modelLabel: labelValue(r.Model)}
	for k, v := range r.Selector {
		labels[k] = v
	}
	return &NodeClaim{
		Labels:       labels,
		Annotations:  map[string]string{keepAnnotation: strconv.FormatBool(true)},
		Taints:       []string{taintKey + "=" + taintValue + ":" + string(cluster.NoSchedule)},
		Requirements: map[string]string{nodePoolLabel: "berth", instanceTypeLabel: instanceType, osLabel: "linux"},
	}
}
