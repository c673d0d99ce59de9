// Package intree makes the filter plugins of kube-scheduler one plugin of the engine. It
// decides nothing itself: for each task it asks the in-tree plugins of Kubernetes about the
// pod of the task, on a mirror of the nodes and their pods that follows State. Room is not
// its subject: requests, devices and the number of pods are booked by State.
package intree

import (
	"context"
	"fmt"
	"slices"

	"github.com/berth-project/berth/engine"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// form is the form in which an in-tree plugin is registered with the engine.
type form int

const (
	staticForm form = iota // the answer depends on the spec of the pod and on the node object
	shapeForm              // it also depends on the pods of the node
	taskForm               // it depends on more
)

// wrapped is one in-tree plugin, in one of its forms.
type wrapped struct {
	filter fwk.FilterPlugin
	pre    fwk.PreFilterPlugin // nil if it has no PreFilter
	spec
}

// spec says what the answers of an in-tree plugin depend on.
type spec struct {
	name   string
	form   form
	reason engine.Reason
	args   runtime.Object
	// applies reports whether the plugin may reject a node for the pod in this form. It is nil
	// if only PreFilter decides that, by returning Skip.
	applies func(*v1.Pod) bool
	// idle reports whether the plugin accepts all nodes for all pods. It may be nil.
	idle func(*mirror) bool
	// stale reports whether PreFilter must be called again for a pod because another pod was
	// added to a node or removed from one. It is nil if that is never needed.
	stale func(*cycle, *result, movement) bool
	// updates is set if the state of PreFilter follows the movement of pods exactly with
	// AddPod and RemovePod.
	updates bool
	// narrow is set if PreFilter reads only pods that a lens shows.
	narrow bool
}

// specs are the wrapped plugins, in the order in which they are asked: the cheap ones first.
// The first rejection is reported. NodeResourcesFit is not among them: State books requests,
// devices and the number of pods, and two ledgers would have to agree.
//
// NodeName has the task form: the node of a pod is not part of its key, so that a task keeps its
// shape when its pod gets a node. VolumeZone has the task form, since it reads claims and volumes, of which
// State knows nothing: a change of any of them would invalidate all static answers.
// VolumeRestrictions has two forms: disks that are part of the spec of a pod conflict on one
// node, and claims in the whole cluster.
var specs = []spec{
	{name: names.NodeUnschedulable, form: staticForm, reason: NodeCordoned, idle: func(m *mirror) bool { return m.cordoned == 0 }},
	{name: names.TaintToleration, form: staticForm, reason: NodeTainted, idle: func(m *mirror) bool { return m.tainted == 0 }},
	{name: names.NodeAffinity, form: staticForm, reason: NodeAffinityMismatch, args: &config.NodeAffinityArgs{}},
	{name: names.NodeDeclaredFeatures, form: staticForm, reason: NodeFeatureMissing},
	{name: names.NodePorts, form: shapeForm, reason: HostPortInUse},
	{name: names.VolumeRestrictions, form: shapeForm, reason: VolumeInUse},
	{name: names.NodeName, form: taskForm, reason: NodeNameMismatch, applies: namesNode},
	{name: names.VolumeRestrictions, form: taskForm, reason: VolumeInUse, applies: usesClaims, stale: sharesClaims},
	{name: names.NodeVolumeLimits, form: taskForm, reason: VolumeLimitReached},
	{name: names.VolumeBinding, form: taskForm, reason: VolumeNotBindable, args: &config.VolumeBindingArgs{BindTimeoutSeconds: 600}},
	{name: names.VolumeZone, form: taskForm, reason: VolumeInOtherZone},
	{name: names.DynamicResources, form: taskForm, reason: DeviceNotAllocatable, applies: hasResourceClaims, args: &config.DynamicResourcesArgs{FilterTimeout: &metav1.Duration{}}},
	{name: names.PodTopologySpread, form: taskForm, reason: TopologySpreadUnmet, args: &config.PodTopologySpreadArgs{DefaultingType: config.ListDefaulting}, stale: spreads, narrow: true},
	{name: names.InterPodAffinity, form: taskForm, reason: PodAffinityUnmet, args: &config.InterPodAffinityArgs{HardPodAffinityWeight: 1}, stale: excludes, updates: true},
}

// wrapAll builds the wrapped plugins.
func wrapAll(h fwk.Handle) ([]*wrapped, error) {
	registry := plugins.NewInTreeRegistry()
	var out []*wrapped
	for _, s := range specs {
		build := registry[s.name]
		if build == nil {
			return nil, fmt.Errorf("Kubernetes has no plugin %s", s.name)
		}
		built, err := build(background, s.args, h)
		if err != nil {
			return nil, fmt.Errorf("building %s: %w", s.name, err)
		}
		w := &wrapped{spec: s}
		w.pre, _ = built.(fwk.PreFilterPlugin)
		filter, ok := built.(fwk.FilterPlugin)
		if !ok {
			return nil, fmt.Errorf("plugin %s has no filter", s.name)
		}
		if w.filter = filter; w.pre == nil && w.applies == nil && w.idle == nil {
			return nil, fmt.Errorf("plugin %s has no PreFilter, and no rule when it matters", s.name)
		}
		out = append(out, w)
	}
	return out, nil
}

// background is the context of all calls of in-tree plugins: it never ends, and its logger
// drops all messages.
var background = klog.NewContext(context.Background(), quiet)

func namesNode(p *v1.Pod) bool { return p.Spec.NodeName != "" }

// sharesClaims reports whether the pod that moved may use a claim of the pod. Whether a
// claim is used elsewhere is part of the state of VolumeRestrictions.
func sharesClaims(c *cycle, _ *result, v movement) bool {
	return usesClaims(c.pod) && usesClaims(v.pod.Pod) && c.pod.Namespace == v.pod.Pod.Namespace
}

func usesClaims(p *v1.Pod) bool {
	for i := range p.Spec.Volumes {
		if p.Spec.Volumes[i].PersistentVolumeClaim != nil {
			return true
		}
	}
	return false
}

// spreads reports whether the pod that moved may count for the topology spread constraints
// of the pod.
func spreads(c *cycle, r *result, v movement) bool {
	return !r.skip && c.lens != nil && c.lens.counts(v.pod.Pod)
}

// excludes reports whether InterPodAffinity, which had nothing to check for the pod, has
// now: a pod was added whose required anti-affinity matches the pod.
func excludes(c *cycle, r *result, v movement) bool {
	if !r.skip || !v.added {
		return false
	}
	terms := v.pod.GetRequiredAntiAffinityTerms()
	return slices.ContainsFunc(terms, func(t fwk.AffinityTerm) bool { return t.Matches(c.pod, c.namespace) })
}

// update lets the state of PreFilter follow the movement.
func (w *wrapped) update(state fwk.CycleState, pod *v1.Pod, v movement) *fwk.Status {
	if v.added {
		return w.pre.PreFilterExtensions().AddPod(background, state, pod, fwk.PodInfo(v.pod), v.node.info)
	}
	return w.pre.PreFilterExtensions().RemovePod(background, state, pod, fwk.PodInfo(v.pod), v.node.info)
}
