package model_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/estimate/instance"
	"github.com/berth-project/berth/internal/model"
)

// needs returns what the tasks of each alternative request, one task of each role.
func needs(j *cluster.Job) map[string]cluster.Need {
	out := map[string]cluster.Need{}
	for _, a := range j.Alternatives {
		for _, t := range a.Tasks {
			if t.Index == 0 {
				out[a.Name+" "+t.Role] = t.Shape.Need
			}
		}
	}
	return out
}

func each(gib cluster.Bytes) func(*model.Spec) {
	return func(s *model.Spec) { s.Memory.Device = gib * gi }
}

func TestRequestedDevices(t *testing.T) {
	cuda := []string{"cann", "corex", "cuda", "dtk", "hpu", "maca", "musa", "neuware", "rocm"}
	sglang := []string{"cann", "cuda", "rocm"}
	utilization := func(s *model.Spec) { s.Utilization = 500 }
	tests := map[string]struct {
		spec  *model.Spec
		nodes []*cluster.Group
		want  map[string]cluster.Need
	}{
		"vllm takes nine tenths of each": {
			spec(t, "vllm", "", each(10)), groups(a10s("a", 2)), map[string]cluster.Need{
				"1 device server":         {Devices: 1, Share: 900, SumAtLeast: 10 * gi, Types: cuda},
				"2 devices (tp 2) server": {Devices: 2, Share: 900, SumAtLeast: 20 * gi, Types: cuda, SameProduct: true},
			},
		},
		"vllm with gpuMemoryUtilization": {
			spec(t, "vllm", "", each(10), utilization), groups(a10s("a", 1)), map[string]cluster.Need{
				"1 device server": {Devices: 1, Share: 500, SumAtLeast: 10 * gi, Types: cuda},
			},
		},
		// On one device, 880 ‰ are for weights and cache and 120 ‰ for the rest: 10 GiB × 1000 ÷ 880.
		// On four devices they are 850 ‰ and 120 ‰: × 970 ÷ 850. Two bytes are added for two roundings.
		"sglang reserves memory in addition to its share": {
			spec(t, "sglang", "", each(10), func(s *model.Spec) { s.Place.Devices = 4 }), groups(a10s("a", 4)), map[string]cluster.Need{
				"4 devices (tp 4) server": {Devices: 4, Share: 1000, SumAtLeast: 4 * (10*gi*1000/813 + 2), Types: sglang, SameProduct: true},
			},
		},
		"sglang on one device": {
			spec(t, "sglang", "", each(10)), groups(a10s("a", 1)), map[string]cluster.Need{
				"1 device server": {Devices: 1, Share: 1000, SumAtLeast: 10*gi*1000/833 + 2, Types: sglang},
			},
		},
		"mindie takes eight tenths": {
			spec(t, "mindie", "", total(90)), groups(npus("a", 2)), map[string]cluster.Need{
				"2 devices (tp 2) server": {Devices: 2, Share: 800, SumAtLeast: 90 * gi, Types: []string{"cann"}, SameProduct: true},
			},
		},
		"custom takes what it needs": {
			spec(t, "custom", "", each(10)), groups(a10s("a", 1)), map[string]cluster.Need{
				"1 device server": {Devices: 1, Memory: 10 * gi},
			},
		},
		"slices are not combined": {
			spec(t, "custom", "", each(9), func(s *model.Spec) { s.Place.Devices = 2 }),
			groups(a10s("a", 2), enginetest.Node("m").GPUs(7, "A100-MIG-1g.10gb", "10Gi")), map[string]cluster.Need{
				"2 devices (tp 2) server": {Devices: 2, Memory: 9 * gi, SameProduct: true, Products: []string{"A10"}},
			},
		},
		"slices alone are refused rather than combined": {
			spec(t, "custom", "", each(9), func(s *model.Spec) { s.Place.Devices = 2 }),
			groups(enginetest.Node("m").GPUs(7, "A100-MIG-1g.10gb", "10Gi")), map[string]cluster.Need{
				"2 devices (tp 2) server": {Devices: 2, Memory: 9 * gi, SameProduct: true, Products: []string{"a kind that can be combined"}},
			},
		},
		"layers that spill take one slice": {
			spec(t, "llamacpp", "", use(stack()), offload), groups(enginetest.Node("m").GPUs(7, "A100-MIG-1g.10gb", "10Gi")), map[string]cluster.Need{
				"partial offload server": {Devices: 1, Layers: &cluster.Layers{Total: 10, Bytes: 4 * gi, Fixed: gi, Spill: true, Least: 1}},
				"CPU server":             {},
			},
		},
		"only the devices that were selected": {
			spec(t, "custom", "", each(9), selected("a:cuda:1")), groups(a10s("a", 1)), map[string]cluster.Need{
				"1 device server": {Devices: 1, Memory: 9 * gi, Selected: []cluster.DeviceID{{Node: "a", Type: "cuda", Index: 1}}},
			},
		},
		"all devices of several nodes give the same share": {
			spec(t, "vllm", "", total(60), distributed), groups(a10s("a", 2), a10s("b", 2)), map[string]cluster.Need{
				"2 nodes of A10 × 2 (tp 2, pp 2) leader":       {WholeNode: true, Share: 900, SumAtLeast: 30 * gi, Types: cuda},
				"2 nodes of A10 × 2 (tp 2, pp 2) worker":       {WholeNode: true, Share: 900, SumAtLeast: 30 * gi, Types: cuda},
				"2 nodes with 2 + 1 × A10 (tp 1, pp 3) leader": {Devices: 2, Share: 900, SumAtLeast: 40 * gi, SameProduct: true, Products: []string{"A10"}, Types: cuda},
				"2 nodes with 2 + 1 × A10 (tp 1, pp 3) worker": {Devices: 1, Share: 900, SumAtLeast: 20 * gi, Products: []string{"A10"}, Types: cuda},
			},
		},
		"whole nodes": {
			spec(t, "vllm", "", total(30), wholeNodes), groups(a10s("a", 2)), map[string]cluster.Need{
				"1 whole node of A10 × 2 (tp 2) node": {WholeNode: true, Types: cuda},
			},
		},
	}
	for name, tt := range tests {
		if diff := cmp.Diff(tt.want, needs(convert(t, tt.spec, tt.nodes).Jobs[0])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Weights and cache must fit into SGLang's static share, and everything else into the
// memory outside it.
func TestStaticShareHoldsBoth(t *testing.T) {
	s := spec(t, "sglang", "", use(toy()))
	p := convert(t, s, groups(a10s("a", 1)))
	f := p.Forms[0]
	static, dynamic := f.Parts.Weights+f.Parts.KVCache, f.Parts.Activations+f.Parts.Graph+f.Parts.Overhead
	claimed := p.Jobs[0].Alternatives[0].Tasks[0].Shape.Need.SumAtLeast
	if static+dynamic != f.PerDevice {
		t.Errorf("%d static and %d other bytes are not %d", static, dynamic, f.PerDevice)
	}
	// Both parts of the device lose some memory that is not usable.
	lost := instance.Unusable("A10", "cuda", 24*gi)
	static, dynamic = static+lost*833/1000, dynamic+lost*167/1000
	if claimed*833/1000 < static || claimed*167/1000 < dynamic {
		t.Errorf("%d static and %d other bytes do not fit into %d", static, dynamic, claimed)
	}
	if smaller := claimed - 16; smaller*833/1000 >= static && smaller*167/1000 >= dynamic {
		t.Errorf("%d would have been enough, not %d", smaller, claimed)
	}
}

// The draft and the adapters are counted on each device of the model.
func TestDraftsAndAdaptersAreAdded(t *testing.T) {
	g := groups(a10s("a", 2))
	alone := convert(t, spec(t, "vllm", "", use(toy())), g)
	adapted := convert(t, spec(t, "vllm", "", use(toy()), func(s *model.Spec) { s.Adapters = 2 * gi }), g)
	drafted := convert(t, spec(t, "vllm", "", use(toy()), draft(8)), g)
	whole := convert(t, spec(t, "vllm", "", use(toy()), draft(3)), g) // 3 heads do not divide over 2
	for i := range 2 {
		if got := adapted.Forms[i].PerDevice - alone.Forms[i].PerDevice; got != 2*gi {
			t.Errorf("adapters add %d on %d devices", got, i+1)
		}
		n := cluster.Bytes(i + 1)
		if got := drafted.Forms[i].Parts.Weights - alone.Forms[i].Parts.Weights; got != gi/n {
			t.Errorf("the draft's weights are %d on %d devices", got, i+1)
		}
		if got := whole.Forms[i].Parts.Weights - alone.Forms[i].Parts.Weights; got != gi {
			t.Errorf("a draft that cannot be divided is %d on %d devices", got, i+1)
		}
	}
	if drafted.Forms[0].Parts.KVCache != 3*alone.Forms[0].Parts.KVCache { // the draft has twice as many key heads
		t.Errorf("the draft's cache: %+v", drafted.Forms[0].Parts)
	}
}

// Tasks request memory of the node: what the backend takes, or more if the spec requests
// more. Memory.Host takes precedence over both.
func TestHostMemory(t *testing.T) {
	memory := func(gib int64) func(*model.Spec) {
		return func(s *model.Spec) {
			s.Resources = cluster.Resources{{Name: cluster.CPU, Value: 4000}, {Name: cluster.Memory, Value: gib << 30}}
		}
	}
	tests := map[string]struct {
		spec *model.Spec
		want cluster.Bytes
	}{
		"the backend's":      {spec(t, "vllm", "", each(1)), 2 * gi},
		"less is requested":  {spec(t, "vllm", "", each(1), memory(1)), 2 * gi},
		"more is requested":  {spec(t, "vllm", "", each(1), memory(8)), 8 * gi},
		"the spec sets it":   {spec(t, "vllm", "", each(1), memory(8), func(s *model.Spec) { s.Memory.Host = gi }), gi},
		"without any device": {spec(t, "voxbox", "", use(table(10)), offload, noDevice), 10 * gi},
		"the spec sets less": {spec(t, "voxbox", "", use(table(10)), offload, noDevice, func(s *model.Spec) { s.Memory.Host = 6 * gi }), 6 * gi},
		"the spec sets more": {spec(t, "voxbox", "", use(table(10)), offload, noDevice, func(s *model.Spec) { s.Memory.Host = 12 * gi }), 12 * gi},
	}
	for name, tt := range tests {
		j := convert(t, tt.spec, groups(a10s("a", 1))).Jobs[0]
		if got := j.Alternatives[len(j.Alternatives)-1].Tasks[0].Shape.Resources.Of(cluster.Memory); got != int64(tt.want) {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// noDevice makes all forms but the one without devices impossible.
func noDevice(s *model.Spec) { s.Serving.Tensor = 2 }

// Without a device the node's memory holds what the spec sets for devices, even if
// Memory.Host is less.
func TestMemoryWithoutDevice(t *testing.T) {
	for host, want := range map[cluster.Bytes]cluster.Bytes{0: 20, 13: 20, 30: 30} {
		j := convert(t, spec(t, "custom", "", each(20), offload, func(s *model.Spec) { s.Memory.Host = host * gi }), groups(a10s("a", 1))).Jobs[0]
		last := j.Alternatives[len(j.Alternatives)-1]
		if got := cluster.Bytes(last.Tasks[0].Shape.Resources.Of(cluster.Memory)); last.Name != "CPU" || got != want*gi {
			t.Errorf("with %d GiB given, %s takes %d", host, last.Name, got>>30)
		}
	}
}

// The remark says what is requested of the node's memory and, if the spec sets it, what is
// needed.
func TestRemarkWithoutDevice(t *testing.T) {
	for host, want := range map[cluster.Bytes]string{
		0: "As CPU it needs 10 GiB of the node's memory.",
		6: "As CPU it requests 6 GiB of the node's memory, as its spec says, and needs 10 GiB.",
	} {
		j := convert(t, spec(t, "voxbox", "", use(table(10)), offload, noDevice, func(s *model.Spec) { s.Memory.Host = host * gi }), nil).Jobs[0]
		if j.Remarks[0] != want {
			t.Errorf("%s, want %s", j.Remarks[0], want)
		}
	}
}
