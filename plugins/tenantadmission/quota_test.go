package tenantadmission

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
)

// Jobs that are not preemptible stay within the quota, if there is one.
func TestQuota(t *testing.T) {
	hasQuota := func(v int64) *enginetest.QueueBuilder { return queue().Quota(gpu, v) }
	beyond := func(want, have int64) *engine.Rejection {
		return &engine.Rejection{Reason: QueueQuotaTooSmall, Cure: engine.Relax, Subject: of(gpu), Queue: "q", Want: parts(want), Have: parts(have)}
	}
	wait := func(want, have int64) *engine.Rejection {
		return &engine.Rejection{Reason: QueueQuotaReached, Cure: engine.Wait, Subject: of(gpu), Queue: "q", Want: parts(want), Have: parts(have)}
	}
	above := wait(2000, 1000)
	above.Subject, above.Queue = "queue top: "+gpu, "top"
	top := enginetest.Queue("top").Quota(gpu, 4000)
	type list = []enginetest.Part
	tests := map[string]struct {
		parts list
		want  *engine.Rejection
	}{
		"no quota":                      {list{queue(), job("x").Devices(4).On("n"), job("j").Devices(4)}, nil},
		"a quota of another resource":   {list{queue().Quota("cpu", 0), job("j").Devices(4)}, nil},
		"within the quota":              {list{hasQuota(4000), job("x").Devices(2).On("n"), job("j").Devices(2)}, nil},
		"beyond the quota, preemptible": {list{hasQuota(4000), job("x").Devices(3).On("n"), job("j").Devices(2).Preemptible()}, nil},
		"beyond the quota":              {list{hasQuota(4000), job("x").Devices(3).On("n"), job("j").Devices(2)}, wait(2000, 1000)},
		"other jobs are preemptible":    {list{hasQuota(4000), job("x").Devices(3).Preemptible().On("n"), job("j").Devices(2)}, nil},
		"more than the quota":           {list{hasQuota(4000), job("j").Devices(5)}, beyond(5000, 4000)},
		"a quota of 0":                  {list{hasQuota(0), job("j").Devices(1)}, beyond(1000, 0)},
		"a gang":                        {list{hasQuota(4000), job("j").Gang(5).Devices(1)}, beyond(5000, 4000)},
		"the quota of the parent queue": {list{top, queue().Parent("top"), enginetest.Queue("side").Parent("top"), enginetest.Job("x").Queue("side").Devices(3).On("n"), job("j").Devices(2)}, above},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, state := open(t, append(list{node("n")}, tc.parts...)...)
			task := state.Job("job/j").Tasks()[0]
			if diff := cmp.Diff(tc.want, p.preFilter(task, task.Job)); diff != "" {
				t.Errorf("preFilter (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPassingAllocatesNothing(t *testing.T) {
	p, state := open(t, node("n"), enginetest.Queue("top").Quota(gpu, 8000), queue().Parent("top").Limit(gpu, 8000).Limit("cpu", 64_000).Limit(a100, 8000), need(cluster.Need{Devices: 1, Memory: 1 << 30}))
	task := state.Job("job/j").Tasks()[0]
	if !p.matters(task, task.Job) {
		t.Fatal("the filter does not apply to nodes")
	}
	if n := testing.AllocsPerRun(100, func() {
		if p.preFilter(task, task.Job) != nil || p.admit(task, task.Job, state.Node("n")) != nil {
			t.Fatal("refused")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
