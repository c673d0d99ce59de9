package whatif

import (
	"fmt"
	"testing"

	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/explain/explaintest"
)

// On a full cluster with many pending workloads, each simulation searches long for victims. The changes
// that are tried take a bounded number of steps all together, and what was not tried is listed.
func TestStepsAreBounded(t *testing.T) {
	var parts []enginetest.Part
	for i := range 16 {
		parts = append(parts, enginetest.Node(fmt.Sprintf("n%02d", i)).CPU(64, "512Gi").GPUs(8, "A100", "80Gi"))
	}
	for i := range 64 {
		j := enginetest.Job(fmt.Sprintf("j%02d", i)).Gang(1 + i%3).Devices(1 + i*7%11).Priority(int32(i % 5))
		if i%3 > 0 {
			j = j.Preemptible()
		}
		parts = append(parts, j)
	}
	ask := func(id string, steps int) (tried, took int, untried []string) {
		r, err := Why(Question{Engine: explaintest.Engine(t), State: enginetest.State(parts...), Workload: id, Steps: steps})
		if err != nil {
			t.Fatal(err)
		}
		if r.Refusal == nil {
			t.Fatalf("%s is placed", id)
		}
		return r.TriedChanges, r.Notes.Steps, r.Untried
	}
	all, most, _ := ask("job/j50", 1<<40)
	few, took, untried := ask("job/j50", most/10)
	if few >= all || took >= most || len(untried) == 0 {
		t.Errorf("instead of %d steps, %d of %d changes are tried in %d steps; not tried: %v", most, few, all, took, untried)
	}
	again, same, _ := ask("job/j50", most/10)
	if again != few || same != took {
		t.Errorf("%d changes in %d steps at first, then %d in %d", few, took, again, same)
	}
}
