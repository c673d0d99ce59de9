package backendframeworkfilter

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

func judge(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	if !matters(s) {
		return nil
	}
	return admit(s, n)
}

// node returns a node with devices of the types, in this order.
func node(types ...string) *cluster.Node {
	return enginetest.Node("n").GPUs(len(types), "P", "24Gi").With(func(n *cluster.Node) {
		for i, t := range types {
			n.Devices[i].OwnSpec().Type = t
		}
	}).Build()
}

func TestAdmit(t *testing.T) {
	not := func(subject string) *engine.Rejection {
		return &engine.Rejection{Reason: BackendNotSupported, Cure: engine.Grow | engine.Relax, Subject: subject, Precedence: engine.OtherKind}
	}
	lost := node("cann", "cuda")
	lost.Devices[0].Lost = true
	tests := map[string]struct {
		backend string
		need    cluster.Need
		node    *cluster.Node
		want    *engine.Rejection
	}{
		"all devices are supported":            {"mindie", cluster.Need{Devices: 1, Types: []string{"cann"}}, node("cann", "cann"), nil},
		"one of two devices is supported":      {"mindie", cluster.Need{Devices: 2, Types: []string{"cann"}}, node("cuda", "cann"), nil},
		"no device is supported":               {"mindie", cluster.Need{Devices: 1, Types: []string{"cann"}}, node("cuda", "cuda"), not("mindie runs on cann; the node has cuda")},
		"several of each":                      {"sglang", cluster.Need{Devices: 1, Types: []string{"cann", "cuda", "rocm"}}, node("mps", "musa", "mps"), not("sglang runs on cann, cuda, rocm; the node has mps, musa")},
		"no devices":                           {"vllm", cluster.Need{Devices: 1, Types: []string{"cuda"}}, node(), not("vllm runs on cuda; the node has no devices")},
		"the only supported device is lost":    {"mindie", cluster.Need{Devices: 1, Types: []string{"cann"}}, lost, not("mindie runs on cann; the node has cuda")},
		"layers":                               {"llamacpp", cluster.Need{Types: []string{"cuda"}, Layers: &cluster.Layers{Total: 4, Bytes: 1}}, node("cann"), not("llamacpp runs on cuda; the node has cann")},
		"whole nodes":                          {"vllm", cluster.Need{Types: []string{"cuda"}, WholeNode: true}, node("cann"), not("vllm runs on cuda; the node has cann")},
		"no backend given":                     {"", cluster.Need{Devices: 1, Types: []string{"cuda"}}, node("cann"), not("it runs on cuda; the node has cann")},
		"any runtime":                          {"custom", cluster.Need{Devices: 1}, node("cann"), nil},
		"no device needed":                     {"voxbox", cluster.Need{Types: []string{"cuda"}}, node(), nil},
		"the number of devices is not checked": {"vllm", cluster.Need{Devices: 8, Types: []string{"cuda"}}, node("cuda"), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, judge(&cluster.Shape{Backend: tt.backend, Need: tt.need}, tt.node)); d != "" {
				t.Errorf("rejection (-want +got):\n%s", d)
			}
		})
	}
}

func TestPassingAllocatesNothing(t *testing.T) {
	shape := &cluster.Shape{Need: cluster.Need{Devices: 1, Types: []string{"cann", "cuda"}}}
	n := node("rocm", "cuda")
	if got := testing.AllocsPerRun(100, func() { judge(shape, n) }); got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
}

func TestArguments(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"backend": "vllm"}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}
