package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// groups is a plugin that rejects node groups with too few nodes and gives small groups a higher score.
func groups() *policy {
	return &policy{name: "Groups", open: func(s *engine.Session) {
		s.Hooks.AddGroupFilter(func(_ *cluster.Job, want *cluster.WholeNodes, _ *cluster.Group, nodes []*cluster.Node) *engine.Rejection {
			if len(nodes) < want.Replicas {
				return &engine.Rejection{Reason: "TooFew", Cure: engine.Grow}
			}
			return nil
		})
		s.Hooks.AddGroupScore(func(_ *cluster.Job, _ *cluster.WholeNodes, g *cluster.Group, _ []*cluster.Node) float64 {
			return max(0, 100-float64(g.Key.Count)*10)
		})
	}}
}

func machines() []enginetest.Part {
	return []enginetest.Part{
		enginetest.Node("big-1").GPUs(8, "A100", "80Gi"), enginetest.Node("big-2").GPUs(8, "A100", "80Gi"), enginetest.Node("big-3").GPUs(8, "A100", "80Gi"),
		enginetest.Node("mid-1").GPUs(4, "A100", "40Gi"), enginetest.Node("mid-2").GPUs(4, "A100", "40Gi"),
		enginetest.Node("small").GPUs(1, "A10", "24Gi"), enginetest.Node("none"),
	}
}

func TestWholeNodesOfOneGroup(t *testing.T) {
	tests := map[string]struct {
		parts []enginetest.Part
		want  map[string]string
	}{
		"the best group":     {[]enginetest.Part{enginetest.Job("m").WholeNodes(1, "8Gi")}, map[string]string{"job/m/worker-0": "small"}},
		"the best with room": {[]enginetest.Part{enginetest.Job("m").WholeNodes(2, "8Gi")}, map[string]string{"job/m/worker-0": "mid-1", "job/m/worker-1": "mid-2"}},
		"groups with room now come first": {
			[]enginetest.Part{enginetest.Job("x").Devices(1).On("mid-1"), enginetest.Job("m").WholeNodes(2, "8Gi")},
			map[string]string{"job/m/worker-0": "big-1", "job/m/worker-1": "big-2"},
		},
		"nodes in use are not used": {
			[]enginetest.Part{enginetest.Job("x").Gang(2).Devices(1).On("big-2", "mid-2"), enginetest.Job("m").WholeNodes(2, "8Gi")},
			map[string]string{"job/m/worker-0": "big-1", "job/m/worker-1": "big-3"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := with(machines(), tt.parts...)
			if diff := cmp.Diff(tt.want, where(run(t, enginetest.Engine(fit(), groups()), s))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWholeNodesRefused(t *testing.T) {
	tests := map[string]struct {
		parts         []enginetest.Part
		wantReason    engine.Reason
		wantPermanent bool
	}{
		"never":   {[]enginetest.Part{enginetest.Job("m").WholeNodes(4, "8Gi")}, engine.NoSuitableGroup, true},
		"not now": {[]enginetest.Part{enginetest.Job("x").Devices(1).On("big-2"), enginetest.Job("m").WholeNodes(3, "8Gi")}, engine.GroupInUse, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := with(machines(), tt.parts...)
			out := run(t, enginetest.Engine(fit(), groups()), s)
			r := out.Refusals[0]
			if r.Reason != tt.wantReason || r.Permanent != tt.wantPermanent || len(r.Attempts[0].Groups) != 3 {
				t.Errorf("%+v", r)
			}
		})
	}
	// A job that grows is placed on the group that it runs on, without a call of the group filters.
	s := with(machines(), enginetest.Job("m").WholeNodes(4, "8Gi").Min(1).On("big-1", "big-2"))
	e := enginetest.Engine(fit(), groups())
	out := run(t, e, s)
	r := out.Refusals[0]
	if len(out.Decisions) != 0 || r.Reason != "NoDevices" || r.Attempts[0].Nodes != 3 || len(r.Attempts[0].Groups) != 0 {
		t.Errorf("four nodes of three: %+v", r)
	}
}

// TestDecisionsShowTheGroup checks that each decision about a job with whole nodes says how its node
// group was chosen.
func TestDecisionsShowTheGroup(t *testing.T) {
	score := func(points int64) engine.Score {
		return engine.Score{Total: points * 1000, Weight: 1, Parts: []engine.ScorePart{{Plugin: "Groups", Score: float64(points), Weight: 1}}}
	}
	choice := func(k cluster.GroupKey, points int64) engine.GroupCandidate {
		return engine.GroupCandidate{Group: k, Score: score(points)}
	}
	type shown struct {
		Score  engine.Score
		Groups []engine.GroupCandidate
	}
	tests := map[string]struct {
		job  enginetest.Part
		want []shown
	}{
		"of all":             {enginetest.Job("m").WholeNodes(1, "8Gi"), []shown{{score(90), []engine.GroupCandidate{choice(small, 90), choice(mid, 60), choice(big, 20)}}}},
		"each task":          {enginetest.Job("m").WholeNodes(2, "8Gi"), slices.Repeat([]shown{{score(60), []engine.GroupCandidate{choice(mid, 60), choice(big, 20)}}}, 2)},
		"where it runs":      {enginetest.Job("m").WholeNodes(2, "8Gi").On("big-1"), []shown{{score(20), []engine.GroupCandidate{choice(big, 20)}}}},
		"not of whole nodes": {enginetest.Job("m").Devices(8), []shown{{}}},
	}
	for name, tt := range tests {
		for _, explain := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, explained: %v", name, explain), func(t *testing.T) {
				ssn := enginetest.Engine(fit(), groups()).Open(with(machines(), tt.job), engine.Options{Search: engine.Twin, Explain: explain})
				defer ssn.Close()
				out, err := ssn.Run()
				if err != nil {
					t.Fatal(err)
				}
				var got, want []shown
				for _, d := range out.Decisions {
					got = append(got, shown{d.GroupScore, d.Groups})
				}
				for _, w := range tt.want {
					if !explain {
						w.Groups = nil
					}
					want = append(want, w)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}
