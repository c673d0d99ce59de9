package engine_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// licensing is a plugin that limits how many tasks may be on a node, on each node or on one only.
// Evicted tasks do not count. It is a Reserver if reserve is set, and a filter otherwise: the
// decisions must be the same.
func licensing(each int, reserve bool, only string) *policy {
	no := func(t *cluster.Task, n *cluster.Node) *engine.Rejection {
		have := 0
		for _, o := range n.Tasks {
			if o != t && o.Status != cluster.Releasing {
				have++
			}
		}
		if have >= each && (only == "" || n.Name == only) {
			return &engine.Rejection{Reason: "NoLicense", Cure: engine.Wait | engine.Evict}
		}
		return nil
	}
	return &policy{name: "Licensing", open: func(s *engine.Session) {
		if reserve {
			s.Hooks.AddReserve(nil, engine.Reserver{Reserve: no, Unreserve: func(*cluster.Task, *cluster.Node) {}})
		} else {
			s.Hooks.AddTaskFilter(nil, func(t *cluster.Task, _ *cluster.Job, n *cluster.Node) *engine.Rejection { return no(t, n) })
		}
	}}
}

func preempting() *policy {
	return &policy{name: "Preempting", open: func(s *engine.Session) { s.Hooks.AddEvictionPurpose(engine.Preempt, "Preempted") }}
}

// TestReserveDecidesAsAFilter checks that a Reserver leads to the same decisions as a filter that
// rejects the same nodes, although a Reserver is called later.
func TestReserveDecidesAsAFilter(t *testing.T) {
	gpus := func(name string, n int) *enginetest.NodeBuilder { return enginetest.Node(name).GPUs(n, "A100", "80Gi") }
	low := func(name, node string) *enginetest.JobBuilder {
		return enginetest.Job(name).Devices(1).Preemptible().On(node)
	}
	gang := enginetest.Job("gang").Devices(1).Gang(2).Build()
	gang.Alternatives[0].Tasks[1].Role = "leader"
	pinned := &policy{name: "Pinned", open: func(s *engine.Session) { // a leader can be placed on node a only
		s.Hooks.AddTaskFilter(nil, func(t *cluster.Task, _ *cluster.Job, n *cluster.Node) *engine.Rejection {
			if t.Role == "leader" && n.Name != "a" {
				return &engine.Rejection{Reason: "Pinned", Cure: engine.Wait}
			}
			return nil
		})
	}}
	var full []enginetest.Part
	for i := range 66 { // so many nodes that not all plans are compared
		node := fmt.Sprintf("n%02d", i)
		full = append(full, gpus(node, 1), low(fmt.Sprintf("low%02d", i), node))
	}
	high := enginetest.Job("high").Devices(1).Priority(9)
	tests := map[string]struct {
		plugin func(reserve bool) *policy
		with   []engine.Plugin
		parts  []enginetest.Part
		more   []*cluster.Job
		want   string
	}{
		"another arrangement": {
			func(reserve bool) *policy { return licensing(1, reserve, "") }, []engine.Plugin{pinned},
			[]enginetest.Part{gpus("a", 8), gpus("b", 8)}, []*cluster.Job{gang},
			"Bind job/gang worker-0 b, Bind job/gang worker-1 a, ",
		},
		"a victim has the license": {
			func(reserve bool) *policy { return licensing(1, reserve, "") }, []engine.Plugin{enginetest.AllowAllVictims(), preempting()},
			[]enginetest.Part{gpus("a", 2), low("low", "a"), high}, nil,
			"Evict job/low worker-0 a, Nominate job/high worker-0 a, ",
		},
		"the cheapest node has no license": {
			func(reserve bool) *policy { return licensing(0, reserve, "n00") }, []engine.Plugin{enginetest.AllowAllVictims(), preempting()},
			append(full, high), nil,
			"Evict job/low01 worker-0 n01, Nominate job/high worker-0 n01, ",
		},
	}
	for name, tt := range tests {
		for _, reserve := range []bool{false, true} {
			plugins := append([]engine.Plugin{enginetest.Fit(), tt.plugin(reserve)}, tt.with...)
			state := enginetest.State(tt.parts...)
			for _, j := range tt.more {
				if err := state.Apply(cluster.JobPut{Job: *j}); err != nil {
					t.Fatal(err)
				}
			}
			out, err := enginetest.Engine(plugins...).Open(state, engine.Options{Now: 1, Search: engine.Twin}).Run()
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, d := range out.Decisions {
				got += fmt.Sprint(d.Action, " ", d.Task.Job, " ", d.Task.Name, " ", d.Node, ", ")
			}
			if got != tt.want {
				t.Errorf("%s, by a Reserver: %t: %s, want %s", name, reserve, got, tt.want)
			}
		}
	}
}

// TestReserveIsCalledAgain checks that a rejection of a Reserver in one statement has no effect on
// another statement.
func TestReserveIsCalledAgain(t *testing.T) {
	free, placed := false, false
	p := &policy{name: "Late", open: func(s *engine.Session) {
		s.Hooks.AddReserve(nil, engine.Reserver{Reserve: func(*cluster.Task, *cluster.Node) *engine.Rejection {
			if free {
				return nil
			}
			return &engine.Rejection{Reason: "No", Cure: engine.Wait}
		}, Unreserve: func(*cluster.Task, *cluster.Node) {}})
		s.Hooks.AddSweep(func(st *engine.Statement) {
			free = true
			placed = s.Place(st, s.View.Job("job/x")) == nil
		})
	}}
	state := enginetest.State(enginetest.Node("a").GPUs(1, "A100", "80Gi"), enginetest.Job("x").Devices(1))
	if _, err := enginetest.Engine(enginetest.Fit(), p).Open(state, engine.Options{}).Run(); err != nil || !placed {
		t.Errorf("placed: %t, %v", placed, err)
	}
}

// TestReserveWithVictims checks that at the end of a session a Reserver counts exactly the tasks on
// the nodes, after evictions, moves, withdrawals and rollbacks.
func TestReserveWithVictims(t *testing.T) {
	evicted := 0
	rapid.Check(t, func(t *rapid.T) {
		var parts []enginetest.Part
		nn := rapid.IntRange(1, 4).Draw(t, "nodes")
		for i := range nn {
			parts = append(parts, enginetest.Node(fmt.Sprint("n", i)).GPUs(rapid.IntRange(1, 4).Draw(t, "gpus"), "A100", "80Gi"))
		}
		for i := range rapid.IntRange(1, 6).Draw(t, "jobs") {
			n := rapid.IntRange(1, 4).Draw(t, "tasks")
			j := enginetest.Job(fmt.Sprint("j", i)).Devices(rapid.IntRange(1, 2).Draw(t, "devices")).Gang(n).Min(rapid.IntRange(1, n).Draw(t, "min")).
				Priority(int32(rapid.IntRange(1, 3).Draw(t, "priority"))).Preemptible()
			parts = append(parts, j)
		}
		l := &licenses{each: rapid.IntRange(1, 5).Draw(t, "each")}
		m := &policy{name: "Evicts", open: func(s *engine.Session) {
			s.Hooks.AddEvictionPurpose(engine.Preempt, "Preempted")
			s.Hooks.AddEvictionPurpose(engine.Move, "Moved")
		}}
		by := &policy{name: "By", open: func(s *engine.Session) {
			rule := func(j *cluster.Job, _ []*cluster.Task) func(*engine.Victim) engine.Verdict {
				return func(v *engine.Victim) engine.Verdict {
					if v.Job.Priority < j.Priority || v.Purpose == engine.Move {
						return engine.Allow
					}
					return engine.Protect("No")
				}
			}
			s.Hooks.AddPreemptable(rule)
			s.Hooks.AddMovable(rule)
		}}
		e := enginetest.Engine(enginetest.Fit(), by, m, l)
		state := enginetest.State(parts...)
		for now := range int64(6) {
			if now > 0 && rapid.Bool().Draw(t, "come") {
				state.Apply(cluster.JobPut{Job: *enginetest.Job(fmt.Sprint("k", now)).Devices(rapid.IntRange(1, 2).Draw(t, "d")).Gang(rapid.IntRange(1, 2).Draw(t, "g")).Priority(int32(rapid.IntRange(1, 9).Draw(t, "priority"))).Preemptible().Build()})
			}
			s := e.Open(state, engine.Options{Now: now, Hold: 2, Search: engine.Twin, Patient: rapid.Bool().Draw(t, "patient")})
			out, err := s.Run()
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range out.Decisions {
				if d.Action == engine.EvictTask {
					evicted++
				}
			}
			for _, n := range state.Nodes() {
				if l.held[n.Name] != holders(n) {
					t.Fatalf("node %s has %d tasks and holds %d of %d licenses", n.Name, holders(n), l.held[n.Name], l.each)
				}
			}
			for _, r := range state.View().Releasing() {
				if rapid.Bool().Draw(t, "leaves") {
					state.Apply(cluster.TaskSeen{Task: r.Ref()})
				}
			}
		}
	})
	if evicted < 20 {
		t.Errorf("only %d tasks were evicted", evicted)
	}
}
