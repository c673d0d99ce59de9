package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// TestEndedTasks checks what ended tasks mean for their job: whether it has its
// minimum, whether it is pending, and whether it runs.
func TestEndedTasks(t *testing.T) {
	type verdict struct {
		HasMinimum, IsPending, Running bool
		Missing                        int
	}
	const ok, bad = cluster.Succeeded, cluster.Failed
	tests := map[string]struct {
		min   int
		on    []string
		ended map[int]cluster.Status
		want  verdict
	}{
		"no task has ended":                {3, []string{"a", "a", "a"}, nil, verdict{true, false, true, 0}},
		"a succeeded task counts":          {3, []string{"a", "a", "a"}, map[int]cluster.Status{0: ok}, verdict{true, false, true, 0}},
		"a failed task does not count":     {3, []string{"a", "a", "a"}, map[int]cluster.Status{0: bad}, verdict{false, true, true, 0}},
		"a surplus task failed":            {2, []string{"a", "a", "a"}, map[int]cluster.Status{0: bad}, verdict{true, false, true, 0}},
		"all succeeded":                    {3, []string{"a", "a", "a"}, map[int]cluster.Status{0: ok, 1: ok, 2: ok}, verdict{true, false, false, 0}},
		"all failed":                       {3, []string{"a", "a", "a"}, map[int]cluster.Status{0: bad, 1: bad, 2: bad}, verdict{false, false, false, 0}},
		"one succeeded, the rest pending":  {3, nil, map[int]cluster.Status{0: ok}, verdict{false, true, false, 2}},
		"one failed, one runs, one waits":  {2, []string{"a"}, map[int]cluster.Status{1: bad}, verdict{false, true, true, 1}},
		"one failed before it was started": {3, nil, map[int]cluster.Status{2: bad}, verdict{false, true, false, 2}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := enginetest.State(enginetest.Node("a").GPUs(4, "L4", "24Gi"), enginetest.Job("j").Gang(3).Min(tt.min).Devices(1).On(tt.on...))
			j := s.Job("job/j")
			before := s.Digest()
			mark := s.Mark()
			for i := range 3 {
				if how, ended := tt.ended[i]; ended {
					if err := s.Apply(cluster.TaskGone{Task: j.Tasks()[i].Ref(), Ended: how}); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := s.Audit(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, verdict{j.HasMinimum(), s.View().IsPending(j), j.Running(), j.Missing()}); diff != "" {
				t.Error(diff)
			}
			again, err := s.Snapshot().State()
			if err != nil {
				t.Fatal(err)
			}
			if again.Digest() != s.Digest() {
				t.Error("the snapshot gives another State")
			}
			s.Undo(mark)
			s.Release(mark)
			if s.Digest() != before {
				t.Error("not undone")
			}
		})
	}
}

// TestChangesOfEndedTask checks which changes end the ended state of a task: it is
// pending after a TaskGone without Ended and after a JobPut with another UID, and bound
// when it is seen on a node.
func TestChangesOfEndedTask(t *testing.T) {
	spec := func(uid string) cluster.JobPut {
		j := enginetest.Job("j").Devices(1).Build()
		j.Alternatives[0].Tasks[0].UID = uid
		return cluster.JobPut{Job: *j}
	}
	ref := cluster.TaskRef{Job: "job/j", Name: "worker-0"}
	tests := map[string]struct {
		change cluster.Change
		want   cluster.Status
	}{
		"gone":           {cluster.TaskGone{Task: ref}, cluster.Pending},
		"another UID":    {spec("2"), cluster.Pending},
		"the same spec":  {spec("1"), cluster.Failed},
		"seen":           {cluster.TaskSeen{Task: ref, Node: "a"}, cluster.Bound},
		"seen on none":   {cluster.TaskSeen{Task: ref}, cluster.Failed},
		"leaving":        {cluster.TaskSeen{Task: ref, Releasing: true}, cluster.Failed},
		"ended again":    {cluster.TaskGone{Task: ref, Ended: cluster.Succeeded}, cluster.Succeeded},
		"a late failure": {cluster.BindFailed{Task: ref, Attempt: 1}, cluster.Failed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := enginetest.State(enginetest.Node("a").GPUs(1, "L4", "24Gi"))
			for _, c := range []cluster.Change{spec("1"), cluster.TaskSeen{Task: ref, Node: "a"}, cluster.TaskGone{Task: ref, Ended: cluster.Failed}, tt.change} {
				if err := s.Apply(c); err != nil {
					t.Fatal(err)
				}
			}
			if got := s.Job("job/j").Tasks()[0].Status; got != tt.want {
				t.Errorf("the task is %s, want %s", got, tt.want)
			}
			if err := s.Audit(); err != nil {
				t.Error(err)
			}
		})
	}
	s := enginetest.State(enginetest.Job("j"))
	if err := s.Apply(cluster.TaskGone{Task: ref, Ended: cluster.Bound}); err == nil {
		t.Error("a TaskGone with Ended: Bound is accepted")
	}
}

// TestEndedTaskOfAnOpenJob checks that an ended task of an open job stays in the job
// until a TaskGone without Ended.
func TestEndedTaskOfAnOpenJob(t *testing.T) {
	s := enginetest.State(enginetest.Node("a").GPUs(2, "L4", "24Gi"))
	ref := cluster.TaskRef{Job: "pod/g", Name: "0"}
	apply := func(changes ...cluster.Change) {
		t.Helper()
		for _, c := range changes {
			if err := s.Apply(c); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Audit(); err != nil {
			t.Fatal(err)
		}
	}
	apply(cluster.JobPut{Job: cluster.Job{ID: "pod/g", Open: true, Alternatives: []cluster.Alternative{{Min: 2}}}})
	for i, name := range []string{"0", "1"} {
		apply(cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: name, Index: i, Shape: &cluster.Shape{}}},
			cluster.TaskSeen{Task: cluster.TaskRef{Job: "pod/g", Name: name}, Node: "a"})
	}
	apply(cluster.TaskGone{Task: ref, Ended: cluster.Succeeded})
	if j := s.Job("pod/g"); !j.HasMinimum() || len(j.Tasks()) != 2 {
		t.Errorf("it has %d tasks, and has its minimum: %t", len(j.Tasks()), j.HasMinimum())
	}
	apply(cluster.TaskGone{Task: ref})
	if j := s.Job("pod/g"); j.HasMinimum() || len(j.Tasks()) != 1 {
		t.Errorf("it has %d tasks, and has its minimum: %t", len(j.Tasks()), j.HasMinimum())
	}
}
