package model_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/model"
)

// stack returns a model of 10 layers of 4 GiB each, with 1 GiB in addition on each
// device. On one device it takes 38 GiB, and in the node's memory 40 GiB.
func stack() *estimate.Model {
	return &estimate.Model{
		Name: "stack", Format: "gguf", Weights: estimate.Weights{Layers: 36 * gi},
		Layered: &estimate.Layered{Need: func(f estimate.Serving) (estimate.LayeredNeed, error) {
			if f.Context == 1 {
				return estimate.LayeredNeed{}, errors.New("one token is too few")
			}
			return estimate.LayeredNeed{
				Layers: 10, Bytes: 4 * gi, Divided: estimate.Working{Each: gi}, Partly: estimate.Working{Each: gi}, Host: 3 * gi, HostOnly: 40 * gi,
				Whole: estimate.Breakdown{Weights: 36 * gi, KVCache: gi, Activations: gi},
			}, nil
		}},
	}
}

// uneven returns a model of 7 layers of 4 GiB, two of 6 GiB and an output layer of 10 GiB,
// with 1 GiB in addition on each device: 50 GiB together.
func uneven() *estimate.Model {
	m := stack()
	m.Layered = &estimate.Layered{Need: func(estimate.Serving) (estimate.LayeredNeed, error) {
		return estimate.LayeredNeed{
			Layers: 10, Bytes: 10 * gi, Divided: estimate.Working{Each: gi}, Partly: estimate.Working{Each: gi}, Host: 3 * gi, HostOnly: 52 * gi,
			Sizes: []cluster.Bytes{4 * gi, 4 * gi, 4 * gi, 4 * gi, 4 * gi, 4 * gi, 4 * gi, 6 * gi, 6 * gi, 10 * gi},
			Whole: estimate.Breakdown{Weights: 48 * gi, KVCache: 2 * gi, Activations: gi},
		}, nil
	}}
	return m
}

func TestFormsByLayers(t *testing.T) {
	l40 := func(name string, n int) enginetest.Part { return enginetest.Node(name).GPUs(n, "L40", "48Gi") }
	devices := func(n int) func(*model.Spec) { return func(s *model.Spec) { s.Place.Devices = n } }
	tests := map[string]struct {
		spec  *model.Spec
		nodes []*cluster.Group
		want  string
	}{
		"one device": {spec(t, "llamacpp", "", use(stack())), groups(l40("a", 1)), `
1 device: 1 × 1, nodes 1, devices 1
several devices: 1 × 1, nodes 1, devices 0
- several nodes: placement.distributed is false
- partial offload: placement.cpuOffload is not set
`},
		"every form is allowed": {spec(t, "llamacpp", "", use(stack()), distributed, offload), groups(a10s("a", 2), a10s("b", 2), a10s("c", 1), a10s("d", 1), enginetest.Node("e").GPUs(1, "T4", "4Gi")), `
- 1 device: one device must give 38 GiB, and none has so much
several devices: 1 × 1, nodes 1, devices 0
2 nodes of A10: 1 × 2, nodes 2, devices 0
3 nodes of A10: 1 × 3, nodes 3, devices 0
4 nodes of A10: 1 × 4, nodes 4, devices 0
partial offload: 1 × 1, nodes 1, devices 0
CPU: 1 × 1, nodes 1, devices 0
`},
		// If every layer had 10 GiB, a device would hold 4, and the model would take 3 devices and 3 nodes.
		"layers with their own sizes": {spec(t, "llamacpp", "", use(uneven()), distributed), groups(l40("a", 4), l40("b", 1), l40("c", 1)), `
- 1 device: one device must give 51 GiB, and none has so much
2 devices: 1 × 1, nodes 1, devices 2
3 devices: 1 × 1, nodes 1, devices 3
several devices: 1 × 1, nodes 1, devices 0
2 nodes of L40: 1 × 2, nodes 2, devices 0
3 nodes of L40: 1 × 3, nodes 3, devices 0
- partial offload: placement.cpuOffload is not set
`},
		"a number of layers on devices": {spec(t, "llamacpp", "", use(uneven()), offload, func(s *model.Spec) { s.Place.DeviceLayers = new(4) }), groups(l40("a", 1), a10s("b", 4)), `
1 device: 1 × 1, nodes 1, devices 1
2 devices: 1 × 1, nodes 1, devices 2
3 devices: 1 × 1, nodes 1, devices 3
several devices: 1 × 1, nodes 1, devices 0
- several nodes: placement.distributed is false
`},
		"all layers on devices": {spec(t, "llamacpp", "", use(uneven()), offload, func(s *model.Spec) { s.Place.DeviceLayers = new(10) }), groups(l40("a", 1)), `
- 1 device: one device must give 51 GiB, and none has so much
- several devices: 10 layers must be on devices, and at most 9 fit, on 1 × L40
- several nodes: placement.distributed is false
- partial offload: placement.deviceLayers requests all layers on devices
`},
		"more nodes than exist": {spec(t, "llamacpp", "", use(stack()), distributed), groups(a10s("a", 1), a10s("b", 1), a10s("c", 1), enginetest.Node("e").GPUs(1, "T4", "6Gi")), `
- 1 device: one device must give 38 GiB, and none has so much
- several devices: 10 layers must be on devices, and at most 5 fit, on 1 × A10
2 nodes of A10: 1 × 2, nodes 2, devices 0
3 nodes of A10: 1 × 3, nodes 3, devices 0
- 10 nodes of T4: it takes 10 nodes with T4, and there are 1
- partial offload: placement.cpuOffload is not set
`},
		"fixed number of devices": {spec(t, "llamacpp", "", use(stack()), offload, devices(2)), groups(l40("a", 4)), `
2 devices: 1 × 1, nodes 1, devices 2
- several nodes: placement.distributed is false
partial offload: 1 × 1, nodes 1, devices 2
- CPU: placement.devicesPerReplica asks for devices
`},
		"one device is fixed": {spec(t, "llamacpp", "", use(stack()), devices(1)), groups(l40("a", 4)), `
1 device: 1 × 1, nodes 1, devices 1
- several nodes: placement.distributed is false
- partial offload: placement.cpuOffload is not set
`},
		"more devices than a node has": {spec(t, "llamacpp", "", use(stack()), devices(8)), groups(l40("a", 4)), `
- 8 devices: no node has 8 devices that it runs on
- several nodes: placement.distributed is false
- partial offload: placement.cpuOffload is not set
`},
		"fixed number of devices over nodes": {spec(t, "llamacpp", "", use(stack()), devices(8), distributed), groups(l40("a", 4), l40("b", 2), l40("c", 2), l40("d", 2)), `
- 8 devices: no node has 8 devices that it runs on
2 nodes of L40: 1 × 2, nodes 2, devices 4
4 nodes of L40: 1 × 4, nodes 4, devices 2
3 nodes with 4 + 2 + 2 × L40: 1 × 3, nodes 3, devices 4
4 nodes with 4 + 2 + 1 + 1 × L40: 1 × 4, nodes 4, devices 4
4 nodes with 3 + 2 + 2 + 1 × L40: 1 × 4, nodes 4, devices 3
- partial offload: placement.cpuOffload is not set
`},
		"devices that do not divide over nodes": {spec(t, "llamacpp", "", use(stack()), devices(1), distributed), groups(l40("a", 4)), `
1 device: 1 × 1, nodes 1, devices 1
- several nodes: 1 device of one product cannot be divided evenly over several nodes so that they hold it
- partial offload: placement.cpuOffload is not set
`},
		"no nodes": {spec(t, "llamacpp", "", use(stack()), offload, distributed), nil, `
- 1 device: no node has 1 device that it runs on
- several devices: no node has 1 device that it runs on
- several nodes: no device holds a single layer of 5 GiB
- partial offload: no node has 1 device that it runs on
CPU: 1 × 1, nodes 1, devices 0
`},
		"only on cpu": {spec(t, "llamacpp", "", use(stack()), offload), groups(enginetest.Node("b").GPUs(1, "T4", "4Gi")), `
- 1 device: one device must give 38 GiB, and none has so much
- several devices: 10 layers must be on devices, and at most 0 fit, on 1 × T4
- several nodes: placement.distributed is false
- partial offload: 1 layer must be on devices, and at most 0 fit, on 1 × T4
CPU: 1 × 1, nodes 1, devices 0
`},
		"slices are not combined": {spec(t, "llamacpp", "", use(stack()), offload), groups(enginetest.Node("m").GPUs(7, "A100-MIG-1g.10gb", "10Gi")), `
- 1 device: one device must give 38 GiB, and none has so much
- several devices: 10 layers must be on devices, and at most 2 fit, on A100-MIG-1g.10gb
- several nodes: placement.distributed is false
partial offload: 1 × 1, nodes 1, devices 1
CPU: 1 × 1, nodes 1, devices 0
`},
		"selected, not on cpu": {spec(t, "llamacpp", "", use(stack()), offload, selected("a:cuda:0")), groups(l40("a", 1)), `
1 device: 1 × 1, nodes 1, devices 1
several devices: 1 × 1, nodes 1, devices 0
- several nodes: placement.distributed is false
partial offload: 1 × 1, nodes 1, devices 0
- CPU: placement.devices selects devices
`},
	}
	for name, tt := range tests {
		if diff := cmp.Diff(tt.want, "\n"+forms(convert(t, tt.spec, tt.nodes))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// unusable is how much of an L40 no program can allocate.
const unusable cluster.Bytes = 900 << 20

func onL40(fixed cluster.Bytes) []cluster.Sum { return []cluster.Sum{{Product: "L40", AtLeast: fixed}} }

func TestLayersRequested(t *testing.T) {
	s := spec(t, "llamacpp", "", use(stack()), offload, distributed, draft(8), func(s *model.Spec) { s.Adapters = 2 * gi })
	s.Draft = &estimate.Model{Name: "draft", Format: "gguf", Layered: &estimate.Layered{Need: func(estimate.Serving) (estimate.LayeredNeed, error) {
		return estimate.LayeredNeed{Whole: estimate.Breakdown{Weights: gi, KVCache: gi, Activations: gi, Graph: 9 * gi}}, nil
	}}}
	l40 := func(name string) enginetest.Part { return enginetest.Node(name).GPUs(2, "L40", "48Gi") }
	j := convert(t, s, groups(l40("a"), l40("b"), l40("c"), l40("d"))).Jobs[0]
	// The draft's 3 GiB and the adapters' 2 GiB are added to what is fixed on each device, and so
	// is what cannot be allocated. On one device that is a part in proportion to the 43 GiB.
	want := map[string]cluster.Need{
		"1 device server":        {Devices: 1, Layers: &cluster.Layers{Total: 1, Bytes: 37 * gi, Fixed: 6 * gi, FixedOn: onL40(6*gi + 43*gi*900/(48*1024-900) + 1)}},
		"several devices server": {SameProduct: true, Layers: &cluster.Layers{Total: 10, Bytes: 4 * gi, Fixed: 6 * gi, FixedOn: onL40(6*gi + unusable)}},
		"2 nodes of L40 leader":  {SameProduct: true, Products: []string{"L40"}, Layers: &cluster.Layers{Total: 5, Bytes: 4 * gi, Fixed: 6 * gi, FixedOn: onL40(6*gi + unusable)}},
		"2 nodes of L40 worker":  {SameProduct: true, Products: []string{"L40"}, Layers: &cluster.Layers{Total: 5, Bytes: 4 * gi, Fixed: 6 * gi, FixedOn: onL40(6*gi + unusable)}},
		"3 nodes of L40 leader":  {SameProduct: true, Products: []string{"L40"}, Layers: &cluster.Layers{Total: 3, Bytes: 4 * gi, Fixed: 6 * gi, FixedOn: onL40(6*gi + unusable)}},
		"3 nodes of L40 worker":  {SameProduct: true, Products: []string{"L40"}, Layers: &cluster.Layers{Total: 4, Bytes: 4 * gi, Fixed: 6 * gi, FixedOn: onL40(6*gi + unusable)}},
		"4 nodes of L40 leader":  {SameProduct: true, Products: []string{"L40"}, Layers: &cluster.Layers{Total: 2, Bytes: 4 * gi, Fixed: 6 * gi, FixedOn: onL40(6*gi + unusable)}},
		"4 nodes of L40 worker":  {SameProduct: true, Products: []string{"L40"}, Layers: &cluster.Layers{Total: 3, Bytes: 4 * gi, Fixed: 6 * gi, FixedOn: onL40(6*gi + unusable)}},
		"partial offload server": {SameProduct: true, Layers: &cluster.Layers{Total: 10, Bytes: 4 * gi, Fixed: 6 * gi, FixedOn: onL40(6*gi + unusable), Spill: true, Least: 1}},
		"CPU server":             {},
	}
	if diff := cmp.Diff(want, needs(j)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	last := j.Alternatives[len(j.Alternatives)-1].Tasks[0].Shape
	if got := last.Resources.Of(cluster.Memory); got != int64(45*gi) {
		t.Errorf("in the node's memory it takes %d", got)
	}
	if got := j.Alternatives[0].Tasks[0].Shape.Resources.Of(cluster.Memory); got != int64(3*gi) {
		t.Errorf("beside a device it takes %d of the node", got)
	}
}

// A form over several nodes puts the last layers on the node of the leader. The workers
// share a request that is large enough for each of their parts.
func TestSizesOfLayersRequested(t *testing.T) {
	l40 := func(name string) enginetest.Part { return enginetest.Node(name).GPUs(1, "L40", "48Gi") }
	j := convert(t, spec(t, "llamacpp", "", use(uneven()), offload, distributed), groups(l40("a"), l40("b"), l40("c"))).Jobs[0]
	on := []string{"L40"}
	run := func(count int, bytes cluster.Bytes) cluster.LayerRun {
		return cluster.LayerRun{Count: count, Bytes: bytes * gi}
	}
	want := map[string]cluster.Need{
		"2 nodes of L40 leader": {SameProduct: true, Products: on, Layers: &cluster.Layers{Total: 5, Bytes: 10 * gi, Fixed: gi, FixedOn: onL40(gi + unusable), Sizes: []cluster.LayerRun{run(2, 4), run(2, 6), run(1, 10)}}},
		"2 nodes of L40 worker": {SameProduct: true, Products: on, Layers: &cluster.Layers{Total: 5, Bytes: 4 * gi, Fixed: gi, FixedOn: onL40(gi + unusable)}},
		"3 nodes of L40 leader": {SameProduct: true, Products: on, Layers: &cluster.Layers{Total: 3, Bytes: 10 * gi, Fixed: gi, FixedOn: onL40(gi + unusable), Sizes: []cluster.LayerRun{run(2, 6), run(1, 10)}}},
		"3 nodes of L40 worker": {SameProduct: true, Products: on, Layers: &cluster.Layers{Total: 4, Bytes: 4 * gi, Fixed: gi, FixedOn: onL40(gi + unusable)}},
		"partial offload server": {SameProduct: true, Layers: &cluster.Layers{Total: 10, Bytes: 10 * gi, Fixed: gi, FixedOn: onL40(gi + unusable), Spill: true, Least: 1,
			Sizes: []cluster.LayerRun{run(7, 4), run(2, 6), run(1, 10)}}},
		"CPU server": {},
	}
	if diff := cmp.Diff(want, needs(j)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// With a fixed number of layers on devices, the last layers are requested of devices, and
// memory of the node for the others.
func TestFixedLayersRequested(t *testing.T) {
	s := spec(t, "llamacpp", "", use(uneven()), func(s *model.Spec) { s.Place.DeviceLayers, s.Adapters = new(4), 2*gi })
	j := convert(t, s, groups(enginetest.Node("a").GPUs(1, "L40", "48Gi"))).Jobs[0]
	shape := j.Alternatives[0].Tasks[0].Shape
	want := cluster.Need{Devices: 1, Layers: &cluster.Layers{Total: 4, Bytes: 10 * gi, Fixed: 3 * gi, FixedOn: onL40(3*gi + unusable), Outside: 6,
		Sizes: []cluster.LayerRun{{Count: 1, Bytes: 4 * gi}, {Count: 2, Bytes: 6 * gi}, {Count: 1, Bytes: 10 * gi}}}}
	if diff := cmp.Diff(want, shape.Need); diff != "" || shape.Resources.Of(cluster.Memory) != int64(27*gi) {
		t.Errorf("%d bytes of memory, %s", shape.Resources.Of(cluster.Memory), diff)
	}
}

func TestLayersErrors(t *testing.T) {
	g := groups(a10s("a", 1))
	if _, err := model.Convert(spec(t, "llamacpp", "", use(stack()), tokens(1)), g); err == nil || err.Error() != "one token is too few" {
		t.Errorf("the model: %v", err)
	}
	// The draft is not a GGUF file and has no layers, so its weights must be known.
	raw := &estimate.Model{Name: "raw", Format: "safetensors"}
	_, err := model.Convert(spec(t, "llamacpp", "", use(stack()), func(s *model.Spec) { s.Draft = raw }), g)
	if want := "draft: the weights of model raw are not known; set its memory"; err == nil || err.Error() != want {
		t.Errorf("the draft: %v", err)
	}
}

// The tasks of a form over several nodes are on different nodes. Other jobs are not
// affected.
func TestNodesAreDifferent(t *testing.T) {
	jobs := convert(t, spec(t, "llamacpp", "", use(stack()), distributed, replicas(2)), groups(a10s("a", 1), a10s("b", 1))).Jobs
	for i, j := range jobs {
		if len(j.Affinity) != 1 || !j.Affinity[0].Anti || !j.Affinity[0].Selector.Matches(j.Labels) || j.Affinity[0].Selector.Matches(jobs[1-i].Labels) {
			t.Errorf("%s: %+v with %v", j.ID, j.Affinity, j.Labels)
		}
	}
	if j := convert(t, spec(t, "llamacpp", "", use(stack())), groups(a10s("a", 2))).Jobs[0]; len(j.Affinity) > 0 {
		t.Errorf("on one node: %+v", j.Affinity)
	}
}
