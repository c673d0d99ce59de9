package standard

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"pgregory.net/rapid"
)

// A node that is not ready, or has files that are not ready, is not waited for if the
// task would not fit it anyway.
func TestNoWaitingForANodeThatNeverFits(t *testing.T) {
	node := func(phase cluster.Phase) *enginetest.NodeBuilder {
		return enginetest.Node("x").CPU(8, "64Gi").GPUs(1, "L4", "24Gi").Phase(phase)
	}
	loading := node("").Artifact("/m", "DOWNLOADING")
	model := func() *enginetest.JobBuilder { return enginetest.Job("p").Devices(1).ModelReplica(cluster.Binpack) }
	local := func(memory cluster.Bytes) func(*cluster.Shape) {
		return func(s *cluster.Shape) {
			s.Files.Path, s.Need.Memory = "/m", memory
			s.Need.Selected = []cluster.DeviceID{{Node: "x", Type: "cuda", Index: 0}}
		}
	}
	tests := map[string]struct {
		node      *enginetest.NodeBuilder
		job       *enginetest.JobBuilder
		reason    engine.Reason
		permanent bool
	}{
		"it would fit":    {node("NOT_READY"), enginetest.Job("p").Devices(1), "NodeNotReady", false},
		"two devices":     {node("NOT_READY"), enginetest.Job("p").Devices(2), "TooFewDevices", true},
		"larger than any": {node("NOT_READY"), enginetest.Job("p").DeviceMemory(1, "800Gi"), "GPUMemoryTooSmall", true},
		"another runtime": {node("NOT_READY"), model().Shape(func(s *cluster.Shape) { s.Need.Types = []string{"cann"} }), "BackendNotSupported", true},
		"files not there": {loading, model().Shape(local(20 << 30)), "LocalPathNotReady", false},
		"files are not ready, and it would not fit": {loading, model().Shape(local(40 << 30)), "GPUMemoryTooSmall", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out := decide(t, enginetest.State(tt.node, tt.job))
			if len(out.Refusals) != 1 || out.Refusals[0].Reason != tt.reason || out.Refusals[0].Permanent != tt.permanent {
				t.Errorf("refusals %+v, want %s, permanent %v", out.Refusals, tt.reason, tt.permanent)
			}
		})
	}
}

// A gang that is refused permanently is refused in the empty cluster as well.
func TestPermanentMeansEvenAlone(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		draw := func(from, to int, what string) int { return rapid.IntRange(from, to).Draw(r, what) }
		var nodes []enginetest.Part
		names := make([]string, draw(1, 5, "nodes"))
		for i := range names {
			names[i] = fmt.Sprintf("n%d", i)
			n := enginetest.Node(names[i]).CPU(draw(2, 4, "cores"), "64Gi").Label("row", fmt.Sprint(draw(0, 1, "row")))
			if rack := draw(0, 3, "rack"); rack > 0 {
				n.Label("rack", fmt.Sprint(rack))
			}
			nodes = append(nodes, n)
		}
		members := draw(2, 4, "members")
		gang := enginetest.Job("gang").Label("app", "x").Gang(members).Min(draw(2, members, "min")).CPU(int64(1000*draw(1, 3, "task")), "1Gi")
		for _, within := range []string{"", "rack"} {
			if rapid.Bool().Draw(r, "apart within "+within) {
				gang.Affinity(cluster.JobTerm{Selector: cluster.Term{{Key: "app", Operator: cluster.In, Values: []string{"x"}}}, Within: within, Anti: true})
			}
		}
		if rapid.Bool().Draw(r, "one row") {
			gang.Topology(cluster.Topology{Required: "row"})
		}
		parts := append(slices.Clone(nodes), gang)
		for i := range draw(0, 4, "others") {
			other := enginetest.Job(fmt.Sprintf("o%d", i)).CPU(int64(1000*draw(1, 4, "held")), "1Gi").Label("app", rapid.SampledFrom([]string{"x", "y"}).Draw(r, "app"))
			parts = append(parts, other.On(rapid.SampledFrom(names).Draw(r, "on")))
		}
		if out := decide(t, enginetest.State(parts...)); len(out.Refusals) == 0 || !out.Refusals[0].Permanent || out.Refusals[0].Surplus {
			return
		}
		if out := decide(t, enginetest.State(append(nodes, gang)...)); len(out.Decisions) > 0 {
			r.Fatalf("refused permanently, but placed when it is alone: %v", out.Decisions)
		}
	})
}
