package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// TestTwinNamesTheHook: a twin session names a hook if its answer depends on something that
// it must not depend on.
func TestTwinNamesTheHook(t *testing.T) {
	calls := 0
	later := func() bool { return calls > 0 }
	tests := map[string]struct {
		open    func(*engine.Session)
		devices int // that the job of each of the two sessions requests
		want    string
	}{
		"shape filter": {func(s *engine.Session) {
			s.Hooks.AddShapeFilter(nil, func(_ *cluster.Shape, n *cluster.Node) *engine.Rejection {
				if later() && n.Name == "b" {
					return &engine.Rejection{Reason: "Whim", Cure: engine.Wait}
				}
				return nil
			})
		}, 8, "plugin Fickle: AddShapeFilter returned no rejection for node b and returns Whim now, although the node did not change; what it returns may depend only on the shape, the node and what the plugin publishes"},
		"static filter": {func(s *engine.Session) {
			s.Hooks.AddStaticFilter(nil, func(_ *cluster.Shape, n *cluster.Node) *engine.Rejection {
				if len(n.Tasks) > 0 {
					return &engine.Rejection{Reason: "Held", Cure: engine.Wait}
				}
				return nil
			})
		}, 1, "plugin Fickle: AddStaticFilter returned no rejection for node a and returns Held now"},
		"shape score": {func(s *engine.Session) {
			s.Hooks.AddShapeScore(nil, func(_ *cluster.Shape, n *cluster.Node) float64 {
				if later() && n.Name == "b" {
					return 90
				}
				return 40
			})
		}, 1, "plugin Fickle: AddShapeScore returned 40 for node b and returns 90 now"},
		"static score": {func(s *engine.Session) {
			s.Hooks.AddStaticScore(nil, func(_ *cluster.Shape, n *cluster.Node) float64 {
				if later() && n.Name == "b" {
					return 90
				}
				return 40
			})
		}, 1, "plugin Fickle: AddStaticScore returned 40 for node b and returns 90 now, although the node did not change; what it returns may depend only on the shape, the node's own properties (not what tasks hold of it), and what the plugin publishes"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			calls = 0
			e := enginetest.Engine(enginetest.Fit(), &policy{name: "Fickle", open: tt.open})
			state := enginetest.State(enginetest.Node("a").GPUs(8, "A100", "80Gi"), enginetest.Node("b").GPUs(8, "A100", "80Gi"), enginetest.Job("one").Devices(tt.devices))
			if _, err := e.Open(state, engine.Options{Search: engine.Twin}).Run(); err != nil {
				t.Fatal(err)
			}
			calls++
			if err := state.Apply(cluster.JobPut{Job: *enginetest.Job("two").Devices(tt.devices).Build()}); err != nil {
				t.Fatal(err)
			}
			_, err := e.Open(state, engine.Options{Search: engine.Twin}).Run()
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("%v\nwant %s", err, tt.want)
			}
		})
	}
}

// TestTwinNamesTheFilter: the filter that answers differently is named, and not a filter that is
// called before it.
func TestTwinNamesTheFilter(t *testing.T) {
	later := false
	whim := func(cure engine.Cure) engine.ShapeFilter {
		return func(*cluster.Shape, *cluster.Node) *engine.Rejection {
			if later {
				return &engine.Rejection{Reason: "Whim", Cure: cure}
			}
			return nil
		}
	}
	pass := func(*cluster.Shape, *cluster.Node) *engine.Rejection { return nil }
	refuse := func(*cluster.Shape, *cluster.Node) *engine.Rejection {
		return &engine.Rejection{Reason: "NotReady", Cure: engine.Wait}
	}
	tests := map[string]struct {
		plugins []engine.Plugin
		want    string
	}{
		"a rejection that replaces another": {[]engine.Plugin{
			&policy{name: "Innocent", open: func(s *engine.Session) { s.Hooks.AddStaticFilter(nil, refuse) }},
			&policy{name: "Fickle", open: func(s *engine.Session) { s.Hooks.AddStaticFilter(nil, whim(engine.Grow)) }},
		}, "plugin Fickle: AddStaticFilter returned no rejection for node "},
		"the second filter of a plugin": {[]engine.Plugin{
			&policy{name: "Two", open: func(s *engine.Session) {
				s.Hooks.AddStaticFilter(nil, pass)
				s.Hooks.AddShapeFilter(nil, whim(engine.Wait))
			}},
		}, "plugin Two: AddShapeFilter returned no rejection for node "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			later = false
			state := enginetest.State(enginetest.Node("a").GPUs(1, "A100", "80Gi"), enginetest.Node("b").GPUs(1, "A100", "80Gi"), enginetest.Job("x").Devices(1))
			e := enginetest.Engine(append([]engine.Plugin{enginetest.Fit()}, tt.plugins...)...)
			if _, err := e.Open(state, engine.Options{Search: engine.Twin}).Run(); err != nil {
				t.Fatal(err)
			}
			later = true
			if err := state.Apply(cluster.JobPut{Job: *enginetest.Job("y").Devices(1).Build()}); err != nil {
				t.Fatal(err)
			}
			if _, err := e.Open(state, engine.Options{Search: engine.Twin}).Run(); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

// TestTimings: the calls of every kind of hook are counted for its plugin, and the decisions
// are the same as without timings.
func TestTimings(t *testing.T) {
	run := func(m *engine.Timings) []engine.Decision {
		e := enginetest.Engine(enginetest.Fit(), enginetest.AllowAllVictims(), &policy{name: "Odd", open: func(s *engine.Session) {
			s.Hooks.AddTaskScore(nil, func(*cluster.Task, *cluster.Job, *cluster.Node) float64 { return 7 })
			s.Hooks.AddSweep(func(*engine.Statement) {})
			s.Hooks.AddEvictionPurpose(engine.Preempt, "Preempted")
			s.Hooks.AddEventHandler(engine.EventHandler{AllocateFunc: func(*engine.Event) {}})
		}})
		state := enginetest.State(enginetest.Node("a").GPUs(2, "A100", "80Gi"), enginetest.Job("low").Devices(2).Preemptible().On("a"), enginetest.Job("high").Devices(2).Priority(9))
		out, err := e.Open(state, engine.Options{Timings: m}).Run()
		if err != nil {
			t.Fatal(err)
		}
		return out.Decisions
	}
	now := int64(0)
	m := &engine.Timings{Clock: func() int64 { now += 5; return now }, PerTurn: true}
	if a, b := run(nil), run(m); len(a) != len(b) || len(a) != 2 {
		t.Errorf("%v with timings, %v without", b, a)
	}
	got := map[string]engine.Timing{}
	for _, x := range m.List() {
		got[x.Plugin+" "+x.Hook] = x
		if x.Nanoseconds < 5*x.Calls {
			t.Errorf("%+v: each call takes at least 5 ns of that clock", x)
		}
	}
	for _, want := range []string{"Fit OnSessionOpen", "Fit AddShapeFilter", "AllowAllVictims AddPreemptable", "Odd AddTaskScore", "Odd AddSweep", "Odd AddEventHandler"} {
		if got[want].Calls == 0 {
			t.Errorf("%s is not measured: %v", want, got)
		}
	}
	turns := m.Turns()
	if len(turns) != 1 || turns[0].Job != "job/high" || turns[0].Decisions != 2 || turns[0].End <= turns[0].Start {
		t.Fatalf("the turns are %+v, want one of job/high with 2 decisions", turns)
	}
	for _, x := range turns[0].Hooks {
		if all := got[x.Plugin+" "+x.Hook]; x.Hook == "OnSessionOpen" || x.Calls == 0 || x.Calls > all.Calls || x.Nanoseconds > all.Nanoseconds {
			t.Errorf("%+v is measured in the turn, and %+v in the session", x, all)
		}
	}
	if len(turns[0].Hooks) == 0 {
		t.Error("no hook is measured in the turn")
	}
}

// TestUncalledHooks: hooks about victims are listed if no plugin of the profile evicts any.
func TestUncalledHooks(t *testing.T) {
	say := &policy{name: "Say", open: func(s *engine.Session) {
		s.Hooks.AddReclaimable(func(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Verdict { return nil })
		s.Hooks.AddSurplus(func(*cluster.Job, []*cluster.Task) bool { return true })
	}}
	hooks := func(plugins ...engine.Plugin) (out []string) {
		e := enginetest.Engine(plugins...)
		e.Open(enginetest.State(), engine.Options{})
		for _, u := range e.UncalledHooks() {
			out = append(out, u.Plugin+" "+u.Hook)
		}
		return out
	}
	if got := hooks(say); !slices.Equal(got, []string{"Say AddReclaimable", "Say AddSurplus"}) {
		t.Errorf("alone: %q", got)
	}
	reclaims := &policy{name: "Reclaims", open: func(s *engine.Session) { s.Hooks.AddEvictionPurpose(engine.Reclaim, "Reclaimed") }}
	if got := hooks(say, reclaims); got != nil {
		t.Errorf("beside a plugin that reclaims: %q", got)
	}
	formerName := &policy{name: "FormerName", open: func(s *engine.Session) { s.Hooks.AddMeans(engine.Reclaim, "Reclaimed") }}
	if got := hooks(say, formerName); got != nil {
		t.Errorf("beside a plugin that reclaims by the former name of the hook: %q", got)
	}
	adapter := &policy{name: "Adapter", open: func(s *engine.Session) {
		s.Hooks.AddAdapter(func(_ *engine.Statement, _ *cluster.Job, r *engine.Refusal) *engine.Refusal { return r })
	}}
	if got := hooks(say, adapter); got != nil {
		t.Errorf("beside an adapter: %q", got)
	}
}

// TestMisuse: a wrong registration fails the session with an error that names the plugin.
func TestMisuse(t *testing.T) {
	tests := map[string]func(*engine.Session){
		"plugin Wrong: engine.TaskFilter: the function is nil; register a function":                func(s *engine.Session) { s.Hooks.AddTaskFilter(nil, nil) },
		"plugin Wrong: NarrowVictims: the plugin has registered no hook for the purpose Reclaim; ": func(s *engine.Session) { s.Hooks.NarrowVictims(engine.Reclaim, engine.NoClass) },
		"plugin Wrong: NarrowQueues: the plugin has registered no hook for the purpose Move; ": func(s *engine.Session) {
			s.Hooks.NarrowQueues(engine.Move, func(*cluster.Job, []*cluster.Task) ([]string, bool) { return nil, true })
		},
		"plugin Wrong: NarrowFirst: the plugin has registered no hook for the purpose Move; ": func(s *engine.Session) {
			s.Hooks.NarrowFirst(engine.Move, engine.FirstVictims{Classes: engine.NoClass})
		},
		"plugin Wrong: NarrowFirst: the field Classes is nil; ": func(s *engine.Session) { s.Hooks.NarrowFirst(engine.Move, engine.FirstVictims{}) },
		"plugin Wrong: AddLastResort: the plugin has registered no hook for the purpose Preempt; ": func(s *engine.Session) {
			s.Hooks.AddLastResort(engine.Preempt, engine.LastResort{Victims: func(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Verdict { return nil }})
		},
		"plugin Wrong: AddFrozenOrder: the last comparison of queues is not an AddSiblingOrder of this plugin; ": func(s *engine.Session) { s.Hooks.AddFrozenOrder(nil) },
		"plugin Wrong: AddBidChanges: the last comparison of queues is not an AddSiblingOrder of this plugin; ":  func(s *engine.Session) { s.Hooks.AddBidChanges(nil) },
		"plugin Wrong: AddQueueOrder: the function is nil; register a function":                                  func(s *engine.Session) { s.Hooks.AddQueueOrder(nil) },
		"plugin Wrong: AddLastResort: the field Victims is nil; ":                                                func(s *engine.Session) { s.Hooks.AddLastResort(engine.Preempt, engine.LastResort{}) },
		"plugin Wrong: AddEvictionPurpose: there is no purpose 9":                                                func(s *engine.Session) { s.Hooks.AddEvictionPurpose(engine.Purpose(9), "X") },
	}
	for want, open := range tests {
		_, err := enginetest.Engine(&policy{name: "Wrong", open: open}).Open(enginetest.State(), engine.Options{}).Run()
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}
