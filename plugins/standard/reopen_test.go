package standard_test

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/standard"
)

// counter counts how many sessions registered hooks.
type counter struct {
	engine.FixedHooks
	opened int
}

func (*counter) Name() string                    { return "Counter" }
func (c *counter) OnSessionOpen(*engine.Session) { c.opened++ }

// TestHooksAreKept checks that no plugin of the project registers its hooks in every session, and
// that those with hooks that not every cluster needs register them when they are needed.
func TestHooksAreKept(t *testing.T) {
	r, c := standard.Registry(), &counter{}
	if err := r.RegisterPluginBuilder("Counter", func(engine.Arguments) (engine.Plugin, error) { return c, nil }); err != nil {
		t.Fatal(err)
	}
	var profile engine.Profile
	for _, name := range r.Names() {
		profile = append(profile, engine.PluginConfig{Name: name})
	}
	e, err := engine.New(r, profile)
	if err != nil {
		t.Fatal(err)
	}
	queue := func(q cluster.Queue) cluster.QueuePut { q.Name = "ml"; return cluster.QueuePut{Queue: q} }
	clique := enginetest.Node("c").Label(cluster.LabelClique, "1").Build()
	linked := a100("l", 4).Links("x", "x", "y", "y").Build()
	state := enginetest.State(a100("a", 4))
	for _, tt := range []struct {
		name   string
		change cluster.Change
		opens  bool
		twin   bool
	}{
		{name: "the first session", opens: true},
		{name: "nothing changed"},
		{name: "a job", change: cluster.JobPut{Job: *enginetest.Job("j").CPU(1, "1Gi").Build()}},
		{name: "the first budget", change: cluster.BudgetPut{Budget: cluster.Budget{Name: "b", Bound: 1}}, opens: true},
		{name: "a queue", change: queue(cluster.Queue{})},
		{name: "the first minimum run time before reclaim", change: queue(cluster.Queue{MinRunBeforeReclaim: 1}), opens: true},
		{name: "the first minimum run time before preempt", change: queue(cluster.Queue{MinRunBeforeReclaim: 1, MinRunBeforePreempt: 1}), opens: true},
		{name: "another minimum run time", change: queue(cluster.Queue{MinRunBeforeReclaim: 2, MinRunBeforePreempt: 1})},
		{name: "no minimum run time", change: queue(cluster.Queue{}), opens: true},
		{name: "the first node of an NVLink domain", change: cluster.NodePut{Node: *clique}, opens: true},
		{name: "the first node with NVLink islands", change: cluster.NodePut{Node: *linked}, opens: true},
		{name: "nothing changed in a twin session", twin: true, opens: true}, // it compares the hooks
	} {
		if tt.change != nil {
			if err := state.Apply(tt.change); err != nil {
				t.Fatal(tt.name, err)
			}
		}
		before, o := c.opened, engine.Options{}
		if tt.twin {
			o.Search = engine.Twin
		}
		session(t, e, state, o)
		if opened := c.opened > before; opened != tt.opens {
			t.Errorf("%s: hooks were registered: %v, want %v", tt.name, opened, tt.opens)
		}
	}
}
