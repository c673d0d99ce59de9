package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// object returns a manifest of a kind of Berth. The body begins in line 4.
func object(kind, name, body string) string {
	return "apiVersion: berth.dev/v1alpha1\nkind: " + kind + "\nmetadata: {name: " + name + "}\n" + body
}

func job(spec string) string  { return object("Job", "j", "spec: "+spec) }
func node(spec string) string { return object("Node", "n", "spec: "+spec) }

// problems parses the text and makes a State, and returns the errors without the name of
// the file.
func problems(text string) string {
	b, err := Parse("f", []byte(text))
	if err == nil {
		_, err = b.State()
	}
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(err.Error(), "f:", "")
}

func TestKinds(t *testing.T) {
	const read = "berth reads Node, Queue, Job, Model, DisruptionBudget, SchedulerConfiguration and Scenario of berth.dev/v1alpha1, and of Kubernetes and other programs, alone or in lists: " +
		"Node, Pod, PodDisruptionBudget, PriorityClass, Namespace, Job, PodGroup, JobSet, LeaderWorkerSet, RayCluster, MPIJob, PyTorchJob, TFJob, XGBoostJob, PaddleJob, JAXJob, Deployment, StatefulSet, ResourceClaim, ResourceSlice and DeviceClass"
	tests := map[string]struct{ text, want string }{
		"no version, ambiguous":   {"kind: Node", "1:1: apiVersion: apiVersion is missing; write berth.dev/v1alpha1 for Berth's own Node, or v1 for one of Kubernetes"},
		"no version, own":         {"kind: Queue", "1:1: apiVersion: apiVersion is missing; write apiVersion: berth.dev/v1alpha1"},
		"no version, core":        {"kind: Pod", "1:1: apiVersion: apiVersion is missing; write apiVersion: v1"},
		"neither":                 {"a: 1", "1:1: apiVersion: apiVersion is missing; " + read},
		"wrong version":           {"apiVersion: berth.dev/v1\nkind: Job", `1:13: apiVersion: unknown apiVersion "berth.dev/v1"; write apiVersion: berth.dev/v1alpha1`},
		"no kind":                 {"apiVersion: v1", "1:1: kind: kind is missing; " + read},
		"typo":                    {"apiVersion: berth.dev/v1alpha1\nkind: Quque", `2:7: kind: kind "Quque" is not read; did you mean "Queue"? ` + read},
		"other kind of Berth":     {"apiVersion: berth.dev/v1alpha1\nkind: Cluster", `2:7: kind: kind "Cluster" is not read; ` + read + ". To dump what berth reads: kubectl get nodes,pods,pdb -A -o yaml"},
		"a service":               {"apiVersion: v1\nkind: Service", "berth reads none of the objects: 1 Service; " + read + ". To dump what berth reads: kubectl get nodes,pods,pdb -A -o yaml"},
		"deployments":             {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: b}\n---\napiVersion: batch/v1\nkind: CronJob", "there is nothing to schedule: no pod, job or node was found. Workloads without pods in the input, and therefore not placed: 2 Deployment; --expand makes their pods"},
		"typo in the group":       {"apiVersion: berht.dev/v1alpha1\nkind: Job", `1:13: apiVersion: unknown apiVersion "berht.dev/v1alpha1"; write apiVersion: berth.dev/v1alpha1`},
		"old disruption budget":   {"apiVersion: policy/v1beta1\nkind: PodDisruptionBudget", `1:13: apiVersion: unknown apiVersion "policy/v1beta1"; write apiVersion: policy/v1`},
		"in a list":               {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pdo}", `4:26: kind: kind "Pdo" is not read; did you mean "Pod"? ` + read},
		"items is no list":        {"apiVersion: v1\nkind: List\nitems: {}", "3:8: items: want a list, have an object"},
		"a bare list":             {"- a", "1:1: want an object with apiVersion and kind, have a list; put the objects under items of {apiVersion: v1, kind: List}, or separate them with ---"},
		"text":                    {"hello", `1:1: want an object with apiVersion and kind, have "hello"`},
		"nothing":                 {"", emptyRemedy},
		"only comments":           {"# hello\n---\n# again\n---\n", emptyRemedy},
		"empty list":              {"apiVersion: v1\nkind: List\nitems: []", emptyRemedy},
		"two configurations":      {"apiVersion: berth.dev/v1alpha1\nkind: SchedulerConfiguration\n---\napiVersion: berth.dev/v1alpha1\nkind: SchedulerConfiguration", "4:1: there is already a SchedulerConfiguration at f:1; keep one"},
		"two scenarios":           {object("Scenario", "a", "expect: {pending: [x]}") + "\n---\n" + object("Scenario", "b", "expect: {evictions: []}"), "6:1: there is already a Scenario at f:1; run them one by one"},
		"plugin without a name":   {"apiVersion: berth.dev/v1alpha1\nkind: SchedulerConfiguration\nplugins: [{weight: 1}]", "3:11: plugins[0]: name is missing: say which plugin"},
		"plugin twice":            {"apiVersion: berth.dev/v1alpha1\nkind: SchedulerConfiguration\nplugins: [{name: A}, {name: A}]", `3:29: plugins[1].name: plugin "A" is already configured as plugins[0]; merge the two entries`},
		"plugin weight":           {"apiVersion: berth.dev/v1alpha1\nkind: SchedulerConfiguration\nplugins: [{name: A, weight: 0}]", "3:29: plugins[0].weight: want a weight from 1 to 100000, have 0; to switch a plugin off write disabled: true"},
		"plugin at two places":    {"apiVersion: berth.dev/v1alpha1\nkind: SchedulerConfiguration\nplugins: [{name: A, before: B, after: C, position: First}]", "3:39: plugins[0].after: the place is already given by before; remove one of the two\n3:52: plugins[0].position: the place is already given by before; remove one of the two"},
		"plugin at no position":   {"apiVersion: berth.dev/v1alpha1\nkind: SchedulerConfiguration\nplugins: [{name: A, position: Frist}]", `3:31: plugins[0].position: unknown value "Frist"; did you mean First?`},
		"place of nothing":        {"apiVersion: berth.dev/v1alpha1\nkind: SchedulerConfiguration\nplugins: [{name: A, disabled: true, after: B}]", "3:44: plugins[0].after: a plugin that is disabled has no place; remove after, or disabled"},
		"arguments are an object": {"apiVersion: berth.dev/v1alpha1\nkind: SchedulerConfiguration\nplugins: [{name: A, arguments: 3}]", "3:32: plugins[0].arguments: want an object, have the number 3"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := problems(tc.text)
			if got = strings.ReplaceAll(got, "at 1;", "at f:1;"); got != tc.want {
				t.Errorf("(-want +got)\n%s", cmp.Diff(tc.want, got))
			}
		})
	}
}

func TestNodeErrors(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"no name":                   {"apiVersion: berth.dev/v1alpha1\nkind: Node", "1:1: metadata.name: a node needs a name"},
		"bad name":                  {object("Node", "GPU_1", ""), `3:18: metadata.name: "GPU_1" is not a valid name: use lower-case letters, digits, - and ., and begin and end with a letter or digit`},
		"long name":                 {object("Node", strings.Repeat("a", 254), ""), "3:18: metadata.name: the name has 254 characters; 253 are the most"},
		"twice":                     {node("{}") + "\n---\n" + node("{}"), "8:18: metadata.name: node/n is already declared at 1; rename or remove one"},
		"twice, own and Kubernetes": {node("{}") + "\n---\napiVersion: v1\nkind: Node\nmetadata: {name: n}", "8:18: metadata.name: node/n is already declared at 1; rename or remove one"},
		"label key":                 {"apiVersion: berth.dev/v1alpha1\nkind: Node\nmetadata: {name: n, labels: {a b: c}}", `3:35: metadata.labels["a b"]: "a b" is not a valid label key: write name or domain/name`},
		"label value":               {"apiVersion: berth.dev/v1alpha1\nkind: Node\nmetadata: {name: n, labels: {a: c d}}", `3:33: metadata.labels.a: "c d" is not a valid label value: use at most 63 letters, digits, -, _ and ., and begin and end with a letter or digit`},
		"cells differ":              {"apiVersion: berth.dev/v1alpha1\nkind: Node\nmetadata: {name: n, labels: {berth.dev/cell: east}}\nspec: {cell: west}", `4:14: spec.cell: the node is in cell "west", but its label berth.dev/cell says "east"; keep one`},
		"taint":                     {node("{taints: [{key: a}, {key: b, effect: NoSchedul}]}"), "4:17: spec.taints[0]: a taint needs an effect: NoSchedule, PreferNoSchedule or NoExecute\n4:44: spec.taints[1].effect: unknown value \"NoSchedul\"; did you mean NoSchedule?"},
		"cpu class":                 {node("{isolation: {cpu: [WholeCores]}}"), `4:26: spec.isolation.cpu[0]: unknown value "WholeCores"; did you mean WholeCore?`},
		"gpu class":                 {node("{isolation: {gpu: [Private]}}"), `4:26: spec.isolation.gpu[0]: unknown value "Private"; write Shared, SessionExclusive, DeviceExclusive or PartitionExclusive`},
		"share mode":                {node("{isolation: {shareMode: whole}}"), `4:31: spec.isolation.shareMode: unknown value "whole"; write fractional or exclusive`},
		"isolable cores":            {node("{isolation: {isolableCores: -1}}"), "4:35: spec.isolation.isolableCores: want a number of cores, have -1"},
		"negative":                  {node("{resources: {cpu: -1}}"), "4:25: spec.resources.cpu: -1 is negative"},
		"too much memory":           {node("{resources: {memory: 99999999999999999999Gi}}"), "4:28: spec.resources.memory: 9223372036854775807 is too large: the most is 1Ei"},
		"too many cores":            {node("{resources: {cpu: 1e25}}"), "4:25: spec.resources.cpu: 10e24 is too large: the most is 1073741824"},
		"half a thing":              {node("{resources: {example.com/x: 500m}}"), `4:35: spec.resources["example.com/x"]: 500m is not a whole number, and this resource is counted in whole numbers`},
		"devices counted twice":     {node("{resources: {nvidia.com/gpu: 8}, devices: {product: x, count: 8, memory: 1Gi}}"), `4:36: spec.resources["nvidia.com/gpu"]: devices are counted under spec.devices; leave nvidia.com/gpu out here`},
		"resource without devices":  {node("{deviceResource: example.com/npu}"), "4:24: spec.deviceResource: the node lists no devices that could be counted under this name"},
		"device fields":             {node("{devices: {}}"), "4:17: spec.devices[0].count: want from 1 to 1024 devices, have 0\n4:17: spec.devices[0].memory: say the memory of each device, such as 80Gi\n4:17: spec.devices[0].product: say the product, such as NVIDIA-H100-80GB-HBM3"},
		"device memory":             {node("{devices: {product: x, count: 1, memory: 17Ti}}"), "4:48: spec.devices[0].memory: 17Ti is too large: no device has more than 16Ti"},
		"device lists":              {node("{devices: {product: x, count: 2, memory: 1Gi, uuids: [a], numa: [0], links: [x], link: y}}"), "4:60: spec.devices[0].uuids: want one for each of the 2 devices, have 1\n4:71: spec.devices[0].numa: want one for each of the 2 devices, have 1\n4:83: spec.devices[0].links: want one for each of the 2 devices, have 1\n4:94: spec.devices[0].link: link is for all devices, links for each; keep one"},
		"PCIe roots":                {node("{devices: {product: x, count: 2, memory: 1Gi, pcie: [a, b, c]}}"), "4:59: spec.devices[0].pcie: want one for each of the 2 devices, have 3"},
		"NUMA node":                 {node("{devices: {product: x, count: 1, memory: 1Gi, numa: [-2]}}"), "4:60: spec.devices[0].numa[0]: want a NUMA node, or -1 where unknown, have -2"},
		"linked slices":             {object("Job", "j", "spec: {tasks: [{name: w, devices: {partition: 1g.10gb, count: 2, sameLink: true}}]}"), "4:76: spec.tasks[0].devices.sameLink: MIG slices are not connected with each other: request whole devices, or leave sameLink out"},
		"linked whole nodes":        {object("Job", "j", "spec: {placement: {unit: Node}, tasks: [{name: w, devices: {sameLink: true}}]}"), "4:71: spec.tasks[0].devices.sameLink: unit Node takes all devices of a node, however they are connected: leave sameLink out, or select nodes by a label"},
		"uuid twice":                {node("{devices: {product: x, count: 2, memory: 1Gi, uuids: [a, a]}}"), `4:64: spec.devices[0].uuids[1]: device "a" is already spec.devices[0].uuids[0]`},
		"lost":                      {node("{devices: {product: x, count: 2, memory: 1Gi, lost: [2]}}"), "4:60: spec.devices[0].lost[0]: there is no device 2 among 2: devices count from 0"},
		"sharing":                   {node("{devices: {product: x, count: 2, memory: 1Gi, sharing: {strategy: msp, replicas: 1}}}"), "4:73: spec.devices[0].sharing.strategy: unknown value \"msp\"; did you mean mps?\n4:88: spec.devices[0].sharing.replicas: want from 2 to 1024 replicas of each device, have 1"},
		"sharing differs":           {node("{devices: [{product: x, count: 1, memory: 1Gi, sharing: {strategy: mps, replicas: 2}}, {product: y, count: 1, memory: 1Gi}]}"), "4:94: spec.devices[1]: all devices of a node are shared alike: give every entry the same sharing"},
		"partitions":                {node("{devices: {product: x, count: 1, memory: 1Gi, partitions: [{profile: 1G, count: 0}]}}"), "4:66: spec.devices[0].partitions[0].memory: say the memory of each device, such as 80Gi\n4:76: spec.devices[0].partitions[0].profile: \"1G\" is not a MIG profile; write one such as 1g.10gb\n4:87: spec.devices[0].partitions[0].count: want from 1 to 1024 slices of each device, have 0"},
		"slices too large":          {node("{devices: {product: x, count: 1, memory: 40Gi, partitions: [{profile: 3g.20gb, count: 3, memory: 20Gi}]}}"), "4:66: spec.devices[0].partitions: the slices take 60 GiB of a device that has 40 GiB"},
		"partitions shared":         {node("{devices: {product: x, count: 1, memory: 40Gi, partitions: [{profile: 3g.20gb, memory: 20Gi}], sharing: {strategy: mps, replicas: 2}}}"), "4:111: spec.devices[0].sharing: partitions and sharing cannot be combined; keep one"},
		"too many devices":          {node("{devices: {product: x, count: 1000, memory: 40Gi, sharing: {strategy: mps, replicas: 2}}}"), "4:17: spec.devices[0]: the node has more than 1024 devices, slices and replicas counted"},
		"tier":                      {object("Queue", "q", "spec: {tier: BestEffort}"), "4:14: spec.tier: BestEffort is a CPU class and not a tier; write Standard"},
		"tier typo":                 {object("Queue", "q", "spec: {tier: scavenger}"), `4:14: spec.tier: unknown value "scavenger"; did you mean Scavenger?`},
		"queue weight":              {object("Queue", "q", "spec: {weight: -1}"), "4:16: spec.weight: want a weight from 0 to 100000, have -1"},
		"queue limit":               {object("Queue", "q", "spec: {limits: {nvidia.com/gpu: -1}}"), `4:33: spec.limits["nvidia.com/gpu"]: -1 is negative`},
		"queue twice":               {object("Queue", "q", "") + "---\n" + object("Queue", "q", ""), "7:18: metadata.name: queue/q is already declared at 1; rename or remove one"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, problems(tc.text)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
