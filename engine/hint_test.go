package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// atMost returns a plugin with a Reserver that admits the given number of tasks in the cluster.
func atMost(total int, hint func(*engine.Hooks)) *policy {
	return &policy{name: "AtMost", open: func(s *engine.Session) {
		hint(s.Hooks)
		s.Hooks.AddReserve(nil, engine.Reserver{Reserve: func(*cluster.Task, *cluster.Node) *engine.Rejection {
			have := 0 // including the task itself
			for _, n := range s.View.Nodes() {
				have += len(n.Tasks)
			}
			if have > total {
				return &engine.Rejection{Reason: "NoLicense", Cure: engine.Wait}
			}
			return nil
		}, Unreserve: func(*cluster.Task, *cluster.Node) {}})
	}}
}

// TestRefusedByAReserver: jobs that a Reserver rejected are not tried again before the change
// that its plugin names, whatever was tried and undone meanwhile.
func TestRefusedByAReserver(t *testing.T) {
	onJobs := func(h *engine.Hooks) { h.AddWake(engine.WakeJobs) }
	unhinted := func(*engine.Hooks) {}
	jobCame := cluster.JobPut{Job: *enginetest.Job("large").Devices(9).Build()}
	tests := map[string]struct {
		plugin *policy
		jobs   []enginetest.Part
		change func(*cluster.State) cluster.Change
	}{
		"a task":              {atMost(0, onJobs), []enginetest.Part{enginetest.Job("g").Devices(1)}, func(*cluster.State) cluster.Change { return jobCame }},
		"a gang":              {atMost(1, onJobs), []enginetest.Part{enginetest.Job("g").Devices(1).Gang(2)}, func(*cluster.State) cluster.Change { return jobCame }},
		"replicas of a set":   {atMost(0, onJobs), []enginetest.Part{enginetest.Job("g").Devices(1).Set("m", 2), enginetest.Job("h").Devices(1).Set("m", 2)}, func(*cluster.State) cluster.Change { return jobCame }},
		"a gang without hint": {atMost(1, unhinted), []enginetest.Part{enginetest.Job("g").Devices(1).Gang(2)}, nodeRead},
		"a task without hint": {atMost(0, unhinted), []enginetest.Part{enginetest.Job("g").Devices(1)}, nodeRead},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			state := enginetest.State(append(tt.jobs, enginetest.Node("a").GPUs(8, "A100", "80Gi"))...)
			e := enginetest.Engine(enginetest.Fit(), tt.plugin)
			var tried []bool
			for now := range int64(6) {
				if now == 5 {
					if err := state.Apply(tt.change(state)); err != nil {
						t.Fatal(err)
					}
				}
				out, err := e.Open(state, engine.Options{Now: now + 1, Patient: true}).Run()
				if err != nil {
					t.Fatal(err)
				}
				tried = append(tried, slices.Contains(out.Tried, "job/g"))
			}
			if got := fmt.Sprint(tried); got != "[true false false false false true]" {
				t.Errorf("tried: %s", got)
			}
		})
	}
}

func nodeRead(s *cluster.State) cluster.Change {
	return cluster.NodeRead{Name: "a", Free: map[string]cluster.Bytes{s.Node("a").Devices[0].UUID: 1 << 30}}
}

// TestHintsWithinASession: a job that needs another job to be placed first is tried in the
// same session that places that job, as in a session that is not patient.
func TestHintsWithinASession(t *testing.T) {
	for _, hint := range []engine.Wake{engine.WakeNodes, engine.WakeJobs, engine.WakeQueues} {
		for _, patient := range []bool{false, true} {
			gate := &policy{name: "Gate", open: func(s *engine.Session) {
				s.Hooks.AddWake(hint)
				s.Hooks.AddTaskFilter(nil, func(_ *cluster.Task, j *cluster.Job, n *cluster.Node) *engine.Rejection {
					switch {
					case j.ID == "job/a" && n.Name != "n2":
						return &engine.Rejection{Reason: "OnlyN2", Cure: engine.Wait}
					case j.ID == "job/b" && s.View.Job("job/a").Placed() == 0:
						return &engine.Rejection{Reason: "NeedsA", Cure: engine.Wait}
					}
					return nil
				})
			}}
			e := enginetest.Engine(enginetest.Fit(), gate)
			state := enginetest.State(enginetest.Node("n1").GPUs(8, "A100", "80Gi"), enginetest.Job("a").Devices(1), enginetest.Job("b").Devices(1))
			run := func(now int64) engine.Outcome {
				out, err := e.Open(state, engine.Options{Now: now, Patient: patient}).Run()
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			for now := range int64(4) {
				run(now + 1)
			}
			if err := state.Apply(cluster.NodePut{Node: *enginetest.Node("n2").GPUs(8, "A100", "80Gi").Build()}); err != nil {
				t.Fatal(err)
			}
			if out := run(10); len(out.Decisions) != 2 {
				t.Errorf("hint %d, patient %t: tried %q, %d decisions", hint, patient, out.Tried, len(out.Decisions))
			}
		}
	}
}

// TestUndoneChangesDoNotWake: what a session tries and undoes is not a change.
func TestUndoneChangesDoNotWake(t *testing.T) {
	for _, hint := range []engine.Wake{engine.WakeNodes, engine.WakeJobs, engine.WakeQueues} {
		gate := &policy{name: "Gate", open: func(s *engine.Session) {
			s.Hooks.AddWake(hint)
			s.Hooks.AddTaskFilter(nil, func(_ *cluster.Task, j *cluster.Job, _ *cluster.Node) *engine.Rejection {
				if j.Placed() > 0 {
					return &engine.Rejection{Reason: "One", Cure: engine.Wait}
				}
				return nil
			})
		}}
		e := enginetest.Engine(enginetest.Fit(), gate)
		state := enginetest.State(enginetest.Node("a").GPUs(8, "A100", "80Gi"), enginetest.Job("g").Devices(1).Gang(2))
		for now := range int64(6) {
			out, err := e.Open(state, engine.Options{Now: now + 1, Patient: true}).Run()
			if err != nil || now > 0 && len(out.Tried) > 0 {
				t.Errorf("hint %d: session %d tried %q, %v", hint, now, out.Tried, err)
			}
		}
	}
}

// TestWakeTime: a job that a filter rejects until a certain time is tried again in the session
// that the plugin requested for this time, and not before.
func TestWakeTime(t *testing.T) {
	const opens = 50
	for _, hint := range []engine.Wake{engine.WakeTime, 0} {
		gate := &policy{name: "Gate", open: func(s *engine.Session) {
			s.Hooks.AddWake(hint)
			s.WakeAt(opens)
			s.Hooks.AddTaskFilter(nil, func(*cluster.Task, *cluster.Job, *cluster.Node) *engine.Rejection {
				if s.Now < opens {
					return &engine.Rejection{Reason: "Closed", Cure: engine.Wait}
				}
				return nil
			})
		}}
		e := enginetest.Engine(enginetest.Fit(), gate)
		state := enginetest.State(enginetest.Node("a").GPUs(8, "A100", "80Gi"), enginetest.Job("g").Devices(1))
		var tried []int
		for _, now := range []int64{1, 20, opens, opens + 1} {
			out, err := e.Open(state, engine.Options{Now: now, Patient: true}).Run()
			if err != nil {
				t.Fatal(err)
			}
			if now < opens && out.NextWake != opens {
				t.Errorf("at %d the next session is requested for %d", now, out.NextWake)
			}
			tried = append(tried, len(out.Tried))
		}
		want := "[1 0 1 0]"
		if hint == 0 {
			want = "[1 0 0 0]"
		}
		if got := fmt.Sprint(tried); got != want {
			t.Errorf("hint %d: tried %s, want %s", hint, got, want)
		}
	}
}

// TestParkedStatementsEnd: the statements of refused jobs are ended, so that their memory is
// reused and the number of allocations per job does not grow with the number of jobs.
func TestParkedStatementsEnd(t *testing.T) {
	allocations := func(jobs int) float64 {
		parts := []enginetest.Part{enginetest.Node("a").GPUs(1, "A100", "80Gi")}
		for i := range jobs {
			parts = append(parts, enginetest.Job(fmt.Sprint("j", i)).Devices(2+i%7))
		}
		state := enginetest.State(parts...)
		e := enginetest.Engine(enginetest.Fit())
		now := int64(0)
		return testing.AllocsPerRun(1, func() {
			now += 600_000_000_000 // longer than any back-off
			if _, err := e.Open(state, engine.Options{Now: now, Patient: true}).Run(); err != nil {
				t.Fatal(err)
			}
		}) / float64(jobs)
	}
	if few, many := allocations(100), allocations(1600); many > 1.2*few {
		t.Errorf("%.1f allocations for each of 1,600 jobs, %.1f for each of 100", many, few)
	}
}
