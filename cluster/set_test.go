package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

func members(s *cluster.State, name string) []string {
	var out []string
	for _, j := range s.View().Sets().Jobs(name) {
		out = append(out, j.ID)
	}
	return out
}

func pendingJobs(s *cluster.State) []string {
	var out []string
	for _, j := range s.Pending() {
		out = append(out, j.ID)
	}
	return out
}

func TestSets(t *testing.T) {
	s := enginetest.State(enginetest.Job("b-1").Set("b", 2), enginetest.Job("b-0").Set("b", 2), enginetest.Job("a-0").Set("a", 1), enginetest.Job("x"))
	if diff := cmp.Diff([]string{"a", "b"}, s.View().Sets().Names()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"job/b-0", "job/b-1"}, members(s, "b")); diff != "" {
		t.Error(diff)
	}
	if err := s.RemoveJob("job/a-0"); err != nil {
		t.Fatal(err)
	}
	if err := s.RemoveJob("job/x"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b"}, s.View().Sets().Names()); diff != "" {
		t.Error(diff)
	}
}

func TestRetire(t *testing.T) {
	s := enginetest.State(enginetest.Node("n").CPU(8, "64Gi").GPUs(2, "A100", "80Gi"),
		enginetest.Job("m-0").Set("m", 1).Devices(1).On("n"), enginetest.Job("m-1").Set("m", 1).Devices(1).On("n"), enginetest.Job("m-2").Set("m", 1).Devices(1))
	j, waiting := s.Job("job/m-1"), s.Job("job/m-2")
	s.Retire(j)
	mark := s.Mark()
	s.Retire(waiting)
	if retired := s.View().Retired(); len(retired) != 2 || retired[0] != j || retired[1] != waiting {
		t.Errorf("%v", retired)
	}
	if diff := cmp.Diff([]string{"job/m-0"}, members(s, "m")); diff != "" {
		t.Error(diff)
	}
	if len(s.Pending()) != 0 || !j.Running() {
		t.Errorf("pending: %v", pendingJobs(s))
	}
	s.Undo(mark)
	if diff := cmp.Diff([]string{"job/m-0", "job/m-2"}, members(s, "m")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"job/m-2"}, pendingJobs(s)); diff != "" {
		t.Error(diff)
	}
	// A retired job is not pending again after its task has left, in the State or in a copy.
	if err := s.Evict(task(s, "m-1", 0)); err != nil {
		t.Fatal(err)
	}
	c := s.Clone()
	for _, s := range []*cluster.State{s, c} {
		s.Clear(task(s, "m-1", 0))
		if diff := cmp.Diff([]string{"job/m-2"}, pendingJobs(s)); diff != "" {
			t.Error(diff)
		}
	}
	c.Retire(c.Job("job/m-0"))
	if diff := cmp.Diff([]string{"job/m-0", "job/m-2"}, members(s, "m")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"job/m-2"}, members(c, "m")); diff != "" || c.View().Sets().Jobs("m")[0] == s.View().Sets().Jobs("m")[1] {
		t.Error(diff)
	}
	// A Set is removed with its last job. Removing a retired job later changes nothing.
	c.Retire(c.Job("job/m-2"))
	if len(c.View().Sets().Names()) != 0 {
		t.Errorf("%v", c.View().Sets().Names())
	}
	if err := c.RemoveJob("job/m-2"); err != nil || len(c.View().Retired()) != 2 || len(s.View().Retired()) != 1 {
		t.Fatal(err, len(c.View().Retired()), len(s.View().Retired()))
	}
	if r := (cluster.Job{ID: "job/m-3", Retired: true, JobDetails: &cluster.JobDetails{Set: cluster.Set{Name: "m"}}, Alternatives: j.Alternatives}); c.AddJob(&r) != nil || len(c.View().Sets().Names()) != 0 || len(c.Pending()) != 0 {
		t.Error("a job that was retired before it was added is in its Set, or is pending")
	}
}

func TestHome(t *testing.T) {
	nodes := []enginetest.Part{enginetest.Node("a").GPUs(2, "A100", "80Gi"), enginetest.Node("b").GPUs(1, "A10", "24Gi")}
	build := func(parts ...enginetest.Part) *cluster.State { return enginetest.State(append(parts, nodes...)...) }
	key := func(s *cluster.State, node string) cluster.GroupKey { return s.Node(node).Group().Key }

	s := build(enginetest.Job("m-0").Set("m", 2).WholeNodes(1, "8Gi"), enginetest.Job("m-1").Set("m", 2).Devices(1).On("a"))
	if home := s.View().Sets().Home("m"); home != nil || s.View().Sets().Home("o") != nil {
		t.Errorf("no job is on whole nodes, but the home is %v", home)
	}
	n, tk := s.Node("b"), task(s, "m-0", 0)
	claims, _ := n.Choose(tk.Shape, nil)
	if err := s.Restore(tk, n, claims, 0); err != nil {
		t.Fatal(err)
	}
	if home := s.View().Sets().Home("m"); home == nil || *home != key(s, "b") {
		t.Errorf("a job is on b, but the home is %v", home)
	}
	// The group of the alternative counts more than the node's: the node may have changed.
	only := key(s, "a")
	tk.Job.Alternatives[0].Whole.Only = &only
	if home := s.View().Sets().Home("m"); *home != only {
		t.Errorf("the job was placed for a, but the home is %v", home)
	}
	// The group that was kept stays after the last task has left.
	s.KeepGroup(tk.Job)
	s.Clear(tk)
	if home := s.View().Sets().Home("m"); home == nil || *home != only || *s.Clone().View().Sets().Home("m") != only {
		t.Errorf("a was chosen, but the home is %v", home)
	}
	// A group that the job names as chosen counts more than where jobs are.
	chosen := key(s, "a")
	s = build(enginetest.Job("m-0").Set("m", 2).WholeNodes(1, "8Gi").On("b"))
	j := enginetest.Job("m-1").Set("m", 2).WholeNodes(1, "8Gi").Build()
	j.Set.Group = &chosen
	if err := s.AddJob(j); err != nil {
		t.Fatal(err)
	}
	if home := s.View().Sets().Home("m"); *home != chosen {
		t.Errorf("a was chosen, but the home is %v", home)
	}
	for _, id := range []string{"job/m-0", "job/m-1"} {
		if err := s.RemoveJob(id); err != nil {
			t.Fatal(err)
		}
	}
	if s.View().Sets().Home("m") != nil {
		t.Error("a Set that was removed has a home")
	}
}

// TestExcess: if jobs of a Set say different numbers of desired jobs, the largest counts.
func TestExcess(t *testing.T) {
	s := enginetest.State(enginetest.Job("m-0").Set("m", 1), enginetest.Job("m-1").Set("m", 3), enginetest.Job("m-2").Set("m", 3))
	check := func(desired int, want ...string) {
		t.Helper()
		if got := s.View().Sets().Excess(); !cmp.Equal(got, want) || s.View().Sets().Desired("m") != desired {
			t.Errorf("%d desired, want %d; Sets with too many jobs: %v, want %v", s.View().Sets().Desired("m"), desired, got, want)
		}
	}
	check(3)
	mark := s.Mark()
	s.Retire(s.Job("job/m-2"))
	check(3)
	s.Retire(s.Job("job/m-1"))
	check(1)
	s.Undo(mark)
	check(3)
	s.Scale("m", 2)
	check(2, "m")
	if got := s.Clone().View().Sets().Excess(); !cmp.Equal(got, []string{"m"}) {
		t.Errorf("the copy: %v", got)
	}
	if err := s.RemoveJob("job/m-0"); err != nil {
		t.Fatal(err)
	}
	check(2)
	s.Scale("o", 1)
}
