package engine_test

import (
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// TestPanicIsContained: for each hook, a plugin panics in it. The error names the plugin and
// the hook, committed statements stay, and the open statement is undone.
func TestPanicIsContained(t *testing.T) {
	boom := func() { panic("boom") }
	second := func(id string) bool { return id == "job/second" }
	tests := map[string]func(*engine.Session){
		"AddStaticFilter": func(s *engine.Session) {
			s.Hooks.AddStaticFilter(nil, func(shape *cluster.Shape, _ *cluster.Node) *engine.Rejection {
				if shape.Resources.Of(cluster.CPU) > 0 {
					boom()
				}
				return nil
			})
		},
		"AddTaskFilter": func(s *engine.Session) {
			s.Hooks.AddTaskFilter(nil, func(_ *cluster.Task, j *cluster.Job, _ *cluster.Node) *engine.Rejection {
				if second(j.ID) {
					boom()
				}
				return nil
			})
		},
		"AddTaskScore": func(s *engine.Session) {
			s.Hooks.AddTaskScore(nil, func(_ *cluster.Task, j *cluster.Job, n *cluster.Node) float64 {
				if second(j.ID) {
					return float64(n.Devices[9].Index) // out of range
				}
				return 1
			})
		},
		"AddPreFilter": func(s *engine.Session) {
			s.Hooks.AddPreFilter(func(_ *cluster.Task, j *cluster.Job) *engine.Rejection {
				if second(j.ID) {
					boom()
				}
				return nil
			})
		},
		"AddSweep": func(s *engine.Session) {
			s.Hooks.AddSweep(func(st *engine.Statement) {
				if err := st.Evict(s.View.Job("job/first").Tasks()[0], "", "Swept"); err != nil {
					t.Error(err)
				}
				boom()
			})
		},
		"AllocateFunc": func(s *engine.Session) {
			s.Hooks.AddEventHandler(engine.EventHandler{AllocateFunc: func(e *engine.Event) {
				if second(e.Job.ID) && e.Task.Index == 2 { // two tasks are in the statement
					boom()
				}
			}})
		},
		"OnSessionOpen": func(*engine.Session) { boom() },
	}
	for hook, open := range tests {
		for _, search := range []engine.Search{engine.Indexed, engine.Scan} {
			t.Run(hook, func(t *testing.T) {
				state := enginetest.State(enginetest.Node("a").CPU(8, "64Gi").GPUs(4, "A100", "80Gi"), enginetest.Job("first").Devices(1).Priority(2), enginetest.Job("second").CPU(1000, "1Gi").Devices(1).Gang(3))
				frail, err := engine.Policy("Frail", open)(engine.NoArguments{})
				if err != nil {
					t.Fatal(err)
				}
				e := enginetest.Engine(enginetest.Fit(), frail)
				s := e.Open(state, engine.Options{Search: search, Patient: true, Now: 1})
				out, err := s.Run()
				s.Close()
				if err == nil || !strings.Contains(err.Error(), "plugin Frail: ") || !strings.Contains(err.Error(), " panicked at contain_test.go:") {
					t.Fatalf("%v", err)
				}
				if named := hook != "AllocateFunc" && hook != "OnSessionOpen"; named && !strings.Contains(err.Error(), hook) {
					t.Errorf("the hook %s is not named: %v", hook, err)
				}
				bound, placed := 0, 1
				if hook == "OnSessionOpen" {
					placed = 0
				} else if hook == "AddSweep" {
					placed = 4
				}
				for _, j := range state.Jobs() {
					for _, task := range j.Tasks() {
						if task.Status == cluster.Assumed {
							bound++
						}
					}
				}
				if bound != placed || len(out.Decisions) != placed {
					t.Errorf("%d tasks are bound by %d decisions, want %d", bound, len(out.Decisions), placed)
				}
				if err := state.Audit(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestPanicOfTheEngineIsNotContained: a panic that no plugin caused is not recovered.
func TestPanicOfTheEngineIsNotContained(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("the panic was contained")
		}
	}()
	s := enginetest.Engine(enginetest.Fit()).Open(enginetest.State(enginetest.Node("a"), enginetest.Job("j")), engine.Options{})
	s.View = cluster.View{}
	_, _ = s.Run()
}

// TestRejectionsHaveReasons: a rejection without a reason fails the session, whatever hook
// returned it.
func TestRejectionsHaveReasons(t *testing.T) {
	none := &engine.Rejection{Cure: engine.Wait}
	tests := map[string]func(*engine.Session){
		"static": func(s *engine.Session) {
			s.Hooks.AddStaticFilter(nil, func(*cluster.Shape, *cluster.Node) *engine.Rejection { return none })
		},
		"shape": func(s *engine.Session) {
			s.Hooks.AddShapeFilter(nil, func(*cluster.Shape, *cluster.Node) *engine.Rejection { return none })
		},
		"task": func(s *engine.Session) {
			s.Hooks.AddTaskFilter(nil, func(*cluster.Task, *cluster.Job, *cluster.Node) *engine.Rejection { return none })
		},
		"prefilter": func(s *engine.Session) {
			s.Hooks.AddPreFilter(func(*cluster.Task, *cluster.Job) *engine.Rejection { return none })
		},
		"victim": func(s *engine.Session) {
			s.Hooks.AddPreemptable(func(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Verdict {
				return func(*engine.Victim) engine.Verdict { return engine.Protect("") }
			})
			s.Hooks.AddEvictionPurpose(engine.Preempt, "Preempted")
		},
	}
	for name, open := range tests {
		t.Run(name, func(t *testing.T) {
			j := enginetest.Job("j").Devices(1)
			if name == "victim" {
				j.Devices(2)
			}
			state := enginetest.State(enginetest.Node("a").GPUs(2, "A100", "80Gi"), enginetest.Job("low").Devices(1).Preemptible().On("a"), j)
			_, err := enginetest.Engine(enginetest.Fit(), &policy{name: "Mute", open: open}).Open(state, engine.Options{}).Run()
			if err == nil || !strings.Contains(err.Error(), "plugin Mute: ") || !strings.Contains(err.Error(), "reason") {
				t.Errorf("%v", err)
			}
		})
	}
}
