package engine_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// TestBoundTaskIsNoVictimInItsSession: a task that was bound in a session may not be evicted
// in the same session, and may be evicted in the next.
func TestBoundTaskIsNoVictimInItsSession(t *testing.T) {
	evicts := &policy{name: "Evicts", open: func(s *engine.Session) {
		s.Hooks.AddEvictionPurpose(engine.Preempt, "Preempted")
	}}
	state := enginetest.State(enginetest.Node("n").CPU(8, "32Gi").GPUs(1, "L4", "24Gi"), enginetest.Job("first").Devices(1).Preemptible(), enginetest.Job("second").Devices(1))
	e := enginetest.Engine(fit(), enginetest.AllowAllVictims(), evicts)
	for _, want := range [][]string{{"Bind job/first/worker-0"}, {"Evict job/first/worker-0", "Nominate job/second/worker-0"}} {
		var got []string
		for _, d := range run(t, e, state).Decisions {
			got = append(got, string(d.Action)+" "+d.Task.ID())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// TestVictimAmongBoundTasks: a search for victims finds the one node with a task of an earlier
// session, although all other nodes have only tasks that were bound in this session. The node is
// found if some tasks on it were bound in this session, too.
func TestVictimAmongBoundTasks(t *testing.T) {
	evicts := &policy{name: "Evicts", open: func(s *engine.Session) {
		s.Hooks.AddEvictionPurpose(engine.Preempt, "Preempted")
		s.Hooks.AddEvictionPurpose(engine.Move, "Moved")
	}}
	for _, search := range []engine.Search{engine.Indexed, engine.Twin} {
		const nodes = 80
		parts := []enginetest.Part{enginetest.Job("old").Devices(1).Preemptible().On("n-40"), enginetest.Job("z").Devices(1)}
		for i := range nodes {
			parts = append(parts, enginetest.Node(fmt.Sprintf("n-%02d", i)).CPU(8, "32Gi").GPUs(2, "L4", "24Gi"))
		}
		for i := range 2*nodes - 1 {
			parts = append(parts, enginetest.Job(fmt.Sprintf("new-%03d", i)).Devices(1).Preemptible())
		}
		s := enginetest.Engine(fit(), enginetest.AllowAllVictims(), evicts).Open(enginetest.State(parts...), engine.Options{Search: search})
		out, err := s.Run()
		if closed := s.Close(); err != nil || closed != nil {
			t.Fatal(err, closed)
		}
		if diff := cmp.Diff([]string{"old/worker-0"}, evicted(out)); diff != "" {
			t.Errorf("search %v: evicted (-want +got):\n%s", search, diff)
		}
	}
}

// TestBindingOfANominatedTaskNamesItsAlternative: the decision that binds a nominated task names
// the alternative, as the nomination does.
func TestBindingOfANominatedTaskNamesItsAlternative(t *testing.T) {
	evicts := &policy{name: "Evicts", open: func(s *engine.Session) {
		s.Hooks.AddEvictionPurpose(engine.Preempt, "Preempted")
	}}
	state := enginetest.State(enginetest.Node("n").CPU(8, "32Gi").GPUs(1, "L4", "24Gi"), enginetest.Job("old").Devices(1).Preemptible().On("n"))
	form := func(name string, devices int) cluster.Alternative {
		return cluster.Alternative{Name: name, Min: 1, Tasks: []*cluster.Task{{Name: "w", Shape: &cluster.Shape{Need: cluster.Need{Devices: devices}}}}}
	}
	apply(t, state, cluster.JobPut{Job: cluster.Job{ID: "job/j", Alternatives: []cluster.Alternative{form("two", 2), form("one", 1)}}})
	e := enginetest.Engine(fit(), enginetest.AllowAllVictims(), evicts)
	var got []string
	for range 2 {
		for _, d := range run(t, e, state).Decisions {
			if d.Action == engine.EvictTask {
				apply(t, state, cluster.TaskSeen{Task: d.Task})
			} else {
				got = append(got, string(d.Action)+" "+d.Alternative)
			}
		}
	}
	if diff := cmp.Diff([]string{"Nominate one", "Bind one"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestRemovedTaskDoesNotCountForTheMinimum: a running task that the job's new spec no longer
// has does not count for the minimum. Another task is placed, and the patient session ends.
func TestRemovedTaskDoesNotCountForTheMinimum(t *testing.T) {
	task := func(name string) *cluster.Task {
		return &cluster.Task{Name: name, Shape: &cluster.Shape{Need: cluster.Need{Devices: 1}}}
	}
	job := cluster.Job{ID: "job/j", Alternatives: []cluster.Alternative{{Min: 1, Tasks: []*cluster.Task{task("old")}}}}
	state := enginetest.State(enginetest.Node("n").CPU(8, "32Gi").GPUs(2, "L4", "24Gi"))
	apply(t, state, cluster.JobPut{Job: job})
	e := enginetest.Engine(fit())
	session := func() map[string]string {
		out, err := e.Open(state, engine.Options{Patient: true}).Run()
		if err != nil {
			t.Fatal(err)
		}
		return where(out)
	}
	if diff := cmp.Diff(map[string]string{"job/j/old": "n"}, session()); diff != "" {
		t.Fatal(diff)
	}
	job.Alternatives = []cluster.Alternative{{Min: 1, Tasks: []*cluster.Task{task("new")}}}
	apply(t, state, cluster.JobPut{Job: job})
	if diff := cmp.Diff(map[string]string{"job/j/new": "n"}, session()); diff != "" {
		t.Error(diff)
	}
}
