package model_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/model"
)

// table returns a model that only a table knows, which takes this much memory in all.
func table(gib cluster.Bytes) *estimate.Model {
	return &estimate.Model{Name: "voice", Format: "table", Weights: estimate.Weights{Layers: gib * gi}}
}

func TestForms(t *testing.T) {
	large := enginetest.Node("l").Slices(2, "A100-MIG-3g.40gb", "3g.40gb", "40Gi")
	mig := enginetest.Node("m").Slices(7, "A100-MIG-1g.10gb", "1g.10gb", "10Gi")
	tests := map[string]struct {
		spec  *model.Spec
		nodes []*cluster.Group
		want  string
	}{
		"vllm": {spec(t, "vllm", "", use(toy())), groups(a10s("a", 2), a10s("b", 1)), `
1 device: 1 × 1, nodes 1, devices 1
2 devices (tp 2): 2 × 1, nodes 1, devices 2
- several nodes: placement.distributed is false
`},
		"vllm, heads that do not divide": {spec(t, "vllm", "", use(toy())), groups(a10s("a", 6)), `
1 device: 1 × 1, nodes 1, devices 1
2 devices (tp 2): 2 × 1, nodes 1, devices 2
4 devices (tp 4): 4 × 1, nodes 1, devices 4
- several nodes: placement.distributed is false
`},
		"vllm, several nodes": {spec(t, "vllm", "llama-3.3-70b", distributed, tokens(4096)), groups(a10s("a", 4), a10s("a2", 4), enginetest.Node("b").GPUs(1, "T4", "16Gi")), `
- 1 device: each device must give 135.89 GiB, and the largest, A10, gives 21.6 GiB (90 % of it)
- 2 devices (tp 2): each device must give 69.36 GiB, and the largest, A10, gives 21.6 GiB (90 % of it)
- 4 devices (tp 4): each device must give 35.94 GiB, and the largest, A10, gives 21.6 GiB (90 % of it)
2 nodes of A10 × 4 (tp 4, pp 2): 4 × 2, nodes 2, devices 4
- 14 nodes of T4 × 1 (tp 1, pp 14): it takes 14 nodes of T4 × 1, and the cluster has 1
`},
		"vllm, fixed parallelism": {spec(t, "vllm", "", use(toy()), distributed, func(s *model.Spec) { s.Serving.Tensor, s.Serving.Pipeline = 2, 2 }), groups(a10s("a", 4), a10s("b", 2), a10s("b2", 2), a10s("c", 3)), `
4 devices (tp 2, pp 2): 2 × 2, nodes 1, devices 4
- several nodes of A10 × 3: its 3 devices are not divisible by tensor parallelism 2
- several nodes of A10 × 4: it takes 4 devices, and two whole nodes have 8
2 nodes of A10 × 2 (tp 2, pp 2): 2 × 2, nodes 2, devices 2
2 nodes with 2 × A10 (tp 2, pp 2): 2 × 2, nodes 2, devices 2
`},
		"vllm, some devices of each node": {spec(t, "vllm", "", total(100), distributed), groups(a10s("a", 4), a10s("b", 4), a10s("c", 4), a10s("d", 4)), `
- 1 device: each device must give 100 GiB, and the largest, A10, gives 21.6 GiB (90 % of it)
- 2 devices (tp 2): each device must give 50 GiB, and the largest, A10, gives 21.6 GiB (90 % of it)
- 4 devices (tp 4): each device must give 25 GiB, and the largest, A10, gives 21.6 GiB (90 % of it)
2 nodes of A10 × 4 (tp 4, pp 2): 4 × 2, nodes 2, devices 4
3 nodes with 2 × A10 (tp 2, pp 3): 2 × 3, nodes 3, devices 2
2 nodes with 4 + 2 × A10 (tp 2, pp 3): 2 × 3, nodes 2, devices 4
2 nodes with 4 + 1 × A10 (tp 1, pp 5): 1 × 5, nodes 2, devices 4
2 nodes with 3 + 2 × A10 (tp 1, pp 5): 1 × 5, nodes 2, devices 3
3 nodes with 3 + 1 + 1 × A10 (tp 1, pp 5): 1 × 5, nodes 3, devices 3
`},
		"vllm, more nodes than exist": {spec(t, "vllm", "", total(80), distributed), groups(a10s("a", 1), a10s("b", 1), enginetest.Node("c").GPUs(1, "T4", "16Gi")), `
- 1 device: each device must give 80 GiB, and the largest, A10, gives 21.6 GiB (90 % of it)
- 4 nodes of A10 × 1 (tp 1, pp 4): it takes 4 nodes of A10 × 1, and the cluster has 2
- 6 nodes of T4 × 1 (tp 1, pp 6): it takes 6 nodes of T4 × 1, and the cluster has 1
`},
		"vllm, fixed devices": {spec(t, "vllm", "", use(toy()), distributed, func(s *model.Spec) { s.Place.Devices = 6 }), groups(a10s("a", 8), a10s("b", 3), a10s("c", 4)), `
6 devices (tp 2, pp 3): 2 × 3, nodes 1, devices 6
- several nodes of A10 × 3: 4 layers cannot be divided over 2 nodes
- several nodes of A10 × 4: it takes 6 devices, and two whole nodes have 8
- several nodes of A10 × 8: it takes 6 devices, and two whole nodes have 16
3 nodes with 2 × A10 (tp 2, pp 3): 2 × 3, nodes 3, devices 2
`},
		"vllm, slices": {spec(t, "vllm", "", use(toy())), groups(mig, a10s("a", 2)), `
1 device: 1 × 1, nodes 1, devices 1
1 slice 1g.10gb: 1 × 1, nodes 1, devices 1
2 devices (tp 2): 2 × 1, nodes 1, devices 2
- several nodes: placement.distributed is false
`},
		"nothing but slices": {spec(t, "vllm", "", use(toy())), groups(mig, large), `
- 1 device: no node has a device that it runs on
1 slice 1g.10gb: 1 × 1, nodes 1, devices 1
1 slice 3g.40gb: 1 × 1, nodes 1, devices 1
- several nodes: placement.distributed is false
`},
		"the slice that is large enough": {spec(t, "custom", "", total(20)), groups(large, mig), `
- 1 device: no node has a device that it runs on
1 slice 3g.40gb: 1 × 1, nodes 1, devices 1
`},
		"no slice is large enough": {spec(t, "vllm", "", total(40)), groups(mig, large), `
- 1 device: no node has a device that it runs on
- 1 slice 3g.40gb: it must give 40 GiB, and gives 36 GiB
- several nodes: placement.distributed is false
`},
		"sglang": {spec(t, "sglang", "", use(toy())), groups(a10s("a", 2)), `
1 device: 1 × 1, nodes 1, devices 1
2 devices (tp 2): 2 × 1, nodes 1, devices 2
- several nodes: placement.distributed is false
`},
		"mindie": {spec(t, "mindie", "", use(toy())), groups(npus("a", 8), a10s("b", 8)), `
1 device: 1 × 1, nodes 1, devices 1
2 devices (tp 2): 2 × 1, nodes 1, devices 2
4 devices (tp 4): 4 × 1, nodes 1, devices 4
8 devices (tp 8): 8 × 1, nodes 1, devices 8
- several nodes: placement.distributed is false
`},
		"mindie without its devices": {spec(t, "mindie", "", use(toy())), groups(a10s("b", 8)), `
- 1 device: no node has a device that it runs on
- several nodes: placement.distributed is false
`},
		"voxbox": {spec(t, "voxbox", "", use(table(10)), offload), groups(a10s("a", 2)), `
1 device: 1 × 1, nodes 1, devices 1
CPU: 1 × 1, nodes 1, devices 0
`},
		"voxbox, several devices": {spec(t, "voxbox", "", use(table(10)), func(s *model.Spec) { s.Serving.Tensor = 2 }, offload), groups(a10s("a", 2)), `
- 2 devices (tp 2): voxbox uses one device
CPU: 1 × 1, nodes 1, devices 0
`},
		"voxbox, devices requested": {spec(t, "voxbox", "", use(table(10)), offload, func(s *model.Spec) { s.Place.Devices = 1 }), groups(a10s("a", 2)), `
1 device: 1 × 1, nodes 1, devices 1
- CPU: placement.devicesPerReplica asks for devices
`},
		"vllm on cpu": {spec(t, "vllm", "", use(toy()), offload), groups(a10s("a", 1)), `
1 device: 1 × 1, nodes 1, devices 1
- several nodes: placement.distributed is false
`},
		"custom": {spec(t, "custom", "", total(30), offload), groups(a10s("a", 4)), `
- 1 device: each device must give 30 GiB, and the largest, A10, has 24 GiB
2 devices (tp 2): 2 × 1, nodes 1, devices 2
4 devices (tp 4): 4 × 1, nodes 1, devices 4
CPU: 1 × 1, nodes 1, devices 0
`},
		"custom, selected": {spec(t, "custom", "", total(8), offload, selected("a:cuda:0")), groups(a10s("a", 4)), `
1 device: 1 × 1, nodes 1, devices 1
2 devices (tp 2): 2 × 1, nodes 1, devices 2
4 devices (tp 4): 4 × 1, nodes 1, devices 4
- CPU: placement.devices selects devices
`},
		"custom, no nodes": {spec(t, "custom", "", total(8)), nil, `
- 1 device: no node has a device that it runs on
`},
		"too large": {spec(t, "vllm", "", total(200)), groups(a10s("a", 1)), `
- 1 device: each device must give 200 GiB, and the largest, A10, gives 21.6 GiB (90 % of it)
- several nodes: placement.distributed is false
`},
		"too large, bytes": {spec(t, "custom", "", total(200)), groups(a10s("a", 1)), `
- 1 device: each device must give 200 GiB, and the largest, A10, has 24 GiB
`},
		"draft that cannot be divided": {spec(t, "vllm", "", use(toy()), draft(3)), groups(a10s("a", 2)), `
1 device: 1 × 1, nodes 1, devices 1
2 devices (tp 2): 2 × 1, nodes 1, devices 2
- several nodes: placement.distributed is false
`},
		"adapters": {spec(t, "vllm", "", use(toy()), func(s *model.Spec) { s.Adapters = 2 * gi }), groups(a10s("a", 1)), `
1 device: 1 × 1, nodes 1, devices 1
- several nodes: placement.distributed is false
`},
		"crude": {spec(t, "custom", "", use(&estimate.Model{Name: "raw", Format: "safetensors", Weights: estimate.Weights{Layers: 10 * gi}})), groups(a10s("a", 2)), `
1 device: 1 × 1, nodes 1, devices 1
2 devices (tp 2): 2 × 1, nodes 1, devices 2
`},
	}
	for name, tt := range tests {
		if diff := cmp.Diff(tt.want, "\n"+forms(convert(t, tt.spec, tt.nodes))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func use(m *estimate.Model) func(*model.Spec) { return func(s *model.Spec) { s.Source = m } }

func total(gib cluster.Bytes) func(*model.Spec) {
	return func(s *model.Spec) { s.Memory.Total = gib * gi }
}

func tokens(n int) func(*model.Spec) { return func(s *model.Spec) { s.Serving.Context = n } }

func distributed(s *model.Spec) { s.Place.Distributed = true }

func offload(s *model.Spec) { s.Place.Offload = true }

func wholeNodes(s *model.Spec) { s.Place.WholeNodes = true }

func selected(node string) func(*model.Spec) {
	return func(s *model.Spec) {
		s.Place.Selected = []cluster.DeviceID{{Node: node[:1], Type: "cuda", Index: int(node[len(node)-1] - '0')}}
	}
}

// draft adds a draft model of 1 GiB with this many heads, all of them key heads.
func draft(heads int) func(*model.Spec) {
	return func(s *model.Spec) {
		s.Draft = toy()
		s.Draft.Name, s.Draft.Weights.Layers = "draft", gi
		s.Draft.Architecture.Heads, s.Draft.Architecture.KVHeads = heads, heads
	}
}
