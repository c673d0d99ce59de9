package manifest

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
)

func TestResourceNotes(t *testing.T) {
	nodes := []*cluster.Node{enginetest.Node("n").CPU(8, "8Gi").GPUs(1, "L4", "24Gi").Build()}
	queues := []*cluster.Queue{{Name: "q", Limits: cluster.Resources{{Name: "H100", Value: 1}, {Name: "cpu", Value: 1}, {Name: "nvidia.com/gpu", Value: 1}}}}
	jobs := []*cluster.Job{enginetest.Job("j").CPU(1000, "1Gi").Resource("example.com/fpga", 1).Build()}
	tests := map[string]struct {
		nodes []*cluster.Node
		want  []string
	}{
		"a node": {nodes, []string{"queue q has a quota, limit or weight for H100, which no node has", "1 workload requesting example.com/fpga, which no node has: job/j"}},
		"slices are parts of GPUs": {[]*cluster.Node{enginetest.Node("n").CPU(8, "8Gi").Slices(1, "A100", "1g.10gb", "10Gi").Build()},
			[]string{"queue q has a quota, limit or weight for H100, which no node has", "1 workload requesting example.com/fpga, which no node has: job/j"}},
		"none": {nil, nil},
	}
	for name, tt := range tests {
		if diff := cmp.Diff(tt.want, resourceNotes(queues, jobs, tt.nodes)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestDeviceNotes(t *testing.T) {
	nodes := []*cluster.Node{enginetest.Node("n").CPU(8, "8Gi").GPUs(1, "NVIDIA-L4", "24Gi").Build()}
	jobs := []*cluster.Job{
		enginetest.Job("small").Gang(2).DeviceMemory(1, "10").Build(),
		enginetest.Job("l4").Devices(1).Shape(func(s *cluster.Shape) { s.Need.Products = []string{"L4"} }).Build(),
		enginetest.Job("right").DeviceMemory(1, "10Gi").Shape(func(s *cluster.Shape) { s.Need.Products = []string{"NVIDIA-L4"} }).Build(),
	}
	want := []string{
		"1 workload requesting less than 1 MiB of device memory; a memory without a unit is in bytes, so write 10Gi and not 10: job/small",
		`1 workload allowing the product "L4", which no node has; did you mean "NVIDIA-L4"?: job/l4`,
	}
	if diff := cmp.Diff(want, deviceNotes(jobs, nodes)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The strategies are Pack and Spread. The older name Binpack is read as well.
func TestStrategySpellings(t *testing.T) {
	for spelt, want := range map[string]cluster.Strategy{"": cluster.Binpack, "Pack": cluster.Binpack, "Binpack": cluster.Binpack, "Spread": cluster.Spread} {
		b, err := Parse("m.yaml", []byte("apiVersion: berth.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec:\n  source: {preset: phi-4}\n  placement: {strategy: \""+spelt+"\"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		s, err := b.State()
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Job("model/m-0").Tasks()[0].Shape.Strategy; got != want {
			t.Errorf("%q is read as %s, want %s", spelt, got, want)
		}
	}
}
