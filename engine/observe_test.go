package engine_test

import (
	"slices"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// TestObserverCalls checks the calls of an Observer for each way in which a decision may end.
func TestObserverCalls(t *testing.T) {
	node := enginetest.Node("a").GPUs(1, "A100", "80Gi")
	alone := []enginetest.Part{node, enginetest.Job("x").Devices(1)}
	rivals := []enginetest.Part{node, enginetest.Job("low").Devices(1).Preemptible().On("a"), enginetest.Job("high").Devices(1).Priority(9)}
	shape := *enginetest.Job("o").Devices(1).Build().Alternatives[0].Tasks[0].Shape
	put := func(uid string) cluster.Change {
		return cluster.TaskPut{Job: "job/o", Task: cluster.Task{Name: "w", UID: uid, Shape: &shape}}
	}
	open := enginetest.Job("o").Build()
	open.Open, open.Alternatives = true, []cluster.Alternative{{Min: 1}}
	const session = 100 // a step of type int64 is a session at that time
	type step any
	task := func(s *cluster.State, job string) *cluster.Task { return s.Job(job).Tasks()[0] }
	tests := map[string]struct {
		parts []enginetest.Part
		steps []step // a change, a function that makes one, or the time of a session
		want  []string
	}{
		"the task ends before it is reported on the node": {alone, []step{int64(1), cluster.TaskGone{Task: cluster.TaskRef{Job: "job/x", Name: "worker-0"}, Ended: cluster.Succeeded}},
			[]string{"committed job/x/worker-0 a", "bound job/x/worker-0 a"}},
		"the task is deleted": {alone, []step{int64(1), cluster.TaskSeen{Task: cluster.TaskRef{Job: "job/x", Name: "worker-0"}, Node: "a", Releasing: true}, cluster.TaskGone{Task: cluster.TaskRef{Job: "job/x", Name: "worker-0"}}},
			[]string{"committed job/x/worker-0 a", "bound job/x/worker-0 a"}},
		"the reservation expires": {rivals, []step{int64(1), int64(session)},
			[]string{"committed job/low/worker-0 a", "committed job/high/worker-0 a", "failed job/high/worker-0 a"}},
		"the eviction is refused": {rivals, []step{int64(1), func(s *cluster.State) cluster.Change {
			return cluster.EvictionRefused{Task: task(s, "job/low").Ref(), Attempt: task(s, "job/low").Attempt}
		}},
			[]string{"committed job/low/worker-0 a", "committed job/high/worker-0 a", "failed job/high/worker-0 a"}},
		"the node is removed": {rivals, []step{int64(1), cluster.NodeGone{Name: "a"}, int64(2)},
			[]string{"committed job/low/worker-0 a", "committed job/high/worker-0 a", "failed job/high/worker-0 a"}},
		"the victim releases its room": {rivals, []step{int64(1), cluster.TaskGone{Task: cluster.TaskRef{Job: "job/low", Name: "worker-0"}}},
			[]string{"committed job/low/worker-0 a", "committed job/high/worker-0 a", "evicted job/low/worker-0 a"}},
		"the victim is deleted with its job": {rivals, []step{int64(1), cluster.JobGone{Job: "job/low"}},
			[]string{"committed job/low/worker-0 a", "committed job/high/worker-0 a", "evicted job/low/worker-0 a"}},
		"another task has its name": {[]enginetest.Part{node}, []step{cluster.JobPut{Job: *open}, put("1"), int64(1), put("2")},
			[]string{"committed job/o/w a", "failed job/o/w a"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var calls []string
			e := enginetest.Engine(enginetest.Fit(), enginetest.AllowAllVictims(), preempting(), &policy{name: "Ear", open: observed(&calls)})
			state := enginetest.State(tt.parts...)
			for _, s := range tt.steps {
				if now, ok := s.(int64); ok {
					out, err := e.Open(state, engine.Options{Now: now, Hold: 10}).Run()
					if err != nil {
						t.Fatal(err)
					}
					if err := e.Committed(&out); err != nil {
						t.Fatal(err)
					}
					continue
				}
				if make, ok := s.(func(*cluster.State) cluster.Change); ok {
					s = make(state)
				}
				notify := e.ObserveFact(state, s.(cluster.Change))
				if err := state.Apply(s.(cluster.Change)); err != nil {
					t.Fatal(err)
				}
				if err := notify(); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(calls, tt.want) {
				t.Errorf("calls %q, want %q", calls, tt.want)
			}
		})
	}
}
