package engine_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// allocator is a plugin that chooses the devices of tasks itself: the last free ones of a node.
type allocator struct {
	held map[string]map[string]string // by node and device: the task
	more int                          // how many devices it chooses beyond those that are requested
}

func (a *allocator) Name() string { return "Allocator" }

func (a *allocator) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddReserve(nil, engine.Reserver{
		Reserve: func(t *cluster.Task, n *cluster.Node) *engine.Rejection {
			if a.held[n.Name] == nil {
				a.held[n.Name] = map[string]string{}
			}
			left := t.Shape.Need.Devices + a.more
			for i := len(n.Devices) - 1; i >= 0 && left > 0; i-- {
				if uuid := n.Devices[i].UUID; a.held[n.Name][uuid] == "" {
					a.held[n.Name][uuid] = t.ID
					left--
				}
			}
			return nil
		},
		Unreserve: func(t *cluster.Task, n *cluster.Node) {
			for uuid, id := range a.held[n.Name] {
				if id == t.ID {
					delete(a.held[n.Name], uuid)
				}
			}
		},
		Devices: func(t *cluster.Task, n *cluster.Node) []cluster.Holding {
			var out []cluster.Holding
			for i := range n.Devices {
				if d := &n.Devices[i]; a.held[n.Name][d.UUID] == t.ID {
					out = append(out, cluster.Holding{Device: d.UUID, Milli: cluster.Whole, Memory: d.Memory})
				}
			}
			return out
		},
	})
}

// TestReserverChoosesDevices checks that tasks hold the devices that a Reserver chose, after any
// attempts, evictions and rollbacks.
func TestReserverChoosesDevices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var parts []enginetest.Part
		for i := range rapid.IntRange(1, 3).Draw(t, "nodes") {
			parts = append(parts, enginetest.Node(fmt.Sprint("n", i)).GPUs(rapid.IntRange(1, 4).Draw(t, "gpus"), "A100", "80Gi"))
		}
		for i := range rapid.IntRange(1, 6).Draw(t, "jobs") {
			n := rapid.IntRange(1, 3).Draw(t, "tasks")
			parts = append(parts, enginetest.Job(fmt.Sprint("j", i)).Devices(rapid.IntRange(1, 2).Draw(t, "devices")).Gang(n).Min(n).
				Priority(int32(rapid.IntRange(1, 3).Draw(t, "priority"))).Preemptible())
		}
		a := &allocator{held: map[string]map[string]string{}}
		e := enginetest.Engine(enginetest.Fit(), enginetest.AllowAllVictims(), a)
		state := enginetest.State(parts...)
		for now := range int64(3) {
			out, err := e.Open(state, engine.Options{Now: now}).Run()
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range out.Decisions {
				if task := state.Task(d.Task); d.Action != engine.EvictTask && fmt.Sprint(d.Claims) != fmt.Sprint(task.Claims) {
					t.Fatalf("task %s: the decision has %v, the State %v", task.ID, d.Claims, task.Claims)
				}
			}
			for _, n := range state.Nodes() {
				for _, task := range n.Tasks {
					for _, c := range task.Claims {
						if uuid := n.Devices[c.Device].UUID; task.KeepsRoom() && a.held[n.Name][uuid] != task.ID {
							t.Fatalf("task %s holds device %s, which the allocator gave to %q", task.ID, uuid, a.held[n.Name][uuid])
						}
					}
				}
			}
			if err := state.Audit(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestReserverChoosesOtherNumber checks that the choice of the engine counts if a Reserver chose
// another number of devices than the task requests.
func TestReserverChoosesOtherNumber(t *testing.T) {
	a := &allocator{held: map[string]map[string]string{}, more: 1}
	state := enginetest.State(enginetest.Node("a").GPUs(4, "A100", "80Gi"), enginetest.Job("j").Devices(1))
	if _, err := enginetest.Engine(enginetest.Fit(), a).Open(state, engine.Options{Now: 1}).Run(); err != nil {
		t.Fatal(err)
	}
	if claims := state.Job("job/j").Tasks()[0].Claims; len(claims) != 1 || claims[0].Device != 0 {
		t.Errorf("%+v", claims)
	}
}
