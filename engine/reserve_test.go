package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// licenses is a plugin that gives each node a number of licenses. Every task needs one.
type licenses struct {
	each  int
	held  map[string]int // by node: how many licenses are in use
	moved int            // how often a license was reserved or released
}

func (l *licenses) Name() string { return "Licenses" }

func (l *licenses) OnSessionOpen(s *engine.Session) {
	l.held = map[string]int{}
	for _, n := range s.View.Nodes() {
		l.held[n.Name] = holders(n)
	}
	s.Hooks.AddReserve(nil, engine.Reserver{
		Reserve: func(_ *cluster.Task, n *cluster.Node) *engine.Rejection {
			l.held[n.Name]++
			l.moved++
			if l.held[n.Name] > l.each {
				return &engine.Rejection{Reason: "NoLicense", Cure: engine.Wait | engine.Evict, Want: engine.Quantity{Value: 1, Unit: engine.Count}}
			}
			return nil
		},
		Unreserve: func(_ *cluster.Task, n *cluster.Node) { l.held[n.Name]--; l.moved++ },
	})
}

// holders returns how many tasks on the node hold a license.
func holders(n *cluster.Node) int {
	count := 0
	for _, t := range n.Tasks {
		if t.KeepsRoom() {
			count++
		}
	}
	return count
}

// TestReserve checks that a node that a Reserver rejects is not used, and that a gang that is
// refused releases all its licenses.
func TestReserve(t *testing.T) {
	for _, search := range []engine.Search{engine.Indexed, engine.Scan, engine.Twin} {
		l := &licenses{each: 2}
		e := enginetest.Engine(enginetest.Fit(), l)
		state := enginetest.State(
			enginetest.Node("a").GPUs(8, "A100", "80Gi"), enginetest.Node("b").GPUs(8, "A100", "80Gi"),
			enginetest.Job("1-single").Devices(1), enginetest.Job("2-gang").Devices(1).Gang(2), enginetest.Job("3-gang").Devices(1).Gang(2))
		out, err := e.Open(state, engine.Options{Search: search, Now: 1}).Run()
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(len(state.Node("a").Tasks), len(state.Node("b").Tasks), l.held["a"], l.held["b"]); got != "2 1 2 1" {
			t.Errorf("tasks and licenses on a and b: %s", got)
		}
		if len(out.Refusals) != 1 || out.Refusals[0].Job != "job/3-gang" || out.Refusals[0].Reason != "NoLicense" || out.Refusals[0].Permanent {
			t.Errorf("%+v", out.Refusals)
		}
		if at := out.Refusals[0].Attempts[0]; at.Placed != 1 || at.Nearest[0].Rejection.Plugin != "Licenses" {
			t.Errorf("%+v", at)
		}
	}
}

// TestReserveIsUndone checks that after any attempts and rollbacks exactly the placed tasks hold
// licenses, and no node uses more licenses than it has.
func TestReserveIsUndone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var parts []enginetest.Part
		for i := range rapid.IntRange(1, 4).Draw(t, "nodes") {
			parts = append(parts, enginetest.Node(fmt.Sprint("n", i)).GPUs(rapid.IntRange(1, 4).Draw(t, "gpus"), "A100", "80Gi"))
		}
		for i := range rapid.IntRange(1, 6).Draw(t, "jobs") {
			n := rapid.IntRange(1, 4).Draw(t, "tasks")
			j := enginetest.Job(fmt.Sprint("j", i)).Devices(rapid.IntRange(1, 2).Draw(t, "devices")).Gang(n).Min(rapid.IntRange(1, n).Draw(t, "min")).
				Priority(int32(rapid.IntRange(1, 3).Draw(t, "priority"))).Preemptible()
			if rapid.Bool().Draw(t, "subgroups") {
				j = j.Subgroup("s", 1, 1, cluster.Topology{})
			}
			parts = append(parts, j)
		}
		l := &licenses{each: rapid.IntRange(1, 3).Draw(t, "each")}
		e := enginetest.Engine(enginetest.Fit(), enginetest.AllowAllVictims(), l)
		state := enginetest.State(parts...)
		for now := range int64(3) {
			s := e.Open(state, engine.Options{Now: now, Search: engine.Twin, Patient: rapid.Bool().Draw(t, "patient")})
			if _, err := s.Run(); err != nil {
				t.Fatal(err)
			}
			for _, n := range state.Nodes() {
				if l.held[n.Name] != holders(n) || holders(n) > l.each {
					t.Fatalf("node %s has %d tasks and holds %d of %d licenses", n.Name, len(n.Tasks), l.held[n.Name], l.each)
				}
			}
		}
	})
}

// TestReserveNeedsBoth checks that a Reserver without Reserve or Unreserve fails the session.
func TestReserveNeedsBoth(t *testing.T) {
	e := enginetest.Engine(enginetest.Fit(), &policy{name: "Half", open: func(s *engine.Session) {
		s.Hooks.AddReserve(nil, engine.Reserver{Unreserve: func(*cluster.Task, *cluster.Node) {}})
	}})
	if _, err := e.Open(enginetest.State(), engine.Options{}).Run(); err == nil || err.Error() != "plugin Half: AddReserve: it needs both Reserve and Unreserve" {
		t.Errorf("%v", err)
	}
}

func nameOf(t cluster.TaskRef) string { return t.Job + "/" + t.Name }

// observed returns an Observer that appends its calls to a list.
func observed(calls *[]string) func(*engine.Session) {
	note := func(kind string) func(cluster.TaskRef, string) {
		return func(t cluster.TaskRef, node string) { *calls = append(*calls, kind+" "+nameOf(t)+" "+node) }
	}
	return func(s *engine.Session) {
		s.Hooks.AddObserver(engine.Observer{
			Committed: func(d *engine.Decision) { *calls = append(*calls, "committed "+nameOf(d.Task)+" "+d.Node) },
			Bound:     note("bound"), BindFailed: note("failed"), Evicted: note("evicted"),
		})
	}
}

// TestObserver checks that facts lead to calls of observers for the tasks that they change, and only
// of observers of the engine on which ObserveFact is called.
func TestObserver(t *testing.T) {
	var calls []string
	e := enginetest.Engine(enginetest.Fit(), &policy{name: "Ear", open: observed(&calls)})
	state := enginetest.State(enginetest.Node("a").GPUs(2, "A100", "80Gi"), enginetest.Job("x").Devices(1), enginetest.Job("y").Devices(1).Preemptible())
	s := e.Open(state, engine.Options{Now: 1})
	out, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	if len(calls) > 0 {
		t.Errorf("a session called the observer: %q", calls)
	}
	apply := func(c cluster.Change) {
		t.Helper()
		notify := e.ObserveFact(state, c)
		if err := state.Apply(c); err != nil {
			t.Fatal(err)
		}
		if err := notify(); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Committed(&out); err != nil {
		t.Fatal(err)
	}
	x, y := state.Job("job/x").Tasks()[0], state.Job("job/y").Tasks()[0]
	apply(cluster.TaskSeen{Task: y.Ref(), Node: "a"})
	apply(cluster.BindSent{Task: x.Ref(), Attempt: x.Attempt})
	apply(cluster.BindFailed{Task: x.Ref(), Attempt: x.Attempt})
	apply(cluster.TaskSeen{Task: x.Ref()}) // the report says that the task is not bound
	tx := state.Begin()
	if err := tx.Evict(y, "", 2); err != nil {
		t.Fatal(err)
	}
	tx.End()
	apply(cluster.TaskGone{Task: y.Ref()})
	want := []string{"committed job/x/worker-0 a", "committed job/y/worker-0 a", "bound job/y/worker-0 a", "failed job/x/worker-0 a", "evicted job/y/worker-0 a"}
	if !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
}

// TestObserverThatPanics checks that the error names an observer that panics, and that the other
// observers are still called.
func TestObserverThatPanics(t *testing.T) {
	var calls []string
	e := enginetest.Engine(&policy{name: "Loud", open: func(s *engine.Session) {
		s.Hooks.AddObserver(engine.Observer{Committed: func(*engine.Decision) { panic("boom") }})
	}}, &policy{name: "Ear", open: observed(&calls)})
	e.Open(enginetest.State(), engine.Options{})
	err := e.Committed(&engine.Outcome{Decisions: make([]engine.Decision, 2)})
	if err == nil || !strings.Contains(err.Error(), "plugin Loud: its observer panicked: boom") || len(calls) != 2 {
		t.Errorf("%v %q", err, calls)
	}
}

// TestWakeHints checks that a job that a filter rejected is tried again after changes of the kinds
// that the plugin named by AddWake, and otherwise only after its back-off.
func TestWakeHints(t *testing.T) {
	tests := []struct {
		name  string
		hint  engine.Wake
		given bool
		tried string // whether the job is tried after a change of a node, a new job and a placement
	}{
		{"without a hint", 0, false, "[true false true]"},
		{"nodes", engine.WakeNodes, true, "[true false true]"},
		{"jobs", engine.WakeJobs, true, "[false true true]"},
		{"queues", engine.WakeQueues, true, "[false false true]"},
		{"nothing", 0, true, "[false false false]"},
		{"jobs and nodes", engine.WakeJobs | engine.WakeNodes, true, "[true true true]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := enginetest.Engine(enginetest.Fit(), &policy{name: "Gate", open: func(s *engine.Session) {
				if tt.given {
					s.Hooks.AddWake(tt.hint)
				}
				s.Hooks.AddTaskFilter(nil, func(_ *cluster.Task, j *cluster.Job, _ *cluster.Node) *engine.Rejection {
					if j.ID == "job/gated" {
						return &engine.Rejection{Reason: "Gated", Cure: engine.Wait}
					}
					return nil
				})
			}})
			state := enginetest.State(enginetest.Node("a").GPUs(2, "A100", "80Gi"), enginetest.Node("b").GPUs(2, "A100", "80Gi"), enginetest.Job("gated").Devices(1))
			now := int64(1)
			run := func() bool {
				now++ // far from the end of the back-off
				out, err := e.Open(state, engine.Options{Now: now, Patient: true}).Run()
				if err != nil {
					t.Fatal(err)
				}
				return slices.Contains(out.Tried, "job/gated")
			}
			run()
			for run() { // a session may wake the job by its own changes
				if now > 9 {
					t.Fatal("it is tried again and again although nothing changes")
				}
			}
			var tried []bool
			apply := func(c cluster.Change) {
				if err := state.Apply(c); err != nil {
					t.Fatal(err)
				}
				tried = append(tried, run())
				for run() && now < 90 {
				}
			}
			apply(cluster.NodeRead{Name: "b", Free: map[string]cluster.Bytes{state.Node("b").Devices[0].UUID: 1 << 30}})
			apply(cluster.JobPut{Job: *enginetest.Job("large").Devices(9).Build()})
			if err := state.Apply(cluster.JobPut{Job: *enginetest.Job("small").Devices(1).Build()}); err != nil {
				t.Fatal(err)
			}
			run() // this session places small
			tried = append(tried, run())
			if got := fmt.Sprint(tried); got != tt.tried {
				t.Errorf("tried after a node, a job, a placement: %s, want %s", got, tt.tried)
			}
		})
	}
}
