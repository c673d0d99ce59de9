package capacityfilter

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/fixture"
)

func TestAdmit(t *testing.T) {
	small := func(why engine.Reason, want, have cluster.Bytes) *engine.Rejection {
		return &engine.Rejection{
			Reason: why, Cure: engine.Grow, Subject: "A100 × 4",
			Want: engine.Quantity{Value: int64(want), Unit: engine.Bytes},
			Have: engine.Quantity{Value: int64(have), Unit: engine.Bytes},
		}
	}
	gib := func(n int64) cluster.Bytes { return cluster.Bytes(n << 30) }
	tests := map[string]struct { // nodes have 4 × 40 GiB
		whole cluster.WholeNodes
		nodes int
		want  *engine.Rejection
	}{
		"need unknown":                 {cluster.WholeNodes{Replicas: 9, NodesPerReplica: 1}, 1, nil},
		"exactly full":                 {cluster.WholeNodes{Replicas: 2, NodesPerReplica: 1, Memory: gib(160)}, 2, nil},
		"one byte too much":            {cluster.WholeNodes{Replicas: 2, NodesPerReplica: 1, Memory: gib(160) + 1}, 2, small(ReplicaTooLarge, gib(160)+1, gib(160))},
		"a replica over two nodes":     {cluster.WholeNodes{Replicas: 1, NodesPerReplica: 2, Memory: gib(300)}, 2, nil},
		"too large for its two nodes":  {cluster.WholeNodes{Replicas: 1, NodesPerReplica: 2, Memory: gib(321)}, 9, small(ReplicaTooLarge, gib(321), gib(320))},
		"what is usable of a node":     {cluster.WholeNodes{Replicas: 2, NodesPerReplica: 1, Memory: gib(100), Usable: gib(100)}, 2, nil},
		"more than is usable of it":    {cluster.WholeNodes{Replicas: 1, NodesPerReplica: 1, Memory: gib(120), Usable: gib(100)}, 2, small(ReplicaTooLarge, gib(120), gib(100))},
		"more than is usable of all":   {cluster.WholeNodes{Replicas: 3, NodesPerReplica: 1, Memory: gib(80), Usable: gib(100)}, 2, small(GroupMemoryTooSmall, gib(240), gib(200))},
		"sum is no help to one":        {cluster.WholeNodes{Replicas: 1, NodesPerReplica: 1, Memory: gib(200)}, 2, small(ReplicaTooLarge, gib(200), gib(160))},
		"too many replicas":            {cluster.WholeNodes{Replicas: 3, NodesPerReplica: 1, Memory: gib(150)}, 2, small(GroupMemoryTooSmall, gib(450), gib(320))},
		"no node passed the filters":   {cluster.WholeNodes{Replicas: 1, NodesPerReplica: 1, Memory: gib(8)}, 0, small(GroupMemoryTooSmall, gib(8), 0)},
		"a sum too large to count":     {cluster.WholeNodes{Replicas: math.MaxInt64, NodesPerReplica: 1, Memory: gib(150)}, 2, small(GroupMemoryTooSmall, math.MaxInt64, gib(320))},
		"a replica too large to count": {cluster.WholeNodes{Replicas: 2, NodesPerReplica: 1, Memory: math.MaxInt64}, 2, small(ReplicaTooLarge, math.MaxInt64, gib(160))},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			group := &cluster.Group{Key: cluster.Key{Product: "A100", Count: 4, Memory: 40960}}
			got := admit(nil, &tt.whole, group, make([]*cluster.Node, tt.nodes))
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("rejection (-want +got):\n%s", d)
			}
		})
	}
}

// A group of which nothing says the memory holds nothing, and the reason says why.
func TestMemoryNotKnown(t *testing.T) {
	group := &cluster.Group{Key: cluster.Key{Product: "unknown", Count: 2}}
	want := &engine.Rejection{
		Reason: DeviceMemoryUnknown, Cure: engine.Grow, Subject: "unknown × 2",
		Want: engine.Quantity{Value: 8 << 30, Unit: engine.Bytes}, Have: engine.Quantity{Unit: engine.Bytes},
	}
	got := admit(nil, &cluster.WholeNodes{Replicas: 1, NodesPerReplica: 1, Memory: 8 << 30}, group, make([]*cluster.Node, 1))
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("rejection (-want +got):\n%s", d)
	}
}

func TestArguments(t *testing.T) {
	if _, err := New(fixture.Arguments(`{"headroom": 0.1}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}
