package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

func TestGangIsPlacedWholeOrNotAtAll(t *testing.T) {
	tests := map[string]struct {
		job         *enginetest.JobBuilder
		want        map[string]string
		wantRefused engine.Reason
		wantSurplus bool
	}{
		"all fit": {
			job:  enginetest.Job("g").Gang(2).Devices(2),
			want: map[string]string{"job/g/worker-0": "a", "job/g/worker-1": "b"},
		},
		"one does not": {job: enginetest.Job("g").Gang(3).Devices(2), want: map[string]string{}, wantRefused: "NoDevices"},
		"the minimum fits": {
			job:  enginetest.Job("g").Gang(3).Min(2).Devices(2),
			want: map[string]string{"job/g/worker-0": "a", "job/g/worker-1": "b"}, wantRefused: "NoDevices", wantSurplus: true,
		},
		"the minimum does not": {job: enginetest.Job("g").Gang(4).Min(3).Devices(2), want: map[string]string{}, wantRefused: "NoDevices"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := with(twoNodes(), tt.job)
			out := run(t, enginetest.Engine(fit()), s)
			if diff := cmp.Diff(tt.want, where(out)); diff != "" {
				t.Error(diff)
			}
			if tt.wantRefused == "" {
				if len(out.Refusals) > 0 {
					t.Errorf("refused: %+v", out.Refusals[0])
				}
				return
			}
			if len(out.Refusals) != 1 || out.Refusals[0].Reason != tt.wantRefused || out.Refusals[0].Surplus != tt.wantSurplus {
				t.Errorf("refusals: %+v", out.Refusals)
			}
		})
	}
}

func TestSurplusFollowsLater(t *testing.T) {
	s := with(twoNodes(), enginetest.Job("x").Devices(2).On("b"), enginetest.Job("g").Gang(3).Min(1).Devices(1))
	e := enginetest.Engine(fit())
	if got := len(where(run(t, e, s))); got != 2 {
		t.Errorf("%d tasks placed", got)
	}
	apply(t, s, jobGone("job/x"))
	if diff := cmp.Diff(map[string]string{"job/g/worker-2": "b"}, where(run(t, e, s))); diff != "" {
		t.Error(diff)
	}
	if len(s.Pending()) != 0 {
		t.Error("it is still pending")
	}
}

func TestFirstAlternativeThatPlacesWins(t *testing.T) {
	alternatives := func(devices ...int) *cluster.Job {
		j := &cluster.Job{ID: "job/alt"}
		for _, d := range devices {
			j.Alternatives = append(j.Alternatives, cluster.Alternative{
				Name: string(rune('0'+d)) + " devices", Min: 1,
				Tasks: []*cluster.Task{{Name: string(rune('0' + d)), Shape: &cluster.Shape{Need: cluster.Need{Devices: d}}}},
			})
		}
		return j
	}
	s := add(t, with(twoNodes()), alternatives(5, 3, 2, 1))
	out := run(t, enginetest.Engine(fit()), s)
	if diff := cmp.Diff(map[string]string{"job/alt/2": "a"}, where(out)); diff != "" {
		t.Error(diff)
	}
	if out.Decisions[0].Alternative != "2 devices" || s.Job("job/alt").Chosen != 2 {
		t.Errorf("chosen: %q, %d", out.Decisions[0].Alternative, s.Job("job/alt").Chosen)
	}
	none := add(t, with(twoNodes()), alternatives(5, 3))
	r := run(t, enginetest.Engine(fit()), none).Refusals[0]
	if len(r.Attempts) != 2 || r.Attempts[1].Alternative != "3 devices" || !r.Permanent || none.Job("job/alt").Chosen != -1 {
		t.Errorf("refusal: %+v", r)
	}
}

func TestRefusalCountsAndNearestMisses(t *testing.T) {
	label := &policy{name: "Label", open: func(s *engine.Session) {
		s.Hooks.AddShapeFilter(func(s *cluster.Shape) bool { return s.Cell != "" }, func(shape *cluster.Shape, n *cluster.Node) *engine.Rejection {
			if n.Cell != shape.Cell {
				return &engine.Rejection{Reason: "WrongCell", Cure: engine.Grow, Subject: n.Cell}
			}
			return nil
		})
	}}
	parts := []enginetest.Part{
		enginetest.Node("a").CPU(8, "1Gi"),
		enginetest.Node("b").CPU(8, "1Gi").Cell("x"),
		enginetest.Node("c").CPU(8, "1Gi").Cell("x").GPUs(4, "A", "8Gi"),
		enginetest.Node("d").CPU(8, "1Gi").Cell("x").GPUs(2, "A", "8Gi"),
		enginetest.Job("busy").Devices(3).On("c"),
		enginetest.Job("j").Devices(3).Shape(func(s *cluster.Shape) { s.Cell = "x" }),
	}
	count := func(v int64) engine.Quantity { return engine.Quantity{Value: v, Unit: engine.Count} }
	want := engine.Attempt{
		Min: 1, Nodes: 4,
		Counts: []engine.Tally{
			{Plugin: "Label", Reason: "WrongCell", Cure: engine.Grow, Nodes: 1},
			{Plugin: "Fit", Reason: "NoDevices", Cure: engine.Wait | engine.Evict, Nodes: 1},
			{Plugin: "Fit", Reason: "NoDevices", Cure: engine.Grow, Nodes: 2},
		},
		Nearest: []engine.Miss{
			{Node: "d", Rejection: engine.Rejection{Plugin: "Fit", Reason: "NoDevices", Cure: engine.Grow, Want: count(3), Have: count(2)}},
			{Node: "c", Rejection: engine.Rejection{Plugin: "Fit", Reason: "NoDevices", Cure: engine.Wait | engine.Evict, Want: count(3), Have: count(1)}},
			{Node: "b", Rejection: engine.Rejection{Plugin: "Fit", Reason: "NoDevices", Cure: engine.Grow, Want: count(3), Have: count(0)}},
			{Node: "a", Rejection: engine.Rejection{Plugin: "Label", Reason: "WrongCell", Cure: engine.Grow}},
		},
	}
	// Scan and index give equal explanations, with and without a task-form filter.
	aside := &policy{name: "Aside", open: func(s *engine.Session) {
		s.Hooks.AddTaskFilter(nil, func(*cluster.Task, *cluster.Job, *cluster.Node) *engine.Rejection { return nil })
	}}
	for name, e := range map[string]*engine.Engine{"plain": enginetest.Engine(label, fit()), "task form": enginetest.Engine(label, fit(), aside)} {
		for _, search := range []engine.Search{engine.Indexed, engine.Scan} {
			out, err := e.Open(enginetest.State(parts...), engine.Options{Search: search}).Run()
			if err != nil {
				t.Fatal(err)
			}
			r := out.Refusals[0]
			slices := cmpopts.SortSlices(func(a, b engine.Tally) bool { return a.Cure < b.Cure })
			if diff := cmp.Diff(want, r.Attempts[0], slices, cmpopts.IgnoreFields(engine.Attempt{}, "Task"), cmpopts.IgnoreUnexported(engine.Tally{}, engine.Attempt{})); diff != "" {
				t.Errorf("%s, search %d: %s", name, search, diff)
			}
			if r.Permanent || r.Reason != "NoDevices" {
				t.Errorf("%s: %s, permanent %v", name, r.Reason, r.Permanent)
			}
		}
	}
}

func TestPermanence(t *testing.T) {
	tests := map[string]struct {
		parts         []enginetest.Part
		wantReason    engine.Reason
		wantPermanent bool
	}{
		"no nodes at all":              {[]enginetest.Part{enginetest.Job("j")}, engine.NoNodes, true},
		"too large for every node":     {append(twoNodes(), enginetest.Job("j").Devices(3)), "NoDevices", true},
		"other tasks may end":          {append(twoNodes(), enginetest.Job("x").Gang(2).Devices(1).On("a", "b"), enginetest.Job("j").Devices(2)), "NoDevices", false},
		"a gang in its own way":        {append(twoNodes(), enginetest.Job("j").Gang(3).Devices(2)), "NoDevices", true},
		"a gang and others in its way": {append(twoNodes(), enginetest.Job("x").Devices(1).On("a"), enginetest.Job("j").Gang(2).Devices(2)), "NoDevices", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := run(t, enginetest.Engine(fit()), enginetest.State(tt.parts...)).Refusals[0]
			if r.Reason != tt.wantReason || r.Permanent != tt.wantPermanent {
				t.Errorf("%s, permanent %v", r.Reason, r.Permanent)
			}
		})
	}
}

func TestReasonOfRefusal(t *testing.T) {
	reject := func(by map[string]engine.Rejection) *policy {
		return &policy{name: "Picky", open: func(s *engine.Session) {
			s.Hooks.AddShapeFilter(nil, func(_ *cluster.Shape, n *cluster.Node) *engine.Rejection {
				r := by[n.Name]
				return &r
			})
		}}
	}
	common := engine.Rejection{Reason: "Common"}
	more, wait := engine.Rejection{Reason: "SaysMore", Precedence: 1}, engine.Rejection{Reason: "CanWait", Cure: engine.Wait}
	tests := map[engine.Reason]map[string]engine.Rejection{
		"Common":   {"a": {Reason: "Rare"}, "b": common, "c": common},
		"SaysMore": {"a": more, "b": common, "c": common},
		"CanWait":  {"a": more, "b": wait, "c": more},
	}
	for want, by := range tests {
		s := enginetest.State(enginetest.Node("a"), enginetest.Node("b"), enginetest.Node("c"), enginetest.Job("j"))
		if r := run(t, enginetest.Engine(reject(by)), s).Refusals[0]; r.Reason != want || r.Permanent != (want != "CanWait") {
			t.Errorf("%s, permanent %v; want %s", r.Reason, r.Permanent, want)
		}
	}
}

func TestRejectedBeforeAnyNode(t *testing.T) {
	limit := &policy{name: "Limit", open: func(s *engine.Session) {
		s.Hooks.AddPreFilter(func(*cluster.Task, *cluster.Job) *engine.Rejection {
			return &engine.Rejection{Reason: "Limit", Cure: engine.Wait, Subject: "queue q"}
		})
	}}
	for name, job := range map[string]*enginetest.JobBuilder{"devices": enginetest.Job("j").Devices(1), "whole nodes": enginetest.Job("j").WholeNodes(1, "1Gi")} {
		r := run(t, enginetest.Engine(limit, fit()), with(twoNodes(), job)).Refusals[0]
		want := &engine.Rejection{Plugin: "Limit", Reason: "Limit", Cure: engine.Wait, Subject: "queue q"}
		if diff := cmp.Diff(want, r.Attempts[0].Before); diff != "" || r.Reason != "Limit" || r.Permanent {
			t.Errorf("%s: %s %+v", name, diff, r)
		}
	}
}
