package stalegang

import (
	"testing"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/fixture"
)

func grace(text string) engine.Arguments {
	return fixture.Arguments(`{"grace": "` + text + `"}`)
}

func TestArguments(t *testing.T) {
	for text, ok := range map[string]bool{"0s": true, "5m": true, "-1s": false, "soon": false, "": false} {
		if _, err := New(grace(text)); (err == nil) != ok {
			t.Errorf("grace %q: %v", text, err)
		}
	}
}

// TestGrace: the gang misses a member that has no place. It is left alone for a
// minute from when that was first seen, and then dissolved.
func TestGrace(t *testing.T) {
	p, err := New(grace("60s"))
	if err != nil {
		t.Fatal(err)
	}
	state := fixture.State(fixture.Node("a").GPUs(2, "A100", "80Gi"), fixture.Job("gang").Gang(3).Devices(1).On("a", "a"))
	e := fixture.Engine(fixture.Fit(), p)
	at := func(now time.Duration) []engine.Decision {
		s := e.Open(state, engine.Options{Now: int64(now)})
		defer s.Close()
		out, err := s.Run()
		if err != nil {
			t.Fatal(err)
		}
		return out.Decisions
	}
	if got := len(at(100*time.Second)) + len(at(159*time.Second)); got != 0 {
		t.Fatalf("%d decisions before its time", got)
	}
	got := at(160 * time.Second)
	if len(got) != 2 {
		t.Fatalf("%d decisions", len(got))
	}
	for _, d := range got {
		if d.Action != engine.EvictIt || d.Reason != GangBelowMinimum || d.Task.Job != "job/gang" || d.For != "" {
			t.Errorf("%+v", d)
		}
	}
	for _, task := range state.Job("job/gang").Tasks() {
		if err := state.Apply(cluster.TaskSeen{Task: task.Ref()}); err != nil {
			t.Fatal(err)
		}
	}
	if at(170 * time.Second); state.Job("job/gang").Torn != 0 {
		t.Error("it is still taken to be torn")
	}
}
