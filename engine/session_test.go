package engine_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

func TestOrderOfQueuesAndJobs(t *testing.T) {
	var asked []string
	orders := &policy{name: "Orders", open: func(s *engine.Session) {
		s.Hooks.AddQueueOrder(func(l, r *cluster.Queue) int { return int(r.Priority - l.Priority) })
		s.Hooks.AddJobOrder(func(l, r *cluster.Job) int { return int(r.Priority - l.Priority) })
		s.Hooks.AddPreFilter(func(t *cluster.Task, j *cluster.Job) *engine.Rejection {
			asked = append(asked, j.ID)
			return nil
		})
	}}
	s := with(twoNodes(),
		enginetest.Queue("low").Priority(1), enginetest.Queue("high").Priority(2),
		enginetest.Job("d"), enginetest.Job("c").Queue("low"), enginetest.Job("a").Queue("high"), enginetest.Job("b").Queue("high").Priority(9),
	)
	run(t, enginetest.Engine(orders, fit()), s)
	if diff := cmp.Diff([]string{"job/b", "job/a", "job/c", "job/d"}, asked); diff != "" {
		t.Error(diff)
	}
}

func TestTaskOrder(t *testing.T) {
	backwards := &policy{name: "Backwards", open: func(s *engine.Session) {
		s.Hooks.AddTaskOrder(func(l, r *cluster.Task) int { return r.Index - l.Index })
	}}
	s := with(twoNodes(), enginetest.Job("j").Gang(3).Devices(1))
	out := run(t, enginetest.Engine(backwards, fit()), s)
	want := map[string]string{"job/j/worker-2": "a", "job/j/worker-1": "a", "job/j/worker-0": "b"}
	if diff := cmp.Diff(want, where(out)); diff != "" {
		t.Error(diff)
	}
}

func TestScoresAreWeightedAndAdded(t *testing.T) {
	r := engine.NewRegistry()
	plugins := map[string]*policy{"Fit": fit(), "One": prefer("One", map[string]float64{"a": 100, "b": 0}), "Two": prefer("Two", map[string]float64{"a": 0, "b": 40.5})}
	for name, p := range plugins {
		if err := r.RegisterPluginBuilder(name, func(engine.Arguments) (engine.Plugin, error) { return p, nil }); err != nil {
			t.Fatal(err)
		}
	}
	e, err := engine.New(r, engine.Profile{{Name: "Fit"}, {Name: "One"}, {Name: "Two", Weight: 3}})
	if err != nil {
		t.Fatal(err)
	}
	ssn := e.Open(with(twoNodes(), enginetest.Job("j")), engine.Options{Explain: true})
	out, err := ssn.Run()
	if err != nil {
		t.Fatal(err)
	}
	d := out.Decisions[0]
	want := []engine.Candidate{
		{Node: "b", Score: engine.Score{Total: 121500, Weight: 4, Parts: []engine.ScorePart{{Plugin: "One", Score: 0, Weight: 1}, {Plugin: "Two", Score: 40.5, Weight: 3}}}},
		{Node: "a", Score: engine.Score{Total: 100000, Weight: 4, Parts: []engine.ScorePart{{Plugin: "One", Score: 100, Weight: 1}, {Plugin: "Two", Score: 0, Weight: 3}}}},
	}
	if diff := cmp.Diff(want, d.Candidates); diff != "" {
		t.Error(diff)
	}
	if d.Node != "b" || d.Score.Mean() != 30.375 {
		t.Errorf("%s with %v", d.Node, d.Score.Mean())
	}
	if (engine.Score{}).Mean() != 0 {
		t.Error("an empty score has a mean other than 0")
	}
}

func TestEqualScoresAreDecidedByName(t *testing.T) {
	s := enginetest.State(enginetest.Node("b").CPU(8, "1Gi"), enginetest.Node("c").CPU(8, "1Gi"), enginetest.Node("a").CPU(8, "1Gi"), enginetest.Job("j"))
	if diff := cmp.Diff(map[string]string{"job/j/worker-0": "a"}, where(run(t, enginetest.Engine(fit()), s))); diff != "" {
		t.Error(diff)
	}
}

// TestScoresOutOfRangeFailTheSession covers every hook that returns a score.
func TestScoresOutOfRangeFailTheSession(t *testing.T) {
	bad := map[string]func(*engine.Session, float64){
		"shape": func(s *engine.Session, v float64) {
			s.Hooks.AddShapeScore(nil, func(*cluster.Shape, *cluster.Node) float64 { return v })
		},
		"node": func(s *engine.Session, v float64) {
			s.Hooks.AddTaskScore(nil, func(*cluster.Task, *cluster.Job, *cluster.Node) float64 { return v })
		},
		"device": func(s *engine.Session, v float64) {
			s.Hooks.AddDeviceScore(func(*cluster.Shape, *cluster.Node, *cluster.Device) float64 { return v })
		},
	}
	for name, add := range bad {
		for _, v := range []float64{math.NaN(), -0.1, 100.1, math.Inf(1)} {
			for _, search := range []engine.Search{engine.Indexed, engine.Scan} {
				broken := &policy{name: "Broken", open: func(s *engine.Session) { add(s, v) }}
				s := with(twoNodes(), enginetest.Job("j").Devices(1))
				out, err := enginetest.Engine(fit(), broken).Open(s, engine.Options{Search: search}).Run()
				if err == nil || !strings.Contains(err.Error(), "plugin Broken: a score of") {
					t.Errorf("%s %v: %v", name, v, err)
				}
				if len(out.Decisions) > 0 || len(s.Nodes()[0].Tasks) > 0 {
					t.Errorf("%s %v: something was placed", name, v)
				}
			}
		}
	}
}

// TestCapacityMustBeChecked checks that a session fails if no filter of the profile checks capacity,
// and that no device is assigned twice.
func TestCapacityMustBeChecked(t *testing.T) {
	for name, job := range map[string]*enginetest.JobBuilder{"devices": enginetest.Job("j").Devices(3), "cores": enginetest.Job("j").CPU(9000, "1Gi")} {
		_, err := enginetest.Engine().Open(with(twoNodes(), job), engine.Options{}).Run()
		if err == nil || !strings.Contains(err.Error(), "a plugin that rejects nodes without room is missing") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTaskFormHooksAreExact(t *testing.T) {
	// The task-form score reverses the order of nodes: the walk over the ranking must not stop early.
	turn := &policy{name: "Turn", open: func(s *engine.Session) {
		s.Hooks.AddTaskScore(func(t *cluster.Task, _ *cluster.Job) bool { return t.Job.ID == "job/j" },
			func(_ *cluster.Task, _ *cluster.Job, n *cluster.Node) float64 {
				return map[string]float64{"a": 0, "b": 10, "c": 31}[n.Name]
			})
		s.Hooks.AddTaskFilter(func(t *cluster.Task, _ *cluster.Job) bool { return t.Job.ID == "job/k" },
			func(_ *cluster.Task, _ *cluster.Job, n *cluster.Node) *engine.Rejection {
				if n.Name == "a" {
					return &engine.Rejection{Reason: "NotHere"}
				}
				return nil
			})
	}}
	s := enginetest.State(enginetest.Node("a").CPU(9, "1Gi"), enginetest.Node("b").CPU(9, "1Gi"), enginetest.Node("c").CPU(9, "1Gi"),
		enginetest.Job("j"), enginetest.Job("k"), enginetest.Job("l"))
	e := enginetest.Engine(fit(), prefer("Prefer", map[string]float64{"a": 50, "b": 30, "c": 20}), turn)
	want := map[string]string{"job/j/worker-0": "c", "job/k/worker-0": "b", "job/l/worker-0": "a"}
	if diff := cmp.Diff(want, where(run(t, e, s))); diff != "" {
		t.Error(diff)
	}
}

func TestDeviceOrderDecidesDevices(t *testing.T) {
	last := &policy{name: "Last", open: func(s *engine.Session) {
		s.Hooks.AddDeviceScore(func(_ *cluster.Shape, _ *cluster.Node, d *cluster.Device) float64 { return float64(d.Index) })
	}}
	out := run(t, enginetest.Engine(fit(), last), with(twoNodes(), enginetest.Job("j").Devices(1)))
	if diff := cmp.Diff([]cluster.Claim{{Device: 1, Milli: 1000, Memory: 80 << 30}}, out.Decisions[0].Claims); diff != "" {
		t.Error(diff)
	}
}

func TestEventsAndHandlers(t *testing.T) {
	held := map[string]int{}
	closed := false
	tracker := &policy{name: "Tracker", open: func(s *engine.Session) {
		s.Hooks.AddEventHandler(engine.EventHandler{
			AllocateFunc:   func(e *engine.Event) { held[e.Job.ID]++ },
			DeallocateFunc: func(e *engine.Event) { held[e.Job.ID]-- },
		})
	}, close: func(*engine.Session) { closed = true }}
	s := with(twoNodes(), enginetest.Job("fits").Gang(2).Devices(1), enginetest.Job("half").Gang(2).Devices(2))
	out := run(t, enginetest.Engine(fit(), tracker), s)
	if diff := cmp.Diff(map[string]int{"job/fits": 2, "job/half": 0}, held); diff != "" {
		t.Errorf("a rolled back gang is still counted: %s", diff)
	}
	var kinds []engine.EventKind
	for _, e := range out.Events {
		kinds = append(kinds, e.Kind)
	}
	if diff := cmp.Diff([]engine.EventKind{engine.BoundTo, engine.BoundTo, engine.Refused}, kinds); diff != "" {
		t.Error(diff)
	}
	if !closed {
		t.Error("OnSessionClose was not called")
	}
}

func TestRegistryIsStrict(t *testing.T) {
	build := func(p engine.Plugin, err error) engine.PluginBuilder {
		return func(engine.Arguments) (engine.Plugin, error) { return p, err }
	}
	r := engine.NewRegistry()
	for name, b := range map[string]engine.PluginBuilder{"Fit": build(fit(), nil), "Liar": build(fit(), nil), "Picky": build(nil, errors.New("bad argument"))} {
		if err := r.RegisterPluginBuilder(name, b); err != nil {
			t.Fatal(err)
		}
	}
	if r.RegisterPluginBuilder("Fit", build(fit(), nil)) == nil || r.RegisterPluginBuilder("", nil) == nil {
		t.Error("an invalid registration was accepted")
	}
	if diff := cmp.Diff([]string{"Fit", "Liar", "Picky"}, r.Names()); diff != "" {
		t.Error(diff)
	}
	tests := map[string]engine.Profile{
		`conf.yaml:3: plugin Fitt: no such plugin; did you mean "Fit"?`: {{Name: "Fitt", Where: "conf.yaml:3"}},
		"plugin Fit: listed twice\nplugin Picky: bad argument":          {{Name: "Fit"}, {Name: "Fit"}, {Name: "Picky"}},
		"plugin Fit: weight -1 is not between 1 and 100000":             {{Name: "Fit", Weight: -1}},
		"plugin Fit: weight 100001 is not between 1 and 100000":         {{Name: "Fit", Weight: 100001}},
		"plugin Picky: bad argument":                                    {{Name: "Picky"}},
		`plugin Liar: the builder made a plugin named "Fit"`:            {{Name: "Liar"}},
		"plugin Zzzzzz: no such plugin; known: Fit, Liar, Picky":        {{Name: "Zzzzzz"}},
	}
	for want, profile := range tests {
		if _, err := engine.New(r, profile); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A session with Options.Turns tries the jobs that it names, in this order, and no others.
func TestGivenTurns(t *testing.T) {
	s := with(twoNodes(), enginetest.Job("a"), enginetest.Job("b"), enginetest.Job("c"))
	e := enginetest.Engine(fit())
	out, err := e.Open(s, engine.Options{Now: 1, Turns: []string{"job/c", "job/none", "job/a", "job/a"}}).Run()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"job/c", "job/a"}, out.Tried); diff != "" || len(out.Decisions) != 2 {
		t.Errorf("%d decisions; tried (-want +got):\n%s", len(out.Decisions), diff)
	}
	none, err := e.Open(s, engine.Options{Now: 2, Turns: []string{}}).Run()
	if err != nil || len(none.Tried) > 0 {
		t.Errorf("without turns, %v are tried: %v", none.Tried, err)
	}
}

// A session with Options.Until ends when the job is refused, and not before.
func TestUntil(t *testing.T) {
	for until, want := range map[string][]string{
		"job/b": {"job/a", "job/b"},
		"job/a": {"job/a", "job/b", "job/c"}, // it is placed
		"":      {"job/a", "job/b", "job/c"},
	} {
		s := with(twoNodes(), enginetest.Job("a"), enginetest.Job("b").Devices(100), enginetest.Job("c"))
		out, err := enginetest.Engine(fit()).Open(s, engine.Options{Now: 1, Until: until}).Run()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.Tried); diff != "" {
			t.Errorf("until %q (-want +got):\n%s", until, diff)
		}
	}
}
