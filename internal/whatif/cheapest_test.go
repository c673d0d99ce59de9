package whatif

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/explain/explaintest"
)

// TestCheapest checks the cheapest change in a few words. Changes that take nothing from other
// workloads are preferred.
func TestCheapest(t *testing.T) {
	small := func() *enginetest.NodeBuilder { return enginetest.Node("s").CPU(8, "64Gi").GPUs(1, "L4", "24Gi") }
	for name, tt := range map[string]struct {
		state *cluster.State
		now   int64
		want  string
	}{
		"nothing is evicted rather than another workload": {
			state: enginetest.State(h100("a"), h100("b"), enginetest.Job("eval").Devices(2).Preemptible().On("a"), enginetest.Job("x").Gang(2).Devices(8)),
			want:  "6 devices per task instead of 8",
		},
		"nodes": {
			state: enginetest.State(h100("a"), enginetest.Job("e").Devices(1).On("a"), enginetest.Job("x").Gang(2).WholeNodes(2, "64Gi")),
			want:  "2 more nodes like a",
		},
		"two changes together": {
			state: enginetest.State(small(), enginetest.Job("e").Devices(1).On("s"), enginetest.Job("x").Devices(1).Selector("host", "s")),
			want:  "without the node selector host=s and 1 more node like s",
		},
		"another workload is removed": {
			state: enginetest.State(small().Label("host", "s"), enginetest.Job("e").Devices(1).On("s"), enginetest.Job("x").Devices(1).Selector("host", "s")),
			want:  "remove job/e",
		},
		"a priority": {
			state: enginetest.State(small().Label("host", "s"), enginetest.Job("e").Priority(3).Preemptible().Devices(1).On("s"), enginetest.Job("x").Devices(1).Selector("host", "s")),
			want:  "priority 4",
		},
		"a limit": {
			state: enginetest.State(h100("a"), enginetest.Queue("q").Limit(gpu, 4000), enginetest.Job("e").Queue("q").Devices(3).On("a"), enginetest.Job("x").Queue("q").Devices(2)),
			want:  "limit of q: 4 devices → 5 devices",
		},
		"a node rather than waiting until another workload may be evicted": {
			state: guests(enginetest.Job("x").Queue("owners").Devices(2)), now: clockAt(8), want: "1 more node like a",
		},
		"a later time": {
			state: enginetest.State(small().Label("host", "s"), enginetest.Queue("night").Tier(cluster.TierScavenger).MinRun(10*time.Minute, 10*time.Minute), enginetest.Queue("day"),
				enginetest.Job("e").Queue("night").Preemptible().Devices(1).On("s").Started(clockAt(0)), enginetest.Job("x").Queue("day").Devices(1).Selector("host", "s")),
			now: clockAt(4), want: "wait 6m",
		},
		"it is placed": {state: enginetest.State(h100("a"), enginetest.Job("x").Devices(1))},
	} {
		t.Run(name, func(t *testing.T) {
			before := tt.state.Digest()
			got, _, err := Cheapest(Question{Engine: explaintest.Engine(t), State: tt.state, Workload: "job/x", Now: tt.now})
			if err != nil {
				t.Fatal(err)
			}
			brief := ""
			if got != nil {
				brief = got.Brief
			}
			if d := cmp.Diff(tt.want, brief); d != "" {
				t.Error(d)
			}
			if tt.state.Digest() != before {
				t.Error("the State was changed")
			}
		})
	}
}
