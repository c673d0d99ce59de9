package model_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/model"
)

func key(product string, count int, gib int64) *cluster.GroupKey {
	return &cluster.GroupKey{Product: product, Count: count, Memory: gib << 10, Resource: cluster.DefaultDeviceResource}
}

// eight returns a model of which only the 8 GiB of weights are known.
func eight() *estimate.Model {
	return &estimate.Model{Name: "eight", Weights: estimate.Weights{Layers: 8 * gi}}
}

// unlabelled returns a node with devices that are counted but not described.
func unlabelled(name string, count int) enginetest.Part {
	return enginetest.Node(name).GPUs(count, "unknown", "0")
}

func TestWholeNodes(t *testing.T) {
	device := func(gib cluster.Bytes, n int) func(*model.Spec) {
		return func(s *model.Spec) { s.Memory.Device, s.Place.Devices = gib*gi, n }
	}
	mig := func() enginetest.Part { return enginetest.Node("m").GPUs(7, "A100-MIG-1g.10gb", "10Gi") }
	tests := map[string]struct {
		spec  *model.Spec
		nodes []*cluster.Group
		want  []cluster.WholeNodes
	}{
		// 1.071 × 8 + 2.3 = 10.868 GiB of 0.84 × 24, and of 4 × 0.84 × 24.
		"one for each group": {
			spec(t, "vllm", "", use(eight()), wholeNodes, replicas(3)), groups(a10s("a", 4), a10s("b", 1)), []cluster.WholeNodes{
				{Replicas: 3, NodesPerReplica: 1, Memory: 11669426144, Only: key("A10", 1, 24), Usable: 21646635171},
				{Replicas: 3, NodesPerReplica: 1, Memory: 11669426144, Only: key("A10", 4, 24), Usable: 86586540687},
			},
		},
		// A slice gives 8.4 GiB, and 10.87 GiB are needed. The refusal has both figures.
		"a slice that is too small": {
			spec(t, "vllm", "", use(eight()), wholeNodes), groups(mig()), []cluster.WholeNodes{
				{Replicas: 1, NodesPerReplica: 1, Memory: 11669426144, Only: key("A100-MIG-1g.10gb", 7, 10), Usable: 9019431321},
			},
		},
		"a slice that is too small is left out if another group is large enough": {
			spec(t, "vllm", "", use(eight()), wholeNodes), groups(mig(), a10s("b", 1)), []cluster.WholeNodes{
				{Replicas: 1, NodesPerReplica: 1, Memory: 11669426144, Only: key("A10", 1, 24), Usable: 21646635171},
			},
		},
		"total memory": {
			spec(t, "vllm", "", total(60), wholeNodes), groups(a10s("a", 2), a10s("b", 1)), []cluster.WholeNodes{
				{Replicas: 1, NodesPerReplica: 3, Memory: 60 * gi, Only: key("A10", 1, 24)},
				{Replicas: 1, NodesPerReplica: 2, Memory: 60 * gi, Only: key("A10", 2, 24)},
			},
		},
		"total memory, on slices": {
			spec(t, "vllm", "", total(60), wholeNodes), groups(mig()), []cluster.WholeNodes{
				{Replicas: 1, NodesPerReplica: 1, Memory: 60 * gi, Only: key("A100-MIG-1g.10gb", 7, 10), Usable: 10 * gi},
			},
		},
		"memory of each device": {
			spec(t, "vllm", "", device(20, 3), wholeNodes), groups(a10s("a", 2), enginetest.Node("t").GPUs(4, "T4", "16Gi")), []cluster.WholeNodes{
				{Replicas: 1, NodesPerReplica: 2, Memory: 60 * gi, Only: key("A10", 2, 24)},
			},
		},
		"memory of each device, on smaller devices": {
			spec(t, "vllm", "", device(20, 0), wholeNodes), groups(enginetest.Node("t").GPUs(4, "T4", "16Gi")), []cluster.WholeNodes{
				{Replicas: 1, NodesPerReplica: 1, Memory: 20 * gi, Only: key("T4", 4, 16), Usable: 16 * gi},
			},
		},
		// A dump of a cluster may count devices without describing them.
		"total memory, on devices of unknown memory": {
			spec(t, "vllm", "", total(8), wholeNodes), groups(unlabelled("u", 2)), []cluster.WholeNodes{
				{Replicas: 1, NodesPerReplica: 1, Memory: 8 * gi, Only: key("unknown", 2, 0)},
			},
		},
		"memory of each device, on devices of unknown memory": {
			spec(t, "vllm", "", device(8, 2), wholeNodes), groups(unlabelled("u", 2)), []cluster.WholeNodes{
				{Replicas: 1, NodesPerReplica: 1, Memory: 8 * gi, Only: key("unknown", 2, 0)},
			},
		},
		// 1.071 × 8 + 2 × 2.3 GiB.
		"a source, on devices of unknown memory": {
			spec(t, "vllm", "", use(eight()), wholeNodes), groups(unlabelled("u", 2)), []cluster.WholeNodes{
				{Replicas: 1, NodesPerReplica: 1, Memory: 14139032339, Only: key("unknown", 2, 0)},
			},
		},
		"devices of unknown memory are left out if another group is large enough": {
			spec(t, "vllm", "", total(8), wholeNodes), groups(unlabelled("u", 2), a10s("b", 1)), []cluster.WholeNodes{
				{Replicas: 1, NodesPerReplica: 1, Memory: 8 * gi, Only: key("A10", 1, 24)},
			},
		},
		"more nodes than a replica is divided over": {
			spec(t, "vllm", "", total(8000), wholeNodes), groups(a10s("b", 1)), []cluster.WholeNodes{
				{Replicas: 1, NodesPerReplica: 1, Memory: 8000 * gi, Only: key("A10", 1, 24), Usable: 24 * gi},
			},
		},
		"the group is chosen already": {
			spec(t, "vllm", "", total(60), wholeNodes, kept("T4", 1, 5), replicas(2)), groups(a10s("a", 2)), []cluster.WholeNodes{
				{Replicas: 2, NodesPerReplica: 5, Only: key("T4", 1, 16)},
			},
		},
		"no group": {
			spec(t, "vllm", "", use(eight()), wholeNodes), nil, []cluster.WholeNodes{{Replicas: 1, NodesPerReplica: 1}},
		},
		"draft and adapters": {
			// 1.071 × (8 + 1 + 1) + 2.3 GiB.
			spec(t, "vllm", "", use(eight()), wholeNodes, draft(8), func(s *model.Spec) { s.Adapters = gi }), groups(a10s("b", 1)), []cluster.WholeNodes{
				{Replicas: 1, NodesPerReplica: 1, Memory: 13969381131, Only: key("A10", 1, 24), Usable: 21646635171},
			},
		},
	}
	for name, tt := range tests {
		var got []cluster.WholeNodes
		for _, a := range convert(t, tt.spec, tt.nodes).Jobs[0].Alternatives {
			got = append(got, *a.Whole)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The name of a form says how the model is divided over the nodes. All their devices are
// used.
func TestWholeNodesAreNamed(t *testing.T) {
	mig := enginetest.Node("m").GPUs(7, "A100-MIG-1g.10gb", "10Gi")
	tests := map[string]struct {
		spec *model.Spec
		node enginetest.Part
		want string
	}{
		"one device":   {spec(t, "vllm", "", use(toy()), wholeNodes), a10s("a", 1), "1 whole node of A10 × 1"},
		"one node":     {spec(t, "vllm", "", use(toy()), wholeNodes), a10s("a", 4), "1 whole node of A10 × 4 (tp 4)"},
		"heads":        {spec(t, "vllm", "", use(toy()), wholeNodes), a10s("a", 6), "1 whole node of A10 × 6 (tp 2, pp 3)"},
		"powers":       {spec(t, "mindie", "", total(8), wholeNodes), npus("a", 6), "1 whole node of 910B × 6 (tp 2, pp 3)"},
		"several":      {spec(t, "vllm", "", total(60), wholeNodes), a10s("a", 2), "2 whole nodes of A10 × 2 (tp 2, pp 2)"},
		"chosen":       {spec(t, "vllm", "", use(toy()), wholeNodes, kept("T4", 2, 3)), a10s("a", 2), "3 whole nodes of T4 × 2 (tp 2, pp 3)"},
		"slices alone": {spec(t, "vllm", "", total(8), wholeNodes), mig, "1 whole node of A100-MIG-1g.10gb × 7"},
	}
	for name, tt := range tests {
		if got := alternatives(convert(t, tt.spec, groups(tt.node)).Jobs[0]); len(got) != 1 || got[0] != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// Remarks say what is needed and which forms are not tried.
func TestRemarks(t *testing.T) {
	tests := map[string]struct {
		spec *model.Spec
		want []string
	}{
		"memory is set": {spec(t, "custom", "", each(30)), []string{
			"As 1 device it needs 30 GiB of each, as its spec says.",
			"As 1 device it would not fit even if all were free: each device must give 30 GiB, and the largest, A10, has 24 GiB.",
		}},
		"whole nodes": {spec(t, "vllm", "", use(eight()), wholeNodes), []string{"It needs 10.87 GiB on 1 whole node of A10 × 1."}},
		"crude": {spec(t, "custom", "", use(&estimate.Model{Name: "raw", Weights: estimate.Weights{Layers: gi / 2}, Assumed: []string{"The layers are equal."}})), []string{
			"On 1 device it needs 2.6 GiB: weights 512 MiB, overhead 2.1 GiB.", "Assumed: The layers are equal.", "Assumed: " + estimate.CrudeAssumption,
		}},
		"part by part": {spec(t, "vllm", "", use(toy()), func(s *model.Spec) { s.Serving.Sequences = 16 }), []string{
			"On 1 device it needs 5.93 GiB: weights 4 GiB, KV cache for 16 × 4,096 tokens 512 MiB, activations 153 MiB, graphs 819 MiB, overhead 492 MiB.",
			"Not tried: several nodes, because placement.distributed is false.",
		}},
	}
	for name, tt := range tests {
		if diff := cmp.Diff(tt.want, convert(t, tt.spec, groups(a10s("b", 1))).Jobs[0].Remarks); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
