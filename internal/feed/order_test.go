package feed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
)

// event is a version of an object, or its deletion.
type event struct {
	object  metav1.Object
	deleted bool
}

// history is what happens to one name.
type history []event

// last returns the object as it is in the end, and nil if it is deleted.
func (h history) last() metav1.Object {
	if e := h[len(h)-1]; !e.deleted {
		return e.object
	}
	return nil
}

// generator draws histories.
type generator struct {
	*rapid.T
	revision int
}

func (g *generator) pick(what string, from ...string) string {
	return rapid.SampledFrom(from).Draw(g.T, what)
}

func (g *generator) number(what string, from, to int) int {
	return rapid.IntRange(from, to).Draw(g.T, what)
}

func (g *generator) chance(what string, percent int) bool {
	return g.number(what, 0, 99) < percent
}

// meta gives the next version of an object its metadata.
func (g *generator) meta(namespace, name, kind string, life int) metav1.ObjectMeta {
	g.revision++
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(fmt.Sprintf("%s-%s-%d", kind, name, life)),
		ResourceVersion: strconv.Itoa(g.revision), CreationTimestamp: metav1.Unix(int64(1_790_000_000+life), 0),
	}
}

// history draws the lives of one name. A life is a number of versions, which make draws.
func (g *generator) history(make func(life, version int) metav1.Object) history {
	var out history
	for life := range g.number("lives", 1, 2) {
		for version := range g.number("versions", 1, 4) {
			out = append(out, event{object: make(life, version)})
		}
		if g.chance("deleted", 40) {
			out = append(out, event{out[len(out)-1].object, true})
		}
	}
	return out
}

func (g *generator) node(name string) history {
	return g.history(func(life, _ int) metav1.Object {
		o := &corev1.Node{ObjectMeta: g.meta("", name, "node", life)}
		count := g.number("devices", 0, 4)
		o.Labels = map[string]string{
			"kubernetes.io/hostname": name, "nvidia.com/gpu.product": g.pick("product", "NVIDIA-L4", "NVIDIA-H100"),
			"nvidia.com/gpu.count": strconv.Itoa(count), "nvidia.com/gpu.memory": "24576",
		}
		o.Spec.Unschedulable = g.chance("cordoned", 20)
		o.Status.Allocatable = corev1.ResourceList{
			"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi"), "pods": resource.MustParse("110"),
			"nvidia.com/gpu": *resource.NewQuantity(int64(count), resource.DecimalSI),
		}
		o.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionStatus(g.pick("ready", "True", "False"))}}
		return o
	})
}

func (g *generator) queue(name string) history {
	return g.history(func(life, _ int) metav1.Object {
		o := &v1alpha1.Queue{ObjectMeta: g.meta("", name, "queue", life)}
		o.Spec.Tier = g.pick("tier", "", "Guaranteed", "Scavenger")
		o.Spec.Parent = g.pick("parent", "", "", "q0", "q1")
		o.Spec.Limits = corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(g.number("limit", 0, 4)), resource.DecimalSI)}
		return o
	})
}

// pod draws a pod that is created, is bound or not, is resized or not, and ends or not.
func (g *generator) pod(name string) history {
	lifeOf, steps, most, grouped := -1, 0, 0, ""
	node, claims := g.pick("node", "", "n0", "n1"), g.podClaims()
	if len(claims) > 0 && node != "" {
		node = "n0" // the claims are allocated there
	}
	scheduler := g.pick("scheduler", "berth", "berth", "berth", "other")
	return g.history(func(life, version int) metav1.Object {
		if life != lifeOf {
			lifeOf, steps, most, grouped = life, 0, g.number("most", 0, 3), g.pick("grouped", "", "", "berth", "kai", "lws", "job", "jobset", "upstream")
		}
		steps = min(most, steps+g.number("steps", 0, 1))
		o := &corev1.Pod{ObjectMeta: g.meta("ns", name, "pod", life)}
		o.Spec.SchedulerName = scheduler
		cpu := "1"
		if version > 2 && g.chance("resized", 30) {
			cpu = "2"
		}
		o.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			"cpu": resource.MustParse(cpu),
		}}}}
		// If it is not known which devices a task holds, State chooses some, and does not choose
		// others when the task begins to leave. These would differ from those of a list.
		if most < 2 {
			if o.Spec.ResourceClaims = claims; len(claims) == 0 {
				o.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse("1")
			}
		}
		g.group(o, grouped)
		if g.chance("queue", 50) {
			o.Labels["berth.dev/queue"] = g.pick("queue", "q0", "q1")
		}
		if steps == 0 && version == 0 && g.chance("gated", 20) {
			o.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/gate"}}
		}
		o.Status.Phase = corev1.PodPending
		if steps > 0 && node != "" {
			o.Spec.NodeName, o.Status.Phase = node, corev1.PodRunning
			started := metav1.Unix(1_790_000_100, 0)
			o.Status.StartTime = &started
		}
		if steps > 1 {
			deleted := metav1.Unix(1_790_000_200, 0)
			o.DeletionTimestamp = &deleted
		}
		if steps > 2 {
			o.Status.Phase = corev1.PodPhase(g.pick("phase", "Succeeded", "Failed"))
		}
		return o
	})
}

// group makes the pod name a group.
func (g *generator) group(o *corev1.Pod, how string) {
	o.Labels, o.Annotations = map[string]string{"app": "test", "pod": o.Name}, map[string]string{}
	owner := true
	switch how {
	case "berth":
		o.Labels[LabelGroupName], o.Labels[LabelGroupMinMember] = "gang", g.pick("minimum", "1", "2", "none")
	case "kai":
		o.Annotations["pod-group-name"], o.Labels["kai.scheduler/subgroup-name"] = "kai", g.pick("part", "a", "b")
	case "lws":
		const prefix = "leaderworkerset.sigs.k8s.io/"
		o.Labels[prefix+"name"], o.Labels[prefix+"group-index"], o.Labels[prefix+"worker-index"] = "lws", "0", g.pick("index", "0", "1")
		if g.pick("exclusive", "", "yes") != "" {
			o.Annotations[prefix+"exclusive-topology"] = "rack"
		}
	case "job":
		o.Annotations["batch.kubernetes.io/job-completion-index"] = "1"
		o.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "batch", Controller: &owner}}
	case "jobset":
		o.Labels["jobset.sigs.k8s.io/jobset-name"], o.Labels["jobset.sigs.k8s.io/replicatedjob-name"] = "set", g.pick("job", "driver", "worker")
		if g.pick("exclusive", "", "yes") != "" {
			o.Annotations["alpha.jobset.sigs.k8s.io/exclusive-topology"] = "rack"
		}
	case "upstream":
		name := "pg"
		o.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
	}
}

// other returns an object of a kind that is read through PutGroup.
func (g *generator) other(apiVersion, kind, name string, spec func() map[string]any) history {
	return g.history(func(life, _ int) metav1.Object {
		m := g.meta("ns", name, kind, life)
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&m)
		if err != nil {
			g.Fatalf("%v", err)
		}
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": fields, "spec": spec()}}
	})
}

func (g *generator) groups() []history {
	return []history{
		g.other("scheduling.run.ai/v2alpha2", "PodGroup", "kai", func() map[string]any {
			return map[string]any{
				"minMember": int64(g.number("minimum", 0, 2)), "queue": g.pick("queue", "", "q0"), "priorityClassName": g.pick("class", "", "high"),
				"subGroups": []any{map[string]any{"name": "a", "minMember": int64(1)}, map[string]any{"name": g.pick("part", "b", "c"), "minMember": int64(1)}},
			}
		}),
		g.other("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "lws", func() map[string]any {
			return map[string]any{"startupPolicy": g.pick("startup", "LeaderCreated", "LeaderReady"), "leaderWorkerTemplate": map[string]any{"size": int64(2)}}
		}),
		g.other("jobset.x-k8s.io/v1alpha2", "JobSet", "set", func() map[string]any {
			order := g.pick("order", "AnyOrder", "InOrder")
			return map[string]any{"startupPolicy": map[string]any{"startupPolicyOrder": order}, "replicatedJobs": []any{
				map[string]any{"name": "driver", "replicas": int64(1)}, map[string]any{"name": "worker", "replicas": int64(g.number("replicas", 1, 2))}}}
		}),
		g.history(func(life, _ int) metav1.Object {
			o := &batchv1.Job{ObjectMeta: g.meta("ns", "batch", "job", life)}
			n, mode := int32(g.number("parallelism", 1, 3)), batchv1.IndexedCompletion
			o.Spec.Parallelism, o.Spec.Completions, o.Spec.CompletionMode = &n, &n, &mode
			return o
		}),
		g.history(func(life, _ int) metav1.Object {
			o := &schedulingv1alpha2.PodGroup{ObjectMeta: g.meta("ns", "pg", "pg", life)}
			o.Spec.SchedulingPolicy.Gang = &schedulingv1alpha2.GangSchedulingPolicy{MinCount: int32(g.number("minimum", 1, 2))}
			return o
		}),
	}
}

// cluster draws the histories of all objects.
func (g *generator) cluster() []history {
	out := []history{
		g.node("n0"), g.node("n1"), g.queue("q0"), g.queue("q1"),
		g.history(func(life, _ int) metav1.Object {
			o := &corev1.Namespace{ObjectMeta: g.meta("", "ns", "ns", life)}
			o.Annotations = map[string]string{AnnotationDefaultQueue: g.pick("queue", "", "q0", "q1")}
			return o
		}),
		g.history(func(life, _ int) metav1.Object {
			return &schedulingv1.PriorityClass{ObjectMeta: g.meta("", "high", "class", life), Value: int32(g.number("priority", 0, 200))}
		}),
		g.history(func(life, _ int) metav1.Object {
			least := intstr.FromInt32(int32(g.number("available", 0, 3)))
			return &policyv1.PodDisruptionBudget{ObjectMeta: g.meta("ns", "budget", "pdb", life), Spec: policyv1.PodDisruptionBudgetSpec{
				MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "test"}}}}
		}),
	}
	out = append(out, g.groups()...)
	out = append(out, g.dynamic()...)
	for i := range g.number("pods", 1, 6) {
		out = append(out, g.pod(fmt.Sprintf("p%d", i)))
	}
	return out
}

func (x *fixture) deliver(e event) {
	if e.deleted {
		x.remove(e.object)
	} else {
		x.put(e.object)
	}
}

// TestOrderDoesNotMatter delivers the histories of many objects interleaved, with repeats of
// what was delivered before, and compares the State with that of a list of the final
// objects. Then it deletes them all.
func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &generator{T: t}
		histories := g.cluster()
		live := &fixture{t: t, feed: New(testOptions), state: cluster.NewState()}
		done := make([]int, len(histories))
		for {
			var open []int
			for i, h := range histories {
				if done[i] < len(h) {
					open = append(open, i)
				}
			}
			if len(open) == 0 {
				break
			}
			i := rapid.SampledFrom(open).Draw(t, "next")
			live.deliver(histories[i][done[i]])
			done[i]++
			if g.chance("repeat", 30) {
				again := histories[i][g.number("again", 0, done[i]-1)]
				before := live.state.Digest()
				if live.deliver(again); live.state.Digest() != before {
					t.Fatalf("a repeat of %T %s changed the State", again.object, again.object.GetName())
				}
			}
		}
		if err := live.state.Audit(); err != nil {
			t.Fatal(err)
		}
		// State keeps what it knows of a node that is gone while tasks are on it. In Kubernetes,
		// the garbage collector of pods then deletes these. It also keeps what it knows of
		// devices that tasks hold and no slice lists any more.
		for i, h := range histories {
			if p, ok := h.last().(*corev1.Pod); ok && (gone(histories, p.Spec.NodeName) || len(p.Spec.ResourceClaims) > 0 && gone(histories, "slice")) {
				histories[i] = append(h, event{p, true})
				live.remove(p)
			}
		}
		listed := &fixture{t: t, feed: New(testOptions), state: cluster.NewState()}
		for _, h := range histories {
			if o := h.last(); o != nil {
				listed.put(o)
			}
		}
		same(t, live.state, listed.state)
		for _, i := range rapid.Permutation(indexes(len(histories))).Draw(t, "deletions") {
			if o := histories[i].last(); o != nil {
				live.remove(o)
			}
		}
		same(t, live.state, cluster.NewState())
		if f := live.feed; len(f.pods)+len(f.jobs)+len(f.groups)+len(f.waiting)+len(f.queues)+len(f.low)+len(f.defaults)+len(f.classes)+len(f.versions.known)+len(f.nodes)+len(f.claims)+len(f.users)+len(f.allocated)+len(f.asking) > 0 || !f.inventory.Empty() {
			t.Fatalf("the Feed keeps objects that were deleted: %+v", f)
		}
	})
}

// gone reports whether the node, or the slice, is deleted in the end.
func gone(histories []history, name string) bool {
	for _, h := range histories {
		switch o := h[0].object.(type) {
		case *corev1.Node, *resourcev1.ResourceSlice:
			if o.GetName() == name {
				return h.last() == nil
			}
		}
	}
	return false
}

func indexes(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// TestObjectsAreNotModified delivers objects and compares them with copies.
func TestObjectsAreNotModified(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &generator{T: t}
		x := &fixture{t: t, feed: New(testOptions), state: cluster.NewState()}
		for _, h := range g.cluster() {
			for _, e := range h {
				before, err := json.Marshal(e.object)
				if err != nil {
					t.Fatal(err)
				}
				x.deliver(e)
				if after, _ := json.Marshal(e.object); !bytes.Equal(before, after) {
					t.Fatalf("%T %s was modified:\n%s\n%s", e.object, e.object.GetName(), before, after)
				}
			}
		}
	})
}
