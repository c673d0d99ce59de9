package cluster_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// TestChangesAreListed makes random changes. Every job with a changed task, and every queue
// with a changed use, must be listed as changed.
func TestChangesAreListed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := cluster.NewState()
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, q := range []*cluster.Queue{{Name: "top"}, {Name: "left", Parent: "top"}, {Name: "right", Parent: "top"}} {
			must(s.SetQueue(q))
		}
		for _, name := range []string{"a", "b"} {
			must(s.AddNode(&cluster.Node{Name: name, Resources: []cluster.Ledger{{Name: cluster.CPU, Capacity: 2}}}))
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			jobs, queues := s.View().Recent().JobsVersion(), s.View().Recent().QueuesVersion()
			before, used := statuses(s), uses(s)
			changeOne(t, s)
			changed := map[string]bool{}
			s.View().Recent().Jobs(jobs, func(slot int) {
				if j := s.View().JobAt(slot); j != nil {
					changed[j.ID] = true
				}
			})
			for id, now := range statuses(s) {
				if now != before[id] && !changed[id] {
					t.Fatalf("%s was %q and is %q, but is not listed", id, before[id], now)
				}
			}
			s.View().Recent().Queues(queues, func(q *cluster.Queue) { changed[q.Name] = true })
			for name, now := range uses(s) {
				if now != used[name] && !changed[name] {
					t.Fatalf("queue %s used %q and uses %q, but is not listed", name, used[name], now)
				}
			}
		}
	})
}

// changeOne makes one random change of a job or of one of its tasks.
func changeOne(t *rapid.T, s *cluster.State) {
	id := fmt.Sprintf("job/%d", rapid.IntRange(0, 3).Draw(t, "job"))
	j := s.Job(id)
	if j == nil {
		shape := &cluster.Shape{Resources: cluster.Resources{{Name: cluster.CPU, Value: 1}}}
		j = &cluster.Job{ID: id, Queue: rapid.SampledFrom([]string{"left", "right"}).Draw(t, "queue"), Alternatives: []cluster.Alternative{{
			Min: 1, Tasks: []*cluster.Task{{Name: "0", Shape: shape}, {Name: "1", Shape: shape}},
		}}}
		if err := s.AddJob(j); err != nil {
			t.Fatal(err)
		}
		return
	}
	task := rapid.SampledFrom(j.Tasks()).Draw(t, "task")
	switch rapid.IntRange(0, 6).Draw(t, "what") {
	case 0:
		if err := s.RemoveJob(id); err != nil {
			t.Fatal(err)
		}
	case 1, 2, 3:
		_ = s.Place(task, s.Node(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "node")), nil, 0) // it fails if there is no room
	case 4:
		mark := s.Mark()
		if s.Evict(task) == nil && rapid.Bool().Draw(t, "undo") {
			s.Undo(mark)
		}
		s.Release(mark)
	case 5:
		s.Clear(task)
	case 6:
		s.Bind(task, 0)
	}
}

func statuses(s *cluster.State) map[string]string {
	out := map[string]string{}
	for _, j := range s.Jobs() {
		out[j.ID] = fmt.Sprint(j.Chosen, s.View().IsPending(j))
		for _, t := range j.Tasks() {
			out[j.ID] += t.Status.String()
		}
	}
	return out
}

func uses(s *cluster.State) map[string]string {
	out := map[string]string{}
	for _, q := range s.Queues() {
		out[q.Name] = fmt.Sprint(q.Used, q.UsedByFirm)
	}
	return out
}

// TestAnotherSpecChangesTheNodesOfItsTasks: if a job is given another spec, the nodes that
// its tasks are on or move to get a new version, and no other node does. The same holds for
// the undo.
func TestAnotherSpecChangesTheNodesOfItsTasks(t *testing.T) {
	s, j := moving(t, "b", 0)
	for _, c := range []cluster.Change{
		cluster.NodePut{Node: cluster.Node{Name: "c"}},
		cluster.NodePut{Node: cluster.Node{Name: "gone"}},
		cluster.TaskSeen{Task: j.Tasks()[1].Ref(), Node: "gone"},
		cluster.NodeGone{Name: "gone"},
	} {
		if err := s.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	since := s.Version()
	changed := func() map[string]bool {
		out := map[string]bool{}
		s.View().Recent().Nodes(since, func(slot int) { out[s.View().At(slot).Name] = true })
		since = s.Version()
		return out
	}
	mark := s.Mark()
	defer s.Release(mark)
	want := map[string]bool{"a": true, "b": true}
	if err := s.Apply(cluster.JobPut{Job: *enginetest.Job("j").Gang(2).Min(1).Devices(1).Label("app", "web").Build()}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, changed()); diff != "" {
		t.Errorf("another spec (-want +got):\n%s", diff)
	}
	s.Undo(mark)
	if diff := cmp.Diff(want, changed()); diff != "" {
		t.Errorf("undone (-want +got):\n%s", diff)
	}
}
