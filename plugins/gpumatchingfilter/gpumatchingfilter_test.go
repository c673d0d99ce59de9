package gpumatchingfilter

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

func rejection(why engine.Reason, subject string, want, have int64) *engine.Rejection {
	return &engine.Rejection{
		Reason: why, Cure: engine.Grow | engine.Relax, Subject: subject,
		Want: engine.Quantity{Value: want, Unit: engine.Count},
		Have: engine.Quantity{Value: have, Unit: engine.Count},
	}
}

func TestAdmit(t *testing.T) {
	type ids = []cluster.DeviceID
	cuda := func(node string, index int) cluster.DeviceID {
		return cluster.DeviceID{Node: node, Type: "cuda", Index: index}
	}
	// Two cuda devices, the second of them lost, and one cann device.
	node := enginetest.Node("b").GPUs(3, "P", "24Gi").With(func(n *cluster.Node) {
		n.Devices[1].Lost = true
		n.Devices[2].OwnSpec().Type = "cann"
	}).Build()
	full := enginetest.Node("b").GPUs(2, "P", "24Gi").Build()
	elsewhere := &engine.Rejection{Reason: GPUNotSelected, Cure: engine.Relax, Precedence: engine.OtherKind}
	tests := map[string]struct {
		need cluster.Need
		node *cluster.Node
		want *engine.Rejection
	}{
		"nothing selected":                  {cluster.Need{Devices: 4}, node, nil},
		"selected":                          {cluster.Need{Devices: 1, Selected: ids{cuda("b", 0)}}, node, nil},
		"selected, and one of another node": {cluster.Need{Devices: 1, Selected: ids{cuda("a", 0), cuda("b", 0)}}, node, nil},
		"only of other nodes":               {cluster.Need{Devices: 1, Selected: ids{cuda("a", 0), cuda("c", 0)}}, node, elsewhere},
		"the name of the node is a prefix":  {cluster.Need{Devices: 1, Selected: ids{cuda("b-1", 0), cuda("bb", 0)}}, node, elsewhere},
		"indexes are counted by type":       {cluster.Need{Devices: 1, Selected: ids{{Node: "b", Type: "cann", Index: 0}}}, node, nil},
		"an index that does not exist":      {cluster.Need{Devices: 1, Selected: ids{cuda("b", 7)}}, node, rejection(SelectedGPUMissing, "b:cuda:7", 1, 0)},
		"of another type":                   {cluster.Need{Devices: 1, Selected: ids{{Node: "b", Type: "rocm", Index: 0}}}, node, rejection(SelectedGPUMissing, "b:rocm:0", 1, 0)},
		"lost":                              {cluster.Need{Devices: 1, Selected: ids{cuda("b", 1)}}, node, rejection(SelectedGPUMissing, "b:cuda:1", 1, 0)},
		"two missing, both named":           {cluster.Need{Devices: 2, Selected: ids{cuda("b", 0), cuda("b", 1), cuda("b", 7)}}, node, rejection(SelectedGPUMissing, "b:cuda:1, b:cuda:7", 2, 1)},
		"one lost, enough are left":         {cluster.Need{Devices: 1, Selected: ids{cuda("b", 0), cuda("b", 1)}}, node, nil},
		"fewer selected than needed":        {cluster.Need{Devices: 2, Selected: ids{cuda("a", 0), cuda("b", 0)}}, full, rejection(TooFewSelectedGPUs, "", 2, 1)},
		"layers need at least one device":   {cluster.Need{Layers: &cluster.Layers{Total: 4, Bytes: 1}, Selected: ids{cuda("b", 1)}}, node, rejection(SelectedGPUMissing, "b:cuda:1", 1, 0)},
		"whole node":                        {cluster.Need{WholeNode: true, Selected: ids{cuda("b", 0), cuda("b", 1)}}, full, nil},
		"whole node, not all selected":      {cluster.Need{WholeNode: true, Selected: ids{cuda("b", 0)}}, full, rejection(TooFewSelectedGPUs, "", 2, 1)},
		"no device needed":                  {cluster.Need{Selected: ids{cuda("b", 7)}}, node, nil},
		"no device needed, another node":    {cluster.Need{Selected: ids{cuda("a", 0)}}, node, elsewhere},
		"a held device is accepted":         {cluster.Need{Devices: 1, Selected: ids{cuda("b", 0)}}, held(), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, judge(&cluster.Shape{Need: tt.need}, tt.node)); d != "" {
				t.Errorf("rejection (-want +got):\n%s", d)
			}
		})
	}
}

func held() *cluster.Node {
	return enginetest.State(enginetest.Node("b").GPUs(1, "P", "24Gi"), enginetest.Job("j").Devices(1).On("b")).Node("b")
}

func TestPassingAllocatesNothing(t *testing.T) {
	shape := &cluster.Shape{Need: cluster.Need{Devices: 1, Selected: []cluster.DeviceID{{Node: "a", Type: "cuda"}, {Node: "b", Type: "cuda"}}}}
	node := enginetest.Node("b").GPUs(4, "P", "24Gi").Build()
	if got := testing.AllocsPerRun(100, func() { judge(shape, node) }); got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
}

func TestArguments(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"selected": []}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}
