package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/estimate/instance"
)

// The labels, the annotation and the taint of nodes that a provisioner creates for a
// model.
const (
	instanceTypeLabel = "node.kubernetes.io/instance-type"
	osLabel           = "kubernetes.io/os"
	nodePoolLabel     = "karpenter.sh/nodepool"
	nodePool          = "berth"
	keepAnnotation    = "karpenter.sh/do-not-disrupt"
	modelLabel        = "berth.dev/model"
	taintKey          = "sku"
	taintValue        = "gpu"
)

// Provision is what a provisioner must do for a model with an instance type: how many
// NodeClaims to create, and which nodes to remove.
type Provision struct {
	Model        string `json:"model"`
	InstanceType string `json:"instanceType"`
	PerReplica   int    `json:"nodesPerReplica"`
	Wanted       int    `json:"wanted"` // nodes for all replicas
	Ready        int    `json:"ready"`  // nodes that replicas of the model are on, and idle nodes that it can use, up to Wanted
	Create       int    `json:"create,omitempty"`
	// Nodes are the names of the nodes that Ready counts.
	Nodes []string `json:"-"`
	// Remove lists nodes that were created for this model and that it does not need. No
	// task holds a device of them.
	Remove []string `json:"remove,omitempty"`
	// NodeClaim describes each node to create; nil if Create is 0.
	NodeClaim *NodeClaim `json:"nodeClaim,omitempty"`
}

// String returns a sentence with the figures of the provision.
func (v Provision) String() string {
	nodes := v.Model + " needs " + v.Figures(v.Ready)
	switch {
	case v.Create > 0:
		return fmt.Sprintf("%s: %s to create.", nodes, english.Count(v.Create, "NodeClaim"))
	case len(v.Remove) > 0:
		return fmt.Sprintf("%s: %s to remove, %s.", nodes, english.Count(len(v.Remove), "NodeClaim"), strings.Join(v.Remove, ", "))
	}
	return nodes + "."
}

// Figures returns how many nodes are wanted, and how many of them are ready.
func (v Provision) Figures(ready int) string {
	return fmt.Sprintf("%s of %s, %d for each replica; %d ready", english.Count(v.Wanted, "node"), v.InstanceType, v.PerReplica, ready)
}

// NodeClaim describes a node that a provisioner must create.
type NodeClaim struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	Taints       []string          `json:"taints"`
	Requirements map[string]string `json:"requirements"` // from a label to the value that it must have
}

// NodeRequest is what a model requests from a provisioner. It has no pointers, so it can be
// stored in a file.
type NodeRequest struct {
	Model        string `json:"model"`
	InstanceType string `json:"instanceType,omitempty"` // "": it requests no nodes; its replicas occupy some
	Replicas     int    `json:"replicas,omitempty"`
	// NodesPerReplica is used until a replica is placed; if Fixed is set, it is always
	// used.
	NodesPerReplica int               `json:"nodesPerReplica,omitempty"`
	Fixed           bool              `json:"fixed,omitempty"`
	Selector        map[string]string `json:"selector,omitempty"`
	Jobs            []string          `json:"jobs,omitempty"` // the IDs of its replicas
}

// NodeRequests returns one request for each model, or nil if no model has an instance
// type. Models without an instance type are included because their replicas occupy
// nodes.
func NodeRequests(models []*Result) []NodeRequest {
	if !slices.ContainsFunc(models, func(p *Result) bool { return p.Spec.Place.InstanceType != "" }) {
		return nil
	}
	out := make([]NodeRequest, len(models))
	for i, p := range models {
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

// Provisions returns what a provisioner must do after a session, for each model with an
// instance type. A node is counted as ready for one model only: for the model of the
// replica that is placed on it, else for the model that it was created for, else for the
// first model that can use it.
func Provisions(requests []NodeRequest, s *cluster.State) []Provision {
	taken := map[*cluster.Node]bool{}
	for i := range requests {
		for n := range requests[i].nodes(s) {
			taken[n] = true
		}
	}
	var out []Provision
	var of []*NodeRequest
	var idle [][]*cluster.Node
	for i := range requests {
		if r := &requests[i]; r.InstanceType != "" {
			v := r.provision(s)
			out, of, idle = append(out, v), append(of, r), append(idle, r.idleNodes(s, v.InstanceType, taken))
		}
	}
	for _, createdFor := range []bool{true, false} {
		for i := range out {
			for _, n := range idle[i] {
				if v := &out[i]; !taken[n] && v.Ready < v.Wanted && (of[i].createdFor(n) || !createdFor) {
					taken[n] = true
					v.Ready, v.Nodes = v.Ready+1, append(v.Nodes, n.Name)
				}
			}
		}
	}
	for i := range out {
		v := &out[i]
		for _, n := range idle[i] {
			if !taken[n] && of[i].createdFor(n) {
				v.Remove = append(v.Remove, n.Name)
			}
		}
		if v.Create = max(0, v.Wanted-v.Ready); v.Create > 0 {
			v.NodeClaim = NewNodeClaim(v.Model, v.InstanceType, of[i].Selector)
		}
	}
	return out
}

// NodesToCreate returns how many nodes must be created for each model, by the model's ID.
func NodesToCreate(provisions []Provision) map[string]int {
	out := map[string]int{}
	for i := range provisions {
		out[provisions[i].Model] = provisions[i].Create
	}
	return out
}

// provision returns how many nodes are wanted, and those on which replicas are placed.
func (r *NodeRequest) provision(s *cluster.State) Provision {
	name := r.InstanceType
	if t, err := instance.Find(name); err == nil {
		name = t.Name
	}
	v := Provision{Model: r.Model, InstanceType: name, PerReplica: r.perReplica(s)}
	v.Wanted = v.PerReplica * r.Replicas
	for n := range r.nodes(s) {
		v.Nodes = append(v.Nodes, n.Name)
	}
	slices.Sort(v.Nodes)
	v.Ready = len(v.Nodes)
	return v
}

// idleNodes returns the nodes that the model can use and no model uses.
func (r *NodeRequest) idleNodes(s *cluster.State, instanceType string, taken map[*cluster.Node]bool) []*cluster.Node {
	var out []*cluster.Node
	for _, n := range s.Nodes() {
		if !taken[n] && n.Labels[instanceTypeLabel] == instanceType && !n.Closed() && matchesSelector(r.Selector, n) && hasIdleDevices(n) {
			out = append(out, n)
		}
	}
	return out
}

// createdFor reports whether the node was created for this model.
func (r *NodeRequest) createdFor(n *cluster.Node) bool {
	return n.Labels[modelLabel] == NodeLabel(r.Model)
}

// nodes returns the nodes on which tasks of the model's replicas are placed.
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

// perReplica returns how many nodes a replica takes: as many as the first replica that
// is placed has tasks, or NodesPerReplica if none is placed.
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

func matchesSelector(selector map[string]string, n *cluster.Node) bool {
	for k, v := range selector {
		if have, ok := n.Labels[k]; !ok || have != v {
			return false
		}
	}
	return true
}

// hasIdleDevices reports whether the node has devices and no task holds any of them.
func hasIdleDevices(n *cluster.Node) bool {
	return len(n.Devices) > 0 && !slices.ContainsFunc(n.Devices, func(d cluster.Device) bool { return !d.Idle() })
}

// maxLabel is the length of the longest value of a label.
const maxLabel = 63

// NodeLabel returns the value of the label berth.dev/model of nodes that are created for a
// model: its ID without its kind, in the characters that a label value may have. A long
// value is cut, and ends with a hash.
func NodeLabel(id string) string {
	out := strings.ReplaceAll(strings.TrimPrefix(id, "model/"), "/", "_") // names contain no underscore, so the value stays unique
	if len(out) <= maxLabel {
		return out
	}
	sum := sha256.Sum256([]byte(out))
	end := "." + hex.EncodeToString(sum[:4])
	return out[:maxLabel-len(end)] + end
}

// NewNodeClaim describes the nodes of an instance type that are created for a model.
// selector has the labels that they must have.
func NewNodeClaim(id, instanceType string, selector map[string]string) *NodeClaim {
	labels := map[string]string{nodePoolLabel: nodePool, modelLabel: NodeLabel(id)}
	maps.Copy(labels, selector)
	return &NodeClaim{
		Labels:       labels,
		Annotations:  map[string]string{keepAnnotation: strconv.FormatBool(true)},
		Taints:       []string{taintKey + "=" + taintValue + ":" + string(cluster.NoSchedule)},
		Requirements: map[string]string{nodePoolLabel: labels[nodePoolLabel], instanceTypeLabel: instanceType, osLabel: "linux"},
	}
}
