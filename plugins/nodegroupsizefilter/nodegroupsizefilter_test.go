package nodegroupsizefilter

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

func TestAdmit(t *testing.T) {
	tooSmall := func(want, have int64) *engine.Rejection {
		return &engine.Rejection{
			Reason: GroupTooSmall, Cure: engine.Grow, Subject: "A100 × 8",
			Want: engine.Quantity{Value: want, Unit: engine.Count},
			Have: engine.Quantity{Value: have, Unit: engine.Count},
		}
	}
	tests := map[string]struct {
		whole cluster.WholeNodes
		nodes int
		want  *engine.Rejection
	}{
		"a node for each replica":       {cluster.WholeNodes{Replicas: 2, NodesPerReplica: 1}, 2, nil},
		"more than enough":              {cluster.WholeNodes{Replicas: 2, NodesPerReplica: 1}, 3, nil},
		"one node too few":              {cluster.WholeNodes{Replicas: 3, NodesPerReplica: 1}, 2, tooSmall(3, 2)},
		"several nodes per replica":     {cluster.WholeNodes{Replicas: 2, NodesPerReplica: 2}, 3, tooSmall(4, 3)},
		"no node passed the filters":    {cluster.WholeNodes{Replicas: 1, NodesPerReplica: 1}, 0, tooSmall(1, 0)},
		"the number of nodes overflows": {cluster.WholeNodes{Replicas: math.MaxInt64, NodesPerReplica: 3}, 2, tooSmall(math.MaxInt64, 2)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			group := &cluster.Group{Key: cluster.GroupKey{Product: "A100", Count: 8, Memory: 81920}}
			got := admit(nil, &tt.whole, group, make([]*cluster.Node, tt.nodes))
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("rejection (-want +got):\n%s", d)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"least": 1}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}
