package cluster_test

import (
	"fmt"
	"testing"

	"github.com/berth-project/berth/cluster"
)

// TestCostOfChanges checks that the cost of a change does not depend on the size of the
// State: the number of allocations and of jobs with a new version is the same with few
// and with many other jobs.
func TestCostOfChanges(t *testing.T) {
	shape := &cluster.Shape{Need: cluster.Need{Devices: 1}}
	job := func(i int, queue string) cluster.Job {
		return cluster.Job{ID: fmt.Sprintf("job/%05d", i), Queue: queue, Alternatives: []cluster.Alternative{{Min: 1, Tasks: []*cluster.Task{{Name: "0", Shape: shape}}}}}
	}
	apply := func(s *cluster.State, c cluster.Change) {
		if err := s.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	for name, change := range map[string]func(s *cluster.State, others int){
		"a queue that is put after its jobs": func(s *cluster.State, others int) {
			apply(s, cluster.QueuePut{Queue: cluster.Queue{Name: "late", Parent: "above"}})
			apply(s, cluster.QueueGone{Name: "late"})
		},
		"a queue that gets another parent": func(s *cluster.State, others int) {
			apply(s, cluster.QueuePut{Queue: cluster.Queue{Name: "leaf", Parent: "other"}})
			apply(s, cluster.QueuePut{Queue: cluster.Queue{Name: "leaf", Parent: "above"}})
		},
		"a job": func(s *cluster.State, others int) {
			apply(s, cluster.JobPut{Job: job(others, "leaf")})
			apply(s, cluster.JobGone{Job: fmt.Sprintf("job/%05d", others)})
		},
		"a task of an open job": func(s *cluster.State, others int) {
			apply(s, cluster.TaskPut{Job: "job/open", Task: cluster.Task{Name: "another", Index: others / 2, Shape: shape}})
			apply(s, cluster.TaskGone{Task: cluster.TaskRef{Job: "job/open", Name: "another"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var allocations [2]float64
			var jobs [2]uint64
			for i, others := range []int{100, 3000} {
				s := cluster.NewState()
				for _, q := range []string{"above", "other"} {
					apply(s, cluster.QueuePut{Queue: cluster.Queue{Name: q}})
				}
				apply(s, cluster.QueuePut{Queue: cluster.Queue{Name: "leaf", Parent: "above"}})
				apply(s, cluster.JobPut{Job: cluster.Job{ID: "job/open", Open: true, Queue: "leaf", Alternatives: []cluster.Alternative{{Min: 1}}}})
				for k := range others {
					apply(s, cluster.JobPut{Job: job(k, "elsewhere")})
					apply(s, cluster.TaskPut{Job: "job/open", Task: cluster.Task{Name: fmt.Sprint(k), Index: k, Shape: shape}})
				}
				apply(s, cluster.JobPut{Job: job(99999, "late")})
				change(s, others)
				allocations[i] = testing.AllocsPerRun(10, func() { change(s, others) })
				before := s.View().Recent().JobsVersion()
				change(s, others)
				jobs[i] = s.View().Recent().JobsVersion() - before
			}
			if allocations[1] > allocations[0]+2 {
				t.Errorf("%v allocations with 3,000 other jobs, %v with 100", allocations[1], allocations[0])
			}
			if jobs[1] != jobs[0] {
				t.Errorf("%d new versions of jobs with 3,000 other jobs, %d with 100", jobs[1], jobs[0])
			}
		})
	}
}
