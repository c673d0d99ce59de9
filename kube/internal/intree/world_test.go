package intree

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/podkind"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
)

// failer is what the checks need of testing.T and rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// world is a cluster that is kept twice: as a State and a Store for the engine, and as the
// lists of objects from which upstream's snapshot is built.
type world struct {
	store  *Store
	state  *cluster.State
	plugin *plugin
	engine *engine.Engine
	now    int64
	nodes  []*v1.Node
	placed []*v1.Pod // with Spec.NodeName
	// reserved is set once a pod was placed with a claim that waits for its first consumer. The
	// plugin then keeps a volume for the claim, as Reserve of VolumeBinding does.
	reserved bool
	objects  []runtime.Object
}

func newWorld(t failer) *world {
	t.Helper()
	w := &world{store: NewStore(), state: cluster.NewState()}
	var err error
	if w.plugin, err = build(w.store); err != nil {
		t.Fatalf("%v", err)
	}
	w.engine = enginetest.Engine(enginetest.Fit(), w.plugin)
	return w
}

func (w *world) apply(t failer, c cluster.Change) {
	t.Helper()
	if err := w.state.Apply(c); err != nil {
		t.Fatalf("%v", err)
	}
}

// putNode adds or replaces a node.
func (w *world) putNode(t failer, o *v1.Node) {
	t.Helper()
	w.apply(t, cluster.NodePut{Node: stateNode(o)})
	w.putObject(o)
}

// putObject adds or replaces the object of a node, and changes nothing in State.
func (w *world) putObject(o *v1.Node) {
	w.store.PutNode(o)
	w.nodes = slices.DeleteFunc(w.nodes, func(known *v1.Node) bool { return known.Name == o.Name })
	w.nodes = append(w.nodes, o)
}

// put adds an object that is neither a pod nor a node.
func (w *world) put(t failer, o runtime.Object) {
	t.Helper()
	if err := w.store.Put(o); err != nil {
		t.Fatalf("%v", err)
	}
	w.objects = append(w.objects, o)
}

// job adds a pending job with one task for each pod. All must be placed together.
func (w *world) job(t failer, pods ...*v1.Pod) string {
	t.Helper()
	return w.jobOf(t, cluster.Need{}, pods...)
}

// jobOf adds a job of which each task requests devices.
func (w *world) jobOf(t failer, need cluster.Need, pods ...*v1.Pod) string {
	t.Helper()
	job := cluster.Job{ID: "pod/" + pods[0].Namespace + "/" + pods[0].Name, Namespace: pods[0].Namespace, Labels: pods[0].Labels, Chosen: -1,
		Alternatives: []cluster.Alternative{{Min: len(pods)}}}
	for i, o := range pods {
		shape := &cluster.Shape{Need: need, Resources: amounts(resourcehelper.PodRequests(o, resourcehelper.PodResourcesOptions{})).With("pods", 1)}
		var err error
		if shape.Key, err = podkind.Key(o); err != nil {
			t.Fatalf("%v", err)
		}
		task := &cluster.Task{Name: fmt.Sprint(i), UID: string(o.UID), Shape: shape}
		job.Alternatives[0].Tasks = append(job.Alternatives[0].Tasks, task)
		if err := w.store.PutPod(TaskKey{job.ID, task.Name, task.UID}, o); err != nil {
			t.Fatalf("%v", err)
		}
	}
	w.apply(t, cluster.JobPut{Job: job})
	return job.ID
}

// amounts returns cpu and memory as State counts them.
func amounts(list v1.ResourceList) cluster.Resources {
	return cluster.Resources{{Name: cluster.CPU, Value: list.Cpu().MilliValue()}, {Name: cluster.Memory, Value: list.Memory().Value()}}
}

// stateNode returns the node of State. It has no taints and no labels that a filter of the
// profile reads.
func stateNode(o *v1.Node) cluster.Node {
	n := cluster.Node{Name: o.Name, Labels: o.Labels}
	for _, a := range amounts(o.Status.Allocatable).With("pods", o.Status.Allocatable.Pods().Value()) {
		n.Resources = append(n.Resources, cluster.Ledger{Name: a.Name, Capacity: a.Value})
	}
	return n
}

// remove removes a job and its pods.
func (w *world) remove(t failer, job string) {
	t.Helper()
	for _, task := range w.state.Job(job).Tasks() {
		w.store.DeletePod(KeyOf(task))
		w.placed = slices.DeleteFunc(w.placed, func(o *v1.Pod) bool { return string(o.UID) == task.UID })
	}
	w.apply(t, cluster.JobGone{Job: job})
}

// run runs a session that makes every decision twice.
func (w *world) run(t failer) engine.Outcome {
	t.Helper()
	w.now++
	s := w.engine.Open(w.state, engine.Options{Now: w.now, Search: engine.Twin, Explain: true})
	out, err := s.Run()
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	return out
}

// bind notes where a pod was placed.
func (w *world) bind(o *v1.Pod, node string) {
	bound := *o
	bound.Spec.NodeName = node
	w.placed = append(w.placed, &bound)
	w.reserved = w.reserved || waitsForConsumer(o)
}

// waitsForConsumer reports whether the pod has a claim that waits for its first consumer.
func waitsForConsumer(o *v1.Pod) bool {
	return slices.ContainsFunc(o.Spec.Volumes, func(v v1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "waiting"
	})
}

// checkMirror fails the test if the mirror of the plugin is not equal to that of a new
// plugin.
func (w *world) checkMirror(t failer) {
	t.Helper()
	fresh, err := build(w.store)
	if err != nil {
		t.Fatalf("%v", err)
	}
	s := enginetest.Engine(fresh).Open(w.state, engine.Options{Now: w.now})
	if err := s.Close(); err != nil {
		t.Fatalf("%v", err)
	}
	if got, want := describe(w.plugin.mirror), describe(fresh.mirror); got != want {
		t.Fatalf("the mirror differs from a fresh one:\n%s\nfresh:\n%s", got, want)
	}
}

// describe returns a text that is equal for equal mirrors, whatever the order in which they
// were changed.
func describe(m *mirror) string {
	out := fmt.Sprintf("tainted %d, cordoned %d, claims %v\n", m.tainted, m.cordoned, m.claims)
	names := []string{}
	for name := range m.nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		n := m.nodes[name]
		at, listed := m.position(name)
		out += fmt.Sprintf("%s %d %t %p: %v %v %v, ports %v, requested %+v %+v, claims %v\n", name, at, listed, n.info.Node(),
			uids(n, 0), uids(n, 1), uids(n, 2), n.info.UsedPorts, *n.info.Requested, *n.info.NonZeroRequested, n.info.PVCRefCounts)
	}
	affine, _ := m.HavePodsWithAffinityList()
	anti, _ := m.HavePodsWithRequiredAntiAffinityList()
	for _, n := range affine {
		out += " affinity " + n.Node().Name
	}
	for _, n := range anti {
		out += " anti " + n.Node().Name
	}
	return out
}

func uids(n *mirrorNode, list int) []types.UID {
	var out []types.UID
	for _, p := range [][]fwkPodInfo{n.info.Pods, n.info.PodsWithAffinity, n.info.PodsWithRequiredAntiAffinity}[list] {
		out = append(out, p.GetPod().UID)
	}
	slices.Sort(out)
	return out
}

// node returns a node with 4 cores and 8 GiB that takes 20 pods.
func node(name string, labels map[string]string) *v1.Node {
	return sized(name, labels, "4", "8Gi", "20")
}

func TestPodNotKnown(t *testing.T) {
	w := newWorld(t)
	w.putNode(t, node("a", nil))
	w.apply(t, cluster.JobPut{Job: *enginetest.Job("foreign").Build()})
	out := w.run(t)
	if len(out.Refusals) != 1 || out.Refusals[0].Reason != PodNotKnown {
		t.Errorf("a task without a pod: %+v", out)
	}
}

func TestNodeNotKnown(t *testing.T) {
	w := newWorld(t)
	w.apply(t, cluster.NodePut{Node: stateNode(node("a", nil))})
	w.job(t, plain("p"))
	if out := w.run(t); len(out.Refusals) != 1 || out.Refusals[0].Reason != NodeNotKnown {
		t.Errorf("a node without an object: %+v", out)
	}
	w.store.PutNode(node("a", nil))
	if out := w.run(t); len(out.Decisions) != 1 {
		t.Errorf("the node is known: %+v", out)
	}
}

// TestAntiAffinityArrives places a pod for which InterPodAffinity has nothing to check, then
// one whose anti-affinity excludes pods of that kind, and then another pod of the kind.
func TestAntiAffinityArrives(t *testing.T) {
	w := newWorld(t)
	w.putNode(t, node("a", map[string]string{zoneLabel: "z1"}))
	web := plain("web")
	web.Labels = map[string]string{"app": "web"}
	w.job(t, web)
	w.run(t)
	loner := plain("loner")
	loner.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
		TopologyKey: zoneLabel, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}}}
	w.remove(t, "pod/default/web")
	w.job(t, loner)
	if out := w.run(t); len(out.Decisions) != 1 {
		t.Fatalf("%+v", out)
	}
	w.job(t, again(web, "web-2"))
	if out := w.run(t); len(out.Refusals) != 1 || out.Refusals[0].Reason != PodAffinityUnmet {
		t.Errorf("%+v", out)
	}
}
