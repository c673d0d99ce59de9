package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/fixture"
)

// groups wants enough nodes and likes small ones.
func groups() *policy {
	return &policy{name: "Groups", open: func(s *engine.Session) {
		s.AddGroupPredicateFn(func(_ *cluster.Job, want *cluster.WholeNodes, _ *cluster.Group, nodes []*cluster.Node) *engine.Rejection {
			if len(nodes) < want.Replicas {
				return &engine.Rejection{Reason: "TooFew", Cure: engine.Grow}
			}
			return nil
		})
		s.AddGroupOrderFn(func(_ *cluster.Job, _ *cluster.WholeNodes, g *cluster.Group, _ []*cluster.Node) float64 {
			return max(0, 100-float64(g.Key.Count)*10)
		})
	}}
}

func machines() []fixture.Part {
	return []fixture.Part{
		fixture.Node("big-1").GPUs(8, "A100", "80Gi"), fixture.Node("big-2").GPUs(8, "A100", "80Gi"), fixture.Node("big-3").GPUs(8, "A100", "80Gi"),
		fixture.Node("mid-1").GPUs(4, "A100", "40Gi"), fixture.Node("mid-2").GPUs(4, "A100", "40Gi"),
		fixture.Node("small").GPUs(1, "A10", "24Gi"), fixture.Node("none"),
	}
}

func TestWholeNodesOfOneGroup(t *testing.T) {
	tests := map[string]struct {
		parts []fixture.Part
		want  map[string]string
	}{
		"the best group":     {[]fixture.Part{fixture.Job("m").WholeNodes(1, "8Gi")}, map[string]string{"job/m/worker-0": "small"}},
		"the best with room": {[]fixture.Part{fixture.Job("m").WholeNodes(2, "8Gi")}, map[string]string{"job/m/worker-0": "mid-1", "job/m/worker-1": "mid-2"}},
		"groups that fit now come first": {
			[]fixture.Part{fixture.Job("x").Devices(1).On("mid-1"), fixture.Job("m").WholeNodes(2, "8Gi")},
			map[string]string{"job/m/worker-0": "big-1", "job/m/worker-1": "big-2"},
		},
		"in use nodes are passed over": {
			[]fixture.Part{fixture.Job("x").Gang(2).Devices(1).On("big-2", "mid-2"), fixture.Job("m").WholeNodes(2, "8Gi")},
			map[string]string{"job/m/worker-0": "big-1", "job/m/worker-1": "big-3"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := with(machines(), tt.parts...)
			if diff := cmp.Diff(tt.want, where(run(t, fixture.Engine(fit(), groups()), s))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWholeNodesRefused(t *testing.T) {
	tests := map[string]struct {
		parts         []fixture.Part
		wantReason    engine.Reason
		wantPermanent bool
	}{
		"never":   {[]fixture.Part{fixture.Job("m").WholeNodes(4, "8Gi")}, engine.NoSuitableGroup, true},
		"not now": {[]fixture.Part{fixture.Job("x").Devices(1).On("big-2"), fixture.Job("m").WholeNodes(3, "8Gi")}, engine.GroupInUse, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := with(machines(), tt.parts...)
			out := run(t, fixture.Engine(fit(), groups()), s)
			r := out.Refusals[0]
			if r.Reason != tt.wantReason || r.Permanent != tt.wantPermanent || len(r.Attempts[0].Groups) != 3 {
				t.Errorf("%+v", r)
			}
		})
	}
	// A job that grows joins the group it runs on, whatever the group filters say by now.
	s := with(machines(), fixture.Job("m").WholeNodes(4, "8Gi").Min(1).On("big-1", "big-2"))
	e := fixture.Engine(fit(), groups())
	out := run(t, e, s)
	r := out.Refusals[0]
	if len(out.Decisions) != 0 || r.Reason != "NoDevices" || r.Attempts[0].Nodes != 3 || len(r.Attempts[0].Groups) != 0 {
		t.Errorf("four nodes of three: %+v", r)
	}
}
