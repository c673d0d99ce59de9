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
	holder := func(w *world) *cluster.Task { return w.state.Job("pod/default/holder").Tasks()[0] }
	tests := map[string]struct {
		before func(*world)
		during func(*world, *engine.Session) error
		after  func(*world) error
	}{
		"an evicted pod": {
			before: func(*world) {},
			during: func(w *world, s *engine.Session) error {
				stmt := s.Begin()
				err := stmt.Evict(holder(w), "job", "Test")
				stmt.Commit()
				return err
			},
			after: func(*world) error { return nil },
		},
		"a pod that becomes known": {
			before: func(w *world) { w.store.DeletePod(KeyOf(holder(w))) },
			during: func(*world, *engine.Session) error { return nil },
			after:  func(w *world) error { return w.store.PutPod(KeyOf(holder(w)), withPort(plain("holder"))) },
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			job := w.excluded(t)
			tt.before(w)
			w.now++
			s := w.engine.Open(w.state, engine.Options{Now: w.now, Search: engine.Twin})
			failed := tt.during(w, s)
			out, err := s.Run()
			if err = errors.Join(failed, err, s.Close()); err != nil || len(out.Refusals) != 1 || out.Refusals[0].Reason != PodAffinityUnmet {
				t.Fatalf("%+v, %v", out, err)
			}
			if err := tt.after(w); err != nil {
				t.Fatal(err)
			}
			w.remove(t, "pod/default/x")
			w.run(t) // it compares the answers that the engine remembers with new ones
			if got := w.placedOn(job); got != "b" {
				t.Errorf("the pod is on %q", got)
			}
		})
	}
}

// excluded adds two nodes of one zone, a pod "holder" with a host port on node a, a pod "x" on
// node b, and the job of a pod with the same host port, which anti-affinity to "x" keeps out
// of the zone.
func (w *world) excluded(t *testing.T) (job string) {
	w.putNode(t, node("a", map[string]string{zoneLabel: "z1"}))
	w.job(t, withPort(plain("holder")))
	w.run(t)
	w.putNode(t, node("b", map[string]string{zoneLabel: "z1"}))
	x := plain("x")
	x.Labels = map[string]string{"app": "x"}
	x.Spec.NodeSelector = map[string]string{v1.LabelHostname: "b"}
	w.job(t, x)
	w.run(t)
	if a, b := w.placedOn("pod/default/holder"), w.placedOn("pod/default/x"); a != "a" || b != "b" {
		t.Fatalf("the pods are on %q and %q", a, b)
	}
	pod := withPort(plain("p"))
	affinityOf(pod).PodAntiAffinity = &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
		TopologyKey: zoneLabel, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}}}}
	return w.job(t, pod)
}
