package feed

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const testNode = `apiVersion: v1
kind: Node
metadata:
  name: gpu-1
  uid: node-1
  resourceVersion: "10"
  labels: {kubernetes.io/hostname: gpu-1, nvidia.com/gpu.product: NVIDIA-L4, nvidia.com/gpu.count: "4", nvidia.com/gpu.memory: "24576"}
status:
  allocatable: {cpu: "32", memory: 128Gi, pods: "110", nvidia.com/gpu: "4"}
  conditions: [{type: Ready, status: "True"}]`

var revision = 1000

// onePod returns a pod that requests one device, after the changes.
func onePod(name, uid string, changes ...func(*corev1.Pod)) *corev1.Pod {
	revision++
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID(uid), ResourceVersion: fmt.Sprint(revision), Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{SchedulerName: "berth", Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("2"), "nvidia.com/gpu": resource.MustParse("1")}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

var started = metav1.NewTime(time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC))

func onNode(p *corev1.Pod) {
	p.Spec.NodeName, p.Status.Phase, p.Status.StartTime = "gpu-1", corev1.PodRunning, &started
}

func deleting(p *corev1.Pod) { p.DeletionTimestamp = &started }

func foreign(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" }

func gated(p *corev1.Pod) {
	p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}}
}

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func annotated(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[key] = value }
}

func inGang(p *corev1.Pod) {
	p.Labels[LabelGroupName], p.Labels[LabelGroupMinMember] = "gang", "2"
}

// tasks describes all tasks of a State.
func tasks(s *cluster.State) []string {
	var out []string
	for _, j := range s.Jobs() {
		for _, t := range j.Tasks() {
			line := t.ID + " " + t.UID + " " + t.Status.String()
			if t.Node != nil {
				line += " " + t.Node.Name
			}
			out = append(out, line)
		}
	}
	return out
}

func TestLifeOfPod(t *testing.T) {
	for name, c := range map[string]struct {
		versions []*corev1.Pod
		want     []string
	}{
		"gated":                           {[]*corev1.Pod{onePod("a", "1", gated)}, nil},
		"gate removed":                    {[]*corev1.Pod{onePod("a", "1", gated), onePod("a", "1")}, []string{"pod/ml/a/0 1 Pending"}},
		"bound":                           {[]*corev1.Pod{onePod("a", "1"), onePod("a", "1", onNode)}, []string{"pod/ml/a/0 1 Bound gpu-1"}},
		"deleted while it runs":           {[]*corev1.Pod{onePod("a", "1", onNode), onePod("a", "1", onNode, deleting)}, []string{"pod/ml/a/0 1 Releasing gpu-1"}},
		"deleted without a node":          {[]*corev1.Pod{onePod("a", "1"), onePod("a", "1", deleting)}, nil},
		"succeeded":                       {[]*corev1.Pod{onePod("a", "1", onNode), onePod("a", "1", onNode, inPhase(corev1.PodSucceeded))}, nil},
		"foreign and pending":             {[]*corev1.Pod{onePod("a", "1", foreign)}, nil},
		"foreign and bound":               {[]*corev1.Pod{onePod("a", "1", foreign, onNode)}, []string{"pod/ml/a/0 1 Bound gpu-1"}},
		"foreign and failed":              {[]*corev1.Pod{onePod("a", "1", foreign, onNode), onePod("a", "1", foreign, onNode, inPhase(corev1.PodFailed))}, nil},
		"member of a gang":                {[]*corev1.Pod{onePod("a", "1", inGang), onePod("a", "1", inGang, onNode)}, []string{"group/ml/gang/a 1 Bound gpu-1"}},
		"member that succeeded":           {[]*corev1.Pod{onePod("a", "1", inGang, onNode, inPhase(corev1.PodSucceeded))}, []string{"group/ml/gang/a 1 Succeeded"}},
		"member that failed":              {[]*corev1.Pod{onePod("a", "1", inGang, onNode), onePod("a", "1", inGang, onNode, inPhase(corev1.PodFailed))}, []string{"group/ml/gang/a 1 Failed"}},
		"member deleted without a node":   {[]*corev1.Pod{onePod("a", "1", inGang), onePod("a", "1", inGang, deleting)}, nil},
		"joins a gang":                    {[]*corev1.Pod{onePod("a", "1", onNode), onePod("a", "1", inGang, onNode)}, []string{"group/ml/gang/a 1 Bound gpu-1"}},
		"leaves a gang":                   {[]*corev1.Pod{onePod("a", "1", inGang, onNode), onePod("a", "1", onNode)}, []string{"pod/ml/a/0 1 Bound gpu-1"}},
		"name with a new UID":             {[]*corev1.Pod{onePod("a", "1", onNode), onePod("a", "2")}, []string{"pod/ml/a/0 2 Pending"}},
		"name of a member with a new UID": {[]*corev1.Pod{onePod("a", "1", inGang, onNode), onePod("a", "2", inGang)}, []string{"group/ml/gang/a 2 Pending"}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newFixture(t)
			x.putAll(testNode)
			for _, p := range c.versions {
				x.put(p)
			}
			if diff := cmp.Diff(c.want, tasks(x.state)); diff != "" {
				t.Errorf("tasks (-want +got):\n%s", diff)
			}
			if err := x.state.Audit(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestProfileOfPod checks that pods name their profile by the scheduler name if there are
// profiles, also the pods of one gang.
func TestProfileOfPod(t *testing.T) {
	other := func(p *corev1.Pod) { p.Spec.SchedulerName = "berth-spread" }
	for _, profiled := range []bool{false, true} {
		f, s := New(Options{SchedulerNames: []string{"berth", "berth-spread"}, Profiles: profiled}), cluster.NewState()
		for _, p := range []*corev1.Pod{onePod("a", "1"), onePod("b", "2", other), onePod("c", "3", inGang), onePod("d", "4", inGang, other), onePod("e", "5", foreign, onNode)} {
			changes, _ := f.PutPod(p)
			for _, c := range changes {
				if err := s.Apply(c); err != nil {
					t.Fatal(err)
				}
			}
		}
		got := map[string]string{}
		for _, j := range s.Jobs() {
			for _, task := range j.Tasks() {
				got[task.ID] = task.Shape.Profile
			}
		}
		want := map[string]string{"pod/ml/a/0": "berth", "pod/ml/b/0": "berth-spread", "group/ml/gang/c": "berth", "group/ml/gang/d": "berth-spread", "pod/ml/e/0": ""}
		if !profiled {
			for id := range want {
				want[id] = ""
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("profiles (-want +got):\n%s", diff)
		}
	}
}

// TestNewUIDInheritsNothing decides about a pod, and replaces the pod by one of the same
// name: the State is as if only the new one had been there.
func TestNewUIDInheritsNothing(t *testing.T) {
	for name, group := range map[string]func(*corev1.Pod){"pod": func(*corev1.Pod) {}, "member": inGang} {
		t.Run(name, func(t *testing.T) {
			old, successor := onePod("a", "1", group, onNode), onePod("a", "2", group)
			x, fresh := newFixture(t), newFixture(t)
			x.putAll(testNode)
			x.put(old)
			ref := x.state.Jobs()[0].Tasks()[0].Ref()
			for _, c := range []cluster.Change{
				cluster.Evict{Task: ref, UID: "1", Attempt: 1, At: 1},
				cluster.Park{Job: ref.Job, Parked: cluster.Parked{Tries: 3, RetryAt: 5}},
			} {
				if err := x.state.Apply(c); err != nil {
					t.Fatal(err)
				}
			}
			x.put(successor)
			fresh.putAll(testNode)
			fresh.put(successor)
			same(t, x.state, fresh.state)
			x.remove(old) // the deletion of the old one arrives late
			same(t, x.state, fresh.state)
			x.put(old)
			same(t, x.state, fresh.state)
			if name, uid, found := x.feed.Pod(ref); !found || name.Name != "a" || uid != "2" {
				t.Errorf("Pod(%v) = %v, %v, %v", ref, name, uid, found)
			}
		})
	}
}

func TestForeignPodsTakeRoomAndNoQuota(t *testing.T) {
	x := newFixture(t)
	x.putAll(testNode)
	x.put(onePod("a", "1", foreign, onNode))
	j := x.state.Job("pod/ml/a")
	if j.Preemptible || j.Queue != ForeignQueue {
		t.Errorf("preemptible %v, queue %s", j.Preemptible, j.Queue)
	}
	if used := x.state.Queue(cluster.DefaultQueue).Used; len(used) > 0 {
		t.Errorf("the default queue is charged %v", used)
	}
	held := 0
	for _, d := range x.state.Node("gpu-1").Devices {
		if !d.Idle() {
			held++
		}
	}
	if held != 1 {
		t.Errorf("%d devices are held, want 1", held)
	}
	data, err := json.Marshal(x.state.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	var snapshot cluster.Snapshot
	if err := json.Unmarshal(data, &snapshot); err != nil {
		t.Fatal(err)
	}
	restored, err := snapshot.State()
	if err != nil {
		t.Fatal(err)
	}
	same(t, restored, x.state)
}

func TestUpstreamPodGroup(t *testing.T) {
	x := newFixture(t)
	name := "pg"
	grouped := func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name} }
	x.put(onePod("a", "1", grouped, inGang)) // the field comes before labels
	x.put(onePod("b", "2", grouped))
	if got := pendingJobs(x.state); got != nil {
		t.Errorf("pending before the PodGroup arrived: %v", got)
	}
	if len(x.notes) != 2 || !strings.Contains(x.notes[0].Message, "waiting") {
		t.Errorf("notes: %+v", x.notes)
	}
	x.putAll(`apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {namespace: ml, name: pg, uid: pg, resourceVersion: "3"}
spec:
  schedulingPolicy: {gang: {minCount: 2}}
  schedulingConstraints: {topology: [{key: example.com/rack}]}
  priority: 7`)
	want := []string{"podgroup/ml/pg min=2 queue=default priority=7 within=example.com/rack: a b"}
	if diff := cmp.Diff(want, summary(x.state)); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"podgroup/ml/pg"}, pendingJobs(x.state)); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
	x.apply(x.feed.DeletePodGroup(types.NamespacedName{Namespace: "ml", Name: "pg"}, "pg"), nil)
	if got := pendingJobs(x.state); got != nil {
		t.Errorf("pending after the PodGroup was deleted: %v", got)
	}
}

func TestQueueOfPod(t *testing.T) {
	x := newFixture(t)
	x.put(onePod("a", "1"))
	x.put(onePod("b", "2", func(p *corev1.Pod) { p.Labels["berth.dev/queue"] = "own" }))
	x.put(onePod("c", "3", func(p *corev1.Pod) { p.Labels["berth.dev/preemptible"] = "false" }))
	x.putAll(`apiVersion: v1
kind: Namespace
metadata: {name: ml, uid: ns, resourceVersion: "1", annotations: {berth.dev/default-queue: low}}
---
apiVersion: berth.dev/v1alpha1
kind: Queue
metadata: {name: low, uid: q, resourceVersion: "2"}
spec: {tier: Scavenger}`)
	want := []string{
		"pod/ml/a min=1 queue=low priority=0 preemptible: 0", "pod/ml/b min=1 queue=own priority=0: 0", "pod/ml/c min=1 queue=low priority=0: 0",
	}
	if diff := cmp.Diff(want, summary(x.state)); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
}

// TestResize changes what a running pod requests: its room is booked anew.
func TestResize(t *testing.T) {
	resized := func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("5") }
	x, fresh := newFixture(t), newFixture(t)
	after := onePod("a", "1", onNode, resized)
	after.ResourceVersion = "9999"
	for _, y := range []*fixture{x, fresh} {
		y.putAll(testNode)
	}
	x.put(onePod("a", "1", onNode))
	x.put(after)
	fresh.put(after)
	same(t, x.state, fresh.state)
	if used := x.state.Node("gpu-1").Resources[0]; used.Name != "cpu" || used.Used != 5000 {
		t.Errorf("%s is used by %d", used.Name, used.Used)
	}
}

// TestRejectedPod checks that State avoids the node that rejected a pod, whether the pod is a
// member of a gang or a job of its own.
func TestRejectedPod(t *testing.T) {
	rejected := func(p *corev1.Pod) { p.Status.Reason = "OutOfcpu" }
	alone := func(*corev1.Pod) {}
	for name, member := range map[string]func(*corev1.Pod){"in a gang": inGang, "alone": alone} {
		t.Run(name, func(t *testing.T) {
			x := newFixture(t)
			x.feed.options.RejectionPause = int64(time.Minute)
			x.putAll(testNode)
			x.put(onePod("a", "1", member, onNode))
			x.put(onePod("a", "1", member, onNode, inPhase(corev1.PodFailed), rejected))
			avoids := x.state.Node("gpu-1").Avoids
			if len(avoids) != 1 || avoids[0].Until != started.Add(time.Minute).UnixNano() {
				t.Errorf("the node avoids %+v", avoids)
			}
		})
	}
}
