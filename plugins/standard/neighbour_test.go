package standard_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// A job in the same zone is found among many possible victims. The node that it is on is too
// small for the new job, and on no other node does an eviction help.
func TestNeighbourAmongMany(t *testing.T) {
	away := cluster.JobTerm{Selector: cluster.Term{{Key: "app", Operator: cluster.In, Values: []string{"batch"}}}, Within: "zone", Anti: true}
	for _, nodes := range []int{3, 20, 100} {
		t.Run(fmt.Sprintf("%d nodes", nodes), func(t *testing.T) {
			parts := []enginetest.Part{
				enginetest.Node("small").CPU(2, "8Gi").Label("zone", "z"), enginetest.Job("batch").CPU(1000, "1Gi").Label("app", "batch").Preemptible().On("small"),
				enginetest.Job("new").CPU(4000, "1Gi").Priority(1).Affinity(away),
			}
			for i := range nodes {
				name := fmt.Sprintf("n%03d", i)
				parts = append(parts, enginetest.Node(name).CPU(16, "64Gi").Label("zone", "z"))
				for k := range 4 {
					parts = append(parts, enginetest.Job(fmt.Sprintf("%s-%d", name, k)).CPU(1000, "1Gi").Preemptible().On(name))
				}
			}
			out := session(t, profile(t), enginetest.State(parts...), engine.Options{})
			if d := cmp.Diff([]string{"job/batch/worker-0"}, evictedTasks(out)); d != "" {
				t.Errorf("evicted (-want +got):\n%s", d)
			}
		})
	}
}
