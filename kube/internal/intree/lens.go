package intree

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// lens shows the nodes of a mirror with only those pods that may count for the topology
// spread constraints of a pod. The PreFilter of PodTopologySpread reads all pods of all
// nodes it is given; with a lens it gives the same answer and takes a fraction of the time.
type lens struct {
	namespace string
	selectors []labels.Selector // nil: all pods of the namespace count
	nodes     []fwk.NodeInfo
	at        map[*framework.NodeInfo]*lensNode
}

// lensNode is a node with some of its pods.
type lensNode struct {
	fwk.NodeInfo
	pods []fwk.PodInfo
}

// GetPods returns the pods that count.
func (n *lensNode) GetPods() []fwk.PodInfo { return n.pods }

func newLens(m *mirror, pod *v1.Pod) *lens {
	l := &lens{namespace: pod.Namespace, at: map[*framework.NodeInfo]*lensNode{}}
	for i := range pod.Spec.TopologySpreadConstraints {
		s, err := metav1.LabelSelectorAsSelector(pod.Spec.TopologySpreadConstraints[i].LabelSelector)
		if err != nil { // PodTopologySpread returns the error
			l.selectors = nil
			break
		}
		l.selectors = append(l.selectors, s)
	}
	for _, listed := range m.list {
		n := &lensNode{NodeInfo: listed}
		for _, p := range listed.GetPods() {
			if l.counts(p.GetPod()) {
				n.pods = append(n.pods, p)
			}
		}
		l.nodes = append(l.nodes, n)
		if info, ok := listed.(*framework.NodeInfo); ok {
			l.at[info] = n
		}
	}
	return l
}

// counts reports whether the pod may count for a constraint. Constraints with
// matchLabelKeys count fewer pods.
func (l *lens) counts(pod *v1.Pod) bool {
	return pod.Namespace == l.namespace && (l.selectors == nil ||
		slices.ContainsFunc(l.selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(pod.Labels)) }))
}

// follow adds or removes the pod that moved.
func (l *lens) follow(v movement) {
	n := l.at[v.node.info]
	switch {
	case n == nil || !l.counts(v.pod.Pod):
	case v.added:
		n.pods = append(n.pods, v.pod)
	default:
		n.pods = slices.DeleteFunc(n.pods, func(p fwk.PodInfo) bool { return p.GetPod().UID == v.pod.Pod.UID })
	}
}
