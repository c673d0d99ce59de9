package live_test

import (
	"slices"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/live"
)

// recorder is a plugin with an observer that records its calls, and panics for a binding.
type recorder struct{ calls *[]string }

func (e recorder) Name() string { return "Recorder" }

func (e recorder) OnSessionOpen(s *engine.Session) {
	note := func(kind string) func(cluster.TaskRef, string) {
		return func(t cluster.TaskRef, node string) {
			if *e.calls = append(*e.calls, kind+" "+t.Job+" "+node); kind == "bound" {
				panic("boom")
			}
		}
	}
	s.Hooks.AddObserver(engine.Observer{
		Committed: func(d *engine.Decision) { note("committed")(d.Task, d.Node) },
		Bound:     note("bound"), BindFailed: note("failed"), Evicted: note("evicted"),
	})
}

// TestObservers checks that a leader calls observers once for each decision, after it is
// logged, and that the next Run names a plugin of which an observer panicked.
func TestObservers(t *testing.T) {
	var calls []string
	e := enginetest.Engine(enginetest.Fit(), recorder{&calls})
	l := live.NewLeader(live.Options{State: enginetest.State(enginetest.Node("a").GPUs(1, "A100", "80Gi"), enginetest.Job("x").Devices(1)), Engine: e})
	run := func(now int64) error {
		_, err := l.Run(engine.Options{Now: now})
		return err
	}
	if err := run(1); err != nil {
		t.Fatal(err)
	}
	task := l.State().Job("job/x").Tasks()[0].Ref()
	for _, c := range []cluster.Change{
		cluster.TaskSeen{Task: task, Node: "a"},
		cluster.TaskSeen{Task: task, Node: "a"}, // reported again: nothing changes
	} {
		if err := l.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"committed job/x a", "bound job/x a"}; !slices.Equal(calls, want) {
		t.Errorf("calls of the observer %q, want %q", calls, want)
	}
	if err := run(2); err == nil || err.Error() != "plugin Recorder: its observer panicked: boom" {
		t.Errorf("%v", err)
	}
	if err := run(3); err != nil {
		t.Errorf("the panic is reported more than once: %v", err)
	}
}
