package selector

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/fixture"
)

func TestUnmet(t *testing.T) {
	node := fixture.Node("n").Label("gpu", "h100").Label("spare", "").Label("zone", "a").Build()
	type labels = []cluster.Label
	tests := map[string]struct {
		demanded labels
		want     *cluster.Label
	}{
		"nothing demanded":                    {nil, nil},
		"all there":                           {labels{{Key: "gpu", Value: "h100"}, {Key: "zone", Value: "a"}}, nil},
		"missing":                             {labels{{Key: "rack", Value: "r1"}}, &cluster.Label{Key: "rack", Value: "r1"}},
		"other value":                         {labels{{Key: "gpu", Value: "a100"}}, &cluster.Label{Key: "gpu", Value: "a100"}},
		"first of several is named":           {labels{{Key: "gpu", Value: "h100"}, {Key: "rack", Value: "r1"}, {Key: "zone", Value: "b"}}, &cluster.Label{Key: "rack", Value: "r1"}},
		"case counts":                         {labels{{Key: "gpu", Value: "H100"}}, &cluster.Label{Key: "gpu", Value: "H100"}},
		"empty value is there":                {labels{{Key: "spare"}}, nil},
		"empty value is not the same as none": {labels{{Key: "rack"}}, &cluster.Label{Key: "rack"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, Unmet(&cluster.Shape{Selector: tt.demanded}, node)); d != "" {
				t.Errorf("unmet (-want +got):\n%s", d)
			}
		})
	}
}
