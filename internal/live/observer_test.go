package live_test

import (
	"slices"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/live"
)

// ear is a plugin with an observer.
type ear struct{ heard *[]string }

func (e ear) Name() string { return "Ear" }

func (e ear) OnSessionOpen(s *engine.Session) {
	note := func(kind string) func(cluster.TaskRef, string) {
		return func(t cluster.TaskRef, node string) {
			if *e.heard = append(*e.heard, kind+" "+t.Job+" "+node); kind == "bound" {
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
	var heard []string
	e := enginetest.Engine(enginetest.Fit(), ear{&heard})
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
		cluster.TaskSeen{Task: task, Node: "a"}, // again: nothing is new
	} {
		if err := l.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"committed job/x a", "bound job/x a"}; !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
	if err := run(2); err == nil || err.Error() != "plugin Ear: its observer panicked: boom" {
		t.Errorf("%v", err)
	}
	if err := run(3); err != nil {
		t.Errorf("it is reported more than once: %v", err)
	}
}
