package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// usesLess orders queues by how many devices they use, the fewest first, then by priority, the
// highest first.
func usesLess(l, r *cluster.Queue) int {
	used := func(q *cluster.Queue) int64 { return q.Used.Of(cluster.DefaultDeviceResource) }
	if used(l) != used(r) {
		return int(used(l) - used(r))
	}
	return int(r.Priority - l.Priority)
}

// TestTurns checks that a tree of heaps gives turns in the same order as comparing all queues for
// every job, whatever is placed between two turns.
func TestTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		build := func() (*cluster.State, *[]string, *policy) {
			var asked []string
			return enginetest.State(enginetest.Node("a").CPU(64, "512Gi").GPUs(8, "L4", "24Gi"), enginetest.Node("b").CPU(64, "512Gi").GPUs(8, "L4", "24Gi")), &asked,
				&policy{name: "Asked", open: func(s *engine.Session) {
					s.Hooks.AddPreFilter(func(_ *cluster.Task, j *cluster.Job) *engine.Rejection {
						asked = append(asked, j.ID)
						return nil
					})
				}}
		}
		heaps, byHeaps, recordHeaps := build()
		linear, byScan, recordLinear := build()
		var leaves []string
		for i := range rapid.IntRange(1, 12).Draw(t, "queues") {
			q := cluster.Queue{Name: fmt.Sprintf("q%02d", i), Priority: int32(rapid.IntRange(0, 2).Draw(t, "priority"))}
			if i > 0 && rapid.Bool().Draw(t, "below") {
				q.Parent = fmt.Sprintf("q%02d", rapid.IntRange(0, i-1).Draw(t, "parent"))
			}
			put := cluster.QueuePut{Queue: q}
			if heaps.Apply(put) != nil || linear.Apply(put) != nil {
				t.Fatal("a queue was not accepted")
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
		siblings := &policy{name: "Siblings", open: func(s *engine.Session) {
			s.Hooks.AddSiblingOrder(func(l, r engine.Bid) int { return usesLess(l.Queue, r.Queue) })
		}}
		leavesOnly := &policy{name: "Leaves", open: func(s *engine.Session) {
			s.Hooks.AddQueueOrder(func(l, r *cluster.Queue) int {
				a, b := linear.View().Fork(l, r)
				if a == nil {
					return 0
				}
				if c := usesLess(a, b); c != 0 {
					return c
				}
				return strings.Compare(a.Name, b.Name)
			})
		}}
		for state, e := range map[*cluster.State]*engine.Engine{heaps: enginetest.Engine(siblings, recordHeaps, fit()), linear: enginetest.Engine(leavesOnly, recordLinear, fit())} {
			if _, err := e.Open(state, engine.Options{Search: engine.Twin}).Run(); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(*byScan, *byHeaps); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestTurnsWithJobs checks the same if the order of queues also depends on their jobs. It also checks
// that a patient session that has tried the jobs before places the same tasks in the same order as
// one that has not, for minima and surplus.
func TestTurnsWithJobs(t *testing.T) {
	devices := func(j *cluster.Job) int { return j.Tasks()[0].Shape.Need.Devices }
	siblings := &policy{name: "Siblings", open: func(s *engine.Session) {
		used := func(b engine.Bid) int {
			return int(b.Queue.Used.Of(cluster.DefaultDeviceResource)/1000) + devices(b.Job)
		}
		s.Hooks.AddSiblingOrder(func(l, r engine.Bid) int { return used(l)/3 - used(r)/3 })
		s.Hooks.AddFrozenOrder(func(l engine.Bid) func(engine.Bid) int {
			frozen := used(l) / 3
			return func(r engine.Bid) int { return frozen - used(r)/3 }
		})
	}}
	rapid.Check(t, func(t *rapid.T) {
		state := enginetest.State(enginetest.Node("a").CPU(64, "512Gi").GPUs(8, "L4", "24Gi"), enginetest.Node("b").CPU(64, "512Gi").GPUs(2, "L4", "24Gi"))
		put := func(c cluster.Change) {
			if err := state.Apply(c); err != nil {
				t.Fatal(err)
			}
		}
		var leaves []string
		flat := rapid.Bool().Draw(t, "flat")
		for i := range rapid.IntRange(1, 8).Draw(t, "queues") {
			q := cluster.Queue{Name: fmt.Sprintf("q%02d", i)}
			if !flat && i > 0 && rapid.Bool().Draw(t, "below") {
				q.Parent = fmt.Sprintf("q%02d", rapid.IntRange(0, i-1).Draw(t, "parent"))
			}
			put(cluster.QueuePut{Queue: q})
		}
		for _, q := range state.Queues() {
			if q.Leaf() {
				leaves = append(leaves, q.Name)
			}
		}
		arrived := 0
		arrive := func() {
			for range rapid.IntRange(0, 10).Draw(t, "jobs") {
				j := cluster.Job{ID: fmt.Sprintf("job/j%02d", arrived), Queue: rapid.SampledFrom(leaves).Draw(t, "queue"), Created: int64(rapid.IntRange(0, 9).Draw(t, "created"))}
				form, shape := cluster.Alternative{Min: 1}, cluster.Shape{Need: cluster.Need{Devices: rapid.IntRange(1, 9).Draw(t, "devices")}}
				for i := range rapid.IntRange(1, 3).Draw(t, "tasks") {
					form.Tasks = append(form.Tasks, &cluster.Task{Name: fmt.Sprint(i), Shape: &shape})
				}
				j.Alternatives = []cluster.Alternative{form}
				arrived++
				put(cluster.JobPut{Job: j})
			}
		}
		session := func(e *engine.Engine, s *cluster.State, options engine.Options) (out []string) {
			outcome, err := e.Open(s, options).Run()
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range outcome.Decisions {
				out = append(out, d.Task.ID()+" on "+d.Node)
			}
			return out
		}
		oldest := &policy{name: "Oldest", open: func(s *engine.Session) {
			s.Hooks.AddJobOrder(func(l, r *cluster.Job) int { return int(l.Created - r.Created) })
		}}
		remembers := enginetest.Engine(siblings, oldest, fit())
		search := rapid.SampledFrom([]engine.Search{engine.Indexed, engine.Twin}).Draw(t, "search") // with and without elections
		for range 6 {
			arrive()
			for _, j := range state.Jobs() {
				if j.Placed() > 0 && rapid.Bool().Draw(t, "ends") {
					put(cluster.JobGone{Job: j.ID})
				}
			}
			all := session(enginetest.Engine(siblings, oldest, fit()), state.Clone(), engine.Options{Search: engine.Twin})
			if diff := cmp.Diff(all, session(remembers, state, engine.Options{Search: search, Patient: true})); diff != "" {
				t.Fatalf("a patient session makes other decisions (-all +patient):\n%s", diff)
			}
		}
	})
}
