package ctl

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/podkind"
	"github.com/berth-project/berth/kube/internal/intree"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

const trialsName = "KubernetesTrials"

// trials is a plugin without hooks. When a session opens, it makes the objects in the Store
// agree with changes that a trial made to the State alone, so that the filters of Kubernetes
// judge the changed cluster: copies of nodes that were added with their slices, nodes that were opened, pods of
// which a condition was dropped, and tasks that only probe whether a node could take them.
type trials struct {
	store   *intree.Store
	nodes   map[string]*knownNode
	slices  map[string][]*resourcev1.ResourceSlice // by node
	pods    map[intree.TaskKey]*knownPod
	subject string // the job of which conditions are dropped

	addedNodes, changedNodes map[string]bool
	addedPods, removedPods   map[intree.TaskKey]bool
	claimants                []intree.TaskKey                  // the pods that may have devices of claims, sorted
	changedPods              map[intree.TaskKey]*cluster.Shape // the shape that the pod in the Store was made for

	// Replicas of models that have no pod.
	replicas []string                                // the IDs of their jobs
	standing map[string]*corev1.Pod                  // by set: the pod that stands for them; see stand
	stood    map[intree.TaskKey][]cluster.Toleration // of the pods in the Store that stand for them
}

// knownNode is a node of the cluster, and what State has of its conditions.
type knownNode struct {
	object        *corev1.Node
	taints        []cluster.Taint
	unschedulable bool
}

// knownPod is the pod of a task, and the shape of the task.
type knownPod struct {
	object *corev1.Pod
	role   string
	shape  cluster.Shape
}

func newTrials(in *inputs, w *world) *trials {
	t := &trials{
		store: in.store, nodes: map[string]*knownNode{}, slices: map[string][]*resourcev1.ResourceSlice{}, pods: map[intree.TaskKey]*knownPod{},
		addedNodes: map[string]bool{}, changedNodes: map[string]bool{},
		addedPods: map[intree.TaskKey]bool{}, removedPods: map[intree.TaskKey]bool{}, changedPods: map[intree.TaskKey]*cluster.Shape{},
		standing: map[string]*corev1.Pod{}, stood: map[intree.TaskKey][]cluster.Toleration{},
	}
	for _, e := range w.objects {
		switch o := e.Object.(type) {
		case *corev1.Node:
			if n := in.State.Node(o.Name); n != nil {
				t.nodes[o.Name] = &knownNode{o, slices.Clone(n.Taints), n.Unschedulable}
			}
		case *resourcev1.ResourceSlice:
			if name := o.Spec.NodeName; name != nil {
				t.slices[*name] = append(t.slices[*name], o)
			}
		case *corev1.Pod:
			key, _ := in.Task(o.UID)
			if task := in.State.Task(cluster.TaskRef{Job: key.Job, Name: key.Task}); task != nil && intree.KeyOf(task) == key {
				t.pods[key] = &knownPod{withoutNode(o), task.Role, *task.Shape}
				if len(o.Spec.ResourceClaims) > 0 || o.Status.ExtendedResourceClaimStatus != nil {
					t.claimants = append(t.claimants, key)
				}
			}
		}
	}
	slices.SortFunc(t.claimants, func(a, b intree.TaskKey) int {
		return cmp.Or(strings.Compare(a.Job, b.Job), strings.Compare(a.Task, b.Task))
	})
	return t
}

// withoutNode returns a copy of the pod that names no node; see scheduler.Fill.
func withoutNode(o *corev1.Pod) *corev1.Pod {
	out := *o
	out.Spec.NodeName = ""
	return &out
}

// Name returns the name of the plugin.
func (t *trials) Name() string { return trialsName }

// OnSessionOpen makes the objects in the Store agree with the State. It registers no hook.
func (t *trials) OnSessionOpen(s *engine.Session) { t.Reopen(s) }

// Reopen does the same.
func (t *trials) Reopen(s *engine.Session) bool {
	t.syncNodes(s.View)
	t.syncPods(s.View)
	t.syncReplicas(s.View)
	return true
}

func (t *trials) syncNodes(v cluster.View) {
	for _, n := range v.Nodes() {
		known := t.nodes[n.Name]
		switch {
		case known == nil:
			if from := t.nodes[templateOf(n.Name)]; from != nil && !t.addedNodes[n.Name] {
				t.addedNodes[n.Name] = true
				t.store.PutNode(nodeLike(from.object, n))
				for _, o := range t.slices[from.object.Name] {
					_ = t.store.Put(sliceLike(o, n.Name)) // the Store accepts slices
				}
			}
		case n.Unschedulable != known.unschedulable || !slices.Equal(n.Taints, known.taints):
			t.changedNodes[n.Name] = true
			t.store.PutNode(nodeLike(known.object, n))
		case t.changedNodes[n.Name]:
			delete(t.changedNodes, n.Name)
			t.store.PutNode(known.object)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.addedNodes)) {
		if v.Node(name) == nil {
			delete(t.addedNodes, name)
			t.store.DeleteNode(name)
			for _, o := range t.slices[templateOf(name)] {
				_ = t.store.Delete(sliceLike(o, name))
			}
		}
	}
}

// templateOf returns the name of the node that a node is a copy of. Names of copies end with
// "+" and a number, which no name of Kubernetes does.
func templateOf(name string) string {
	at := strings.LastIndexByte(name, '+')
	return name[:max(at, 0)]
}

// sliceLike returns a copy of the slice for a copy of its node.
func sliceLike(o *resourcev1.ResourceSlice, node string) *resourcev1.ResourceSlice {
	out := *o
	out.Name, out.UID = o.Name+"/"+node, types.UID(o.Name+"/"+node)
	out.Spec.NodeName, out.Spec.Pool.Name = &node, o.Spec.Pool.Name+"/"+node
	return &out
}

// nodeLike returns a copy of the node with the name and the conditions of a node of State.
func nodeLike(o *corev1.Node, n *cluster.Node) *corev1.Node {
	out := *o
	if n.Name != o.Name {
		out.Name, out.UID = n.Name, types.UID(n.Name)
		out.Labels = maps.Clone(o.Labels)
		for key, value := range out.Labels {
			if value == o.Name { // kubernetes.io/hostname and the like
				out.Labels[key] = n.Name
			}
		}
	}
	out.Spec.Unschedulable = n.Unschedulable
	out.Spec.Taints = nil
	for _, taint := range o.Spec.Taints {
		if slices.Contains(n.Taints, cluster.Taint{Key: taint.Key, Value: taint.Value, Effect: cluster.Effect(taint.Effect)}) {
			out.Spec.Taints = append(out.Spec.Taints, taint)
		}
	}
	return &out
}

func (t *trials) syncPods(v cluster.View) {
	var tasks []*cluster.Task
	used := map[intree.TaskKey]bool{}
	if j := v.Job(t.subject); j != nil {
		tasks = j.Tasks()
	}
	for _, task := range tasks {
		used[intree.KeyOf(task)] = true
	}
	for key := range t.addedPods { // the order has no effect on the result
		if !used[key] {
			delete(t.addedPods, key)
			t.store.DeletePod(key)
		}
	}
	t.syncClaimants(v)
	for _, task := range tasks {
		key := intree.KeyOf(task)
		if known := t.pods[key]; known != nil {
			t.syncPod(key, known, task)
		} else if like := t.podLike(task.Role); like != nil {
			t.addedPods[key] = true
			_ = t.store.PutPod(key, probeLike(like, task)) // the only error is a pod without a UID
		}
	}
}

// probeLike returns a pod for a task that only probes whether a node could take it. It has a UID
// of its own, unless claims of the pod that it is a copy of belong to that pod.
func probeLike(like *knownPod, task *cluster.Task) *corev1.Pod {
	probe := *changedPod(like, task.Shape)
	probe.UID = types.UID("probe-" + task.Name)
	if key, err := podkind.Key(&probe); err != nil || key != task.Shape.Key {
		probe.UID = like.object.UID
	}
	return &probe
}

// syncClaimants removes pods from the Store that State does not have, so that the devices of
// their claims count as free, and adds those that it has again.
func (t *trials) syncClaimants(v cluster.View) {
	for _, key := range t.claimants {
		exists := false
		if j := v.Job(key.Job); j != nil {
			exists = slices.ContainsFunc(j.Tasks(), func(task *cluster.Task) bool { return intree.KeyOf(task) == key })
		}
		switch {
		case !exists && !t.removedPods[key]:
			t.removedPods[key] = true
			t.store.DeletePod(key)
		case exists && t.removedPods[key]:
			delete(t.removedPods, key)
			delete(t.changedPods, key)
			_ = t.store.PutPod(key, t.pods[key].object) // the only error is a pod without a UID
		}
	}
}

// syncPod puts a pod into the Store that has the conditions of the task.
func (t *trials) syncPod(key intree.TaskKey, known *knownPod, task *cluster.Task) {
	was := t.changedPods[key]
	switch {
	case was != nil && sameConditions(was, task.Shape):
		return
	case sameConditions(&known.shape, task.Shape):
		if was == nil {
			return
		}
		delete(t.changedPods, key)
	default:
		shape := *task.Shape
		t.changedPods[key] = &shape
	}
	_ = t.store.PutPod(key, changedPod(known, task.Shape)) // the only error is a pod without a UID
}

// podLike returns a pod of the subject with the role; nil if there is none.
func (t *trials) podLike(role string) *knownPod {
	var best *knownPod
	var first intree.TaskKey
	for key, known := range t.pods { // the least key counts, so that the order has no effect
		if key.Job == t.subject && known.role == role && (best == nil || key.Task < first.Task) {
			best, first = known, key
		}
	}
	return best
}

// sameConditions reports whether the shapes have the same conditions on nodes.
func sameConditions(a, b *cluster.Shape) bool {
	return slices.Equal(a.Selector, b.Selector) && slices.Equal(a.Tolerations, b.Tolerations) && reflect.DeepEqual(a.Required, b.Required)
}

// changedPod returns the pod with the conditions of the shape, as far as they differ from those
// that the pod had.
func changedPod(known *knownPod, shape *cluster.Shape) *corev1.Pod {
	if sameConditions(&known.shape, shape) {
		return known.object
	}
	out := *known.object
	if !slices.Equal(known.shape.Selector, shape.Selector) {
		out.Spec.NodeSelector = maps.Clone(out.Spec.NodeSelector)
		for _, label := range known.shape.Selector {
			delete(out.Spec.NodeSelector, label.Key)
		}
		for _, label := range shape.Selector {
			if _, had := known.object.Spec.NodeSelector[label.Key]; had {
				out.Spec.NodeSelector[label.Key] = label.Value
			}
		}
	}
	if a := out.Spec.Affinity; len(shape.Required) == 0 && a != nil && a.NodeAffinity != nil {
		affinity, nodes := *a, *a.NodeAffinity
		nodes.RequiredDuringSchedulingIgnoredDuringExecution = nil
		affinity.NodeAffinity = &nodes
		out.Spec.Affinity = &affinity
	}
	for _, x := range shape.Tolerations {
		if !slices.Contains(known.shape.Tolerations, x) {
			out.Spec.Tolerations = append(slices.Clip(out.Spec.Tolerations), corev1.Toleration{
				Key: x.Key, Operator: corev1.TolerationOperator(x.Operator), Value: x.Value, Effect: corev1.TaintEffect(x.Effect),
			})
		}
	}
	return &out
}

// rekey sets the Key of an edited shape to that of the pod with the conditions of the shape, so
// that the filters of Kubernetes know the pod as that of the task.
func (t *trials) rekey(role string, shape *cluster.Shape) {
	if like := t.standing[t.subject]; like != nil {
		shape.Key, _ = podkind.Key(standIn(like, shape))
		return
	}
	if known := t.podLike(role); known != nil {
		// The only error is a pod that cannot be encoded, which an API server does not have.
		shape.Key, _ = podkind.Key(changedPod(known, shape))
	}
}
