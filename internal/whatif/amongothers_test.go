package whatif

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/explain/explaintest"
)

// A job that would be placed without the other pending jobs is explained in a session with
// them. Here an evicted task still holds its room, and its job is pending.
func TestWhyWithOtherPendingJobs(t *testing.T) {
	parts := []enginetest.Part{
		enginetest.Job("slow").Gang(2).Min(1).Devices(1).Preemptible().On("n00"),
		enginetest.Job("want").Devices(1).Priority(5),
	}
	for i := range 14 {
		n := fmt.Sprintf("n%02d", i)
		parts = append(parts, enginetest.Node(n).CPU(16, "64Gi").GPUs(1, "L4", "24Gi"))
		if i > 0 {
			parts = append(parts, enginetest.Job("x"+n).Devices(1).Priority(5).On(n))
		}
	}
	for i := range 3 {
		parts = append(parts, enginetest.Node(fmt.Sprintf("t%02d", i)).CPU(16, "64Gi").GPUs(1, "L4", "24Gi").Taint("team", "blue", cluster.Effects[0]))
	}
	s := enginetest.State(parts...)
	e := explaintest.Engine(t)
	for _, now := range []int64{100, 1000} { // the second session finds the eviction overdue
		ssn := e.Open(s, engine.Options{Now: now, Hold: 60})
		_, err := ssn.Run()
		ssn.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := Why(Question{Engine: e, State: s, Workload: "job/want", Now: 1000, Tries: 12})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	r.Text(&text)
	if !strings.Contains(text.String(), "taint team=blue:NoSchedule not tolerated") {
		t.Errorf("the taint is not named:\n%s", &text)
	}
}
