package tainttoleration

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

var (
	everything = cluster.Toleration{Operator: "Exists"}
	gpu        = cluster.Toleration{Key: "sku", Operator: "Equal", Value: "gpu", Effect: cluster.NoSchedule}
)

func TestAdmit(t *testing.T) {
	rejection := func(why engine.Reason, subject string) *engine.Rejection {
		return &engine.Rejection{Reason: why, Cure: engine.Grow | engine.Relax, Subject: subject}
	}
	closed := enginetest.Node("closed").With(func(n *cluster.Node) { n.Unschedulable = true })
	tainted := enginetest.Node("tainted").Taint("sku", "gpu", cluster.NoSchedule)
	leaving := enginetest.Node("leaving").Taint("sku", "gpu", cluster.NoSchedule).Taint("node.kubernetes.io/not-ready", "", cluster.NoExecute)
	reluctant := enginetest.Node("reluctant").Taint("old", "yes", cluster.PreferNoSchedule)

	tests := map[string]struct {
		tolerations []cluster.Toleration
		node        *enginetest.NodeBuilder
		want        *engine.Rejection
	}{
		"a node without taints":              {nil, enginetest.Node("open"), nil},
		"unschedulable":                      {nil, closed, rejection(NodeUnschedulable, "node.kubernetes.io/unschedulable:NoSchedule")},
		"unschedulable, key tolerated":       {[]cluster.Toleration{{Key: "node.kubernetes.io/unschedulable", Operator: "Exists"}}, closed, nil},
		"unschedulable, all tolerated":       {[]cluster.Toleration{everything}, closed, nil},
		"unschedulable, other key tolerated": {[]cluster.Toleration{gpu}, closed, rejection(NodeUnschedulable, "node.kubernetes.io/unschedulable:NoSchedule")},
		"tainted":                            {nil, tainted, rejection(TaintNotTolerated, "sku=gpu:NoSchedule")},
		"tainted, tolerated":                 {[]cluster.Toleration{gpu}, tainted, nil},
		"tainted, other value":               {[]cluster.Toleration{{Key: "sku", Value: "tpu"}}, tainted, rejection(TaintNotTolerated, "sku=gpu:NoSchedule")},
		"tainted, other effect":              {[]cluster.Toleration{{Key: "sku", Value: "gpu", Effect: cluster.NoExecute}}, tainted, rejection(TaintNotTolerated, "sku=gpu:NoSchedule")},
		"second taint, no value":             {[]cluster.Toleration{gpu}, leaving, rejection(TaintNotTolerated, "node.kubernetes.io/not-ready:NoExecute")},
		"both taints tolerated":              {[]cluster.Toleration{gpu, {Key: "node.kubernetes.io/not-ready", Operator: "Exists"}}, leaving, nil},
		"PreferNoSchedule does not reject":   {nil, reluctant, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, admit(&cluster.Shape{Tolerations: tt.tolerations}, tt.node.Build())); d != "" {
				t.Errorf("rejection (-want +got):\n%s", d)
			}
		})
	}
}

func TestScore(t *testing.T) {
	old := cluster.Toleration{Key: "old", Value: "yes"}
	one := enginetest.Node("one").Taint("old", "yes", cluster.PreferNoSchedule).Taint("sku", "gpu", cluster.NoSchedule)
	four := enginetest.Node("four").Taint("old", "yes", cluster.PreferNoSchedule).Taint("a", "", cluster.PreferNoSchedule).
		Taint("b", "", cluster.PreferNoSchedule).Taint("c", "", cluster.PreferNoSchedule)
	tests := map[string]struct {
		tolerations []cluster.Toleration
		node        *enginetest.NodeBuilder
		want        float64
	}{
		"no taints":               {nil, enginetest.Node("none"), 100},
		"other effects only":      {nil, enginetest.Node("hard").Taint("sku", "gpu", cluster.NoSchedule), 100},
		"not tolerated":           {nil, one, 0},
		"tolerated":               {[]cluster.Toleration{old}, one, 100},
		"one of four tolerated":   {[]cluster.Toleration{old}, four, 25},
		"everything is tolerated": {[]cluster.Toleration{everything}, four, 100},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := score(&cluster.Shape{Tolerations: tt.tolerations}, tt.node.Build()); got != tt.want {
				t.Errorf("score %v, want %v", got, tt.want)
			}
		})
	}
}

func TestPassingAllocatesNothing(t *testing.T) {
	shape := &cluster.Shape{Tolerations: []cluster.Toleration{gpu, everything}}
	node := enginetest.Node("n").Taint("sku", "gpu", cluster.NoSchedule).Taint("old", "", cluster.PreferNoSchedule).
		With(func(n *cluster.Node) { n.Unschedulable = true }).Build()
	if got := testing.AllocsPerRun(100, func() { admit(shape, node); score(shape, node) }); got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
}

func TestArguments(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"tolerate": "all"}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}
