package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// two is a job of two groups, of which one is needed. Each has three subgroups of two
// tasks, of which two are needed: x has 3, 4 and 5, and y has 6, 7 and 8.
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

// What a job with nested subgroups can do without, by how many tasks of each of the
// inner subgroups run.
func TestNestedSubgroups(t *testing.T) {
	tests := map[string]struct {
		run    [6]int // of 3 to 8
		stands bool
		alone  bool  // whether the first task that runs may go alone
		with   []int // otherwise the subgroups whose tasks go with it; nil: the whole job
	}{
		"as much as is needed":          {[6]int{2, 2}, true, false, nil},
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
			for _, o := range j.SparesSubgroup(first) {
				if len(with) == 0 || with[len(with)-1] != o.Subgroup {
					with = append(with, o.Subgroup)
				}
			}
			if tt.alone {
				with = nil // it goes alone, whatever else could go
			}
			if diff := cmp.Diff([]any{tt.stands, tt.alone, tt.with}, []any{j.Stands(), j.Spares(first), with}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Jobs whose subgroups make no tree, or ask for more than there is, are malformed.
func TestMalformedSubgroups(t *testing.T) {
	tests := map[string]struct {
		change func(*cluster.Alternative)
		want   string
	}{
		"fine":                   {func(*cluster.Alternative) {}, ""},
		"in itself":              {func(a *cluster.Alternative) { a.Subgroups[2].Parent = 3 }, "job/j: subgroup 3 has a parent that is not listed before it"},
		"in one below":           {func(a *cluster.Alternative) { a.Subgroups[0].Parent = 2 }, "job/j: subgroup x has a parent that is not listed before it"},
		"in one before all":      {func(a *cluster.Alternative) { a.Subgroups[0].Parent = -1 }, "job/j: subgroup x has a parent that is not listed before it"},
		"more than are there":    {func(a *cluster.Alternative) { a.MinSubgroups = 3 }, "job/j: it needs 3 subgroups, and has 2"},
		"more than are in it":    {func(a *cluster.Alternative) { a.Subgroups[1].MinSubgroups = 4 }, "job/j: subgroup y needs 4 subgroups, and has 3"},
		"fewer than none":        {func(a *cluster.Alternative) { a.MinSubgroups = -1 }, "job/j: it needs -1 subgroups, and has 2"},
		"more tasks than so few": {func(a *cluster.Alternative) { a.Min = 5 }, "job/j: the minimum is 5, and the subgroups that are needed may have only 4 tasks"},
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
