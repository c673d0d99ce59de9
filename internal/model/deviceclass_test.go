package model_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/estimate/backend"
	"github.com/berth-project/berth/internal/estimate/fit"
	"github.com/berth-project/berth/internal/model"
)

// Nodes of one group may differ in how much memory is reserved. The order of their names
// does not matter.
func TestReserved(t *testing.T) {
	node := func(name string, reserved cluster.Bytes) enginetest.Part {
		return enginetest.Node(name).GPUs(2, "A100", "80Gi").With(func(n *cluster.Node) {
			for i := range n.Devices {
				n.Devices[i].OwnSpec().Reserved = reserved
			}
		})
	}
	tests := map[string]struct {
		nodes []*cluster.Group
		want  string
	}{
		"first":  {groups(node("a", 60*gi), node("b", 0)), "\n1 device: 1 × 1, nodes 1, devices 1\n2 devices (tp 2): 2 × 1, nodes 1, devices 2\n"},
		"last":   {groups(node("a", 0), node("b", 60*gi)), "\n1 device: 1 × 1, nodes 1, devices 1\n2 devices (tp 2): 2 × 1, nodes 1, devices 2\n"},
		"always": {groups(node("a", 60*gi), node("b", 50*gi)), "\n- 1 device: each device must give 50 GiB, and the largest, A100, has 30 GiB\n2 devices (tp 2): 2 × 1, nodes 1, devices 2\n"},
	}
	for name, tt := range tests {
		if diff := cmp.Diff(tt.want, "\n"+forms(convert(t, spec(t, "custom", "", total(50)), tt.nodes))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	// For several nodes, the nodes with the most memory count.
	s := spec(t, "vllm", "", use(toy()), distributed, func(s *model.Spec) { s.Memory.Total = 250 * gi })
	names := alternatives(convert(t, s, groups(node("a", 60*gi), node("b", 0), node("c", 0))).Jobs[0])
	if diff := cmp.Diff([]string{"2 nodes of A100 × 2 (tp 2, pp 2)", "3 nodes with 2 + 1 + 1 × A100 (tp 1, pp 4)"}, names); diff != "" {
		t.Errorf("over nodes (-want +got):\n%s", diff)
	}
}

// The forms and the estimate divide a model in the same way over devices of one node.
func TestFormsAgreeWithTheEstimate(t *testing.T) {
	tried := 0
	on := func(memory cluster.Bytes) backend.Accelerator { // the devices of npus, with another amount of memory
		d := groups(npus("a", 1))[0].Nodes[0].Devices[0]
		d.OwnSpec().Memory = memory
		return model.AcceleratorOf(&d)
	}
	for _, server := range []string{"vllm", "mindie"} {
		for _, name := range []string{"phi-4-mini", "phi-4", "llama-3.1-8b", "llama-3.3-70b", "qwen2.5-coder-32b"} {
			for _, memory := range []cluster.Bytes{8, 16, 24, 32, 40, 48, 80, 141} {
				for devices := 1; devices <= 8; devices++ {
					s := spec(t, server, name, tokens(4096))
					found, err := fit.FewestDevices(s.Source, s.Backend, s.Serving, fit.Pool{Accelerator: on(memory * gi), PerNode: devices, Nodes: 1})
					if err != nil {
						t.Fatal(err)
					}
					want := "none"
					if found.Fits {
						want = fmt.Sprintf("%d × %d", found.Tensor, found.Pipeline)
					}
					got := "none"
					for _, f := range convert(t, s, groups(npus("a", devices).With(func(n *cluster.Node) {
						for i := range n.Devices {
							n.Devices[i].OwnSpec().Memory = memory * gi
						}
					}))).Forms {
						if f.Problem == "" {
							got = fmt.Sprintf("%d × %d", f.Tensor, f.Pipeline)
							break
						}
					}
					if got != want {
						t.Errorf("%s with %s on %d × %d GiB: the form is %s, the estimate %s", name, server, devices, memory, got, want)
					}
					tried++
				}
			}
		}
	}
	if tried != 2*5*8*8 {
		t.Errorf("only %d forms were compared", tried)
	}
}
