package standard

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// actions returns the decisions as action and task.
func actions(out engine.Outcome) []string {
	var got []string
	for _, d := range out.Decisions {
		got = append(got, string(d.Action)+" "+d.Task.Job)
	}
	return got
}

// A selected device counts for the quota, also if it is not on the first node.
func TestSelectedDevicesCountForTheQuota(t *testing.T) {
	s := enginetest.State(enginetest.Queue("g").Tier(cluster.TierGuaranteed).Quota(cluster.DefaultDeviceResource, 1000), enginetest.Queue("s").Tier(cluster.TierStandard).Quota(cluster.DefaultDeviceResource, 1000),
		enginetest.Node("a").CPU(8, "64Gi").GPUs(1, "A", "80Gi"), enginetest.Node("b").CPU(8, "64Gi").GPUs(1, "A", "80Gi"),
		enginetest.Job("own").Queue("g").Devices(1).On("a"), enginetest.Job("other").Queue("s").Preemptible().Devices(1).On("b"),
		enginetest.Job("more").Queue("g").Preemptible().Devices(1).Shape(func(sh *cluster.Shape) {
			sh.Need.Selected = []cluster.DeviceID{{Node: "b", Type: "cuda", Index: 0}}
		}))
	if got := actions(decide(t, s)); got != nil {
		t.Errorf("beyond its quota it took room of another queue: %v", got)
	}
}

func TestWholeNodeWaitsForTheOneBefore(t *testing.T) {
	whole := func(name string, priority int32) *enginetest.JobBuilder {
		return enginetest.Job(name).Priority(priority).Preemptible().ModelReplica(cluster.Binpack).Shape(func(s *cluster.Shape) { s.Need.WholeNode, s.Need.Share = true, 450 })
	}
	s := enginetest.State(enginetest.Node("a").CPU(8, "64Gi").GPUs(2, "A", "80Gi"), whole("low", 0).On("a"), whole("high", 5))
	if diff := cmp.Diff([]string{"Evict job/low", "Nominate job/high"}, actions(decide(t, s))); diff != "" {
		t.Error(diff)
	}
}

// A model in layers requests what it takes, and not a whole device.
func TestLayersAskForWhatTheyTake(t *testing.T) {
	layers := func(gib cluster.Bytes) func(*cluster.Shape) {
		return func(s *cluster.Shape) {
			s.Need = cluster.Need{Devices: 1, Layers: &cluster.Layers{Total: 1, Bytes: gib << 30}}
		}
	}
	tests := map[string]struct {
		parts []enginetest.Part
		want  []string
	}{
		"within a quota of half a device": {[]enginetest.Part{enginetest.Queue("g").Tier(cluster.TierGuaranteed).Quota(cluster.DefaultDeviceResource, 500), enginetest.Queue("s").Tier(cluster.TierStandard),
			enginetest.Node("a").CPU(8, "64Gi").GPUs(1, "A", "80Gi"), enginetest.Job("x").Queue("s").Preemptible().Devices(1).On("a"),
			enginetest.Job("m").Queue("g").Preemptible().ModelReplica(cluster.Binpack).Shape(layers(8))}, []string{"Evict job/x", "Nominate job/m"}},
		"what is free in pieces": {[]enginetest.Part{enginetest.Node("a").CPU(8, "64Gi").GPUs(1, "A", "80Gi"), enginetest.Node("b").CPU(8, "64Gi").GPUs(1, "A", "80Gi"),
			enginetest.Job("p").DeviceMemory(1, "24Gi").On("a"), enginetest.Job("x").Preemptible().DeviceMemory(1, "32Gi").On("a"), enginetest.Job("y").DeviceMemory(1, "48Gi").On("b"),
			enginetest.Job("m").ModelReplica(cluster.Binpack).Shape(layers(48))}, []string{"Evict job/x", "Nominate job/m", "Nominate job/x"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, actions(decide(t, enginetest.State(tt.parts...)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// When the number of spread replicas is reduced, the remaining ones are still spread.
func TestFewerReplicasStaySpread(t *testing.T) {
	parts := []enginetest.Part{}
	for _, n := range []string{"a", "b", "c"} {
		parts = append(parts, enginetest.Node(n).CPU(64, "640Gi").GPUs(8, "A", "80Gi"))
	}
	for i, n := range []string{"b", "b", "c", "a", "a"} {
		parts = append(parts, enginetest.Job(fmt.Sprint("m-", i)).ModelReplica(cluster.Spread).Set("m", 3).Created(int64(i)).DeviceMemory(1, "80Gi").On(n))
	}
	if diff := cmp.Diff([]string{"Evict job/m-4", "Evict job/m-1"}, actions(decide(t, enginetest.State(parts...)))); diff != "" {
		t.Error(diff)
	}
}

// A group is chosen once: when all replicas have lost their nodes, they are placed on it again.
func TestGroupOutlivesItsReplicas(t *testing.T) {
	w := func(name string) *enginetest.JobBuilder { return enginetest.Job(name).Set("m", 2).WholeNodes(1, "8Gi") }
	s := enginetest.State(enginetest.Node("a1").CPU(8, "64Gi").GPUs(4, "A100", "40Gi"), enginetest.Node("a2").CPU(8, "64Gi").GPUs(4, "A100", "40Gi"), w("m-0"), w("m-1"))
	decide(t, s)
	var changes []cluster.Change
	for _, id := range []string{"job/m-0", "job/m-1"} {
		changes = append(changes, cluster.TaskGone{Task: s.Job(id).Tasks()[0].Ref()})
	}
	for _, name := range []string{"s1", "s2"} { // these would be a better fit
		changes = append(changes, cluster.NodePut{Node: *enginetest.Node(name).CPU(8, "64Gi").GPUs(1, "A10", "24Gi").Build()})
	}
	if err := s.ApplyAll(changes); err != nil {
		t.Fatal(err)
	}
	for _, d := range decide(t, s).Decisions {
		if d.Group.Product != "A100" {
			t.Errorf("%s is on %s", d.Task.ID(), d.Node)
		}
	}
}
