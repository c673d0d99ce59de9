package engine_test

import (
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/standard"
)

// TestPanicUndoesAllStatements: a plugin opens and discards a statement of its own, changes
// the statement that it was given, and panics.
func TestPanicUndoesAllStatements(t *testing.T) {
	p := &policy{name: "Bad", open: func(s *engine.Session) {
		s.Hooks.AddAdapter(func(st *engine.Statement, j *cluster.Job, _ *engine.Refusal) *engine.Refusal {
			s.Begin().Discard()
			if err := st.Evict(s.View.Job("job/low").Tasks()[0], j.ID, "X"); err != nil {
				t.Error(err)
			}
			panic("boom")
		})
	}}
	state := enginetest.State(enginetest.Node("a").GPUs(1, "A100", "80Gi"), enginetest.Job("low").Devices(1).Preemptible().On("a"), enginetest.Job("high").Devices(1))
	out, err := enginetest.Engine(enginetest.Fit(), p).Open(state, engine.Options{}).Run()
	if err == nil || len(out.Decisions) > 0 || state.Job("job/low").Tasks()[0].Status != cluster.Bound {
		t.Errorf("%v, %d decisions, %s", err, len(out.Decisions), state.Job("job/low").Tasks()[0].Status)
	}
}

// TestPanicNamesTheRightPlugin: two plugins registered the same hook, with and without
// timings.
func TestPanicNamesTheRightPlugin(t *testing.T) {
	kinds := map[string]struct{ bad, good func(*engine.Hooks) }{
		"AddQueueOrder": {
			func(h *engine.Hooks) { h.AddQueueOrder(func(_, _ *cluster.Queue) int { panic("boom") }) },
			func(h *engine.Hooks) { h.AddQueueOrder(func(_, _ *cluster.Queue) int { return 0 }) },
		},
		"AddPreFilter": {
			func(h *engine.Hooks) {
				h.AddPreFilter(func(*cluster.Task, *cluster.Job) *engine.Rejection { panic("boom") })
			},
			func(h *engine.Hooks) {
				h.AddPreFilter(func(*cluster.Task, *cluster.Job) *engine.Rejection { return nil })
			},
		},
	}
	none := func([]int64) {}
	kinds["AddLearner"] = struct{ bad, good func(*engine.Hooks) }{
		func(h *engine.Hooks) { h.AddLearner(0, none, func() []int64 { panic("boom") }) },
		func(h *engine.Hooks) { h.AddLearner(0, none, func() []int64 { return nil }) },
	}
	for hook, tt := range kinds {
		for _, m := range []*engine.Timings{nil, {Clock: func() int64 { return 1 }}} {
			state := enginetest.State(enginetest.Queue("q1"), enginetest.Queue("q2"), enginetest.Node("a").GPUs(8, "A100", "80Gi"),
				enginetest.Job("x").Queue("q1").Devices(1), enginetest.Job("y").Queue("q2").Devices(1))
			e := enginetest.Engine(enginetest.Fit(), &policy{name: "Bad", open: func(s *engine.Session) { tt.bad(s.Hooks) }}, &policy{name: "Good", open: func(s *engine.Session) { tt.good(s.Hooks) }})
			_, err := e.Open(state, engine.Options{Timings: m}).Run()
			if err == nil || !strings.HasPrefix(err.Error(), "plugin Bad: "+hook+" panicked at contain_more_test.go:") {
				t.Errorf("%s, measured: %t: %v", hook, m != nil, err)
			}
			if m != nil {
				for _, x := range m.List() {
					if x.Nanoseconds < 0 {
						t.Errorf("%+v", x)
					}
				}
			}
		}
	}
}

// TestPanicInAFunctionOfAnotherPackage: a plugin registers a function that is not of its own
// package.
func TestPanicInAFunctionOfAnotherPackage(t *testing.T) {
	p := &policy{name: "Borrower", open: func(s *engine.Session) { s.Hooks.AddSweep(standardSweep) }}
	if _, err := enginetest.Engine(p).Open(enginetest.State(), engine.Options{}).Run(); err == nil || !strings.HasPrefix(err.Error(), "plugin Borrower: AddSweep panicked at ") {
		t.Errorf("%v", err)
	}
}

// standardSweep makes code of another package panic.
func standardSweep(*engine.Statement) { _ = standard.Profile()[1<<20] }

// TestPanicWhileAGangIsUndone: a plugin panics while a gang is undone, after the Reserver of
// another plugin was called for a part of it. The Reserver is not called for tasks that are
// on no node, and its count is right in the next session.
func TestPanicWhileAGangIsUndone(t *testing.T) {
	l := &licenses{each: 9}
	undone, panics := 0, true
	bad := &policy{name: "Bad", open: func(s *engine.Session) {
		s.Hooks.AddEventHandler(engine.EventHandler{DeallocateFunc: func(e *engine.Event) {
			if undone++; undone == 2 && panics {
				panic("boom")
			}
			_ = e.Node.Name
		}})
	}}
	state := enginetest.State(enginetest.Node("a").GPUs(3, "A100", "80Gi"), enginetest.Job("g").Devices(1).Gang(4))
	e := enginetest.Engine(enginetest.Fit(), l, bad)
	if _, err := e.Open(state, engine.Options{}).Run(); err == nil || !strings.HasPrefix(err.Error(), "plugin Bad: AddEventHandler panicked") || len(state.Node("a").Tasks) != 0 {
		t.Errorf("%v: %d tasks are there", err, len(state.Node("a").Tasks))
	}
	if err := state.Audit(); err != nil {
		t.Error(err)
	}
	panics = false
	if _, err := e.Open(state, engine.Options{}).Run(); err != nil || l.held["a"] != 0 {
		t.Errorf("%v: %d licenses are held", err, l.held["a"])
	}
}

// TestPanicOfPluginsWithTheSameCode: the functions of two plugins may have one address. The
// plugin that panicked is among those that the error names.
func TestPanicOfPluginsWithTheSameCode(t *testing.T) {
	twin := func(name string) *policy {
		return &policy{name: name, open: func(s *engine.Session) {
			s.Hooks.AddReserve(nil, engine.Reserver{Reserve: func(*cluster.Task, *cluster.Node) *engine.Rejection { return nil }, Unreserve: func(*cluster.Task, *cluster.Node) { panic("boom") }})
		}}
	}
	state := enginetest.State(enginetest.Node("a").GPUs(1, "A100", "80Gi"), enginetest.Job("g").Devices(1).Gang(2))
	_, err := enginetest.Engine(enginetest.Fit(), twin("One"), twin("Two")).Open(state, engine.Options{}).Run()
	if err == nil || !strings.Contains(err.Error(), "Two: AddReserve panicked") || len(state.Node("a").Tasks) != 0 {
		t.Errorf("%v", err)
	}
}

// TestPanicInUnreserve: a nomination is not reported as withdrawn if withdrawing it failed.
func TestPanicInUnreserve(t *testing.T) {
	calls := 100
	p := &policy{name: "Bad", open: func(s *engine.Session) {
		s.Hooks.AddReserve(nil, engine.Reserver{Reserve: func(*cluster.Task, *cluster.Node) *engine.Rejection { return nil }, Unreserve: func(*cluster.Task, *cluster.Node) {
			if calls++; calls == 2 {
				panic("boom")
			}
		}})
	}}
	state := enginetest.State(enginetest.Node("a").GPUs(2, "A100", "80Gi"), enginetest.Job("low").Devices(1).Gang(2).Preemptible().On("a", "a"), enginetest.Job("high").Devices(1).Gang(2).Priority(9))
	e := enginetest.Engine(enginetest.Fit(), enginetest.AllowAllVictims(), preempting(), p)
	if out, err := e.Open(state, engine.Options{Now: 1, Hold: 10}).Run(); err != nil || len(out.Decisions) != 4 {
		t.Fatalf("%v %+v", err, out.Decisions)
	}
	calls = 0
	out, err := e.Open(state, engine.Options{Now: 100, Hold: 10}).Run()
	if err == nil || !strings.HasPrefix(err.Error(), "plugin Bad: AddReserve panicked") || len(out.Events) > 0 || state.Job("job/high").Tasks()[0].Status != cluster.Nominated {
		t.Errorf("%v %+v", err, out.Events)
	}
}

// TestClose: OnSessionClose of all plugins is called, the error names the plugin that
// panicked, and statements cannot be changed afterwards.
func TestClose(t *testing.T) {
	closed := false
	var kept *engine.Statement
	bad := &policy{name: "Bad", open: func(s *engine.Session) { s.Hooks.AddSweep(func(st *engine.Statement) { kept = st }) }, close: func(*engine.Session) { panic("boom") }}
	next := &policy{name: "Next", open: func(*engine.Session) {}, close: func(*engine.Session) { closed = true }}
	state := enginetest.State(enginetest.Node("a").GPUs(8, "A100", "80Gi"), enginetest.Job("x").Devices(1).Preemptible().On("a"))
	s := enginetest.Engine(enginetest.Fit(), bad, next).Open(state, engine.Options{})
	if _, err := s.Run(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err == nil || !strings.HasPrefix(err.Error(), "plugin Bad: ") || !closed {
		t.Errorf("%v, the next plugin was called: %t", err, closed)
	}
	task := state.Job("job/x").Tasks()[0]
	if err := kept.Evict(task, "", "Mine"); err == nil || task.Status != cluster.Bound {
		t.Errorf("%v: the task is %s", err, task.Status)
	}
	if err := s.Begin().Allocate(task, state.Node("a"), nil); err == nil {
		t.Error("a task was allocated")
	}
}

// TestCloseBeforeAnother: a closed session, and its statements, decide nothing while another session of
// the engine is open.
func TestCloseBeforeAnother(t *testing.T) {
	state := enginetest.State(enginetest.Node("a").GPUs(8, "A100", "80Gi"), enginetest.Job("x").Devices(1).Preemptible().On("a"))
	e := enginetest.Engine(enginetest.Fit())
	first := e.Open(state, engine.Options{})
	kept := first.Begin()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := e.Open(state, engine.Options{})
	task := state.Job("job/x").Tasks()[0]
	for name, st := range map[string]*engine.Statement{"a statement of a closed session": kept, "a new statement of a closed session": first.Begin()} {
		if err := st.Evict(task, "", "Mine"); err == nil || task.Status != cluster.Bound {
			t.Errorf("%s: %v: the task is %s", name, err, task.Status)
		}
	}
	if _, err := first.Run(); err == nil {
		t.Error("a closed session runs")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := second.Begin().Evict(task, "", "Mine"); err != nil || task.Status != cluster.Releasing {
		t.Errorf("the open session: %v: the task is %s", err, task.Status)
	}
}
