package convert

import (
	"maps"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	corev1 "k8s.io/api/core/v1"
)

// nameLabel is a label that CoreNode sets. It holds the field metadata.name, which node
// affinity of pods may match like a label (matchFields). Node does not set it. On a Berth
// Node, a condition In on this field is therefore never met, and a condition NotIn always is.
const nameLabel = "metadata.name"

// notReady is the phase of a node of which the condition Ready is not True.
const notReady cluster.Phase = "NOT_READY"

// CoreNode converts a node of Kubernetes.
func CoreNode(o *corev1.Node) (*cluster.Node, Notes) {
	notes := CoreNodeNotes(o)
	r := reporter{&notes}
	checkName(o.Name, "node", r)
	n := &cluster.Node{Name: o.Name, Labels: maps.Clone(o.Labels), Unschedulable: o.Spec.Unschedulable}
	if !isReady(o) {
		n.Phase = notReady
	}
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[nameLabel] = o.Name
	n.Cell = n.Labels[v1alpha1.LabelCell]
	for _, t := range o.Spec.Taints {
		n.Taints = append(n.Taints, cluster.Taint{Key: t.Key, Value: t.Value, Effect: cluster.Effect(t.Effect)})
	}
	nodeIsolation(o, n, r)
	offered := amounts(Allocatable(o), allocatablePath(o), r)
	findDevices(n, offered, false)
	noteDefect(n, offered, allocatablePath(o), r)
	for _, a := range offered {
		if !IsDevice(a.Name) {
			n.Resources = append(n.Resources, cluster.Ledger{Name: a.Name, Capacity: a.Value})
		}
	}
	return n, notes
}

// Allocatable returns what the node offers to pods: its allocatable resources, or its
// capacity if it has not reported the former yet.
func Allocatable(o *corev1.Node) corev1.ResourceList {
	if len(o.Status.Allocatable) > 0 {
		return o.Status.Allocatable
	}
	return o.Status.Capacity
}

func allocatablePath(o *corev1.Node) path {
	if len(o.Status.Allocatable) > 0 {
		return path{"status", "allocatable"}
	}
	return path{"status", "capacity"}
}

// CoreNodeNotes returns the notes that CoreNode returns about the state of the node.
// It costs less, since it does not convert.
func CoreNodeNotes(o *corev1.Node) Notes {
	if isReady(o) {
		return nil
	}
	return Notes{{Inactive, path{"status", "conditions"}, "not ready, taking no new tasks", ""}}
}

// isReady reports whether the condition Ready of the node is True. A node without
// that condition, as in a shortened dump, counts as ready.
func isReady(o *corev1.Node) bool {
	for _, c := range o.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return true
}
