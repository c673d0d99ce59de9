package cluster_test

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// TestFreedIsALowerBound checks that JobOnNode.Freed is not above what an eviction frees if
// the tasks of a gang hold different parts of different devices.
func TestFreedIsALowerBound(t *testing.T) {
	for name, job := range map[string]*enginetest.JobBuilder{
		"memory":     enginetest.Job("x").DeviceMemory(1, "12Gi"),
		"share":      enginetest.Job("x").Share(1, 500),
		"whole":      enginetest.Job("x").Devices(1),
		"whole node": enginetest.Job("x").Shape(func(s *cluster.Shape) { s.Need.WholeNode = true }),
	} {
		t.Run(name, func(t *testing.T) {
			s := enginetest.State(
				enginetest.Node("large").CPU(8, "32Gi").GPUs(1, "H100", "80Gi"),
				enginetest.Node("small").CPU(8, "32Gi").GPUs(2, "L4", "24Gi"),
				job.Gang(2).Preemptible().On("small", "large"))
			held := int64(0)
			for _, task := range s.Job("job/x").Tasks() {
				for _, c := range task.Claims {
					held += int64(c.Milli)
				}
			}
			for _, n := range s.Nodes() {
				var o cluster.Occupancy
				if s.View().Classes().Occupancy(n.Slot(), &o); len(o.Jobs) != 1 || o.Jobs[0].Tasks != 2 || o.Jobs[0].Freed > held {
					t.Errorf("on %s: %+v, want 2 tasks that free at most %d", n.Name, o.Jobs, held)
				}
			}
		})
	}
}
