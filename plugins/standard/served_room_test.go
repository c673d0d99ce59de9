package standard

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/fixture"
)

// did is what was decided, as action and task.
func did(out engine.Outcome) []string {
	var got []string
	for _, d := range out.Decisions {
		got = append(got, string(d.Action)+" "+d.Task.Job.ID)
	}
	return got
}

// A device that is selected elsewhere than on the first node counts like any other.
func TestSelectionIsNoWayAroundAQuota(t *testing.T) {
	s := fixture.State(fixture.Queue("g").Tier(cluster.TierGuaranteed).Quota(cluster.DefaultDeviceResource, 1000), fixture.Queue("s").Tier(cluster.TierStandard).Quota(cluster.DefaultDeviceResource, 1000),
		fixture.Node("a").CPU(8, "64Gi").GPUs(1, "A", "80Gi"), fixture.Node("b").CPU(8, "64Gi").GPUs(1, "A", "80Gi"),
		fixture.Job("own").Queue("g").Devices(1).On("a"), fixture.Job("other").Queue("s").Preemptible().Devices(1).On("b"),
		fixture.Job("more").Queue("g").Preemptible().Devices(1).Shape(func(sh *cluster.Shape) {
			sh.Need.Selected = []cluster.DeviceID{{Node: "b", Type: "cuda", Index: 0}}
		}))
	if got := did(decide(t, s)); got != nil {
		t.Errorf("beyond its quota it took what is another's: %v", got)
	}
}

func TestWholeNodeWaitsForTheOneBefore(t *testing.T) {
	whole := func(name string, priority int32) *fixture.JobBuilder {
		return fixture.Job(name).Priority(priority).Preemptible().Served(cluster.Binpack).Shape(func(s *cluster.Shape) { s.Need.WholeNode, s.Need.Share = true, 450 })
	}
	s := fixture.State(fixture.Node("a").CPU(8, "64Gi").GPUs(2, "A", "80Gi"), whole("low", 0).On("a"), whole("high", 5))
	if diff := cmp.Diff([]string{"Evict job/low", "Nominate job/high"}, did(decide(t, s))); diff != "" {
		t.Error(diff)
	}
}

// A file of layers asks for what it takes, not for a whole device.
func TestLayersAskForWhatTheyTake(t *testing.T) {
	layers := func(gib cluster.Bytes) func(*cluster.Shape) {
		return func(s *cluster.Shape) {
			s.Need = cluster.Need{Devices: 1, Layers: &cluster.Layers{Total: 1, Bytes: gib << 30}}
		}
	}
	tests := map[string]struct {
		parts []fixture.Part
		want  []string
	}{
		"within a quota of half a device": {[]fixture.Part{fixture.Queue("g").Tier(cluster.TierGuaranteed).Quota(cluster.DefaultDeviceResource, 500), fixture.Queue("s").Tier(cluster.TierStandard),
			fixture.Node("a").CPU(8, "64Gi").GPUs(1, "A", "80Gi"), fixture.Job("x").Queue("s").Preemptible().Devices(1).On("a"),
			fixture.Job("m").Queue("g").Preemptible().Served(cluster.Binpack).Shape(layers(8))}, []string{"Evict job/x", "Nominate job/m"}},
		"what is free in pieces": {[]fixture.Part{fixture.Node("a").CPU(8, "64Gi").GPUs(1, "A", "80Gi"), fixture.Node("b").CPU(8, "64Gi").GPUs(1, "A", "80Gi"),
			fixture.Job("p").DeviceMemory(1, "24Gi").On("a"), fixture.Job("x").Preemptible().DeviceMemory(1, "32Gi").On("a"), fixture.Job("y").DeviceMemory(1, "48Gi").On("b"),
			fixture.Job("m").Served(cluster.Binpack).Shape(layers(48))}, []string{"Evict job/x", "Nominate job/m", "Nominate job/x"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, did(decide(t, fixture.State(tt.parts...)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}
