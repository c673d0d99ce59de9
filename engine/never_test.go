package engine_test

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// TestGangInItsOwnWay checks whether the refusal is permanent of a gang of which only one task
// can be placed, although no other job uses the nodes.
func TestGangInItsOwnWay(t *testing.T) {
	const held = engine.Wait | engine.Evict
	one := func(cure engine.Cure) *policy { // rejects every node once one task of the job is placed
		return &policy{name: "One", open: func(s *engine.Session) {
			s.Hooks.AddTaskFilter(nil, func(_ *cluster.Task, j *cluster.Job, n *cluster.Node) *engine.Rejection {
				if j.Placed() == 0 {
					return nil
				}
				return &engine.Rejection{Reason: "One", Cure: cure}
			})
		}}
	}
	asleep := &policy{name: "Asleep", open: func(s *engine.Session) {
		s.Hooks.AddStaticFilter(nil, func(_ *cluster.Shape, n *cluster.Node) *engine.Rejection {
			if n.Name == "b" {
				return &engine.Rejection{Reason: "Asleep", Cure: engine.Wait}
			}
			return nil
		})
	}}
	gang := func(devices int) enginetest.Part { return enginetest.Job("g").Gang(2).Devices(devices) }
	used := enginetest.Node("b").GPUs(2, "A100", "80Gi").With(func(n *cluster.Node) { n.Devices[0].Foreign = 1 << 30 })
	tests := map[string]struct {
		policies  []engine.Plugin
		parts     []enginetest.Part
		permanent bool
	}{
		"a task-form filter":                 {[]engine.Plugin{one(held)}, onTwo(gang(1)), true},
		"a filter that waiting cures":        {[]engine.Plugin{one(engine.Wait)}, onTwo(gang(1)), false},
		"another task on an unsuitable node": {[]engine.Plugin{one(held)}, onTwo(gang(1), enginetest.Node("c").CPU(8, "64Gi"), enginetest.Job("x").CPU(1000, "1Gi").On("c")), false},
		"a node that is not ready":           {[]engine.Plugin{asleep}, onTwo(gang(2)), false},
		"not ready, and a filter":            {[]engine.Plugin{asleep, one(held)}, onTwo(gang(1)), false},
		"foreign memory":                     {[]engine.Plugin{one(held)}, []enginetest.Part{twoNodes()[0], used, gang(1)}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := enginetest.State(tt.parts...)
			r := run(t, enginetest.Engine(append(tt.policies, fit())...), s).Refusals[0]
			if r.Permanent != tt.permanent {
				t.Errorf("%s, permanent %v", r.Reason, r.Permanent)
			}
		})
	}
}

func onTwo(parts ...enginetest.Part) []enginetest.Part { return append(twoNodes(), parts...) }
