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

// spared is who may not go, for each purpose.
type spared struct{ Reclaim, Preempt, Move engine.Reason }

func TestYoungVictimsStay(t *testing.T) {
	all := spared{TooYoung, TooYoung, TooYoung}
	// Before ten minutes nobody preempts or moves what is in "top", and before an
	// hour nobody reclaims; "strict" below it doubles the former.
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
		want spared
	}{
		"just started":                       {gang("leaf").Started(now), all},
		"a moment too young":                 {gang("leaf").Started(now - 10*minute + 1), all},
		"old enough to be preempted":         {gang("leaf").Started(now - 10*minute), spared{Reclaim: TooYoung}},
		"old enough for anything":            {gang("leaf").Started(now - 60*minute), spared{}},
		"the nearest queue counts":           {gang("strict").Started(now - 15*minute), all},
		"each time for itself":               {gang("strict").Started(now - 20*minute), spared{Reclaim: TooYoung}},
		"no queue says anything":             {gang("free").Started(now), spared{}},
		"nobody saw it start":                {gang("leaf"), spared{}},
		"it starts in the future":            {gang("leaf").Started(now + minute), all},
		"a whole job by its first task":      {gang("leaf").Started(now-30*minute, now), spared{Reclaim: TooYoung}},
		"a whole job, one nobody saw start":  {gang("leaf").Started(now, 0), spared{}},
		"a task to spare by its own start":   {gang("leaf").Min(1).Started(now, now-60*minute), all},
		"a task to spare that has run":       {gang("leaf").Min(1).Started(now-60*minute, now), spared{}},
		"a task to spare nobody saw start":   {gang("leaf").Min(1).Started(0, now), spared{}},
		"a task that never ran says nothing": {enginetest.Job("v").Queue("leaf").Gang(2).On("n").Started(now), all},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			state := enginetest.State(append(queues, enginetest.Node("n"), enginetest.Job("new"), tt.job)...)
			v := engine.VictimOf(state.Job("job/v").Tasks()[0])
			if d := cmp.Diff(tt.want, ask(t, state, v, now)); d != "" {
				t.Errorf("spared (-want +got):\n%s", d)
			}
		})
	}
}

// A job that gave up its first task before the rest is as old as before.
func TestWholeJobAfterItsFirstTaskWent(t *testing.T) {
	state := enginetest.State(enginetest.Node("n"), enginetest.Queue("q").MinRun(10*time.Minute, 0), enginetest.Job("new"),
		enginetest.Job("v").Queue("q").Gang(3).Min(2).On("n", "n", "n").Started(minute, 99*minute, 99*minute))
	tasks := state.Job("job/v").Tasks()
	evict := cluster.Evict{Task: tasks[0].Ref(), Attempt: tasks[0].Attempt + 1}
	if err := state.Apply(cluster.Decided{Changes: []cluster.Change{evict}}); err != nil {
		t.Fatal(err)
	}
	v := engine.VictimOf(tasks[1])
	if !v.Whole {
		t.Fatal("the rest is no gang: it goes as a whole")
	}
	if d := cmp.Diff(spared{}, ask(t, state, v, 100*minute)); d != "" {
		t.Errorf("spared (-want +got):\n%s", d)
	}
}

func ask(t *testing.T, state *cluster.State, v *engine.Victim, now int64) spared {
	t.Helper()
	p, err := New(engine.NoArguments{})
	if err != nil {
		t.Fatal(err)
	}
	s := enginetest.Engine(p, enginetest.Consent()).Open(state, engine.Options{Now: now})
	defer s.Close()
	why := func(p engine.Purpose) engine.Reason {
		got := s.Spares(p, state.Job("job/new"), nil, v)
		if got == nil {
			return ""
		}
		if got.Plugin != Name {
			t.Errorf("spared by %q", got.Plugin)
		}
		return got.Reason
	}
	return spared{why(engine.Reclaim), why(engine.Preempt), why(engine.Move)}
}

func TestArguments(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"beforePreempt": "10m"}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}
