package standard

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/fixture"
)

// A node that is not ready, or has not got its files yet, is nothing to wait for
// where it would never do.
func TestNobodyWaitsForANodeThatNeverDoes(t *testing.T) {
	node := func(phase cluster.Phase) *fixture.NodeBuilder {
		return fixture.Node("x").CPU(8, "64Gi").GPUs(1, "L4", "24Gi").Phase(phase)
	}
	loading := node("").Artifact("/m", "DOWNLOADING")
	model := func() *fixture.JobBuilder { return fixture.Job("p").Devices(1).Served(cluster.Binpack) }
	local := func(memory cluster.Bytes) func(*cluster.Shape) {
		return func(s *cluster.Shape) {
			s.Files.Path, s.Need.Memory = "/m", memory
			s.Need.Selected = []cluster.DeviceID{{Node: "x", Type: "cuda", Index: 0}}
		}
	}
	tests := map[string]struct {
		node      *fixture.NodeBuilder
		job       *fixture.JobBuilder
		reason    engine.Reason
		permanent bool
	}{
		"it would do":           {node("NOT_READY"), fixture.Job("p").Devices(1), "NodeNotReady", false},
		"two devices":           {node("NOT_READY"), fixture.Job("p").Devices(2), "TooFewDevices", true},
		"larger than any":       {node("NOT_READY"), fixture.Job("p").DeviceMemory(1, "800Gi"), "GPUMemoryTooSmall", true},
		"another runtime":       {node("NOT_READY"), model().Shape(func(s *cluster.Shape) { s.Need.Types = []string{"cann"} }), "BackendNotSupported", true},
		"files not there":       {loading, model().Shape(local(20 << 30)), "LocalPathNotReady", false},
		"files of no use there": {loading, model().Shape(local(40 << 30)), "GPUMemoryTooSmall", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out := decide(t, fixture.State(tt.node, tt.job))
			if len(out.Refusals) != 1 || out.Refusals[0].Reason != tt.reason || out.Refusals[0].Permanent != tt.permanent {
				t.Errorf("refusals %+v, want %s, permanent %v", out.Refusals, tt.reason, tt.permanent)
			}
		})
	}
}
