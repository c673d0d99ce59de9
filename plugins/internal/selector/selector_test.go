package selector

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

func TestAdmit(t *testing.T) {
	node := enginetest.Node("n").Label("gpu", "h100").Label("spare", "").Label("zone", "a").Build()
	type labels = []cluster.Label
	f := Filter{Plugin: "Filter", Doc: engine.ReasonDoc{Reason: "Lacks", Cure: engine.Grow | engine.Relax}, AppliesTo: func(*cluster.Shape) bool { return true }}
	tests := map[string]struct {
		demanded labels
		want     string
	}{
		"an empty selector":          {nil, ""},
		"all labels match":           {labels{{Key: "gpu", Value: "h100"}, {Key: "zone", Value: "a"}}, ""},
		"a label is missing":         {labels{{Key: "rack", Value: "r1"}}, "rack=r1"},
		"another value":              {labels{{Key: "gpu", Value: "a100"}}, "gpu=a100"},
		"several labels are missing": {labels{{Key: "gpu", Value: "h100"}, {Key: "rack", Value: "r1"}, {Key: "zone", Value: "b"}}, "rack=r1"},
		"another case":               {labels{{Key: "gpu", Value: "H100"}}, "gpu=H100"},
		"an empty value":             {labels{{Key: "spare"}}, ""},
		"an empty value is required, the label is missing": {labels{{Key: "rack"}}, "rack="},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var want *engine.Rejection
			if tt.want != "" {
				want = &engine.Rejection{Reason: "Lacks", Cure: engine.Grow | engine.Relax, Subject: tt.want, Precedence: engine.OtherKind}
			}
			if d := cmp.Diff(want, f.Admit(&cluster.Shape{Selector: tt.demanded}, node)); d != "" {
				t.Errorf("rejection (-want +got):\n%s", d)
			}
		})
	}
}

func TestMatters(t *testing.T) {
	f := Filter{AppliesTo: (*cluster.Shape).ServesModel}
	served := enginetest.Job("m").ModelReplica(cluster.Binpack)
	tests := map[string]struct {
		job  *enginetest.JobBuilder
		want bool
	}{
		"no selector": {served, false},
		"a selector":  {enginetest.Job("m").ModelReplica(cluster.Binpack).Selector("zone", "a"), true},
		"a selector that the filter does not apply to": {enginetest.Job("j").Selector("zone", "a"), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := f.Matters(tt.job.Build().Tasks()[0].Shape); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestPassingAllocatesNothing(t *testing.T) {
	f := Filter{AppliesTo: func(*cluster.Shape) bool { return true }}
	shape := enginetest.Job("j").Selector("gpu", "h100").Build().Tasks()[0].Shape
	node := enginetest.Node("n").Label("gpu", "h100").Build()
	if got := testing.AllocsPerRun(100, func() { f.Admit(shape, node) }); got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
}
