package intree

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"
)

// quiet is the logger that in-tree plugins get. Its zero value drops every message.
var quiet klog.Logger

// mirror is what the in-tree plugins read of the cluster: one NodeInfo for each node, with
// the pods of the tasks that are on it. It is changed in place. Each of its changes has an
// inverse: remove for add, and setNode with the node that setNode returned.
//
// A node of which only pods are known has a NodeInfo, but plugins do not see it.
type mirror struct {
	nodes map[string]*mirrorNode
	list  []fwk.NodeInfo // the nodes that plugins see, sorted by name
	// claims counts the pods that use a claim, by namespace and name. It includes pods on
	// nodes that plugins do not see.
	claims map[string]int
	// affinity and antiAffinity are the elements of list that have pods with terms about
	// other pods, and with required anti-affinity terms. They are nil if they must be built.
	affinity, antiAffinity []fwk.NodeInfo
	tainted, cordoned      int // how many nodes of list have a taint that filters read, and are unschedulable

	epoch uint64     // grows when list or the spec of a node in it changes
	moves []movement // the pods that were added and removed since forget was called last
}

// mirrorNode is one node of a mirror.
type mirrorNode struct {
	info *framework.NodeInfo
	pods map[types.UID]*framework.PodInfo
}

// movement is a pod that was added to a node or removed from it.
type movement struct {
	pod   *framework.PodInfo
	node  *mirrorNode
	added bool
}

func newMirror() *mirror {
	return &mirror{nodes: map[string]*mirrorNode{}, claims: map[string]int{}}
}

// node returns the node with the name, which it creates if needed.
func (m *mirror) node(name string) *mirrorNode {
	n := m.nodes[name]
	if n == nil {
		n = &mirrorNode{info: framework.NewNodeInfo(), pods: map[types.UID]*framework.PodInfo{}}
		m.nodes[name] = n
	}
	return n
}

// release forgets the node if it has neither an object nor a pod.
func (m *mirror) release(name string) {
	if n := m.nodes[name]; n.info.Node() == nil && len(n.pods) == 0 {
		delete(m.nodes, name)
	}
}

// position returns the index in list at which the node is, or would be inserted.
func (m *mirror) position(name string) (int, bool) {
	return slices.BinarySearchFunc(m.list, name, func(n fwk.NodeInfo, name string) int {
		return strings.Compare(n.Node().Name, name)
	})
}

// setNode replaces the object of the node with the name, and returns the earlier one. Nil
// stands for no object: plugins do not see the node.
func (m *mirror) setNode(name string, object *v1.Node) (earlier *v1.Node) {
	n := m.node(name)
	earlier = n.info.Node()
	if earlier != nil {
		m.count(earlier, -1)
	}
	if object != nil {
		m.count(object, 1)
	}
	at, listed := m.position(name)
	switch {
	case object == nil && listed:
		m.list = slices.Delete(m.list, at, at+1)
		n.info.RemoveNode()
	case object != nil:
		n.info.SetNode(object)
		if !listed {
			m.list = slices.Insert(m.list, at, fwk.NodeInfo(n.info))
		}
	}
	if changed(earlier, object) {
		m.epoch++
		m.affinity, m.antiAffinity = nil, nil
	}
	m.release(name)
	return earlier
}

// changed reports whether something changed in a node that filters read. That the node became
// unschedulable is not among the changes that upstream lists, because it cures nothing.
func changed(earlier, now *v1.Node) bool {
	if earlier == nil || now == nil {
		return earlier != now
	}
	return earlier.Spec.Unschedulable != now.Spec.Unschedulable || slices.ContainsFunc(framework.NodeSchedulingPropertiesChange(now, earlier), func(e fwk.ClusterEvent) bool {
		return e.ActionType != fwk.UpdateNodeCondition && e.ActionType != fwk.UpdateNodeAnnotation
	})
}

// count adds a node to the counts of nodes with taints and of unschedulable nodes, or removes it.
func (m *mirror) count(object *v1.Node, by int) {
	if object.Spec.Unschedulable {
		m.cordoned += by
	}
	if slices.ContainsFunc(object.Spec.Taints, func(t v1.Taint) bool { return t.Effect != v1.TaintEffectPreferNoSchedule }) {
		m.tainted += by
	}
}

// has reports whether the pod is on the node.
func (m *mirror) has(name string, uid types.UID) bool {
	n := m.nodes[name]
	return n != nil && n.pods[uid] != nil
}

// add adds the pod to the node. It returns an error, and changes nothing, if the node
// already has a pod with this UID.
func (m *mirror) add(name string, pod *framework.PodInfo) error {
	uid := pod.Pod.UID
	if m.has(name, uid) {
		return fmt.Errorf("pod %s is on node %s already", klog.KObj(pod.Pod), name)
	}
	n := m.node(name)
	n.pods[uid] = pod
	n.info.AddPodInfo(pod)
	m.moved(movement{pod, n, true})
	return nil
}

// remove removes the pod from the node. It returns an error, and changes nothing, if the
// node does not have the pod.
func (m *mirror) remove(name string, uid types.UID) error {
	if !m.has(name, uid) {
		return fmt.Errorf("no pod with UID %s is on node %s", uid, name)
	}
	n := m.nodes[name]
	pod := n.pods[uid]
	if err := n.info.RemovePod(quiet, pod.Pod); err != nil {
		return err
	}
	delete(n.pods, uid)
	n.restorePorts(pod.Pod)
	m.moved(movement{pod, n, false})
	m.release(name)
	return nil
}

// restorePorts marks the host ports of the remaining pods as used. A NodeInfo has a set of
// ports, and the removal of a pod frees its ports even if another pod has the same ones.
func (n *mirrorNode) restorePorts(removed *v1.Pod) {
	if len(schedutil.GetHostPorts(removed)) == 0 {
		return
	}
	for _, pod := range n.pods {
		for _, port := range schedutil.GetHostPorts(pod.Pod) {
			n.info.UsedPorts.Add(port.HostIP, string(port.Protocol), port.HostPort)
		}
	}
}

// moved records the movement, and updates what the mirror keeps about all nodes.
func (m *mirror) moved(v movement) {
	m.moves = append(m.moves, v)
	if hasPodTerms(v.pod.Pod) {
		m.affinity, m.antiAffinity = nil, nil
	}
	by := -1
	if v.added {
		by = 1
	}
	for i := range v.pod.Pod.Spec.Volumes {
		if claim := v.pod.Pod.Spec.Volumes[i].PersistentVolumeClaim; claim != nil {
			key := framework.GetNamespacedName(v.pod.Pod.Namespace, claim.ClaimName)
			if m.claims[key] += by; m.claims[key] == 0 {
				delete(m.claims, key)
			}
		}
	}
}

// hasPodTerms reports whether the pod has affinity or anti-affinity terms about other pods.
func hasPodTerms(pod *v1.Pod) bool {
	a := pod.Spec.Affinity
	return a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil)
}

// forget drops the recorded movements, and starts a new epoch.
func (m *mirror) forget() {
	clear(m.moves)
	m.moves = m.moves[:0]
	m.epoch++
}

// The following methods implement fwk.SharedLister, fwk.NodeInfoLister and
// fwk.StorageInfoLister.

// NodeInfos returns the mirror.
func (m *mirror) NodeInfos() fwk.NodeInfoLister { return m }

// StorageInfos returns the mirror.
func (m *mirror) StorageInfos() fwk.StorageInfoLister { return m }

// PodGroupStates returns nil: none of the wrapped plugins reads pod groups.
func (m *mirror) PodGroupStates() fwk.PodGroupStateLister { return nil }

// List returns the nodes, sorted by name.
func (m *mirror) List() ([]fwk.NodeInfo, error) { return m.list, nil }

// HavePodsWithAffinityList returns the nodes that have pods with terms about other pods.
func (m *mirror) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) {
	if m.affinity == nil {
		m.affinity = nodesWith(m.list, fwk.NodeInfo.GetPodsWithAffinity)
	}
	return m.affinity, nil
}

// HavePodsWithRequiredAntiAffinityList returns the nodes that have pods with required
// anti-affinity terms.
func (m *mirror) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) {
	if m.antiAffinity == nil {
		m.antiAffinity = nodesWith(m.list, fwk.NodeInfo.GetPodsWithRequiredAntiAffinity)
	}
	return m.antiAffinity, nil
}

// nodesWith returns the nodes for which pods returns at least one pod. The result is not nil.
func nodesWith(list []fwk.NodeInfo, pods func(fwk.NodeInfo) []fwk.PodInfo) []fwk.NodeInfo {
	out := []fwk.NodeInfo{}
	for _, n := range list {
		if len(pods(n)) > 0 {
			out = append(out, n)
		}
	}
	return out
}

// Get returns the node with the name.
func (m *mirror) Get(name string) (fwk.NodeInfo, error) {
	n := m.nodes[name]
	if n == nil || n.info.Node() == nil {
		return nil, fmt.Errorf("no node %q", name)
	}
	return n.info, nil
}

// IsPVCUsedByPods reports whether a pod on a node uses the claim.
func (m *mirror) IsPVCUsedByPods(key string) bool { return m.claims[key] > 0 }
