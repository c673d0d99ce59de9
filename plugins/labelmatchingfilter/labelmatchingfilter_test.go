package labelmatchingfilter

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

func judge(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	if !filter.Matters(s) {
		return nil
	}
	return filter.Admit(s, n)
}

func TestAdmit(t *testing.T) {
	lacks := func(label string) *engine.Rejection {
		return &engine.Rejection{Reason: ModelLabelMismatch, Cure: engine.Grow | engine.Relax, Subject: label, Precedence: engine.OtherKind}
	}
	node := enginetest.Node("n").Label("gpu", "h100").Label("zone", "a").Build()
	model := func() *enginetest.JobBuilder { return enginetest.Job("m").ModelReplica(cluster.Spread) }
	tests := map[string]struct {
		job  *enginetest.JobBuilder
		want *engine.Rejection
	}{
		"no selector":        {model(), nil},
		"all labels match":   {model().Selector("gpu", "h100").Selector("zone", "a"), nil},
		"one of two missing": {model().Selector("gpu", "h100").Selector("rack", "r1"), lacks("rack=r1")},
		"another value":      {model().Selector("zone", "b"), lacks("zone=b")},
		"not a model":        {enginetest.Job("j").Selector("zone", "b"), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, judge(tt.job.Build().Tasks()[0].Shape, node)); d != "" {
				t.Errorf("rejection (-want +got):\n%s", d)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"labels": []}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}
