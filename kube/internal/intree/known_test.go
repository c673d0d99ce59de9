package intree

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

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

// TestKindArrivesLate lets the engine remember answers for a shape of which no pod is known:
// it compares zones by the shapes of all tasks of a gang.
func TestKindArrivesLate(t *testing.T) {
	w := newWorld(t)
	w.putNode(t, node("a", map[string]string{zoneLabel: "z1"}))
	id := w.job(t, plain("p"), withPort(plain("q")))
	job := w.state.Job(id).Spec()
	job.Alternatives[0].Topology.Required = zoneLabel
	w.apply(t, cluster.JobPut{Job: job})
	key := KeyOf(w.state.Job(id).Tasks()[1])
	w.store.DeletePod(key)
	s := enginetest.Scheduler{Engine: w.engine, State: w.state} // unlike w.run, it compares zones by remembered answers
	if out, err := s.Run(0); err != nil || len(out.Refusals) != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	if len(w.plugin.missedKeys) != 1 {
		t.Errorf("the engine did not ask for the shape: %v", w.plugin.missedKeys)
	}
	clear(w.plugin.missed)
	if err := w.store.PutPod(key, withPort(plain("q"))); err != nil {
		t.Fatal(err)
	}
	if out := w.run(t); len(out.Decisions) != 2 {
		t.Errorf("%+v", out)
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
	w.run(t) // State does not change after it, and does not let the plugin read the node again
	w.plugin.note(w.plugin.mirror.remove("a", "uid-p"))
	w.plugin.note(w.plugin.mirror.remove("a", "uid-p"))
	if w.plugin.failure == nil {
		t.Fatal("no failure")
	}
	w.run(t)
	w.checkMirror(t)
}
