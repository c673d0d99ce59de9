package tenantadmission

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
)

// On unified memory, what is claimed of devices counts as memory of the queue too.
func TestUnifiedMemory(t *testing.T) {
	need := func(n cluster.Need) *enginetest.JobBuilder {
		return job("j").CPU(0, "20Gi").Shape(func(s *cluster.Shape) { s.Need = n })
	}
	layered := func(devices int) cluster.Need {
		return cluster.Need{Devices: devices, Layers: &cluster.Layers{Total: 20, Bytes: 1 << 30, Fixed: 5 << 30}}
	}
	tests := map[string]struct {
		job   *enginetest.JobBuilder
		limit int64
		want  *engine.Rejection
	}{
		"within the limit": {need(cluster.Need{Devices: 1, Memory: 40 << 30}), 60, nil},
		"memory":           {need(cluster.Need{Devices: 1, Memory: 40 << 30}), 59, tooSmall("memory", gib(60), gib(59))},
		"a share":          {need(cluster.Need{Devices: 1, Share: 500}), 59, tooSmall("memory", gib(60), gib(59))},
		"two shares":       {need(cluster.Need{Devices: 2, Share: 250}), 59, tooSmall("memory", gib(60), gib(59))},
		"the whole node":   {need(cluster.Need{WholeNode: true, Share: 250}), 59, tooSmall("memory", gib(60), gib(59))},
		"all that is left": {need(cluster.Need{Devices: 1}), 89, tooSmall("memory", gib(90), gib(89))}, // 70 GiB beside the 20 and another's 10
		"layers":           {need(layered(0)), 44, tooSmall("memory", gib(45), gib(44))},
		"layers of two":    {need(layered(2)), 90, nil}, // as much as there is, for all that is known
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, state := open(t, queue().Limit(cluster.Memory, tt.limit<<30), tt.job, enginetest.Job("x").CPU(0, "10Gi").On("n"),
				enginetest.Node("n").CPU(8, "100Gi").GPUs(2, "GB10", "80Gi").With(func(n *cluster.Node) { n.Unified = true }))
			task := state.Job("job/j").Tasks()[0]
			if !p.matters(task, task.Job) {
				t.Fatal("the filter does not apply")
			}
			if d := cmp.Diff(tt.want, p.admit(task, task.Job, state.Node("n"))); d != "" {
				t.Errorf("admit (-want +got):\n%s", d)
			}
		})
	}
}

// If no node has unified memory, queues that bound memory need no check of nodes.
func TestNoUnifiedMemory(t *testing.T) {
	p, state := open(t, queue().Limit(cluster.Memory, 30<<30), node("n"), job("j").CPU(0, "20Gi").DeviceMemory(1, "40Gi"))
	if task := state.Job("job/j").Tasks()[0]; p.matters(task, task.Job) {
		t.Error("the filter applies to nodes")
	}
}
