package engine_test

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// TestGangThatSelects checks that tasks of a gang do not use a device that another task of the gang
// selects.
func TestGangThatSelects(t *testing.T) {
	s := enginetest.State(enginetest.Node("a").CPU(8, "64Gi").GPUs(2, "A", "80Gi"))
	j := enginetest.Job("g").Gang(2).Min(2).Devices(1).Build()
	second := *j.Tasks()[1].Shape
	second.Need.Selected = []cluster.DeviceID{s.Node("a").Devices[0].ID}
	j.Alternatives[0].Tasks[1].Shape = &second
	add(t, s, j)
	out := run(t, enginetest.Engine(fit()), s)
	if len(out.Decisions) != 2 || s.Job("job/g").Tasks()[1].Claims[0].Device != 0 {
		t.Errorf("%+v", out.Refusals)
	}
}
