package engine_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// team describes a subgroup of equal tasks.
type team struct {
	name         string
	tasks, least int
	devices      int
	topology     cluster.Topology
}

// teams returns a job with these subgroups. The tasks of a team without a name are in no subgroup.
func teams(least int, topology cluster.Topology, list ...team) *cluster.Job {
	alt := cluster.Alternative{Min: least, Topology: topology}
	for _, g := range list {
		sub := 0
		if g.name != "" {
			alt.Subgroups = append(alt.Subgroups, cluster.Subgroup{Name: g.name, Min: g.least, Topology: g.topology})
			sub = len(alt.Subgroups)
		}
		role := g.name
		if role == "" {
			role = "other"
		}
		for i := range g.tasks {
			alt.Tasks = append(alt.Tasks, &cluster.Task{
				Name: fmt.Sprintf("%s-%d", role, i), Role: role, Index: i, Subgroup: sub,
				Shape: &cluster.Shape{Resources: cluster.Resources{{Name: cluster.CPU}, {Name: cluster.Memory}}, Need: cluster.Need{Devices: g.devices}},
			})
		}
	}
	return &cluster.Job{ID: "job/t", Alternatives: []cluster.Alternative{alt}}
}

// leaders is a plugin that orders tasks with the role leader first.
func leaders() *policy {
	return &policy{name: "Leaders", open: func(s *engine.Session) {
		s.Hooks.AddTaskOrder(func(a, b *cluster.Task) int {
			switch {
			case a.Role == b.Role:
				return 0
			case a.Role == "leader":
				return -1
			case b.Role == "leader":
				return 1
			}
			return 0
		})
	}}
}

// names returns the placed tasks in the order of their decisions.
func names(out engine.Outcome) []string {
	got := []string{}
	for _, d := range out.Decisions {
		got = append(got, d.Task.Name)
	}
	return got
}

func add(t *testing.T, s *cluster.State, j *cluster.Job) *cluster.State {
	t.Helper()
	apply(t, s, cluster.JobPut{Job: *j})
	return s
}

func TestSubgroupsHaveTheirMinimumFirst(t *testing.T) {
	anywhere := cluster.Topology{}
	tests := map[string]struct {
		job  *cluster.Job
		want []string // the placed tasks, on four devices
	}{
		"leader first, then its workers": {
			teams(3, anywhere, team{name: "worker", tasks: 4, least: 2, devices: 1}, team{name: "leader", tasks: 1, least: 1, devices: 1}),
			[]string{"leader-0", "worker-0", "worker-1", "worker-2"},
		},
		"surplus of one subgroup takes no room that the minimum of another needs": {
			teams(2, anywhere, team{name: "a", tasks: 4, least: 1, devices: 1}, team{name: "b", tasks: 2, least: 1, devices: 2}),
			[]string{"a-0", "b-0", "a-1"},
		},
		"then up to the job's minimum": {
			teams(3, anywhere, team{tasks: 3, devices: 1}, team{name: "b", tasks: 2, least: 1, devices: 1}),
			[]string{"b-0", "other-0", "other-1", "other-2"},
		},
		"the job's minimum counts those of subgroups": {
			teams(4, anywhere, team{name: "a", tasks: 3, least: 1, devices: 1}, team{name: "b", tasks: 3, least: 1, devices: 1}),
			[]string{"a-0", "b-0", "a-1", "a-2"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out := run(t, enginetest.Engine(leaders(), fit()), add(t, with(twoNodes()), tt.job))
			if diff := cmp.Diff(tt.want, names(out)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRefusalNamesTheSubgroupThatIsShort(t *testing.T) {
	job := func() *cluster.Job {
		return teams(2, cluster.Topology{}, team{name: "leader", tasks: 1, least: 1, devices: 1}, team{name: "worker", tasks: 3, least: 2, devices: 2})
	}
	type verdict struct {
		Subgroup      string
		Placed, Least int
		Reason        engine.Reason
		Permanent     bool
	}
	tests := map[string]struct {
		parts []enginetest.Part
		want  verdict
	}{
		// The leader takes one of four devices, so that there is room for one worker.
		"never":   {twoNodes(), verdict{"worker", 1, 2, "NoDevices", true}},
		"not now": {append(twoNodes(), enginetest.Node("c").GPUs(2, "A100", "80Gi"), enginetest.Job("x").Devices(2).On("c")), verdict{"worker", 1, 2, "NoDevices", false}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out := run(t, enginetest.Engine(leaders(), fit()), add(t, enginetest.State(tt.parts...), job()))
			if len(out.Decisions) != 0 || len(out.Refusals) != 1 {
				t.Fatalf("%v %v", out.Decisions, out.Refusals)
			}
			r := out.Refusals[0]
			a := r.Attempts[0]
			if diff := cmp.Diff(tt.want, verdict{a.Subgroup, a.Placed, a.Min, r.Reason, r.Permanent}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSubgroupThatIsTooLarge checks that a refusal is permanent if the cluster has no room for the
// minimum of a subgroup, although it has room for the minimum of the job.
func TestSubgroupThatIsTooLarge(t *testing.T) {
	j := teams(1, cluster.Topology{}, team{name: "a", tasks: 3, devices: 1}, team{name: "b", tasks: 3, least: 3, devices: 2})
	s := add(t, with(twoNodes(), enginetest.Job("x").Devices(1).On("a")), j)
	if r := run(t, enginetest.Engine(fit()), s).Refusals[0]; !r.Permanent || r.Attempts[0].Subgroup != "b" {
		t.Errorf("permanent %v, short of %q", r.Permanent, r.Attempts[0].Subgroup)
	}
}

// TestSubgroupIsFilledUpLater checks that surplus of subgroups is placed once there is room.
func TestSubgroupIsFilledUpLater(t *testing.T) {
	j := teams(2, cluster.Topology{}, team{name: "a", tasks: 2, least: 1, devices: 1}, team{name: "b", tasks: 2, least: 1, devices: 1})
	s := add(t, with(twoNodes(), enginetest.Job("x").Devices(2).On("b")), j)
	e := enginetest.Engine(fit())
	if diff := cmp.Diff([]string{"a-0", "b-0"}, names(run(t, e, s))); diff != "" {
		t.Error(diff)
	}
	apply(t, s, jobGone("job/x"))
	if diff := cmp.Diff([]string{"a-1", "b-1"}, names(run(t, e, s))); diff != "" {
		t.Error(diff)
	}
}
