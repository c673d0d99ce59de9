package capacityfilter

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
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
		"need unknown":                        {cluster.WholeNodes{Replicas: 9, NodesPerReplica: 1}, 1, nil},
		"exactly full":                        {cluster.WholeNodes{Replicas: 2, NodesPerReplica: 1, Memory: gib(160)}, 2, nil},
		"one byte too much":                   {cluster.WholeNodes{Replicas: 2, NodesPerReplica: 1, Memory: gib(160) + 1}, 2, small(ReplicaTooLarge, gib(160)+1, gib(160))},
		"a replica over two nodes":            {cluster.WholeNodes{Replicas: 1, NodesPerReplica: 2, Memory: gib(300)}, 2, nil},
		"too large for its two nodes":         {cluster.WholeNodes{Replicas: 1, NodesPerReplica: 2, Memory: gib(321)}, 9, small(ReplicaTooLarge, gib(321), gib(320))},
		"exactly what is usable of a node":    {cluster.WholeNodes{Replicas: 2, NodesPerReplica: 1, Memory: gib(100), Usable: gib(100)}, 2, nil},
		"more than is usable of a node":       {cluster.WholeNodes{Replicas: 1, NodesPerReplica: 1, Memory: gib(120), Usable: gib(100)}, 2, small(ReplicaTooLarge, gib(120), gib(100))},
		"more than is usable of all nodes":    {cluster.WholeNodes{Replicas: 3, NodesPerReplica: 1, Memory: gib(80), Usable: gib(100)}, 2, small(GroupMemoryTooSmall, gib(240), gib(200))},
		"enough in two nodes, but not in one": {cluster.WholeNodes{Replicas: 1, NodesPerReplica: 1, Memory: gib(200)}, 2, small(ReplicaTooLarge, gib(200), gib(160))},
		"too many replicas":                   {cluster.WholeNodes{Replicas: 3, NodesPerReplica: 1, Memory: gib(150)}, 2, small(GroupMemoryTooSmall, gib(450), gib(320))},
		"no node passed the filters":          {cluster.WholeNodes{Replicas: 1, NodesPerReplica: 1, Memory: gib(8)}, 0, small(GroupMemoryTooSmall, gib(8), 0)},
		"the sum overflows":                   {cluster.WholeNodes{Replicas: math.MaxInt64, NodesPerReplica: 1, Memory: gib(150)}, 2, small(GroupMemoryTooSmall, math.MaxInt64, gib(320))},
		"the replica overflows":               {cluster.WholeNodes{Replicas: 2, NodesPerReplica: 1, Memory: math.MaxInt64}, 2, small(ReplicaTooLarge, math.MaxInt64, gib(160))},
	}
	var parts []enginetest.Part
	for i := range 9 {
		parts = append(parts, enginetest.Node(fmt.Sprintf("n%d", i)).CPU(8, "64Gi").GPUs(4, "A100", "40Gi"))
	}
	group := enginetest.State(parts...).View().Groups()[0]
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := filter{}.admit(nil, &tt.whole, group, group.Nodes[:tt.nodes])
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("rejection (-want +got):\n%s", d)
			}
		})
	}
}

// A group is rejected with a reason of its own if its device memory is not known.
func TestMemoryNotKnown(t *testing.T) {
	group := enginetest.State(enginetest.Node("n").GPUs(2, "unknown", "0")).View().Groups()[0]
	want := &engine.Rejection{
		Reason: DeviceMemoryUnknown, Cure: engine.Grow, Subject: "unknown × 2",
		Want: engine.Quantity{Value: 8 << 30, Unit: engine.Bytes}, Have: engine.Quantity{Unit: engine.Bytes},
	}
	got := filter{}.admit(nil, &cluster.WholeNodes{Replicas: 1, NodesPerReplica: 1, Memory: 8 << 30}, group, group.Nodes)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("rejection (-want +got):\n%s", d)
	}
}

// The node is one of two in a group; the other provides 48 GiB.
func TestAdmitNode(t *testing.T) {
	devices := func(change func(*cluster.Device)) func(*cluster.Node) {
		return func(n *cluster.Node) {
			for i := range n.Devices {
				change(&n.Devices[i])
			}
		}
	}
	rejection := func(why engine.Reason, cure engine.Cure, want, have int64) *engine.Rejection {
		return &engine.Rejection{Reason: why, Cure: cure, Subject: "L4 × 2", Want: engine.Quantity{Value: want << 30, Unit: engine.Bytes}, Have: engine.Quantity{Value: have << 30, Unit: engine.Bytes}}
	}
	tests := map[string]struct {
		change func(*cluster.Node)
		memory string
		nodes  int // of a replica
		want   *engine.Rejection
	}{
		"all memory of the node":                   {devices(func(*cluster.Device) {}), "48Gi", 1, nil},
		"reserved":                                 {devices(func(d *cluster.Device) { d.OwnSpec().Reserved = 4 << 30 }), "48Gi", 1, rejection(DeviceMemoryTooSmall, engine.Grow, 48, 40)},
		"what is not reserved":                     {devices(func(d *cluster.Device) { d.OwnSpec().Reserved = 4 << 30 }), "40Gi", 1, nil},
		"half of a replica on two nodes":           {devices(func(d *cluster.Device) { d.OwnSpec().Reserved = 4 << 30 }), "80Gi", 2, nil},
		"more than half of a replica on two nodes": {devices(func(d *cluster.Device) { d.OwnSpec().Reserved = 4 << 30 }), "82Gi", 2, rejection(DeviceMemoryTooSmall, engine.Grow, 41, 40)},
		"foreign memory":                           {devices(func(d *cluster.Device) { d.Foreign = 1 << 30 }), "48Gi", 1, rejection(DeviceMemoryInUse, engine.Wait|engine.Evict, 48, 46)},
		"replicas of one device":                   {devices(func(d *cluster.Device) { d.OwnSpec().Shares = "card" }), "48Gi", 1, rejection(DeviceMemoryTooSmall, engine.Grow, 48, 24)},
		"unified memory":                           {func(n *cluster.Node) { n.Unified = true }, "48Gi", 1, rejection(DeviceMemoryTooSmall, engine.Grow, 48, 30)},
		"too much for all nodes of the group":      {devices(func(d *cluster.Device) { d.OwnSpec().Reserved = 4 << 30 }), "49Gi", 1, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			node := func(name string) *enginetest.NodeBuilder {
				return enginetest.Node(name).CPU(8, "30Gi").GPUs(2, "L4", "24Gi")
			}
			state := enginetest.State(node("a").With(tt.change), node("b"), enginetest.Job("j").WholeNodes(1, tt.memory))
			job := state.Jobs()[0]
			job.Alternatives[0].Whole.NodesPerReplica = tt.nodes
			if d := cmp.Diff(tt.want, filter{}.admitNode(job.Tasks()[0], job, state.Node("a"))); d != "" {
				t.Errorf("rejection (-want +got):\n%s", d)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"headroom": 0.1}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}
