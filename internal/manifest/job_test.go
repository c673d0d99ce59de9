package manifest

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestJobErrors(t *testing.T) {
	task := func(fields string) string { return job("{tasks: [{name: w, " + fields + "}]}") }
	on := func(status string) string {
		return node("{cell: west, devices: {product: x, count: 2, memory: 8Gi, lost: [1]}}") + "\n---\n" +
			job("{tasks: [{name: w, replicas: 2, devices: {count: 1}}]}") + "\nstatus: " + status
	}
	affinity := func(a string) string { return job("{tasks: [{name: w}], affinity: " + a + "}") }
	tests := map[string]struct{ text, want string }{
		"no tasks":              {job("{}"), "4:7: spec.tasks: the job has no tasks; add one such as {name: worker, devices: {count: 1}}"},
		"tasks and forms":       {job("{tasks: [{name: w}], alternatives: [{tasks: [{name: w}]}]}"), "4:42: spec.alternatives: a job has tasks or alternatives; move the tasks into an alternative of their own"},
		"form without tasks":    {job("{alternatives: [{name: a}]}"), "4:23: spec.alternatives[0].tasks: the job has no tasks; add one such as {name: worker, devices: {count: 1}}"},
		"form twice":            {job("{alternatives: [{name: a, tasks: [{name: w}]}, {name: a, tasks: [{name: w}]}]}"), `4:61: spec.alternatives[1].name: alternative "a" is already entry 0`},
		"task without name":     {job("{tasks: [{}]}"), "4:16: spec.tasks[0].name: a task needs a name"},
		"task twice":            {job("{tasks: [{name: w}, {name: w}]}"), `4:34: spec.tasks[1].name: task "w" is already tasks[0]; give it replicas or another name`},
		"replicas":              {task("replicas: 0"), "4:36: spec.tasks[0].replicas: want from 1 to 100000, have 0"},
		"too many tasks":        {job("{cells: [a, b], tasks: [{name: w, replicas: 60000}]}"), "4:30: spec.tasks: the job has more than 100000 tasks, all alternatives and cells counted; split it"},
		"minMember":             {job("{minMember: 0, tasks: [{name: w}]}"), "4:19: spec.minMember: want at least 1, have 0"},
		"minMember of a form":   {job("{alternatives: [{minMember: 2, tasks: [{name: w}]}]}"), "4:35: spec.alternatives[0].minMember: 2 of only 1 tasks; lower it or add replicas"},
		"queue":                 {object("Queue", "research", "") + "---\n" + job("{queue: reserach, tasks: [{name: w}]}"), `8:15: spec.queue: there is no queue "reserach"; did you mean "research"?`},
		"queue, nothing near":   {job("{queue: research, tasks: [{name: w}]}"), `4:15: spec.queue: there is no queue "research"; declare it (kind: Queue, name: research) or use default`},
		"cells":                 {job("{cells: [a, a], tasks: [{name: w}]}"), `4:19: spec.cells[1]: cell "a" is already entry 0`},
		"priority":              {job("{priority: 1e3, tasks: [{name: w}]}"), "4:18: spec.priority: want a whole number, have the number 1e3"},
		"device count":          {task("devices: {count: 0}"), "4:43: spec.tasks[0].devices.count: want from 1 to 1024 devices, have 0; a task that needs none has no devices field"},
		"memory and share":      {task("devices: {memory: 1Gi, share: 0.5}"), "4:56: spec.tasks[0].devices.share: memory and share both say how much of each device; keep one"},
		"memory and total":      {task("devices: {memory: 1Gi, totalMemory: 4Gi}"), "4:62: spec.tasks[0].devices.totalMemory: memory is of each device, totalMemory of all together; keep one"},
		"share":                 {task("devices: {share: 1.5}"), "4:43: spec.tasks[0].devices.share: want a share above 0 and at most 1, such as 0.5, have 1500m"},
		"memory":                {task("devices: {memory: 0}"), "4:44: spec.tasks[0].devices.memory: say the memory of each device, such as 80Gi"},
		"devices as resources":  {task("resources: {nvidia.com/gpu: 2}"), `4:54: spec.tasks[0].resources["nvidia.com/gpu"]: ask for devices under devices: {count: 2}`},
		"isolation":             {task("isolation: {gpu: Exclusive}"), `4:43: spec.tasks[0].isolation.gpu: unknown value "Exclusive"; write Shared, SessionExclusive, DeviceExclusive or PartitionExclusive`},
		"session":               {task("isolation: {session: s}"), "4:47: spec.tasks[0].isolation.session: a session needs gpu: SessionExclusive beside it"},
		"session of the job":    {job("{isolation: {gpu: Shared, session: s}, tasks: [{name: w}]}"), "4:42: spec.isolation.session: a session needs gpu: SessionExclusive beside it"},
		"sum overflows":         {task("replicas: 100, resources: {memory: 1Ei}"), "4:61: spec.tasks[0].resources.memory: 100 times this is too large to count"},
		"cluster overflows":     {job("{tasks: [{name: w, replicas: 5, resources: {memory: 1Ei}}]}"), "3:18: metadata.name: with job/j the workloads ask for more memory than can be counted"},
		"preemption delay":      {job("{preemptionDelay: 200000h, tasks: [{name: w}]}"), "4:25: spec.preemptionDelay: want 100000h0m0s at most, such as 5m, have 200000h0m0s; a negative time means without end"},
		"torn long ago":         {on(`{tornSince: "0900-01-02T03:04:05Z"}`), "10:21: status.tornSince: want a time from 1970 to 2200, have 0900-01-02T03:04:05Z"},
		"state of a task":       {on("{placements: [{task: w-0, node: n, state: Leaving}]}"), `10:51: status.placements[0].state: unknown value "Leaving"; did you mean Releasing?`},
		"ended, with devices":   {on("{placements: [{task: w-0, state: Failed, devices: [0]}]}"), "10:59: status.placements[0].devices: a task in state Failed holds no devices; leave them out"},
		"runs on no node":       {on("{placements: [{task: w-0}]}"), `10:23: status.placements[0]: say the node that "w-0" runs on`},
		"two selectors":         {job("{nodeSelector: {a: b}, tasks: [{name: w, nodeSelector: {a: c}}]}"), `4:66: spec.tasks[0].nodeSelector.a: the job asks for "b" already, and no node has both; keep one`},
		"affinity of a task":    {task("affinity: {jobs: []}"), `4:37: spec.tasks[0].affinity: unknown field "jobs"; it belongs under spec.affinity`},
		"replicas of a job":     {job("{replicas: 3, tasks: [{name: w}]}"), `4:8: spec: unknown field "replicas"; it belongs under spec.tasks`},
		"unit":                  {job("{placement: {unit: Nodes}, tasks: [{name: w}]}"), `4:26: spec.placement.unit: unknown value "Nodes"; did you mean Node?`},
		"nodes without unit":    {job("{placement: {nodesPerReplica: 2}, tasks: [{name: w}]}"), "4:37: spec.placement.nodesPerReplica: nodes per replica need unit: Node beside it"},
		"nodes per replica":     {job("{placement: {unit: Node, nodesPerReplica: 0}, tasks: [{name: w}]}"), "4:49: spec.placement.nodesPerReplica: want from 1 to 100000, have 0"},
		"whole nodes, two":      {job("{placement: {unit: Node}, tasks: [{name: w}, {name: v}]}"), "4:26: spec.placement.unit: unit Node needs exactly one entry under tasks, have 2: its replicas take whole nodes"},
		"whole nodes, memory":   {job("{placement: {unit: Node}, tasks: [{name: w, devices: {memory: 1Gi}}]}"), "4:69: spec.tasks[0].devices.memory: unit Node takes whole nodes: say totalMemory, of all devices of a replica, or count, of each node"},
		"whole nodes, minimum":  {job("{minMember: 3, placement: {unit: Node, nodesPerReplica: 2}, tasks: [{name: w, replicas: 2}]}"), "4:19: spec.minMember: unit Node places all replicas together, 4 tasks; leave minMember out"},
		"instance types":        {job("{nodeSelector: {node.kubernetes.io/instance-type: a}, placement: {instanceType: b}, tasks: [{name: w}]}"), `4:87: spec.placement.instanceType: nodeSelector already asks for the instance type "a"; keep one`},
		"empty term":            {affinity("{required: [{}]}"), "4:50: spec.affinity.required[0].matchExpressions: a term without conditions matches nothing; add one such as {key: rack, operator: In, values: [r1]}"},
		"operator":              {affinity("{required: [{matchExpressions: [{key: a, operator: in, values: [x]}]}]}"), `4:89: spec.affinity.required[0].matchExpressions[0].operator: unknown value "in"; did you mean In?`},
		"values":                {affinity("{required: [{matchExpressions: [{key: a, operator: In}, {key: a, operator: Exists, values: [x]}, {key: a, operator: Gt, values: [x]}]}]}"), "4:70: spec.affinity.required[0].matchExpressions[0]: operator In needs values\n4:129: spec.affinity.required[0].matchExpressions[1].values: operator Exists compares no values; leave them out\n4:167: spec.affinity.required[0].matchExpressions[2].values[0]: operator Gt needs a whole number, have \"x\""},
		"preference weight":     {affinity("{preferred: [{weight: 0, matchExpressions: [{key: a, operator: Exists}]}]}"), "4:60: spec.affinity.preferred[0].weight: want a weight from -100 to 100 and not 0, have 0"},
		"job affinity":          {affinity("{jobs: [{weight: -5, selector: {}}]}"), "4:55: spec.affinity.jobs[0].weight: want a weight from 1 to 100, have -5; to keep away write anti: true\n4:69: spec.affinity.jobs[0].selector: say which jobs: matchLabels or matchExpressions"},
		"toleration":            {job("{tasks: [{name: w}], tolerations: [{value: x}, {key: a, operator: Exists, value: b}]}"), "4:42: spec.tolerations[0]: a toleration without a key tolerates everything only with operator: Exists\n4:88: spec.tolerations[1].value: operator Exists compares no value; leave it out"},
		"node of a placement":   {on("{placements: [{task: w-0, node: m}]}"), `10:41: status.placements[0].node: there is no node "m"; did you mean "n"?`},
		"no node":               {on("{placements: [{task: w-0}]}"), `10:23: status.placements[0]: say the node that "w-0" runs on`},
		"task of a placement":   {on("{placements: [{task: w-2, node: n}]}"), `10:30: status.placements[0].task: job/j has no task "w-2"; did you mean "w-0"?`},
		"placed twice":          {on("{placements: [{task: w-0, node: n}, {task: w-0, node: n}]}"), `10:45: status.placements[1]: task "w-0" is already placed by placements[0]`},
		"form of a placement":   {on("{alternative: x, placements: [{task: w-0, node: n}]}"), "10:23: status.alternative: job/j has no alternatives to choose from; leave it out"},
		"no such device":        {on("{placements: [{task: w-0, node: n, devices: [7]}]}"), "10:23: status.placements[0]: w-0 cannot be running on n: it has no device 7; its 2 devices count from 0"},
		"lost device":           {on("{placements: [{task: w-0, node: n, devices: [1]}]}"), "10:23: status.placements[0]: w-0 cannot be running on n: device 1 is lost"},
		"too few of them":       {on("{placements: [{task: w-0, node: n, devices: []}]}"), "10:23: status.placements[0]: w-0 cannot be running on n: devices [] are not what the task asks for"},
		"held device":           {on("{placements: [{task: w-0, node: n, devices: [0]}, {task: w-1, node: n, devices: [0]}]}"), "10:59: status.placements[1]: w-1 cannot be running on n: device 0 is held by job/j/w-0"},
		"nothing free":          {on("{placements: [{task: w-0, node: n}, {task: w-1, node: n}]}"), "10:45: status.placements[1]: w-1 cannot be running on n: too few of its devices are free for that; list the devices of every running task, or correct the node"},
		"in merged fields":      {job("{<<: {tasks: [{name: w}], minMember: 3}}"), "4:44: spec.minMember: 3 of only 1 tasks; lower it or add replicas"},
		"total":                 {task("devices: {totalMemory: 0}"), "4:49: spec.tasks[0].devices.totalMemory: say how much device memory is needed, such as 320Gi"},
		"namespace":             {"apiVersion: berth.dev/v1alpha1\nkind: Job\nmetadata: {name: j, namespace: A/B}\nspec: {tasks: [{name: w}]}", `3:32: metadata.namespace: "A/B" is not a valid name: use lower-case letters, digits, - and ., and begin and end with a letter or digit`},
		"custom device counted": {node("{deviceResource: a.b/npu, devices: {product: x, count: 1, memory: 1Gi}}") + "\n---\n" + job("{tasks: [{name: w, resources: {a.b/npu: 1}}]}"), `9:47: spec.tasks[0].resources["a.b/npu"]: ask for devices under devices: {count: 1}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, problems(tc.text)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// made returns the job with the spec.
func made(t *testing.T, spec string) *cluster.Job {
	t.Helper()
	b, err := Parse("f", []byte(job(spec)))
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.State()
	if err != nil {
		t.Fatal(err)
	}
	return s.Job("job/j")
}

func TestJobShapes(t *testing.T) {
	const gi = 1 << 30
	none := cluster.Resources{{Name: "cpu"}, {Name: "memory"}}
	both := cluster.Resources{{Name: "cpu", Value: 100}, {Name: "memory", Value: 200 << 20}}
	tests := map[string]struct {
		spec string
		want cluster.Shape
	}{
		"nothing asked":         {"{tasks: [{name: w}]}", cluster.Shape{Resources: none, LeftOut: both}},
		"a request of 0 is one": {"{tasks: [{name: w, resources: {memory: 0}}]}", cluster.Shape{Resources: none, LeftOut: both[:1]}},
		"everything": {
			"{preemptible: true, cells: [west], nodeSelector: {b: c, a: d}, isolation: {cpu: WholeCore, gpu: SessionExclusive, session: s}, tolerations: [{operator: Exists}]," +
				"placement: {instanceType: big}, affinity: {required: [{matchExpressions: [{key: k, operator: Exists}]}], preferred: [{weight: -3, matchExpressions: [{key: k, operator: In, values: [v]}]}]}," +
				"tasks: [{name: w, resources: {cpu: 1100m, memory: 1Gi, example.com/lic: 2}, devices: {count: 2, memory: 10Gi, products: [b, a], sameProduct: true}}]}",
			cluster.Shape{
				Resources: cluster.Resources{{Name: "cpu", Value: 2000}, {Name: "example.com/lic", Value: 2}, {Name: "memory", Value: gi}},
				Need:      cluster.Need{Devices: 2, Memory: 10 * gi, Products: []string{"a", "b"}, SameProduct: true},
				Selector:  []cluster.Label{{Key: "a", Value: "d"}, {Key: "b", Value: "c"}, {Key: "node.kubernetes.io/instance-type", Value: "big"}},
				Required:  []cluster.Term{{{Key: "k", Operator: cluster.Exists}}}, Preferred: []cluster.Preference{{Weight: -3, Term: cluster.Term{{Key: "k", Operator: cluster.In, Values: []string{"v"}}}}},
				Tolerations: []cluster.Toleration{{Operator: "Exists"}}, Isolation: cluster.Isolation{CPU: "WholeCore", GPU: "SessionExclusive", Session: "s"},
				Cell: "west", Preemptible: true,
			},
		},
		"conditions of a task": {
			"{nodeSelector: {a: b}, affinity: {required: [{matchExpressions: [{key: k, operator: Exists}]}, {matchExpressions: [{key: l, operator: Exists}]}]}," +
				"tasks: [{name: w, nodeSelector: {c: d}, affinity: {required: [{matchExpressions: [{key: m, operator: Exists}]}], preferred: [{weight: 1, matchExpressions: [{key: n, operator: Exists}]}]}}]}",
			cluster.Shape{
				Resources: none, LeftOut: both, Selector: []cluster.Label{{Key: "a", Value: "b"}, {Key: "c", Value: "d"}},
				Required:  []cluster.Term{{{Key: "k", Operator: cluster.Exists}, {Key: "m", Operator: cluster.Exists}}, {{Key: "l", Operator: cluster.Exists}, {Key: "m", Operator: cluster.Exists}}},
				Preferred: []cluster.Preference{{Weight: 1, Term: cluster.Term{{Key: "n", Operator: cluster.Exists}}}},
			},
		},
		"one device unless counted":             {"{tasks: [{name: w, devices: {}}]}", cluster.Shape{Resources: none, LeftOut: both, Need: cluster.Need{Devices: 1}}},
		"share as a decimal":                    {"{tasks: [{name: w, devices: {share: 0.5}}]}", cluster.Shape{Resources: none, LeftOut: both, Need: cluster.Need{Devices: 1, Share: 500}}},
		"share as a quantity":                   {"{tasks: [{name: w, devices: {share: 250m, totalMemory: 4Gi}}]}", cluster.Shape{Resources: none, LeftOut: both, Need: cluster.Need{Devices: 1, Share: 250, SumAtLeast: 4 * gi}}},
		"partition":                             {"{tasks: [{name: w, devices: {partition: 1g.5gb}}]}", cluster.Shape{Resources: none, LeftOut: both, Need: cluster.Need{Devices: 1, Partition: "1g.5gb"}}},
		"an isolated task takes a core":         {"{tasks: [{name: w, isolation: {cpu: StrictIsolated}}]}", cluster.Shape{Resources: none.With("cpu", 1000), LeftOut: both[1:], Isolation: cluster.Isolation{CPU: "StrictIsolated"}}},
		"a session belongs to its class":        {"{isolation: {gpu: SessionExclusive, session: s}, tasks: [{name: w, isolation: {gpu: Shared}}]}", cluster.Shape{Resources: none, LeftOut: both, Isolation: cluster.Isolation{GPU: "Shared"}}},
		"a task's session with the job's class": {"{isolation: {gpu: SessionExclusive}, tasks: [{name: w, isolation: {session: s}}]}", cluster.Shape{Resources: none, LeftOut: both, Isolation: cluster.Isolation{GPU: "SessionExclusive", Session: "s"}}},
		"whole nodes": {
			"{placement: {unit: Node, nodesPerReplica: 3}, tasks: [{name: w, devices: {totalMemory: 100, count: 8, sameProduct: true}}]}",
			cluster.Shape{Resources: none, LeftOut: both, Need: cluster.Need{WholeNode: true, Devices: 8, SameProduct: true}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := made(t, tc.spec).Alternatives[0].Tasks[0].Shape
			if diff := cmp.Diff(&tc.want, got, cmpopts.IgnoreUnexported(cluster.Shape{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAlternatives(t *testing.T) {
	type form struct {
		Name, Cell string
		Tasks      []string
		Min        int
		Whole      *cluster.WholeNodes
	}
	tests := map[string]struct {
		spec string
		want []form
	}{
		"plain":        {"{tasks: [{name: w, replicas: 2}, {name: v}]}", []form{{Tasks: []string{"w-0", "w-1", "v-0"}, Min: 3}}},
		"gang":         {"{minMember: 1, tasks: [{name: w, replicas: 2}]}", []form{{Tasks: []string{"w-0", "w-1"}, Min: 1}}},
		"cells":        {"{cells: [west, east], tasks: [{name: w}]}", []form{{Name: "in west", Cell: "west", Tasks: []string{"w-0"}, Min: 1}, {Name: "in east", Cell: "east", Tasks: []string{"w-0"}, Min: 1}}},
		"whole nodes":  {"{placement: {unit: Node, nodesPerReplica: 2}, tasks: [{name: w, replicas: 2, devices: {totalMemory: 8}}]}", []form{{Tasks: []string{"w-0", "w-1", "w-2", "w-3"}, Min: 4, Whole: &cluster.WholeNodes{Replicas: 2, NodesPerReplica: 2, Memory: 8}}}},
		"forms inside": {"{cells: [a, b], minMember: 1, alternatives: [{name: large, minMember: 2, tasks: [{name: w, replicas: 2}]}, {tasks: [{name: w, replicas: 3}]}]}", []form{{Name: "large in a", Cell: "a", Tasks: []string{"w-0", "w-1"}, Min: 2}, {Name: "large in b", Cell: "b", Tasks: []string{"w-0", "w-1"}, Min: 2}, {Name: "alternative 2 in a", Cell: "a", Tasks: []string{"w-0", "w-1", "w-2"}, Min: 1}, {Name: "alternative 2 in b", Cell: "b", Tasks: []string{"w-0", "w-1", "w-2"}, Min: 1}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []form
			for _, a := range made(t, tc.spec).Alternatives {
				f := form{Name: a.Name, Cell: a.Tasks[0].Shape.Cell, Min: a.Min, Whole: a.Whole}
				for _, x := range a.Tasks {
					f.Tasks = append(f.Tasks, x.Name)
				}
				got = append(got, f)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
