package manifest

import (
	"fmt"
	"strings"
	"testing"

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
		"below before above":   {queues("{parent: b}", "{parent: c}", "{}"), ""},
		"no parent":            {object("Queue", "research", "") + "---\n" + object("Queue", "q", "spec: {parent: reserch}"), `8:16: spec.parent: there is no queue "reserch"; did you mean "research"?`},
		"the default's child":  {queues("{parent: default}"), "4:16: spec.parent: queue default has no queues below it: jobs that name no queue are there; name another parent"},
		"its own parent":       {queues("{parent: a}"), "4:16: spec.parent: the queue is above itself (a → a); one of them needs another parent"},
		"a cycle, said once":   {queues("{parent: c}", "{parent: a}", "{parent: b}", "{parent: b}"), "4:16: spec.parent: the queue is above itself (a → c → b → a); one of them needs another parent"},
		"sixteen deep":         {queues(deep[:16]...), ""},
		"too deep":             {queues(deep...), "84:16: spec.parent: queues stand at most 16 deep, and this one stands deeper"},
		"quota above limit":    {queues("{quota: {cpu: 8}, limits: {cpu: 4}}"), "4:21: spec.quota.cpu: the queue deserves 8 and may have no more than 4; raise the limit or lower the quota"},
		"quota":                {queues("{quota: {cpu: -8}}"), "4:21: spec.quota.cpu: -8 is negative"},
		"weight":               {queues("{overQuotaWeight: {cpu: 0}}"), "4:31: spec.overQuotaWeight.cpu: want a weight from 1 to 100000, have 0"},
		"a job above":          {queues("{}", "{parent: a}", "{parent: a}") + inA, `19:15: spec.queue: queue "a" has queues below it, and workloads go into those: use b or c`},
		"a pod above":          {queues("{}", "{parent: a}") + pod, `13:47: metadata.labels["berth.dev/queue"]: queue "a" has queues below it, and workloads go into those: use b`},
		"run times":            {queues("{minRunTime: {beforePreempt: 10m, beforeReclaim: 1h}}"), ""},
		"no run time":          {queues("{minRunTime: {beforePreempt: 0s}}"), "4:36: spec.minRunTime.beforePreempt: want a time above 0, such as 10m, have 0s; where it is left out, the queue above decides"},
		"negative run time":    {queues("{minRunTime: {beforeReclaim: -1h}}"), "4:36: spec.minRunTime.beforeReclaim: want a time above 0, such as 10m, have -1h0m0s; where it is left out, the queue above decides"},
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

func TestQuotaNotes(t *testing.T) {
	b, err := Parse("f", []byte(queues("{quota: {cpu: 4, memory: 8Gi}}", "{parent: a, quota: {cpu: 3, memory: 8Gi}}", "{parent: a, quota: {cpu: 3}}")))
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.State()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"the queues below queue a deserve more cpu than it does itself; when all of them ask, they get less"}
	if diff := cmp.Diff(want, b.Notes); diff != "" {
		t.Errorf("notes (-want +got)\n%s", diff)
	}
	if got := fmt.Sprint(s.Queue("b").Parent, s.Queue("b").Quota, s.Queue("a").Leaf()); got != "a[{cpu 3000} {memory 8589934592}] false" {
		t.Errorf("the queue in the books: %s", got)
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
