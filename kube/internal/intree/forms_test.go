package intree

import (
	"errors"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// inZone makes a pod require nodes of the zone.
func inZone(o *v1.Pod, zone string) *v1.Pod {
	affinityOf(o).NodeAffinity = &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchExpressions: []v1.NodeSelectorRequirement{{Key: zoneLabel, Operator: v1.NodeSelectorOpIn, Values: []string{zone}}}}}}}
	return o
}

func withPort(o *v1.Pod) *v1.Pod {
	o.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80, ContainerPort: 80, Protocol: v1.ProtocolTCP}}
	return o
}

// placedOn returns the node of the first task of the job; "" if it has none.
func (w *world) placedOn(job string) string {
	if n := w.state.Job(job).Tasks()[0].Node; n != nil {
		return n.Name
	}
	return ""
}

// TestEqualRequests checks that tasks which request the same, and differ in their node
// affinity, share no refusal: neither as parked jobs nor in one gang.
func TestEqualRequests(t *testing.T) {
	t.Run("parked jobs", func(t *testing.T) {
		w := newWorld(t)
		w.putNode(t, node("a", map[string]string{zoneLabel: "z0"}))
		first := w.job(t, inZone(plain("p1"), "z1"))
		second := w.job(t, inZone(plain("p2"), "z2"))
		s := enginetest.Scheduler{Engine: w.engine, State: w.state}
		for i, zone := range []string{"", "z2"} {
			if zone != "" {
				w.putNode(t, node("b", map[string]string{zoneLabel: zone}))
			}
			if _, err := s.Run(int64(i + 1)); err != nil {
				t.Fatal(err)
			}
		}
		if a, b := w.placedOn(first), w.placedOn(second); a != "" || b != "b" {
			t.Errorf("the jobs are on %q and %q", a, b)
		}
	})
	t.Run("gang", func(t *testing.T) {
		w := newWorld(t)
		w.putNode(t, node("a", map[string]string{zoneLabel: "z2"}))
		id := w.job(t, inZone(plain("p1"), "z1"), inZone(plain("p2"), "z2"))
		job := w.state.Job(id).Spec()
		job.Alternatives[0].Min = 1
		w.apply(t, cluster.JobPut{Job: job})
		if out := w.run(t); len(out.Decisions) != 1 || out.Decisions[0].Task.Name != "1" {
			t.Errorf("%+v", out)
		}
	})
}

// TestNodeChanges changes the object of a node in each way that filters in the static form
// read, and nothing in State. Answers that the engine remembers must not be used again, and a
// parked job must be tried again.
func TestNodeChanges(t *testing.T) {
	tests := map[string]struct {
		pod    func(*v1.Pod)
		good   func(*v1.Node) // makes the node feasible for the pod
		bad    func(*v1.Node)
		reason engine.Reason
	}{
		"label": {func(o *v1.Pod) { o.Spec.NodeSelector = map[string]string{"disk": "ssd"} },
			func(n *v1.Node) { n.Labels["disk"] = "ssd" }, func(*v1.Node) {}, NodeAffinityMismatch},
		"taint": {func(*v1.Pod) {}, func(*v1.Node) {},
			func(n *v1.Node) { n.Spec.Taints = []v1.Taint{{Key: "k", Effect: v1.TaintEffectNoSchedule}} }, NodeTainted},
		"cordon": {func(*v1.Pod) {}, func(*v1.Node) {},
			func(n *v1.Node) { n.Spec.Unschedulable = true }, NodeCordoned},
		"feature": {func(o *v1.Pod) { drawFeatures(nil, o) },
			func(n *v1.Node) { n.Status.DeclaredFeatures = []string{restartFeature} }, func(*v1.Node) {}, NodeFeatureMissing},
		"object": {func(*v1.Pod) {}, func(*v1.Node) {}, nil, NodeNotKnown},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.putNode(t, node("a", nil))
			change := func(how func(*v1.Node)) {
				if how == nil {
					w.store.DeleteNode("a")
					return
				}
				o := node("a", nil)
				how(o)
				w.putObject(o)
			}
			pod := func(name string) *v1.Pod {
				o := plain(name)
				tt.pod(o)
				return o
			}
			change(tt.good)
			w.job(t, pod("p1"))
			if out := w.run(t); len(out.Decisions) != 1 {
				t.Fatalf("a good node: %+v", out)
			}
			w.job(t, pod("p2"))
			change(tt.bad)
			s := enginetest.Scheduler{Engine: w.engine, State: w.state}
			w.now++
			out, err := s.Run(w.now)
			if err != nil || len(out.Refusals) != 1 || out.Refusals[0].Reason != tt.reason {
				t.Fatalf("a bad node: %+v, %v", out, err)
			}
			change(tt.good)
			w.now++
			if out, err = s.Run(w.now); err != nil || len(out.Decisions) != 1 {
				t.Errorf("a good node again: %+v, %v", out, err)
			}
		})
	}
}

// TestKnownNodeChanges checks that a change which State has as well publishes nothing: the
// engine judges the node anew, and no other.
func TestKnownNodeChanges(t *testing.T) {
	w := newWorld(t)
	w.putNode(t, node("a", nil))
	w.job(t, inZone(plain("p"), "z1"))
	if out := w.run(t); len(out.Refusals) != 1 {
		t.Fatalf("%+v", out)
	}
	published := w.plugin.hints.published
	w.putNode(t, node("a", map[string]string{zoneLabel: "z1"}))
	if out := w.run(t); len(out.Decisions) != 1 {
		t.Fatalf("%+v", out)
	}
	if w.plugin.hints.published != published {
		t.Error("a change that State has was published")
	}
}

// TestVolumeChanges changes a volume, of which State knows nothing.
func TestVolumeChanges(t *testing.T) {
	w := newWorld(t)
	w.putNode(t, node("a", map[string]string{zoneLabel: "z1"}))
	put := func(zone string) {
		pv := volume("pv", "now", v1.ReadWriteOnce)
		pv.Labels = map[string]string{zoneLabel: zone}
		w.put(t, pv)
	}
	put("z2")
	w.put(t, claim("default", "data", "now", "pv", v1.ReadWriteOnce))
	pod := plain("p")
	pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	w.job(t, pod)
	if out := w.run(t); len(out.Refusals) != 1 || out.Refusals[0].Reason != VolumeInOtherZone {
		t.Fatalf("%+v", out)
	}
	put("z1")
	if out := w.run(t); len(out.Decisions) != 1 {
		t.Errorf("%+v", out)
	}
}

// TestPortsUnknownToState changes which pods are on a node of the mirror although State does
// not change. A session has accepted the node for a pod with a host port, and refused the pod
// for another reason.
func TestPortsUnknownToState(t *testing.T) {
	tests := map[string]struct {
		before func(*testing.T, *world) // before the first session
		during func(*testing.T, *world, *engine.Session)
		after  func(*testing.T, *world)
	}{
		"an evicted pod": {
			before: func(t *testing.T, w *world) {
				w.job(t, withPort(plain("holder")))
				w.run(t)
			},
			during: func(t *testing.T, w *world, s *engine.Session) {
				stmt := s.Begin()
				if err := stmt.Evict(w.state.Job("pod/default/holder").Tasks()[0], "job", "Test"); err != nil {
					t.Fatal(err)
				}
				stmt.Commit()
			},
			after: func(*testing.T, *world) {},
		},
		"a pod that becomes known": {
			before: func(t *testing.T, w *world) {
				w.job(t, withPort(plain("holder")))
				w.run(t)
				w.store.DeletePod(KeyOf(w.state.Job("pod/default/holder").Tasks()[0]))
			},
			during: func(*testing.T, *world, *engine.Session) {},
			after: func(t *testing.T, w *world) {
				if err := w.store.PutPod(KeyOf(w.state.Job("pod/default/holder").Tasks()[0]), withPort(plain("holder"))); err != nil {
					t.Fatal(err)
				}
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.putNode(t, node("a", map[string]string{zoneLabel: "z1"}))
			tt.before(t, w)
			if got := w.placedOn("pod/default/holder"); got != "a" {
				t.Fatalf("the first pod is on %q", got)
			}
			w.putNode(t, node("b", map[string]string{zoneLabel: "z1"}))
			x := plain("x")
			x.Labels = map[string]string{"app": "x"}
			x.Spec.NodeSelector = map[string]string{v1.LabelHostname: "b"}
			w.job(t, x)
			w.run(t)
			pod := withPort(plain("p"))
			affinityOf(pod).PodAntiAffinity = &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
				TopologyKey: zoneLabel, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}}}}
			job := w.job(t, pod)

			w.now++
			s := w.engine.Open(w.state, engine.Options{Now: w.now, Search: engine.Twin})
			tt.during(t, w, s)
			out, err := s.Run()
			if err = errors.Join(err, s.Close()); err != nil || len(out.Refusals) != 1 || out.Refusals[0].Reason != PodAffinityUnmet {
				t.Fatalf("%+v, %v", out, err)
			}
			tt.after(t, w)
			w.remove(t, "pod/default/x")
			w.run(t) // it compares the answers that the engine remembers with new ones
			if got := w.placedOn(job); got != "b" {
				t.Errorf("the pod is on %q", got)
			}
		})
	}
}

// TestMovingTask checks that the shadow of a task has the pod of the task, and that the node
// which the task leaves does not bind it.
func TestMovingTask(t *testing.T) {
	w := newWorld(t)
	w.putNode(t, node("a", nil))
	id := w.job(t, withPort(plain("p")))
	w.run(t)
	w.putNode(t, node("b", nil))
	job := w.state.Job(id)
	task := job.Tasks()[0]
	bound := withPort(plain("p"))
	bound.Spec.NodeName = "a"
	if err := w.store.PutPod(KeyOf(task), bound); err != nil {
		t.Fatal(err)
	}
	w.run(t)
	shadow := job.Shadow([]*cluster.Task{task}).Tasks()[0]
	if KeyOf(shadow) != KeyOf(task) {
		t.Errorf("the keys are %v and %v", KeyOf(shadow), KeyOf(task))
	}
	b := w.state.Node("b")
	if r := w.plugin.before(shadow, shadow.Job); r != nil {
		t.Errorf("the shadow: %+v", r)
	}
	if w.plugin.mattersTask(shadow, shadow.Job) || w.plugin.rejectStatic(shadow.Shape, b) != nil || w.plugin.rejectShape(shadow.Shape, b) != nil {
		t.Error("a node is rejected for the shadow")
	}
	if r := w.plugin.rejectTask(task, job, b); r == nil || r.Reason != NodeNameMismatch {
		t.Errorf("the task: %+v", r)
	}
}

// TestPodArrivesLate checks that a refused job is tried again when its pod is known, or when
// State and the Store have the same version of it.
func TestPodArrivesLate(t *testing.T) {
	w := newWorld(t)
	w.putNode(t, node("a", nil))
	id := w.job(t, withPort(plain("p")))
	key := KeyOf(w.state.Job(id).Tasks()[0])
	s := enginetest.Scheduler{Engine: w.engine, State: w.state}
	for _, other := range []func(){
		func() { w.store.DeletePod(key) },
		func() {
			if err := w.store.PutPod(key, plain("p")); err != nil { // of another kind
				t.Fatal(err)
			}
		},
	} {
		other()
		w.now++
		if out, err := s.Run(w.now); err != nil || len(out.Refusals) != 1 || out.Refusals[0].Reason != PodNotKnown {
			t.Fatalf("%+v, %v", out, err)
		}
	}
	if err := w.store.PutPod(key, withPort(plain("p"))); err != nil {
		t.Fatal(err)
	}
	w.now++
	if out, err := s.Run(w.now); err != nil || len(out.Decisions) != 1 {
		t.Errorf("the pod is known: %+v, %v", out, err)
	}
}

// TestSamples checks that the Store has a sample for each key of its pods, and for no other.
func TestSamples(t *testing.T) {
	s := NewStore()
	keys := []TaskKey{{Task: "a"}, {Task: "b"}}
	for _, key := range keys {
		if err := s.PutPod(key, withPort(plain(key.Task))); err != nil {
			t.Fatal(err)
		}
	}
	port := s.pods[keys[0]].key
	if err := s.PutPod(keys[0], inZone(plain("a"), "z1")); err != nil {
		t.Fatal(err)
	}
	zone := s.pods[keys[0]].key
	if s.sample(port) == nil || s.sample(zone) == nil || len(s.samples) != 2 {
		t.Errorf("%d samples", len(s.samples))
	}
	s.DeletePod(keys[1])
	if s.sample(port) != nil || len(s.samples) != 1 {
		t.Error("the sample of a key without pods is kept")
	}
	if s.sample("") == nil {
		t.Error("no pod stands for pods of which filters read nothing")
	}
}

// TestFailure checks that the mirror is built anew after a session in which it failed.
func TestFailure(t *testing.T) {
	w := newWorld(t)
	w.putNode(t, node("a", nil))
	w.job(t, plain("p"))
	w.run(t)
	w.plugin.note(w.plugin.mirror.remove("a", "uid-p"))
	w.plugin.note(w.plugin.mirror.remove("a", "uid-p"))
	if w.plugin.failure == nil {
		t.Fatal("no failure")
	}
	w.run(t)
	w.checkMirror(t)
}
