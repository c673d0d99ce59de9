package fairshare

import (
	"fmt"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
)

// job returns a job of the queue that requests devices, and runs on the node unless at is empty.
func job(queue string, devices int, at string) enginetest.Part {
	b := enginetest.Job(fmt.Sprintf("%s-%d-%s", queue, devices, at)).Queue(queue).Devices(devices)
	if at != "" {
		b.On(at)
	}
	return b
}

// The shares of three levels of queues, as in scenarios/queues/three-levels.yaml.
func TestShares(t *testing.T) {
	q := enginetest.Queue
	state := enginetest.State(
		enginetest.Node("n").CPU(0, "0").GPUs(8, "A100", "80Gi"), enginetest.Node("off").GPUs(8, "A100", "80Gi").With(func(n *cluster.Node) { n.Unschedulable = true }),
		q("org").Weight(3), q("guest").Limit(gpu, 9000), q("research").Parent("org").Quota(gpu, 4000), q("prod").Parent("org").Weight(2), q("vision").Parent("research").Weight(4), q("speech").Parent("research").Limit(gpu, 0),
		job("vision", 2, "n"), job("vision", 3, ""), job("speech", 5, ""), job("prod", 5, ""), job("guest", 5, ""),
	)
	tree := Shares(state.View(), Offered(state.View()), Settings{})
	got := map[string]Share{}
	for _, q := range state.Queues() {
		for _, sh := range tree.ByName[q.Name].Shares {
			got[q.Name] = sh
		}
	}
	want := map[string]Share{
		"org":      {gpu, 4000, -1, 10_000, 10_000, Allotment{4000, 3000, NoneLeft}, nil},
		"guest":    {gpu, -1, 9000, 5000, 5000, Allotment{0, 1000, NoneLeft}, nil},
		"research": {gpu, 4000, -1, 5000, 5000, Allotment{4000, 1000, Satisfied}, nil},
		"prod":     {gpu, -1, -1, 5000, 5000, Allotment{0, 2000, NoneLeft}, nil},
		"vision":   {gpu, -1, -1, 5000, 5000, Allotment{0, 5000, Satisfied}, nil},
		"speech":   {gpu, -1, 0, 5000, 5000, Allotment{0, 0, AtLimit}, nil},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("shares (-want +got):\n%s", d)
	}
}
