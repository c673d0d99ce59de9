package standard_test

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/standard"
)

// A lost MIG slice counts as its fraction of a GPU, even if no other device of its kind
// exists: the queue is charged 143 thousandths, and not the whole slice.
func TestVictimOnALostSlice(t *testing.T) {
	const slice = "1g.10gb"
	state := enginetest.State(
		enginetest.Node("a").CPU(8, "64Gi").GPUs(1, "H100", "80Gi").With(func(n *cluster.Node) {
			n.Devices = append(n.Devices, cluster.Device{DeviceSpec: &cluster.DeviceSpec{Product: "H100", Memory: 10 << 30, Profile: slice, Resource: cluster.PartitionResource + slice}, UUID: "MIG-1"})
		}),
		enginetest.Queue("rich").Quota(gpu, 0), enginetest.Queue("poor").Quota(gpu, 1000),
		enginetest.Job("old").Queue("rich").CPU(8000, "1Gi").Preemptible().Shape(func(s *cluster.Shape) { s.Need = cluster.Need{Devices: 1, Partition: slice} }).On("a"),
		enginetest.Job("new").Queue("poor").CPU(4000, "1Gi").Devices(1),
	)
	if err := state.Apply(cluster.NodeSeen{Name: "a", Lost: &[]string{"MIG-1"}}); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []engine.Search{engine.Indexed, engine.Twin} {
		e, err := engine.New(standard.Registry(), standard.Profile())
		if err != nil {
			t.Fatal(err)
		}
		s := e.Open(state.Clone(), engine.Options{Search: mode})
		out, err := s.Run()
		s.Close()
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Decisions) != 2 || out.Decisions[0].Action != engine.EvictTask || out.Decisions[0].Task.Job != "job/old" {
			t.Errorf("mode %v: %d decisions, %d refusals", mode, len(out.Decisions), len(out.Refusals))
		}
	}
}
