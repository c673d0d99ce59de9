package manifest

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/google/go-cmp/cmp"
)

func TestSubgroupErrors(t *testing.T) {
	of := func(more string) string {
		return job("{tasks: [{name: leader}, {name: worker, replicas: 4}], " + more + "}")
	}
	forms := func(more string) string {
		return job("{alternatives: [{name: large, tasks: [{name: w, replicas: 4}]}, {name: small, tasks: [{name: v}]}], " + more + "}")
	}
	whole := func(more string) string {
		return job("{placement: {unit: Node}, tasks: [{name: w, replicas: 2}], " + more + "}")
	}
	tests := map[string]struct{ text, want string }{
		"fine":                   {of("subgroups: [{name: workers, tasks: [worker], minMember: 2, topology: {required: rack, preferred: [nvidia.com/gpu.clique]}}], topology: {preferred: [zone]}"), ""},
		"none at least":          {of("subgroups: [{name: workers, tasks: [worker], minMember: 0}]"), ""},
		"no name":                {of("subgroups: [{tasks: [worker]}]"), "4:74: spec.subgroups[0].name: a subgroup needs a name"},
		"name twice":             {of("subgroups: [{name: a, tasks: [worker]}, {name: a, tasks: [leader]}]"), `4:109: spec.subgroups[1].name: subgroup "a" is already subgroups[0]; give it another name, or merge the two`},
		"no tasks":               {of("subgroups: [{name: a}]"), "4:74: spec.subgroups[0].tasks: say which tasks are in the subgroup, such as [leader]"},
		"a typo":                 {of("subgroups: [{name: a, tasks: [wroker]}]"), `4:92: spec.subgroups[0].tasks[0]: the job has no task "wroker"; did you mean "worker"?`},
		"nothing like it":        {of("subgroups: [{name: a, tasks: [x]}]"), `4:92: spec.subgroups[0].tasks[0]: the job has no task "x"; known: leader, worker`},
		"listed twice":           {of("subgroups: [{name: a, tasks: [worker, worker]}]"), `4:100: spec.subgroups[0].tasks[1]: task "worker" is already listed; leave it out`},
		"in two":                 {of("subgroups: [{name: a, tasks: [worker]}, {name: b, tasks: [leader, worker]}]"), `4:128: spec.subgroups[1].tasks[1]: task "worker" is already in subgroup "a"; a task is in one subgroup at most`},
		"more than there are":    {of("subgroups: [{name: a, tasks: [worker], minMember: 5}]"), "4:112: spec.subgroups[0].minMember: 5 of only 4 tasks in the subgroup; lower it or add replicas"},
		"less than none":         {of("subgroups: [{name: a, tasks: [worker], minMember: -1}]"), "4:112: spec.subgroups[0].minMember: want at least 0, have -1"},
		"job below its parts":    {of("minMember: 2, subgroups: [{name: a, tasks: [worker], minMember: 3}]"), "4:73: spec.minMember: 2 is less than the subgroups' own minima, which add up to 3; raise it, or leave it out"},
		"unknown field":          {of("subgroups: [{name: a, tasks: [worker], min: 1}]"), `4:101: spec.subgroups[0]: unknown field "min"; known: minMember, minSubgroups, name, parent, tasks, topology`},
		"no such parent":         {of("subgroups: [{name: head, tasks: [leader], parent: bodi}, {name: body, tasks: [worker]}]"), `4:112: spec.subgroups[0].parent: there is no subgroup "bodi"; did you mean "body"?`},
		"in itself":              {of("subgroups: [{name: a, parent: b, tasks: [leader]}, {name: b, parent: a, tasks: [worker]}]"), `4:92: spec.subgroups[0].parent: the ancestors of subgroup "a" contain a cycle; give one of them another parent`},
		"too many subgroups":     {of("minSubgroups: 3, subgroups: [{name: a, tasks: [leader]}, {name: b, tasks: [worker]}]"), "4:76: spec.minSubgroups: 3 of only 2 subgroups; lower it, or add some"},
		"no subgroups":           {of("minSubgroups: 0, subgroups: [{name: a, tasks: [leader]}]"), "4:76: spec.minSubgroups: want at least 1, have 0; leave it out where all are needed"},
		"subgroups of a leaf":    {of("subgroups: [{name: a, tasks: [leader], minSubgroups: 1}]"), "4:115: spec.subgroups[0].minSubgroups: 1 of only 0 subgroups; lower it, or add some"},
		"minMember too large":    {of("minMember: 5, minSubgroups: 1, subgroups: [{name: a, tasks: [leader]}, {name: b, tasks: [worker]}]"), "4:73: spec.minMember: 5 is too large: if only the subgroups that minSubgroups needs are placed, the job may have only 1 tasks; lower it, or leave it out"},
		"empty topology":         {of("topology: {}"), "4:72: spec.topology: say the label of a level that is required or preferred, such as {required: rack}, or leave topology out"},
		"level":                  {of("topology: {required: a b, preferred: [c/d/e]}"), "4:83: spec.topology.required: \"a b\" is not a valid label key: write name or domain/name\n4:100: spec.topology.preferred[0]: \"c/d/e\" is not a valid label key: write name or domain/name"},
		"level of a part":        {of("subgroups: [{name: a, tasks: [worker], topology: {required: a b}}]"), `4:122: spec.subgroups[0].topology.required: "a b" is not a valid label key: write name or domain/name`},
		"levels twice":           {of("topology: {required: rack, preferred: [zone, zone, rack, '']}"), "4:107: spec.topology.preferred[1]: level \"zone\" is already entry 0\n4:113: spec.topology.preferred[2]: \"rack\" is required already; leave it out here\n4:119: spec.topology.preferred[3]: a level is missing"},
		"not in every form":      {forms("subgroups: [{name: a, tasks: [w]}]"), `4:137: spec.subgroups[0].tasks[0]: alternative "small" has no task "w"; did you mean "v"?`},
		"whole nodes, subgroups": {whole("subgroups: [{name: a, tasks: [w]}]"), "4:77: spec.subgroups: unit Node takes any whole nodes of one group and all replicas together; leave subgroups out, or leave the unit out and ask for the devices of a node"},
		"whole nodes, topology":  {whole("topology: {required: rack}"), "4:76: spec.topology: unit Node takes any whole nodes of one group and all replicas together; leave topology out, or leave the unit out and ask for the devices of a node"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, problems(tc.text)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestSubgroups(t *testing.T) {
	type form struct {
		Min          int
		Subgroups    []cluster.Subgroup
		MinSubgroups int
		Topology     cluster.Topology
		Tasks        map[string]int // the subgroup of each task
	}
	rack := cluster.Topology{Required: "rack"}
	tests := map[string]struct {
		spec string
		want []form
	}{
		"all other tasks": {
			"{topology: {required: rack}, subgroups: [{name: workers, tasks: [worker], minMember: 1}], tasks: [{name: leader}, {name: worker, replicas: 2}]}",
			[]form{{Min: 2, Topology: rack, Subgroups: []cluster.Subgroup{{Name: "workers", Min: 1}}, Tasks: map[string]int{"leader-0": 0, "worker-0": 1, "worker-1": 1}}},
		},
		"a minimum of its own": {
			"{minMember: 2, subgroups: [{name: workers, tasks: [worker], minMember: 1}, {name: heads, tasks: [leader], topology: {required: rack}}], tasks: [{name: leader}, {name: worker, replicas: 2}]}",
			[]form{{Min: 2, Subgroups: []cluster.Subgroup{{Name: "workers", Min: 1}, {Name: "heads", Min: 1, Topology: rack}}, Tasks: map[string]int{"leader-0": 2, "worker-0": 1, "worker-1": 1}}},
		},
		"parents come first": {
			"{minSubgroups: 1, subgroups: [{name: x, parent: outer, tasks: [leader]}, {name: outer, topology: {required: rack}}, {name: y, tasks: [worker]}], tasks: [{name: leader}, {name: worker, replicas: 2}]}",
			[]form{{Min: 1, MinSubgroups: 1, Subgroups: []cluster.Subgroup{{Name: "outer", Topology: rack}, {Name: "y", Min: 2}, {Name: "x", Min: 1, Parent: 1}}, Tasks: map[string]int{"leader-0": 3, "worker-0": 2, "worker-1": 2}}},
		},
		"a job needs at least one task": {
			"{subgroups: [{name: workers, tasks: [worker], minMember: 0}], tasks: [{name: worker}]}",
			[]form{{Min: 1, Subgroups: []cluster.Subgroup{{Name: "workers"}}, Tasks: map[string]int{"worker-0": 1}}},
		},
		"forms": {
			"{topology: {required: zone}, subgroups: [{name: a, tasks: [w]}], alternatives: [" +
				"{tasks: [{name: w}]}, {topology: {required: rack}, subgroups: [{name: b, tasks: [v]}], tasks: [{name: w}, {name: v}]}]}",
			[]form{
				{Min: 1, Topology: cluster.Topology{Required: "zone"}, Subgroups: []cluster.Subgroup{{Name: "a", Min: 1}}, Tasks: map[string]int{"w-0": 1}},
				{Min: 2, Topology: rack, Subgroups: []cluster.Subgroup{{Name: "b", Min: 1}}, Tasks: map[string]int{"w-0": 0, "v-0": 1}},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []form
			for _, a := range made(t, tc.spec).Alternatives {
				f := form{Min: a.Min, MinSubgroups: a.MinSubgroups, Subgroups: a.Subgroups, Topology: a.Topology, Tasks: map[string]int{}}
				for _, x := range a.Tasks {
					f.Tasks[x.Name] = x.Subgroup
				}
				got = append(got, f)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestLevelNotes(t *testing.T) {
	text := "apiVersion: berth.dev/v1alpha1\nkind: Node\nmetadata: {name: n, labels: {rack: r1}}\n---\n" +
		job("{topology: {required: rack, preferred: [rakc]}, alternatives: [{topology: {required: x.y/z}, subgroups: [{name: a, tasks: [w], topology: {required: rakc}}], tasks: [{name: w}]}]}")
	b, err := Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Validate(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`job/j names the topology level "rakc", a label that no node has; did you mean "rack"?`,
		`job/j names the topology level "x.y/z", a label that no node has`,
	}
	if diff := cmp.Diff(want, b.Notes); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
