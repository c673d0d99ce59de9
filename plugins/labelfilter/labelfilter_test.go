package labelfilter

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
		return &engine.Rejection{Reason: LabelMismatch, Cure: engine.Grow | engine.Relax, Subject: label, Precedence: engine.OtherKind}
	}
	node := enginetest.Node("n").Label("gpu", "h100").Label("spare", "").Label("zone", "a").Build()
	tests := map[string]struct {
		job  *enginetest.JobBuilder
		want *engine.Rejection
	}{
		"no selector":                {enginetest.Job("j"), nil},
		"all labels match":           {enginetest.Job("j").Selector("gpu", "h100").Selector("zone", "a"), nil},
		"a label is missing":         {enginetest.Job("j").Selector("rack", "r1"), lacks("rack=r1")},
		"another value":              {enginetest.Job("j").Selector("gpu", "a100"), lacks("gpu=a100")},
		"several labels are missing": {enginetest.Job("j").Selector("gpu", "h100").Selector("rack", "r1").Selector("zone", "b"), lacks("rack=r1")},
		"another case":               {enginetest.Job("j").Selector("gpu", "H100"), lacks("gpu=H100")},
		"an empty value":             {enginetest.Job("j").Selector("spare", ""), nil},
		"an empty value is required, the label is missing": {enginetest.Job("j").Selector("rack", ""), lacks("rack=")},
		"a model that takes devices":                       {enginetest.Job("j").Selector("rack", "r1").ModelReplica(cluster.Binpack), nil},
		"instance type":                                    {enginetest.Job("j").Selector("node.kubernetes.io/instance-type", "p5.48xlarge"), lacks("node.kubernetes.io/instance-type=p5.48xlarge")},
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
