package minruntime

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

const minute = int64(time.Minute)

// protected is the reason why a victim is protected, for each purpose.
type protected struct{ Reclaim, Preempt, Move engine.Reason }

func TestYoungVictimsAreProtected(t *testing.T) {
	all := protected{TooYoung, TooYoung, TooYoung}
	// In "top", a task must run for ten minutes before it is preempted or moved, and for an hour
	// before it is reclaimed. In "strict" below it, the former is twenty minutes.
	queues := []enginetest.Part{
		enginetest.Queue("top").MinRun(10*time.Minute, time.Hour),
		enginetest.Queue("middle").Parent("top"),
		enginetest.Queue("leaf").Parent("middle"),
		enginetest.Queue("strict").Parent("top").MinRun(20*time.Minute, 0),
		enginetest.Queue("free"),
	}
	gang := func(queue string) *enginetest.JobBuilder {
		return enginetest.Job("v").Queue(queue).Gang(2).On("n", "n")
	}
	const now = 100 * minute
	tests := map[string]struct {
		job  *enginetest.JobBuilder
		want protected
	}{
		"just started":               {gang("leaf").Started(now), all},
		"a moment too young":         {gang("leaf").Started(now - 10*minute + 1), all},
		"old enough to be preempted": {gang("leaf").Started(now - 10*minute), protected{Reclaim: TooYoung}},
		"old enough for anything":    {gang("leaf").Started(now - 60*minute), protected{}},
		"the nearest queue counts":   {gang("strict").Started(now - 15*minute), all},
		"each minimum is that of the nearest queue that sets it": {gang("strict").Started(now - 20*minute), protected{Reclaim: TooYoung}},
		"no queue sets a time":                    {gang("free").Started(now), protected{}},
		"its start is not known":                  {gang("leaf"), protected{}},
		"it starts in the future":                 {gang("leaf").Started(now + minute), all},
		"a whole job by its first task":           {gang("leaf").Started(now-30*minute, now), protected{Reclaim: TooYoung}},
		"a whole job, one start not known":        {gang("leaf").Started(now, 0), protected{}},
		"a surplus task by its own start":         {gang("leaf").Min(1).Started(now, now-60*minute), all},
		"a surplus task that has run long enough": {gang("leaf").Min(1).Started(now-60*minute, now), protected{}},
		"a surplus task, start not known":         {gang("leaf").Min(1).Started(0, now), protected{}},
		"a gang with a task that is not placed":   {enginetest.Job("v").Queue("leaf").Gang(2).On("n").Started(now), all},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			state := enginetest.State(append(queues, enginetest.Node("n"), enginetest.Job("new"), tt.job)...)
			v := engine.VictimOf(state.Job("job/v").Tasks()[0])
			if d := cmp.Diff(tt.want, ask(t, state, v, now)); d != "" {
				t.Errorf("protected (-want +got):\n%s", d)
			}
		})
	}
}

// A job keeps its age if its first task was evicted before the others.
func TestWholeJobAfterItsFirstTaskIsEvicted(t *testing.T) {
	state := enginetest.State(enginetest.Node("n"), enginetest.Queue("q").MinRun(10*time.Minute, 0), enginetest.Job("new"),
		enginetest.Job("v").Queue("q").Gang(3).Min(2).On("n", "n", "n").Started(minute, 99*minute, 99*minute))
	tasks := state.Job("job/v").Tasks()
	evict := cluster.Evict{Task: tasks[0].Ref(), Attempt: tasks[0].Attempt + 1}
	if err := state.Apply(cluster.Decided{Changes: []cluster.Change{evict}}); err != nil {
		t.Fatal(err)
	}
	v := engine.VictimOf(tasks[1])
	if !v.Whole {
		t.Fatal("the remaining tasks are not a victim as a whole")
	}
	if d := cmp.Diff(protected{}, ask(t, state, v, 100*minute)); d != "" {
		t.Errorf("protected (-want +got):\n%s", d)
	}
}

func ask(t *testing.T, state *cluster.State, v *engine.Victim, now int64) protected {
	t.Helper()
	p, err := New(engine.NoArguments{})
	if err != nil {
		t.Fatal(err)
	}
	s := enginetest.Engine(p, enginetest.AllowAllVictims()).Open(state, engine.Options{Now: now})
	defer s.Close()
	why := func(p engine.Purpose) engine.Reason {
		got := s.ProtectedBy(p, state.Job("job/new"), nil, v)
		if got == nil {
			return ""
		}
		if got.Plugin != Name {
			t.Errorf("protected by %q", got.Plugin)
		}
		return got.Reason
	}
	return protected{why(engine.Reclaim), why(engine.Preempt), why(engine.Move)}
}

func TestArguments(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"beforePreempt": "10m"}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}
