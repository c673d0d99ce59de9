package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// two returns a job with the subgroups x and y, of which one is needed. Each of them contains
// three subgroups of two tasks, of which two are needed: x contains 3, 4 and 5, and y
// contains 6, 7 and 8.
func two() *cluster.Job {
	b := enginetest.Job("j").Gang(12).Min(4).Devices(1)
	for _, name := range []string{"x", "y"} {
		b.Subgroup(name, 0, 0, cluster.Topology{})
	}
	for _, name := range []string{"3", "4", "5", "6", "7", "8"} {
		b.Subgroup(name, 2, 2, cluster.Topology{})
	}
	j := b.Build()
	alt := &j.Alternatives[0]
	alt.MinSubgroups = 1
	for i := range alt.Subgroups {
		if g := &alt.Subgroups[i]; i < 2 {
			g.MinSubgroups = 2
		} else {
			g.Parent = 1 + (i-2)/3
		}
	}
	return j
}

// TestNestedSubgroups: which tasks of a job with nested subgroups can be evicted, depending on
// how many tasks of each inner subgroup run.
func TestNestedSubgroups(t *testing.T) {
	tests := map[string]struct {
		run        [6]int // running tasks of the subgroups 3 to 8
		hasMinimum bool   // whether the job has its minimum
		alone      bool   // whether the first running task can be evicted alone
		with       []int  // otherwise the subgroups that are evicted with it; nil means the whole job
	}{
		"the minimum":                   {[6]int{2, 2}, true, false, nil},
		"a subgroup more":               {[6]int{2, 2, 2}, true, false, []int{3}},
		"a part of a subgroup more":     {[6]int{1, 2, 2}, true, true, nil},
		"too few in both":               {[6]int{2, 0, 0, 2}, false, false, nil},
		"as many tasks, in parts":       {[6]int{1, 1, 1, 1, 1, 1}, false, false, nil},
		"another group":                 {[6]int{2, 2, 0, 2, 2}, true, false, []int{3, 4}},
		"another group, and a subgroup": {[6]int{2, 2, 2, 2, 2}, true, false, []int{3}},
		"everything":                    {[6]int{2, 2, 2, 2, 2, 2}, true, false, []int{3}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := enginetest.State(enginetest.Node("a").GPUs(12, "L4", "24Gi"))
			if err := s.Apply(cluster.JobPut{Job: *two()}); err != nil {
				t.Fatal(err)
			}
			j := s.Job("job/j")
			var first *cluster.Task
			left := tt.run
			for _, task := range j.Tasks() {
				if k := task.Subgroup - 3; left[k] > 0 {
					left[k]--
					if err := s.Apply(cluster.TaskSeen{Task: task.Ref(), Node: "a"}); err != nil {
						t.Fatal(err)
					}
					if first == nil {
						first = task
					}
				}
			}
			var with []int
			for _, o := range j.SurplusSubgroup(first) {
				if len(with) == 0 || with[len(with)-1] != o.Subgroup {
					with = append(with, o.Subgroup)
				}
			}
			if tt.alone {
				with = nil // the task is evicted alone
			}
			if diff := cmp.Diff([]any{tt.hasMinimum, tt.alone, tt.with}, []any{j.HasMinimum(), j.IsSurplus(first), with}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestMalformedSubgroups: a job is malformed if its subgroups do not form a tree, or if a
// minimum is higher than what there is.
func TestMalformedSubgroups(t *testing.T) {
	tests := map[string]struct {
		change func(*cluster.Alternative)
		want   string
	}{
		"fine":                 {func(*cluster.Alternative) {}, ""},
		"in itself":            {func(a *cluster.Alternative) { a.Subgroups[2].Parent = 3 }, "job/j: subgroup 3 has a parent that is not listed before it"},
		"in a later one":       {func(a *cluster.Alternative) { a.Subgroups[0].Parent = 2 }, "job/j: subgroup x has a parent that is not listed before it"},
		"a negative parent":    {func(a *cluster.Alternative) { a.Subgroups[0].Parent = -1 }, "job/j: subgroup x has a parent that is not listed before it"},
		"more than it has":     {func(a *cluster.Alternative) { a.MinSubgroups = 3 }, "job/j: it needs 3 subgroups, and has 2"},
		"more than y contains": {func(a *cluster.Alternative) { a.Subgroups[1].MinSubgroups = 4 }, "job/j: subgroup y needs 4 subgroups, and has 3"},
		"a negative minimum":   {func(a *cluster.Alternative) { a.MinSubgroups = -1 }, "job/j: it needs -1 subgroups, and has 2"},
		"a minimum too high":   {func(a *cluster.Alternative) { a.Min = 5 }, "job/j: the minimum is 5, and the subgroups that are needed may have only 4 tasks"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			j := two()
			tt.change(&j.Alternatives[0])
			got := ""
			if err := cluster.NewState().Apply(cluster.JobPut{Job: *j}); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
