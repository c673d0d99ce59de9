package fairshare

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
)

// A product that a queue names is divided like a separate resource. Both queues request 4
// H100, and 4 devices of any product. Each gets 4 of all 8 devices. Of the 4 H100, a gets
// its quota of 3; the last one is divided by weight, 1 to 3. No queue names L4, which is not
// divided separately.
func TestProductsAreDivided(t *testing.T) {
	const h100 = gpu + ":H100"
	only := func(s *cluster.Shape) { s.Need.Products = []string{"H100"} }
	parts := []enginetest.Part{
		enginetest.Node("n").CPU(0, "0").GPUs(4, "H100", "80Gi").GPUs(4, "L4", "24Gi"), enginetest.Node("off").GPUs(4, "H100", "80Gi").With(func(n *cluster.Node) { n.Unschedulable = true }),
		enginetest.Queue("a").Quota(h100, 3000), enginetest.Queue("b").OverQuotaWeight(h100, 3),
		enginetest.Job("a1").Queue("a").Devices(1).Shape(only).On("n"), enginetest.Job("a2").Queue("a").Devices(3).Shape(only), enginetest.Job("a3").Queue("a").Devices(4),
		enginetest.Job("b1").Queue("b").Devices(4).Shape(only), enginetest.Job("b2").Queue("b").Devices(4),
	}
	state := enginetest.State(parts...)
	total := Offered(state.View())
	tree := Shares(state.View(), total, Settings{})
	if d := cmp.Diff(cluster.Resources{{Name: gpu, Value: 8000}, {Name: h100, Value: 4000}}, total[len(total)-2:]); d != "" {
		t.Errorf("total (-want +got):\n%s", d)
	}
	got := map[string][]Share{"a": tree.ByName["a"].Shares, "b": tree.ByName["b"].Shares}
	want := map[string][]Share{
		"a": {{gpu, -1, -1, 8000, 8000, Allotment{0, 4000, NoneLeft}, nil}, {h100, 3000, -1, 4000, 4000, Allotment{3000, 250, NoneLeft}, nil}},
		"b": {{gpu, -1, -1, 8000, 8000, Allotment{0, 4000, NoneLeft}, nil}, {h100, -1, -1, 4000, 4000, Allotment{0, 750, NoneLeft}, nil}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("shares (-want +got):\n%s", d)
	}
}
