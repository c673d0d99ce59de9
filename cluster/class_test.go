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

// TestOccupancyFollowsReports checks that a summary has what the running tasks of a gang really
// hold, if that is not what they request or if a task of the gang is lost.
func TestOccupancyFollowsReports(t *testing.T) {
	s := enginetest.State(
		enginetest.Node("a").CPU(8, "32Gi").GPUs(4, "L4", "24Gi"),
		enginetest.Node("b").CPU(8, "32Gi").GPUs(4, "L4", "24Gi"),
		enginetest.Job("x").Devices(2).Gang(3).Preemptible().On("a", "a", "b"))
	job := s.Job("job/x")
	of := func(node string) (out cluster.JobOnNode) {
		var o cluster.Occupancy
		s.View().Classes().Occupancy(s.Node(node).Slot(), &o)
		if len(o.Jobs) != 1 {
			t.Fatalf("on %s: %d jobs", node, len(o.Jobs))
		}
		out = o.Jobs[0]
		out.Job = nil
		return out
	}
	if got, want := of("a"), (cluster.JobOnNode{Whole: true, Tasks: 3, Freed: 6000, Count: 2, Devices: 4, Widest: 2, Each: 2000}); got != want {
		t.Errorf("on a: %+v, want %+v", got, want)
	}
	report := cluster.SeenOn(job.Tasks()[2], s.Node("b"), []cluster.Claim{{Device: 0, Milli: 1000}}, 0)
	if err := s.Apply(report); err != nil {
		t.Fatal(err)
	}
	if got, want := of("b"), (cluster.JobOnNode{Whole: true, Tasks: 3, Freed: 5000, Count: 1, Devices: 1, Widest: 1, Each: 1000}); got != want {
		t.Errorf("on b after the report: %+v, want %+v", got, want)
	}
	if err := s.Apply(cluster.TaskGone{Task: job.Tasks()[0].Ref()}); err != nil {
		t.Fatal(err)
	}
	if got := of("b"); got.Tasks != 2 || got.Freed != 3000 {
		t.Errorf("on b after a task was lost: %+v, want 2 tasks that hold 3000", got)
	}
}
