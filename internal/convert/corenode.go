package convert

import (
	"maps"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	corev1 "k8s.io/api/core/v1"
)

// nameLabel stands for the field metadata.name, which node affinity may match
// as if it were a label.
const nameLabel = "metadata.name"

// notReady is the phase of a node whose condition Ready is not True.
const notReady cluster.Phase = "NOT_READY"

// CoreNode turns a node of a Kubernetes cluster into one for the books.
func CoreNode(o *corev1.Node) (*cluster.Node, Notes) {
	notes := CoreNodeNotes(o)
	r := reporter{&notes}
	checkName(o.Name, "node", r)
	n := &cluster.Node{Name: o.Name, Labels: maps.Clone(o.Labels), Unschedulable: o.Spec.Unschedulable}
	if !ready(o) {
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
	offered := amounts(Allocatable(o), allocatablePath(o), r)
	devicesOf(n, offered, false)
	noteDefect(n, offered, allocatablePath(o), r)
	for _, a := range offered {
		if !isDevice(a.Name) {
			n.Resources = append(n.Resources, cluster.Ledger{Name: a.Name, Capacity: a.Value})
		}
	}
	return n, notes
}

// Allocatable is what is left for pods; a node that has not said yet offers its capacity.
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

// CoreNodeNotes are the notes about the state of the node, which need no conversion.
func CoreNodeNotes(o *corev1.Node) Notes {
	if ready(o) {
		return nil
	}
	return Notes{{Inactive, path{"status", "conditions"}, "not ready, taking nothing new", ""}}
}

// ready reports whether the node's condition lets it take pods. Dumps that
// leave conditions out are believed to be of nodes that work.
func ready(o *corev1.Node) bool {
	for _, c := range o.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return true
}
