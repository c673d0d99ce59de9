package disruptionbudget

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

func open(t *testing.T, state *cluster.State) *engine.Session {
	t.Helper()
	p, err := New(engine.NoArguments{})
	if err != nil {
		t.Fatal(err)
	}
	return enginetest.Engine(p, enginetest.AllowAllVictims()).Open(state, engine.Options{})
}

func web(name string) *enginetest.JobBuilder { return enginetest.Job(name).Label("app", "web") }

func TestBudgets(t *testing.T) {
	least, most := func(n int) *enginetest.BudgetBuilder {
		return enginetest.Budget("b").Label("app", "web").MinAvailable(n)
	},
		func(n int) *enginetest.BudgetBuilder {
			return enginetest.Budget("b").Label("app", "web").MaxUnavailable(n)
		}
	// Four tasks run: two of x, of which one can be evicted alone, and two of y, which is evicted as a whole.
	four := []enginetest.Part{web("x").Gang(2).Min(1).On("n", "n"), web("y").Gang(2).On("n", "n")}
	tests := map[string]struct {
		parts []enginetest.Part
		x, y  engine.Reason // why the first task of x, and that of y, is protected; "" if it may be evicted
	}{
		"no budget":                        {four, "", ""},
		"enough are left":                  {append(four, least(2)), "", ""},
		"one may be evicted, two may not":  {append(four, least(3)), "", InBudget},
		"all must run":                     {append(four, least(4)), InBudget, InBudget},
		"below it already":                 {append(four, least(9)), InBudget, InBudget},
		"two may be missing":               {append(four, most(2)), "", ""},
		"one may be missing":               {append(four, most(1)), "", InBudget},
		"one is missing already":           {append(four, most(2), web("z")), "", InBudget},
		"three quarters":                   {append(four, least(75).Percent()), "", InBudget},
		"rounded up, they must run":        {append(four, least(51).Percent()), "", InBudget},
		"rounded up, they may be missing":  {append(four, most(26).Percent()), "", ""},
		"other labels":                     {append(four, enginetest.Budget("b").Label("app", "api").MinAvailable(9)), "", ""},
		"in another namespace":             {append(four, least(9).Namespace("ml")), "", ""},
		"the strictest of several counts":  {append(four, least(1), enginetest.Budget("c").Label("app", "web").MinAvailable(4)), InBudget, InBudget},
		"tasks that never ran are missing": {[]enginetest.Part{web("x").Gang(4).Min(1).On("n", "n"), web("y").On("n"), most(2)}, InBudget, InBudget},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			state := enginetest.State(append(tt.parts, enginetest.Node("n"), enginetest.Job("new"))...)
			s := open(t, state)
			defer s.Close()
			for job, want := range map[string]engine.Reason{"job/x": tt.x, "job/y": tt.y} {
				v := engine.VictimOf(state.Job(job).Tasks()[0])
				for _, p := range []engine.Purpose{engine.Reclaim, engine.Preempt, engine.Move} {
					var protector *engine.Protector
					if want != "" {
						protector = &engine.Protector{Plugin: Name, Reason: want}
					}
					if d := cmp.Diff(protector, s.ProtectedBy(p, state.Job("job/new"), nil, v)); d != "" {
						t.Errorf("%s, purpose %d (-want +got):\n%s", job, p, d)
					}
				}
			}
		})
	}
}

// Victims are chosen one after another. Victims that are already evicted count as
// missing, and evictions that were undone do not.
func TestVictimsAddUp(t *testing.T) {
	state := enginetest.State(enginetest.Node("n"), enginetest.Job("new"), enginetest.Budget("b").Label("app", "web").MinAvailable(2),
		web("x").On("n"), web("y").On("n"), web("z").On("n"))
	s := open(t, state)
	defer s.Close()
	stmt, job := s.Begin(), state.Job("job/new")
	first, second := state.Job("job/x").Tasks()[0], state.Job("job/y").Tasks()[0]
	may := func(task *cluster.Task) bool {
		return s.ProtectedBy(engine.Preempt, job, nil, engine.VictimOf(task)) == nil
	}
	if !may(first) || !may(second) {
		t.Error("either job may be evicted")
	}
	if err := stmt.Evict(first, job.ID, "Test"); err != nil {
		t.Fatal(err)
	}
	if may(second) {
		t.Error("the second job may not be evicted as well")
	}
	stmt.Discard()
	if !may(second) {
		t.Error("the first eviction is undone, so the second job may be evicted")
	}
}

// A job is covered by other budgets when its labels change, also during a session.
func TestLabelsChange(t *testing.T) {
	state := enginetest.State(enginetest.Node("n"), enginetest.Job("new"),
		enginetest.Budget("web").Label("app", "web").MinAvailable(1), enginetest.Budget("api").Label("app", "api").MinAvailable(2),
		web("x").On("n"), web("y").On("n"))
	s := open(t, state)
	defer s.Close()
	isProtected := func(job string) bool {
		return s.ProtectedBy(engine.Preempt, state.Job("job/new"), nil, engine.VictimOf(state.Job(job).Tasks()[0])) != nil
	}
	if isProtected("job/x") || isProtected("job/y") {
		t.Error("either may be evicted: one is enough")
	}
	mark := state.Mark()
	defer state.Release(mark)
	if err := state.Apply(cluster.JobPut{Job: *enginetest.Job("x").Label("app", "api").Build()}); err != nil {
		t.Fatal(err)
	}
	if !isProtected("job/x") {
		t.Error("job/x may be evicted, and is the only one of a budget of two")
	}
	if !isProtected("job/y") {
		t.Error("job/y may be evicted, and is the only one of its budget")
	}
	state.Undo(mark)
	if isProtected("job/x") || isProtected("job/y") {
		t.Error("with the former spec, either may be evicted again")
	}
}

// No budget covers a job any more once the job is retired, also during a session.
func TestRetiredJobIsNotCounted(t *testing.T) {
	state := enginetest.State(enginetest.Node("n"), enginetest.Job("new"), enginetest.Budget("b").Label("app", "web").MinAvailable(1),
		web("x").On("n"), web("y").On("n"))
	s := open(t, state)
	defer s.Close()
	protected := func() bool {
		return s.ProtectedBy(engine.Preempt, state.Job("job/new"), nil, engine.VictimOf(state.Job("job/x").Tasks()[0])) != nil
	}
	if protected() {
		t.Error("job/x is protected although job/y is enough for the budget")
	}
	mark := state.Mark()
	defer state.Release(mark)
	if err := state.Apply(cluster.Retire{Job: "job/y"}); err != nil {
		t.Fatal(err)
	}
	if !protected() {
		t.Error("job/x is not protected although it is the only job that the budget still covers")
	}
	state.Undo(mark)
	if protected() {
		t.Error("job/x is protected although job/y is not retired any more")
	}
}

func TestArguments(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"minAvailable": 1}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}
