package cluster_test

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
)

// tree returns a State with the queue root, which has two children, of which one has a child.
// Two tasks use 1 and 2 cores.
func tree() *cluster.State {
	return enginetest.State(
		enginetest.Node("n").CPU(8, "16Gi"),
		enginetest.Queue("root"), enginetest.Queue("mid").Parent("root"), enginetest.Queue("low").Parent("mid"), enginetest.Queue("side").Parent("root"), enginetest.Queue("apart"),
		enginetest.Job("one").Queue("low").CPU(1000, "0").On("n"), enginetest.Job("two").Queue("side").CPU(2000, "0").On("n"),
	)
}

func cores(s *cluster.State) map[string]int64 {
	out := map[string]int64{}
	for _, q := range s.Queues() {
		if v := q.Used.Of(cluster.CPU); v != 0 {
			out[q.Name] = v
		}
	}
	return out
}

func TestAncestorsAreCharged(t *testing.T) {
	move := func(queue, parent string) func(*cluster.State) error {
		return func(s *cluster.State) error {
			q := *s.Queue(queue)
			q.Parent = parent
			return s.SetQueue(&q)
		}
	}
	tests := map[string]struct {
		change func(*cluster.State) error
		want   map[string]int64
	}{
		"no change":          {func(*cluster.State) error { return nil }, map[string]int64{"low": 1000, "mid": 1000, "side": 2000, "root": 3000}},
		"a job ends":         {func(s *cluster.State) error { return s.RemoveJob("job/two") }, map[string]int64{"low": 1000, "mid": 1000, "root": 1000}},
		"a task is evicted":  {func(s *cluster.State) error { return s.Evict(task(s, "one", 0)) }, map[string]int64{"side": 2000, "root": 2000}},
		"moved to the top":   {move("mid", ""), map[string]int64{"low": 1000, "mid": 1000, "side": 2000, "root": 2000}},
		"moved elsewhere":    {move("mid", "apart"), map[string]int64{"low": 1000, "mid": 1000, "apart": 1000, "side": 2000, "root": 2000}},
		"moved up one level": {move("low", "root"), map[string]int64{"low": 1000, "side": 2000, "root": 3000}},
		"moved below":        {move("apart", "mid"), map[string]int64{"low": 1000, "mid": 1000, "side": 2000, "root": 3000}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := tree()
			before, copied := cores(s), s.Clone()
			if err := tc.change(s); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, cores(s)); d != "" {
				t.Errorf("in use (-want +got):\n%s", d)
			}
			if d := cmp.Diff(before, cores(copied)); d != "" {
				t.Errorf("the copy changed (-want +got):\n%s", d)
			}
		})
	}
}

func TestMalformedQueues(t *testing.T) {
	tests := map[string]struct {
		queue cluster.Queue
		want  string
	}{
		"its own parent":    {cluster.Queue{Name: "root", Parent: "root"}, `queue "root" is its own parent`},
		"below the default": {cluster.Queue{Name: "new", Parent: "default"}, `queue "new": the default queue has no queues below it, because jobs that name no queue are in it`},
		"no name":           {cluster.Queue{Parent: "root"}, `a queue has no name`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := tree()
			before := cores(s)
			err := s.SetQueue(&tc.queue)
			if err == nil || err.Error() != tc.want {
				t.Errorf("have %v, want %s", err, tc.want)
			}
			if d := cmp.Diff(before, cores(s)); d != "" {
				t.Errorf("State changed (-want +got):\n%s", d)
			}
		})
	}
}

// TestJobsWaitForTheirQueue: jobs are not pending while their queue is not a leaf of the
// tree. When it is a leaf again, they are pending and their running tasks are charged.
func TestJobsWaitForTheirQueue(t *testing.T) {
	up := cluster.Queue{Name: "root", Parent: "low"}
	tests := map[string]struct {
		change cluster.Change
		waits  []string // jobs that are not pending after the change
		back   cluster.Change
	}{
		"its queue is removed":        {cluster.QueueGone{Name: "low"}, []string{"job/more"}, cluster.QueuePut{Queue: cluster.Queue{Name: "low", Parent: "mid"}}},
		"a queue above it is removed": {cluster.QueueGone{Name: "root"}, []string{"job/more"}, cluster.QueuePut{Queue: cluster.Queue{Name: "root"}}},
		"the parents form a cycle":    {cluster.QueuePut{Queue: up}, []string{"job/more"}, cluster.QueuePut{Queue: cluster.Queue{Name: "root"}}},
		"a queue is added below it":   {cluster.QueuePut{Queue: cluster.Queue{Name: "new", Parent: "low"}}, []string{"job/more"}, cluster.QueueGone{Name: "new"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := tree()
			if err := s.AddJob(enginetest.Job("more").Queue("low").CPU(1, "0").Build()); err != nil {
				t.Fatal(err)
			}
			before, digest := cores(s), s.Digest()
			if err := s.Apply(tc.change); err != nil {
				t.Fatal(err)
			}
			for _, id := range tc.waits {
				if s.View().IsPending(s.Job(id)) {
					t.Errorf("%s is pending", id)
				}
			}
			if err := s.Apply(tc.back); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(before, cores(s)); d != "" || s.Digest() != digest {
				t.Errorf("State is not as before (-want +got):\n%s", d)
			}
			if !s.View().IsPending(s.Job("job/more")) {
				t.Error("the job is not pending again")
			}
		})
	}
}

func TestWeightOf(t *testing.T) {
	cores := func(weight int64) cluster.Resources { return cluster.Resources{{Name: "cpu", Value: weight}} }
	tests := map[string]struct {
		queue       cluster.Queue
		cpu, memory int64
	}{
		"not given":                {cluster.Queue{}, 1, 1},
		"for one resource":         {cluster.Queue{Weight: 3, OverQuotaWeight: cores(5)}, 5, 3},
		"0 for one resource":       {cluster.Queue{Weight: 3, OverQuotaWeight: cores(0)}, 0, 3},
		"weightless":               {cluster.Queue{Weightless: true}, 0, 0},
		"weightless except for it": {cluster.Queue{Weightless: true, OverQuotaWeight: cores(2)}, 2, 0},
	}
	for name, tc := range tests {
		if cpu, memory := tc.queue.WeightOf("cpu"), tc.queue.WeightOf("memory"); cpu != tc.cpu || memory != tc.memory {
			t.Errorf("%s: weights %d and %d, want %d and %d", name, cpu, memory, tc.cpu, tc.memory)
		}
	}
}
