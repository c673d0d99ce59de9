package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// ofThree returns a job of three subgroups a, b and c, of which two are needed. Each has one
// task, which requests the given number of devices.
func ofThree(devices ...int) *cluster.Job {
	none := cluster.Topology{}
	j := enginetest.Job("j").Gang(3).Min(2).Devices(1).Subgroup("a", 1, 1, none).Subgroup("b", 1, 1, none).Subgroup("c", 1, 1, none).Build()
	j.Alternatives[0].MinSubgroups = 2
	for i, t := range j.Alternatives[0].Tasks {
		t.Shape.Need.Devices = devices[i]
	}
	return j
}

// TestTwoOfThree checks which two of three subgroups make up the minimum on a node with four
// devices.
func TestTwoOfThree(t *testing.T) {
	tests := map[string]struct {
		devices []int
		want    map[string]string // the nodes of the placed tasks
	}{
		"the first two":                        {[]int{2, 2, 2}, map[string]string{"worker-0": "n", "worker-1": "n"}},
		"the second has no room":               {[]int{2, 3, 2}, map[string]string{"worker-0": "n", "worker-2": "n"}},
		"the first is too large":               {[]int{5, 2, 2}, map[string]string{"worker-1": "n", "worker-2": "n"}},
		"the first leaves no room for another": {[]int{3, 2, 2}, map[string]string{"worker-1": "n", "worker-2": "n"}}, // only the exact search finds it
		"all three":                            {[]int{2, 1, 1}, map[string]string{"worker-0": "n", "worker-1": "n", "worker-2": "n"}},
		"no two":                               {[]int{3, 2, 3}, map[string]string{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := enginetest.State(enginetest.Node("n").GPUs(4, "A100", "80Gi"))
			apply(t, s, cluster.JobPut{Job: *ofThree(tt.devices...)})
			e := enginetest.Engine(fit())
			if _, err := e.Open(s, engine.Options{Now: 1, Search: engine.Twin}).Run(); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, task := range s.Job("job/j").Tasks() {
				if task.Node != nil {
					got[task.Name] = task.Node.Name
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSurplusSubgroupStartsAsAWhole checks that the two tasks of c start together: one has its
// room at once, the other waits for an evicted task, so both wait while a and b run.
func TestSurplusSubgroupStartsAsAWhole(t *testing.T) {
	none := cluster.Topology{}
	j := enginetest.Job("j").Gang(4).Min(2).Devices(1).Subgroup("a", 1, 1, none).Subgroup("b", 1, 1, none).Subgroup("c", 2, 2, none).Build()
	j.Alternatives[0].MinSubgroups = 2
	s := enginetest.State(enginetest.Node("n").GPUs(4, "A100", "80Gi"), enginetest.Job("old").Devices(1).On("n"))
	old := s.Job("job/old").Tasks()[0]
	apply(t, s, cluster.JobPut{Job: *j}, cluster.TaskSeen{Task: cluster.TaskRef{Job: "job/j", Name: "worker-0"}, Node: "n"},
		cluster.TaskSeen{Task: cluster.TaskRef{Job: "job/j", Name: "worker-1"}, Node: "n"}, cluster.TaskSeen{Task: old.Ref(), Node: "n", Releasing: true})
	e := enginetest.Engine(fit())
	run := func(now int64) (got []string) {
		if _, err := e.Open(s, engine.Options{Now: now}).Run(); err != nil {
			t.Fatal(err)
		}
		for _, task := range s.Job("job/j").Tasks() {
			got = append(got, task.Status.String())
		}
		return got
	}
	for now := range int64(2) { // the room of one task is free, but it must not start alone
		if diff := cmp.Diff([]string{"Bound", "Bound", "Nominated", "Nominated"}, run(1+now)); diff != "" {
			t.Fatal(diff)
		}
	}
	apply(t, s, cluster.TaskSeen{Task: old.Ref()}, jobGone("job/old"))
	if diff := cmp.Diff([]string{"Bound", "Bound", "Assumed", "Assumed"}, run(3)); diff != "" {
		t.Error(diff)
	}
}
