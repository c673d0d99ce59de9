package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/google/go-cmp/cmp"
)

func queues(specs ...string) string {
	var out []string
	for i, spec := range specs {
		out = append(out, object("Queue", string(rune('a'+i)), "spec: "+spec))
	}
	return strings.Join(out, "\n---\n")
}

func TestQueueErrors(t *testing.T) {
	deep := []string{"{}"}
	for i := range 16 {
		deep = append(deep, "{parent: "+string(rune('a'+i))+"}")
	}
	inA := "\n---\n" + object("Job", "j", "spec: {queue: a, tasks: [{name: w}]}")
	pod := "\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {berth.dev/queue: a}}\nspec: {containers: [{name: c}]}"
	tests := map[string]struct{ text, want string }{
		"fine":                 {queues("{quota: {nvidia.com/gpu: 4}, overQuotaWeight: {cpu: 2}}", "{parent: a, weight: 3}"), ""},
		"weight of 0":          {queues("{weight: 0, overQuotaWeight: {cpu: 0}}"), ""},
		"unlimited":            {queues("{quota: {nvidia.com/gpu: unlimited}, limits: {nvidia.com/gpu: 4}}"), ""},
		"unlimited, a typo":    {queues("{quota: {cpu: unlimitd}}"), `4:21: spec.quota.cpu: want a quantity such as 8, 500m, 80Gi or 1.5Ti, have "unlimitd"`},
		"below before above":   {queues("{parent: b}", "{parent: c}", "{}"), ""},
		"no parent":            {object("Queue", "research", "") + "---\n" + object("Queue", "q", "spec: {parent: reserch}"), `8:16: spec.parent: there is no queue "reserch"; did you mean "research"?`},
		"the default's child":  {queues("{parent: default}"), "4:16: spec.parent: queue default cannot be a parent: it holds the jobs that name no queue; name another parent"},
		"its own parent":       {queues("{parent: a}"), "4:16: spec.parent: the queue is above itself (a → a); one of them needs another parent"},
		"a cycle, said once":   {queues("{parent: c}", "{parent: a}", "{parent: b}", "{parent: b}"), "4:16: spec.parent: the queue is above itself (a → c → b → a); one of them needs another parent"},
		"sixteen deep":         {queues(deep[:16]...), ""},
		"too deep":             {queues(deep...), "84:16: spec.parent: queues may be nested 16 deep at most, and this one is deeper"},
		"quota above limit":    {queues("{quota: {cpu: 8}, limits: {cpu: 4}}"), "4:21: spec.quota.cpu: the quota of 8 is above the limit of 4; raise the limit or lower the quota"},
		"quota":                {queues("{quota: {cpu: -8}}"), "4:21: spec.quota.cpu: -8 is negative"},
		"weight":               {queues("{overQuotaWeight: {cpu: -1}}"), "4:31: spec.overQuotaWeight.cpu: want a weight from 0 to 100000, have -1"},
		"products":             {queues(`{quota: {nvidia.com/gpu: 4, "nvidia.com/gpu:H100": 2}, limits: {"nvidia.com/gpu:H100": 2500m}, overQuotaWeight: {"nvidia.com/gpu:H100": 3}}`), ""},
		"slices of a product":  {queues(`{limits: {"nvidia.com/mig-1g.10gb:A100": 2}}`), ""},
		"devices of a node":    {queues(`{limits: {"example.com/npu:X1": 2}}`) + "\n---\n" + object("Node", "n", "spec: {deviceResource: example.com/npu, devices: {product: X1, count: 2, memory: 8Gi}}"), ""},
		"no such devices":      {queues(`{limits: {"nvidia.com/gpuu:H100": 2}}`), `4:41: spec.limits["nvidia.com/gpuu:H100"]: only devices have products, and none are called "nvidia.com/gpuu"; did you mean "nvidia.com/gpu"?`},
		"weight of no devices": {queues(`{overQuotaWeight: {"memory:H100": 2}}`), `4:41: spec.overQuotaWeight["memory:H100"]: only devices have products, and none are called "memory"; known: amd.com/gpu, gpu.intel.com/i915, gpu.intel.com/xe, habana.ai/gaudi, huawei.com/Ascend910, nvidia.com/gpu, nvidia.com/gpu.shared`},
		"no product":           {queues(`{quota: {"nvidia.com/gpu:": 2}}`), `4:35: spec.quota["nvidia.com/gpu:"]: a product is missing after the colon; write one, such as nvidia.com/gpu:NVIDIA-L4, or leave the colon out`},
		"product above limit":  {queues(`{quota: {"nvidia.com/gpu:H100": 4}, limits: {"nvidia.com/gpu:H100": 3}}`), `4:39: spec.quota["nvidia.com/gpu:H100"]: the quota of 4 is above the limit of 3; raise the limit or lower the quota`},
		"product, other units": {queues(`{quota: {"example.com/npu:X1": 2}, limits: {example.com/npu: 3}}`) + "\n---\n" + object("Node", "n", "spec: {deviceResource: example.com/npu, devices: {product: X1, count: 2, memory: 8Gi}}"), ""},
		"product above all":    {queues(`{quota: {"nvidia.com/gpu:H100": 4}, limits: {nvidia.com/gpu: 3}}`), `4:39: spec.quota["nvidia.com/gpu:H100"]: the quota of 4 is above the limit of 3 for all nvidia.com/gpu; raise the limit or lower the quota`},
		"a job above":          {queues("{}", "{parent: a}", "{parent: a}") + inA, `19:15: spec.queue: queue "a" has queues below it, and workloads belong in these: use b or c`},
		"a pod above":          {queues("{}", "{parent: a}") + pod, `13:47: metadata.labels["berth.dev/queue"]: queue "a" has queues below it, and workloads belong in these: use b`},
		"run times":            {queues("{minRunTime: {beforePreempt: 10m, beforeReclaim: 1h}}"), ""},
		"no run time":          {queues("{minRunTime: {beforePreempt: 0s}}"), "4:36: spec.minRunTime.beforePreempt: want a time above 0, such as 10m, have 0s; if it is left out, the value of the queue above applies"},
		"negative run time":    {queues("{minRunTime: {beforeReclaim: -1h}}"), "4:36: spec.minRunTime.beforeReclaim: want a time above 0, such as 10m, have -1h0m0s; if it is left out, the value of the queue above applies"},
		"run time, no unit":    {queues("{minRunTime: {beforeReclaim: 10}}"), "4:36: spec.minRunTime.beforeReclaim: want a duration such as 30s or 1h30m, have the number 10"},
		"run time, a typo":     {queues("{minRunTime: {beforePremept: 10m}}"), `4:21: spec.minRunTime: unknown field "beforePremept"; did you mean "beforePreempt"?`},
		"more below is a note": {queues("{quota: {cpu: 4}}", "{parent: a, quota: {cpu: 3}}", "{parent: a, quota: {cpu: 3}}"), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, problems(tc.text)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	usage := func(entry string) string { return object("Queue", "a", "status: {usage: ["+entry+"]}") }
	const from, to = `from: "2026-01-01T00:00:00Z"`, `to: "2026-01-01T01:30:00Z"`
	tests := map[string]struct{ text, want string }{
		"fine":          {usage("{" + from + ", " + to + `, resources: {cpu: 500m, nvidia.com/gpu: 2, "nvidia.com/gpu:H100": 1}}`), ""},
		"no end":        {usage("{" + from + "}"), "4:18: status.usage[0].to: say when; write a time such as 2026-01-02T15:04:05Z"},
		"no time":       {usage("{from: yesterday, " + to + "}"), `4:25: status.usage[0].from: want a time such as 2026-01-02T15:04:05Z, have "yesterday"`},
		"no such year":  {usage(`{from: "1850-01-01T00:00:00Z", ` + to + "}"), "4:25: status.usage[0].from: want a time from 1970 to 2200, have 1850-01-01T00:00:00Z"},
		"backwards":     {usage(`{` + from + `, to: "2026-01-01T00:00:00Z"}`), "4:53: status.usage[0].to: it ends at 2026-01-01T00:00:00Z, which is not after it began; swap from and to, or leave the entry out"},
		"negative":      {usage("{" + from + ", " + to + ", resources: {cpu: -1}}"), "4:94: status.usage[0].resources.cpu: -1 is negative"},
		"a typo":        {usage("{" + from + ", " + to + ", resource: {cpu: 1}}"), `4:77: status.usage[0]: unknown field "resource"; did you mean "resources"?`},
		"no such thing": {usage("{" + from + ", " + to + `, resources: {"nvidia.com/gppu:X": 1}}`), `4:110: status.usage[0].resources["nvidia.com/gppu:X"]: only devices have products, and none are called "nvidia.com/gppu"; did you mean "nvidia.com/gpu"?`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, problems(tc.text)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	b, err := Parse("f", []byte(tests["fine"].text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.State()
	if err != nil {
		t.Fatal(err)
	}
	const first, last = 1767225600000000000, 1767231000000000000
	want := []cluster.Usage{{From: first, To: last, Resources: cluster.Resources{{Name: "cpu", Value: 500}, {Name: "nvidia.com/gpu", Value: 2000}, {Name: "nvidia.com/gpu:H100", Value: 1000}}}}
	if diff := cmp.Diff(want, s.Queue("a").Past); diff != "" {
		t.Errorf("the past use in State (-want +got)\n%s", diff)
	}
	if b.Now() != last {
		t.Errorf("now: want %d, have %d", int64(last), b.Now())
	}
	if len(s.View().Products()) > 0 {
		t.Errorf("past use is not a quota, limit or weight, and products are listed: %v", s.View().Products())
	}
}

func TestQuotaNotes(t *testing.T) {
	b, err := Parse("f", []byte(queues("{quota: {cpu: 4, memory: 8Gi}}", "{parent: a, quota: {cpu: 3, memory: 8Gi}}", "{parent: a, quota: {cpu: 3}}")))
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.State()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"the quotas of the queues below queue a add up to more cpu than its own quota; if all of them request theirs, each gets less"}
	if diff := cmp.Diff(want, b.Notes); diff != "" {
		t.Errorf("notes (-want +got)\n%s", diff)
	}
	if got := fmt.Sprint(s.Queue("b").Parent, s.Queue("b").Quota, s.Queue("a").Leaf()); got != "a[{cpu 3000} {memory 8589934592}] false" {
		t.Errorf("the queue in State: %s", got)
	}
}

func TestMinRunTime(t *testing.T) {
	b, err := Parse("f", []byte(queues("{minRunTime: {beforePreempt: 10m, beforeReclaim: 1h}}", "{minRunTime: {beforeReclaim: 1s}}")))
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.State()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][2]int64{}
	for _, q := range s.Queues() {
		got[q.Name] = [2]int64{q.MinRunBeforePreempt, q.MinRunBeforeReclaim}
	}
	want := map[string][2]int64{"a": {600e9, 3600e9}, "b": {0, 1e9}, "default": {}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestProductNotes(t *testing.T) {
	node := "\n---\n" + object("Node", "n", "spec: {devices: {product: NVIDIA-H100, count: 2, memory: 80Gi}}")
	b, err := Parse("f", []byte(queues(`{quota: {"nvidia.com/gpu:NVIDIA-H100": 1500m}}`, `{limits: {"nvidia.com/gpu:NVIDIA-H10": 1}, overQuotaWeight: {"nvidia.com/gpu:NVIDIA-H10": 2}}`, `{limits: {"nvidia.com/gpu:B200": 1}}`)+node))
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.State()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`queue b has a quota, limit or weight for nvidia.com/gpu:NVIDIA-H10, which no node has; did you mean "nvidia.com/gpu:NVIDIA-H100"?`,
		"queue c has a quota, limit or weight for nvidia.com/gpu:B200, which no node has",
	}
	if diff := cmp.Diff(want, b.Notes); diff != "" {
		t.Errorf("notes (-want +got)\n%s", diff)
	}
	if got := fmt.Sprint(s.Queue("a").Quota, s.View().Products()); got != "[{nvidia.com/gpu:NVIDIA-H100 1500}] [nvidia.com/gpu:B200 nvidia.com/gpu:NVIDIA-H10 nvidia.com/gpu:NVIDIA-H100]" {
		t.Errorf("in State: %s", got)
	}
}
