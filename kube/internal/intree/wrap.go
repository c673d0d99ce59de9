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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// wrapped is one in-tree plugin.
type wrapped struct {
	name   string
	filter fwk.FilterPlugin
	pre    fwk.PreFilterPlugin // nil if it has no PreFilter
	spec
}

// spec says what the answers of an in-tree plugin depend on.
type spec struct {
	reason engine.Reason
	args   runtime.Object
	// static is set if the answer depends only on the pod and the node object.
	static bool
	// matters reports whether the plugin may reject a node for the pod. It is nil for
	// plugins with a PreFilter, which returns Skip if the plugin does not matter.
	matters func(*v1.Pod, *mirror) bool
	// stale reports whether PreFilter must be called again for a pod because another pod was
	// added to a node or removed from one. It is nil if that is never needed.
	stale func(*cycle, *result, movement) bool
	// updates is set if the state of PreFilter follows the movement of pods exactly with
	// AddPod and RemovePod.
	updates bool
	// narrow is set if PreFilter reads only pods that a lens shows.
	narrow bool
}

// specs are the wrapped plugins. NodeResourcesFit is not among them: State books requests,
// devices and the number of pods, and two ledgers would have to agree.
var specs = map[string]spec{
	names.NodeUnschedulable:    {reason: NodeCordoned, static: true, matters: func(_ *v1.Pod, m *mirror) bool { return m.cordoned > 0 }},
	names.NodeName:             {reason: NodeNameMismatch, static: true, matters: func(p *v1.Pod, _ *mirror) bool { return p.Spec.NodeName != "" }},
	names.TaintToleration:      {reason: NodeTainted, static: true, matters: func(_ *v1.Pod, m *mirror) bool { return m.tainted > 0 }},
	names.NodeAffinity:         {reason: NodeAffinityMismatch, static: true, args: &config.NodeAffinityArgs{}},
	names.NodeDeclaredFeatures: {reason: NodeFeatureMissing, static: true},
	names.NodePorts:            {reason: HostPortInUse},
	names.VolumeRestrictions:   {reason: VolumeInUse, stale: sharesClaims},
	names.NodeVolumeLimits:     {reason: VolumeLimitReached},
	names.VolumeBinding:        {reason: VolumeNotBindable, args: &config.VolumeBindingArgs{BindTimeoutSeconds: 600}},
	names.VolumeZone:           {reason: VolumeInOtherZone},
	names.PodTopologySpread:    {reason: TopologySpreadUnmet, args: &config.PodTopologySpreadArgs{DefaultingType: config.ListDefaulting}, stale: spreads, narrow: true},
	names.InterPodAffinity:     {reason: PodAffinityUnmet, args: &config.InterPodAffinityArgs{HardPodAffinityWeight: 1}, stale: excludes, updates: true},
}

// order is the order in which the plugins are asked: the cheap ones first. The first
// rejection is reported.
var order = []string{
	names.NodeUnschedulable, names.NodeName, names.TaintToleration, names.NodeAffinity, names.NodeDeclaredFeatures,
	names.NodePorts, names.VolumeRestrictions, names.NodeVolumeLimits, names.VolumeBinding, names.VolumeZone,
	names.PodTopologySpread, names.InterPodAffinity,
}

// wrapAll builds the wrapped plugins.
func wrapAll(h fwk.Handle) ([]*wrapped, error) {
	registry := plugins.NewInTreeRegistry()
	var out []*wrapped
	for _, name := range order {
		build := registry[name]
		if build == nil {
			return nil, fmt.Errorf("Kubernetes has no plugin %s", name)
		}
		built, err := build(background, specs[name].args, h)
		if err != nil {
			return nil, fmt.Errorf("building %s: %w", name, err)
		}
		w := &wrapped{name: name, spec: specs[name]}
		w.pre, _ = built.(fwk.PreFilterPlugin)
		filter, ok := built.(fwk.FilterPlugin)
		if !ok {
			return nil, fmt.Errorf("plugin %s has no filter", name)
		}
		if w.filter = filter; w.pre == nil && w.matters == nil {
			return nil, fmt.Errorf("plugin %s has no PreFilter, and no rule when it matters", name)
		}
		out = append(out, w)
	}
	return out, nil
}

// background is the context of all calls of in-tree plugins: it never ends, and its logger
// drops all messages.
var background = klog.NewContext(context.Background(), quiet)

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
