package intree

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
	"pgregory.net/rapid"
)

var podCount = flag.Int("pods", 300, "how many pods TestDifferential compares at least")

// podsPerCluster is how many pods TestDifferential draws for each cluster.
const podsPerCluster = 12

// TestDifferential compares, for random clusters and pods, the nodes that a session accepts
// with the nodes that the framework of kube-scheduler accepts with the same plugins and
// NodeResourcesFit, on a snapshot of its own. There are no exceptions.
func TestDifferential(t *testing.T) {
	metrics.Register()
	checks := flag.Lookup("rapid.checks")
	earlier := checks.Value.String()
	// Pods of gangs that are refused are not compared, so twice as many are drawn.
	if err := flag.Set("rapid.checks", fmt.Sprint(1+2**podCount/podsPerCluster)); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = flag.Set("rapid.checks", earlier) }()
	var seen tally
	rapid.Check(t, func(t *rapid.T) { compareCluster(t, &seen) })
	t.Logf("%+v", seen)
	if seen.compared < *podCount || seen.some == 0 || seen.none == 0 || seen.all == 0 || seen.gangs == 0 {
		t.Errorf("the test compares too little: %+v", seen)
	}
}

// tally counts what TestDifferential has compared.
type tally struct {
	compared        int // pods
	none, some, all int // by how many nodes are accepted
	gangs           int // gangs of several pods that were placed
}

// compareCluster draws a cluster, and pods that arrive one after the other.
func compareCluster(t *rapid.T, seen *tally) {
	w := newWorld(t)
	count := rapid.IntRange(3, 8).Draw(t, "nodes")
	for i := range count {
		w.putNode(t, drawNode(t, fmt.Sprintf("n%d", i)))
	}
	drawObjects(t, w, count)
	var running []string
	var templates []*v1.Pod
	for i := 0; i < podsPerCluster; {
		name := fmt.Sprintf("p%d", i)
		if len(templates) == 0 || chance(t, "new kind", 2) {
			templates = append(templates, drawPod(t, name))
		}
		pods := []*v1.Pod{again(rapid.SampledFrom(templates).Draw(t, "template"), name)}
		for chance(t, "gang", 4) && len(pods) < 3 {
			pods = append(pods, again(pods[0], fmt.Sprintf("%s-%d", name, len(pods))))
		}
		i += len(pods)
		job := w.job(t, pods...)
		if placed := compareJob(t, w, pods, w.run(t), seen); placed {
			running = append(running, job)
		} else {
			w.remove(t, job)
		}
		w.checkMirror(t)
		if len(running) > 0 && chance(t, "ends", 4) {
			at := rapid.IntRange(0, len(running)-1).Draw(t, "which")
			w.remove(t, running[at])
			running = slices.Delete(running, at, at+1)
		}
		if chance(t, "changes", 6) {
			w.putNode(t, drawNode(t, fmt.Sprintf("n%d", rapid.IntRange(0, count-1).Draw(t, "node"))))
		}
		if chance(t, "changes unknown to State", 6) {
			at := rapid.IntRange(0, count-1).Draw(t, "node")
			o := drawNode(t, w.nodes[at].Name)
			o.Status.Allocatable = w.nodes[at].Status.Allocatable
			w.putObject(o)
		}
		if chance(t, "volume changes", 6) {
			drawBound(t, w, "default", "bound-z1", pick(t, "zone of the volume", "z1", "z2"), v1.ReadWriteOnce)
		}
	}
}

// again returns a pod of the same kind with another name.
func again(template *v1.Pod, name string) *v1.Pod {
	out := template.DeepCopy()
	out.Name, out.UID = name, types.UID("uid-"+name)
	return out
}

// compareJob compares the outcome of a session for the pods of one job. It reports whether
// the job was placed.
func compareJob(t *rapid.T, w *world, pods []*v1.Pod, out engine.Outcome, seen *tally) bool {
	if len(out.Refusals) > 0 {
		// The members of a gang that were placed before the refusal are not known.
		if len(pods) == 1 {
			compare(t, w, pods[0], nil, fmt.Sprintf("%+v", out.Refusals[0]), seen)
		}
		return false
	}
	if len(out.Decisions) != len(pods) {
		t.Fatalf("%d pods, and %d decisions: %+v", len(pods), len(out.Decisions), out.Decisions)
	}
	for _, d := range out.Decisions {
		at := slices.IndexFunc(w.state.Job(d.Task.Job).Tasks(), func(task *cluster.Task) bool { return task.Name == d.Task.Name })
		var accepted []string
		for _, c := range d.Candidates {
			accepted = append(accepted, c.Node)
		}
		compare(t, w, pods[at], accepted, "placed on "+d.Node, seen)
		w.bind(pods[at], d.Node)
	}
	if len(pods) > 1 {
		seen.gangs++
	}
	return true
}

// compare fails the test if upstream accepts other nodes.
func compare(t *rapid.T, w *world, pod *v1.Pod, accepted []string, what string, seen *tally) {
	if w.reserved && waitsForConsumer(pod) {
		return // the framework of upstream, which is new for each pod, does not know what is reserved
	}
	slices.Sort(accepted)
	want, why := upstream(t, w, pod)
	if !slices.Equal(accepted, want) {
		t.Fatalf("pod %s (%s):\nberth accepts %v\nkube-scheduler accepts %v: %s\nspec %+v", pod.Name, what, accepted, want, why, pod.Spec)
	}
	seen.compared++
	switch len(want) {
	case 0:
		seen.none++
	case len(w.nodes):
		seen.all++
	default:
		seen.some++
	}
}

// upstream returns the nodes that kube-scheduler's framework accepts, sorted, and why it
// rejects others.
func upstream(t *rapid.T, w *world, pod *v1.Pod) (accepted []string, why string) {
	snapshot := internalcache.NewSnapshot(w.placed, w.nodes)
	f := newFramework(t, w, snapshot)
	state := framework.NewCycleState()
	only, status, _ := f.RunPreFilterPlugins(context.Background(), state, pod)
	if !status.IsSuccess() {
		return nil, status.Message()
	}
	var reasons []string
	for _, n := range w.nodes {
		if !only.AllNodes() && !only.NodeNames.Has(n.Name) {
			continue
		}
		info, err := snapshot.NodeInfos().Get(n.Name)
		if err != nil {
			t.Fatalf("%v", err)
		}
		if status := f.RunFilterPlugins(context.Background(), state, pod, info); status.IsSuccess() {
			accepted = append(accepted, n.Name)
		} else {
			reasons = append(reasons, n.Name+": "+status.Message())
		}
	}
	slices.Sort(accepted)
	return accepted, strings.Join(reasons, "; ")
}

// newFramework returns a framework of kube-scheduler with all wrapped plugins and
// NodeResourcesFit.
func newFramework(t *rapid.T, w *world, lister fwk.SharedLister) frameworkOfUpstream {
	factory := informers.NewSharedInformerFactory(nil, 0)
	for _, o := range w.objects {
		var store cache.Store
		switch o.(type) {
		case *v1.Namespace:
			store = factory.Core().V1().Namespaces().Informer().GetStore()
		case *v1.PersistentVolume:
			store = factory.Core().V1().PersistentVolumes().Informer().GetStore()
		case *v1.PersistentVolumeClaim:
			store = factory.Core().V1().PersistentVolumeClaims().Informer().GetStore()
		case *storagev1.StorageClass:
			store = factory.Storage().V1().StorageClasses().Informer().GetStore()
		case *storagev1.CSINode:
			store = factory.Storage().V1().CSINodes().Informer().GetStore()
		default:
			t.Fatalf("no store for %T", o)
		}
		if err := store.Add(o); err != nil {
			t.Fatalf("%v", err)
		}
	}
	defaults, err := latest.Default()
	if err != nil {
		t.Fatalf("%v", err)
	}
	profile := &defaults.Profiles[0] // with the default arguments of all plugins
	profile.Plugins = &config.Plugins{QueueSort: enabled(names.PrioritySort), Bind: enabled(names.DefaultBinder)}
	filters := []string{names.NodeResourcesFit}
	for _, s := range specs {
		if !slices.Contains(filters, s.name) { // some have two forms
			filters = append(filters, s.name)
		}
	}
	registry := plugins.NewInTreeRegistry()
	profile.Plugins.Filter = enabled(filters...)
	profile.Plugins.PreFilter = enabled(slices.DeleteFunc(slices.Clone(filters), func(name string) bool {
		return name == names.NodeUnschedulable || name == names.NodeName || name == names.TaintToleration
	})...)
	slicesOf, err := tracker.StartTracker(context.Background(), tracker.Options{SliceInformer: factory.Resource().V1().ResourceSlices()})
	if err != nil {
		t.Fatalf("%v", err)
	}
	allocations := assumecache.NewAssumeCache(quiet, factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	f, err := frameworkruntime.NewFramework(context.Background(), registry, profile,
		frameworkruntime.WithInformerFactory(factory), frameworkruntime.WithSnapshotSharedLister(lister),
		frameworkruntime.WithSharedDRAManager(dynamicresources.NewDRAManager(context.Background(), allocations, slicesOf, factory)),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())))
	if err != nil {
		t.Fatalf("%v", err)
	}
	return f
}

// frameworkOfUpstream is what the test needs of a framework.
type frameworkOfUpstream interface {
	RunPreFilterPlugins(context.Context, fwk.CycleState, *v1.Pod) (*fwk.PreFilterResult, *fwk.Status, sets.Set[string])
	RunFilterPlugins(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeInfo) *fwk.Status
}

func enabled(list ...string) config.PluginSet {
	var out config.PluginSet
	for _, name := range list {
		out.Enabled = append(out.Enabled, config.Plugin{Name: name})
	}
	return out
}
