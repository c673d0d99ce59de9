package disruptionbudget

import (
	"fmt"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// room rejects nodes that have no room for a task.
type room struct{}

func (room) Name() string { return "room" }
func (room) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddShapeFilter(nil, func(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
		if n.Ledger(cluster.CPU).Free() < s.Resources.Of(cluster.CPU) {
			return &engine.Rejection{Reason: "Full", Cure: engine.Wait | engine.Evict}
		}
		return nil
	})
}

// budgetCounts maps the name of a budget to the numbers of its running and desired tasks.
type budgetCounts map[string][2]int

// countsFor returns the counts of the budgets that cover the job.
func (c *counts) countsFor(s *cluster.State, j *cluster.Job) budgetCounts {
	out := budgetCounts{}
	for _, b := range c.covering(s.View(), j) {
		out[b.Name] = [2]int{b.running, b.desired}
	}
	return out
}

// countAll computes the same counts from the State alone.
func countAll(s *cluster.State, of *cluster.Job) budgetCounts {
	out := budgetCounts{}
	for _, b := range s.View().Budgets() {
		if !b.Covers(of) {
			continue
		}
		running, desired := 0, 0
		for _, j := range s.Jobs() {
			if !b.Covers(j) {
				continue
			}
			desired += len(j.Tasks()) - j.Ended()
			for _, t := range j.Tasks() {
				if t.Runs() {
					running++
				}
			}
		}
		out[b.Name] = [2]int{running, desired}
	}
	return out
}

func drawBudget(t *rapid.T, name string) *enginetest.BudgetBuilder {
	b := enginetest.Budget(name).Label("app", rapid.SampledFrom([]string{"a", "b"}).Draw(t, "app"))
	n := rapid.IntRange(0, 6).Draw(t, "bound")
	if rapid.Bool().Draw(t, "percent") {
		n *= 15
		b.Percent()
	}
	if rapid.Bool().Draw(t, "unavailable") {
		return b.MaxUnavailable(n)
	}
	return b.MinAvailable(n)
}

func drawJob(t *rapid.T, name string) *cluster.Job {
	size := rapid.IntRange(1, 4).Draw(t, "tasks")
	build := func(n int) *cluster.Job {
		return enginetest.Job(name).Label("app", rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "app")).
			Namespace(rapid.SampledFrom([]string{"", "", "", "ml"}).Draw(t, "namespace")).
			CPU(rapid.Int64Range(1, 4).Draw(t, "cpu")*1000, "0").Gang(n).Min(rapid.IntRange(1, n).Draw(t, "min")).Build()
	}
	j := build(size)
	if other := build(rapid.IntRange(1, 3).Draw(t, "other")); rapid.Bool().Draw(t, "alternatives") {
		j.Alternatives = append(j.Alternatives, other.Alternatives...) // another alternative may have another number of tasks
	}
	return j
}

// retireOrEnd retires jobs and ends tasks that run, and undoes some of that.
func retireOrEnd(t *rapid.T, state *cluster.State, check func()) {
	for _, j := range state.Jobs() {
		mark := state.Mark()
		var changes []cluster.Change
		switch rapid.IntRange(0, 5).Draw(t, "fate") {
		case 0:
			changes = append(changes, cluster.Retire{Job: j.ID})
		case 1:
			for _, task := range j.Tasks() {
				if task.Runs() && rapid.Bool().Draw(t, "ends") {
					changes = append(changes, cluster.TaskGone{Task: task.Ref(), Ended: cluster.Succeeded})
				}
			}
		}
		if err := state.ApplyAll(changes); err != nil {
			t.Fatal(err)
		}
		check()
		if rapid.Bool().Draw(t, "undo") {
			state.Undo(mark)
			check()
		}
		state.Release(mark)
	}
}

// The counts agree with the State after any changes and undone changes of a statement,
// after any new specs of jobs, and after jobs are retired and tasks end.
func TestCountsAgreeWithState(t *testing.T) {
	nominated, running, retired, ended := 0, 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		state := enginetest.State(enginetest.Node("n").CPU(8, "1Gi"), enginetest.Node("m").CPU(5, "1Gi"), drawBudget(t, "b"), drawBudget(t, "c"))
		for i := range rapid.IntRange(2, 6).Draw(t, "jobs") {
			if err := state.Apply(cluster.JobPut{Job: *drawJob(t, fmt.Sprint("j", i))}); err != nil {
				t.Fatal(err)
			}
		}
		var kept counts
		jobs := state.Jobs()
		check := func() {
			asked := rapid.SampledFrom(jobs).Draw(t, "asked")
			if d := cmp.Diff(countAll(state, asked), kept.countsFor(state, asked)); d != "" {
				t.Fatalf("%s: running and desired (-State +counts):\n%s", asked.ID, d)
			}
			for _, c := range kept.countsFor(state, asked) {
				running += c[0]
			}
		}
		for range rapid.IntRange(1, 3).Draw(t, "sessions") {
			s := enginetest.Engine(room{}, enginetest.AllowAllVictims()).Open(state, engine.Options{})
			stmt := s.Begin()
			var marks []int
			for range rapid.IntRange(1, 20).Draw(t, "steps") {
				j := rapid.SampledFrom(jobs).Draw(t, "job")
				task := rapid.SampledFrom(j.Tasks()).Draw(t, "task")
				switch rapid.IntRange(0, 3).Draw(t, "step") {
				case 0:
					mark := stmt.Checkpoint()
					if r := s.Place(stmt, j); r != nil && !r.Surplus {
						stmt.Rollback(mark)
					}
				case 1:
					if task.Runs() {
						if err := stmt.Evict(task, "job/new", "Test"); err != nil {
							t.Fatal(err)
						}
					}
				case 2:
					marks = append(marks, stmt.Checkpoint())
				case 3:
					if n := len(marks); n > 0 {
						stmt.Rollback(marks[n-1])
						marks = marks[:n-1]
					}
				}
				check()
			}
			if rapid.Bool().Draw(t, "discard") {
				stmt.Discard()
			} else {
				stmt.Commit()
			}
			s.Close()
			nominated += len(state.View().Nominated())
			retireOrEnd(t, state, check)
			retired += len(state.View().Retired())
			for _, j := range jobs {
				ended += j.Ended()
			}
			for i := range jobs {
				if rapid.IntRange(0, 3).Draw(t, "respec") == 0 {
					if err := state.Apply(cluster.JobPut{Job: *drawJob(t, fmt.Sprint("j", i))}); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, j := range jobs { // some evicted tasks have released their room by the next session
				for _, task := range j.Tasks() {
					if task.Status == cluster.Releasing && rapid.Bool().Draw(t, "leaves") {
						if err := state.Apply(cluster.TaskSeen{Task: task.Ref()}); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
		}
	})
	if nominated == 0 || running == 0 || retired == 0 || ended == 0 {
		t.Errorf("nominated tasks: %d, running: %d, ended: %d, retired jobs: %d: nothing was tried", nominated, running, ended, retired)
	}
}
