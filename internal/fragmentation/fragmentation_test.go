package fragmentation

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
)

func TestOf(t *testing.T) {
	node := &Node{CPU: 4000, Devices: []Device{{"A", 1000}, {"A", 300}, {"A", 0}}}
	for name, tt := range map[string]struct {
		demand Demand
		want   int64 // unusable thousandths
	}{
		"no device":       {Demand{}, 1300},
		"fits both":       {Demand{Devices: 1, Milli: 200}, 0},
		"fits one":        {Demand{Devices: 1, Milli: 400}, 300},
		"two devices":     {Demand{Devices: 2, Milli: 1000}, 1300},
		"too many cores":  {Demand{CPU: 5000, Devices: 1, Milli: 200}, 1300},
		"another product": {Demand{Devices: 1, Milli: 200, Products: []string{"B"}}, 1300},
		"the product":     {Demand{Devices: 1, Milli: 200, Products: []string{"B", "A"}}, 0},
	} {
		tt.demand.Share = Unit
		if got := (Workload{tt.demand}).Of(node); got != tt.want*Unit {
			t.Errorf("%s: %d", name, got)
		}
	}
	half := Workload{{Share: Unit / 2, Devices: 1, Milli: 400}, {Share: Unit / 2}}
	if got := half.Of(node); got != 800*Unit {
		t.Errorf("%d", got)
	}
}

func TestPopular(t *testing.T) {
	got := Popular([]Demand{{Share: 3, CPU: 1}, {Share: 90, CPU: 2}, {Share: 4, CPU: 3}, {Share: 3, CPU: 4}})
	want := Workload{{Share: 927835, CPU: 2}, {Share: 41237, CPU: 3}, {Share: 30927, CPU: 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(Popular(nil)) != 0 {
		t.Error("nothing is popular")
	}
}

func TestRead(t *testing.T) {
	s := enginetest.State(enginetest.Node("n").CPU(8, "64Gi").GPUs(3, "A100", "80Gi").With(func(n *cluster.Node) { n.Devices[2].Lost = true }),
		enginetest.Job("j").Shape(func(s *cluster.Shape) {
			s.Resources = cluster.Resources{{Name: cluster.CPU, Value: 3000}}
			s.Need = cluster.Need{Devices: 1, Share: 400}
		}).On("n"))
	var x Node
	x.Read(s.Node("n"))
	if diff := cmp.Diff(Node{5000, []Device{{"A100", 600}, {"A100", 1000}, {"A100", 0}}}, x); diff != "" {
		t.Error(diff)
	}
}
