package minruntime

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/fixture"
)

const minute = int64(time.Minute)

// spared is who may not go, for each purpose.
type spared struct{ Reclaim, Preempt, Move engine.Reason }

func TestYoungVictimsStay(t *testing.T) {
	all := spared{TooYoung, TooYoung, TooYoung}
	// Before ten minutes nobody preempts or moves what is in "top", and before an
	// hour nobody reclaims; "strict" below it doubles the former.
	queues := []fixture.Part{
		fixture.Queue("top").MinRun(10*time.Minute, time.Hour),
		fixture.Queue("middle").Parent("top"),
		fixture.Queue("leaf").Parent("middle"),
		fixture.Queue("strict").Parent("top").MinRun(20*time.Minute, 0),
		fixture.Queue("free"),
	}
	gang := func(queue string) *fixture.JobBuilder { return fixture.Job("v").Queue(queue).Gang(2).On("n", "n") }
	const now = 100 * minute
	tests := map[string]struct {
		job  *fixture.JobBuilder
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
		"a task that never ran says nothing": {fixture.Job("v").Queue("leaf").Gang(2).On("n").Started(now), all},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			state := fixture.State(append(queues, fixture.Node("n"), fixture.Job("new"), tt.job)...)
			v := engine.VictimOf(state.Job("job/v").Tasks()[0])
			if d := cmp.Diff(tt.want, ask(t, state, v, now)); d != "" {
				t.Errorf("spared (-want +got):\n%s", d)
			}
		})
	}
}

// A job that gave up its first task before the rest is as old as before.
func TestWholeJobAfterItsFirstTaskWent(t *testing.T) {
	state := fixture.State(fixture.Node("n"), fixture.Queue("q").MinRun(10*time.Minute, 0), fixture.Job("new"),
		fixture.Job("v").Queue("q").Gang(3).Min(2).On("n", "n", "n").Started(minute, 99*minute, 99*minute))
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
	s := fixture.Engine(p, fixture.Consent()).Open(state, engine.Options{Now: now})
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
	if _, err := New(fixture.Arguments(`{"beforePreempt": "10m"}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}
