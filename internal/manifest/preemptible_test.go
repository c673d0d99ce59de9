package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Workloads of Scavenger queues are preemptible by default, wherever the queue is in the
// input.
func TestPreemptible(t *testing.T) {
	queues := "\n---\n" + object("Queue", "scraps", "spec: {tier: Scavenger}") + "\n---\n" + object("Queue", "heap", "spec: {tier: Scavenger}") +
		"\n---\n" + object("Queue", "night", "spec: {parent: heap, tier: Guaranteed}") +
		"\n---\n" + object("Queue", "team", "")
	job := func(spec string) string {
		return object("Job", "j", "spec: {"+spec+"tasks: [{name: w}]}")
	}
	pod := func(labels string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {" + labels + "}}\nspec: {containers: [{name: c}]}"
	}
	type outcome struct {
		Preemptible bool
		Remarks     []string
	}
	remark := outcome{true, []string{"Preemptible: queue scraps is of the Scavenger tier, and the workload does not say otherwise."}}
	tests := map[string]struct {
		text string
		want outcome
	}{
		"job of a scavenger":   {job("queue: scraps, ") + queues, remark},
		"job below one":        {job("queue: night, ") + queues, outcome{true, []string{"Preemptible: queue heap is of the Scavenger tier, and the workload does not say otherwise."}}},
		"job that says no":     {job("queue: scraps, preemptible: false, ") + queues, outcome{}},
		"job that says yes":    {job("queue: scraps, preemptible: true, ") + queues, outcome{Preemptible: true}},
		"job of another":       {job("queue: team, ") + queues, outcome{}},
		"job of no queue":      {job("") + queues, outcome{}},
		"default as scavenger": {job("") + "\n---\n" + object("Queue", "default", "spec: {tier: Scavenger}"), outcome{true, []string{"Preemptible: queue default is of the Scavenger tier, and the workload does not say otherwise."}}},
		"pod of a scavenger":   {pod("berth.dev/queue: scraps") + queues, remark},
		"pod that says no":     {pod(`berth.dev/queue: scraps, berth.dev/preemptible: "false"`) + queues, outcome{}},
		"pod of another":       {pod("berth.dev/queue: team") + queues, outcome{}},
		"pod that says yes":    {pod(`berth.dev/preemptible: "true"`) + queues, outcome{Preemptible: true}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b, err := Parse("f", []byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			s, err := b.State()
			if err != nil {
				t.Fatal(err)
			}
			j := s.Jobs()[0]
			if j.Tasks()[0].Shape.Preemptible != j.Preemptible {
				t.Error("the shape and the job differ")
			}
			if d := cmp.Diff(tc.want, outcome{j.Preemptible, j.Remarks}); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
