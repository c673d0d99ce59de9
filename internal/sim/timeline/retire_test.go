package timeline_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/sim/timeline"
)

// TestRetiredJobsEnd checks that a retired replica stops, ends, and is not placed again.
func TestRetiredJobsEnd(t *testing.T) {
	state := enginetest.State(enginetest.Node("a").CPU(8, "64Gi").GPUs(2, "A100", "80Gi"),
		enginetest.Job("m-0").Set("m", 1).Devices(1).On("a"), enginetest.Job("m-1").Set("m", 1).Created(1).Devices(1).On("a"),
		enginetest.Job("m-2").Set("m", 1).Created(2).Devices(1))
	c, err := timeline.Run(enginetest.Engine(enginetest.Fit()), state, timeline.Options{Cycles: 9, Every: minute, Start: 1 << 50, Grace: 2 * minute})
	if err != nil {
		t.Fatal(err)
	}
	marks := map[string]string{}
	for _, h := range c.Histories {
		for cycle := 1; cycle <= 4; cycle++ {
			marks[h.Job.ID] += string(h.Mark(cycle))
		}
	}
	if diff := cmp.Diff(map[string]string{"job/m-0": "████", "job/m-1": "~~✓✓", "job/m-2": "✓✓✓✓"}, marks); diff != "" {
		t.Error(diff)
	}
	if s := c.Summary(); s.Ended != 2 || s.Running != 1 || s.Waiting != 0 || s.Evictions != 1 || s.Lost != 0 {
		t.Errorf("%+v", s)
	}
	if !c.Settled || c.State.Job("job/m-1") != nil || c.State.Job("job/m-0").Tasks()[0].Status != cluster.Bound {
		t.Errorf("settled: %v", c.Settled)
	}
}
