package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/fixture"
)

// usesLess puts the queue first that uses fewer devices, then the one with more priority.
func usesLess(l, r *cluster.Queue) int {
	used := func(q *cluster.Queue) int64 { return q.Used.Of(cluster.DefaultDeviceResource) }
	if used(l) != used(r) {
		return int(used(l) - used(r))
	}
	return int(r.Priority - l.Priority)
}

// TestTurns: a tree of heaps gives jobs their turn in the same order as comparing
// all queues for every job, whatever was placed meanwhile.
func TestTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		build := func() (*cluster.State, *[]string, *policy) {
			var asked []string
			return fixture.State(fixture.Node("a").CPU(64, "512Gi").GPUs(8, "L4", "24Gi"), fixture.Node("b").CPU(64, "512Gi").GPUs(8, "L4", "24Gi")), &asked,
				&policy{name: "Asked", open: func(s *engine.Session) {
					s.AddPrePredicateFn(func(_ *cluster.Task, j *cluster.Job) *engine.Rejection {
						asked = append(asked, j.ID)
						return nil
					})
				}}
		}
		heaps, byHeaps, hears := build()
		linear, byScan, listens := build()
		var leaves []string
		for i := range rapid.IntRange(1, 12).Draw(t, "queues") {
			q := cluster.Queue{Name: fmt.Sprintf("q%02d", i), Priority: int32(rapid.IntRange(0, 2).Draw(t, "priority"))}
			if i > 0 && rapid.Bool().Draw(t, "below") {
				q.Parent = fmt.Sprintf("q%02d", rapid.IntRange(0, i-1).Draw(t, "parent"))
			}
			put := cluster.QueuePut{Queue: q}
			if heaps.Apply(put) != nil || linear.Apply(put) != nil {
				t.Fatal("a queue was not taken")
			}
		}
		for _, q := range heaps.Queues() {
			if q.Leaf() {
				leaves = append(leaves, q.Name)
			}
		}
		for i := range rapid.IntRange(1, 20).Draw(t, "jobs") {
			queue, devices := rapid.SampledFrom(leaves).Draw(t, "queue"), rapid.IntRange(1, 9).Draw(t, "devices")
			for _, s := range []*cluster.State{heaps, linear} {
				j := &cluster.Job{ID: fmt.Sprintf("job/j%02d", i), Queue: queue, Alternatives: []cluster.Alternative{{
					Min: 1, Tasks: []*cluster.Task{{Name: "0", Shape: &cluster.Shape{Need: cluster.Need{Devices: devices}}}},
				}}}
				if err := s.Apply(cluster.JobPut{Job: *j}); err != nil {
					t.Fatal(err)
				}
			}
		}
		siblings := &policy{name: "Siblings", open: func(s *engine.Session) { s.AddSiblingOrderFn(usesLess) }}
		leavesOnly := &policy{name: "Leaves", open: func(s *engine.Session) {
			s.AddQueueOrderFn(func(l, r *cluster.Queue) int {
				a, b := linear.Fork(l, r)
				if a == nil {
					return 0
				}
				if c := usesLess(a, b); c != 0 {
					return c
				}
				return strings.Compare(a.Name, b.Name)
			})
		}}
		for state, e := range map[*cluster.State]*engine.Engine{heaps: fixture.Engine(siblings, hears, fit()), linear: fixture.Engine(leavesOnly, listens, fit())} {
			if _, err := e.Open(state, engine.Options{Search: engine.Twin}).Run(); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(*byScan, *byHeaps); diff != "" {
			t.Fatal(diff)
		}
	})
}
