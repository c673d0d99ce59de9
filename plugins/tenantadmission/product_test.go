package tenantadmission

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
)

const a100, l4 = gpu + ":A100", gpu + ":L4"

// Limits and quotas of products are checked before any node if only one product is possible,
// and on each node if several are. Node n has 8 A100.
func TestProducts(t *testing.T) {
	other := func() *enginetest.NodeBuilder { return enginetest.Node("m").CPU(64, "512Gi").GPUs(4, "L4", "24Gi") }
	mixed := func() *enginetest.NodeBuilder {
		return enginetest.Node("m").CPU(64, "512Gi").GPUs(2, "A100", "80Gi").GPUs(2, "L4", "24Gi")
	}
	of := func(products ...string) *enginetest.JobBuilder {
		return need(cluster.Need{Devices: 2, Products: products})
	}
	firm := func(r *engine.Rejection, reason engine.Reason, cure engine.Cure) *engine.Rejection {
		r.Reason, r.Cure = reason, cure
		return r
	}
	holder := func(n int) *enginetest.JobBuilder { return job("x").Devices(n).On("n") }
	type list = []enginetest.Part
	tests := map[string]struct {
		parts  list
		before *engine.Rejection // nil: accepted
		nodes  bool              // whether the filter is called for nodes
		on     map[string]*engine.Rejection
	}{
		"the only product of the cluster":      {parts: list{queue().Limit(a100, 4000), holder(3), of()}, before: reached(a100, parts(2000), parts(1000))},
		"within the limit":                     {parts: list{queue().Limit(a100, 5000), holder(3), of()}},
		"the only allowed product":             {parts: list{other(), queue().Limit(a100, 4000), holder(3), of("A100")}, before: reached(a100, parts(2000), parts(1000))},
		"another product is requested":         {parts: list{other(), queue().Limit(a100, 4000), holder(3), of("L4")}},
		"more than the limit":                  {parts: list{queue().Limit(a100, 1000), of()}, before: tooSmall(a100, parts(2000), parts(1000))},
		"only the job itself holds devices":    {parts: list{queue().Limit(a100, 3000), of().Gang(2).Min(1).On("n")}, before: tooSmall(a100, parts(4000), parts(3000))},
		"a limit of 0":                         {parts: list{other(), queue().Limit(a100, 0), of("A100")}, before: forbidden(a100, parts(2000))},
		"a gang":                               {parts: list{queue().Limit(a100, 5000), of().Gang(3)}, before: tooSmall(a100, parts(6000), parts(5000))},
		"the limit of all products":            {parts: list{queue().Limit(a100, 5000).Limit(gpu, 4000), holder(3), of()}, before: reached(gpu, parts(2000), parts(1000))},
		"not preemptible, within the quota":    {parts: list{queue().Quota(a100, 5000), holder(3), of()}},
		"not preemptible, quota reached":       {parts: list{queue().Quota(a100, 4000), holder(3), of()}, before: firm(reached(a100, parts(2000), parts(1000)), QueueQuotaReached, engine.Wait)},
		"not preemptible, more than the quota": {parts: list{queue().Quota(a100, 1000), of()}, before: firm(tooSmall(a100, parts(2000), parts(1000)), QueueQuotaTooSmall, engine.Relax)},
		"preemptible, beyond the quota":        {parts: list{queue().Quota(a100, 4000), holder(3), of().Preemptible()}},
		"two products are possible": {parts: list{other(), queue().Limit(a100, 4000), holder(3), of()}, nodes: true,
			on: map[string]*engine.Rejection{"n": reached(a100, parts(2000), parts(1000)), "m": nil}},
		"two products are possible, one has limit 0": {parts: list{other(), queue().Limit(l4, 0), of()}, nodes: true,
			on: map[string]*engine.Rejection{"n": nil, "m": forbidden(l4, parts(2000))}},
		// On m the task could take two A100: the highest possible cost counts.
		"a node with both products": {parts: list{mixed(), queue().Limit(a100, 4000), holder(3), of()}, nodes: true,
			on: map[string]*engine.Rejection{"n": reached(a100, parts(2000), parts(1000)), "m": reached(a100, parts(2000), parts(1000))}},
		// 40 of 80 GiB is half a device, and an L4 is too small.
		"memory": {parts: list{mixed(), queue().Limit(a100, 4000), holder(3), need(cluster.Need{Devices: 2, Memory: 40 << 30})}, nodes: true,
			on: map[string]*engine.Rejection{"n": nil, "m": nil}},
		"whole nodes": {parts: list{mixed(), queue().Limit(a100, 4000), need(cluster.Need{WholeNode: true})}, nodes: true,
			on: map[string]*engine.Rejection{"n": tooSmall(a100, parts(8000), parts(4000)), "m": nil}},
		"a limit of a resource name without devices": {parts: list{queue().Limit("amd.com/gpu:A100", 0), of()}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, state := open(t, append(list{node("n")}, tc.parts...)...)
			tasks := state.Job("job/j").Tasks()
			task := tasks[len(tasks)-1]
			if diff := cmp.Diff(tc.before, p.preFilter(task, task.Job)); diff != "" {
				t.Errorf("preFilter (-want +got):\n%s", diff)
			}
			if got := p.matters(task, task.Job); got != tc.nodes {
				t.Errorf("the filter applies to nodes: %v", got)
			}
			for at, want := range tc.on {
				if diff := cmp.Diff(want, p.admit(task, task.Job, state.Node(at))); diff != "" {
					t.Errorf("on %s (-want +got):\n%s", at, diff)
				}
			}
		})
	}
}
