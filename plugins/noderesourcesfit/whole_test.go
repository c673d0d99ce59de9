package noderesourcesfit

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// The quick check for whole nodes gives the same result as the complete check.
func TestQuickCheckOfWholeNodes(t *testing.T) {
	held := func(b *enginetest.NodeBuilder) *cluster.Node {
		return enginetest.State(b, enginetest.Job("x").Devices(2).On("n")).Node("n")
	}
	lost := func(n *cluster.Node) { n.Devices[0].Lost = true }
	gpus := func() *enginetest.NodeBuilder { return enginetest.Node("n").CPU(8, "64Gi").GPUs(2, "A10", "24Gi") }
	nodes := map[string]*cluster.Node{
		"free": gpus().Build(), "held": held(gpus()), "lost": gpus().With(lost).Build(), "none": enginetest.Node("n").CPU(8, "64Gi").Build(),
		"unified": held(gpus().With(func(n *cluster.Node) { n.Unified = true })), "small": held(enginetest.Node("n").CPU(1, "1Gi").GPUs(2, "A10", "24Gi")),
	}
	needs := map[string]cluster.Need{
		"all": {WholeNode: true}, "three": {WholeNode: true, Devices: 3}, "of another product": {WholeNode: true, Products: []string{"H100"}},
		"of cann": {WholeNode: true, Types: []string{"cann"}}, "a part": {WholeNode: true, Share: 900, SumAtLeast: 40 << 30},
		"too much": {WholeNode: true, Share: 900, SumAtLeast: 100 << 30}, "memory": {WholeNode: true, Memory: 30 << 30},
	}
	for at, n := range nodes {
		for name, need := range needs {
			s := &cluster.Shape{Need: need, Resources: cluster.Resources{{Name: cluster.CPU, Value: 2000}, {Name: cluster.Memory, Value: 2 << 30}}}
			empty := n.Emptied()
			want := why(s, empty, &ifEmpty)
			if hasFree(s, empty) && empty.Feasible(s) {
				want = nil
			}
			if diff := cmp.Diff(want, possible(s, n)); diff != "" {
				t.Errorf("%s on %s (-complete +quick):\n%s", name, at, diff)
			}
		}
	}
}
