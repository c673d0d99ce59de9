package manifest

import (
	"testing"
	"time"
)

func TestNow(t *testing.T) {
	heart := "\n---\napiVersion: v1\nkind: Node\nmetadata: {name: m, creationTimestamp: \"2026-01-01T00:00:00Z\"}\nstatus: {conditions: [{type: Ready, status: \"True\", lastHeartbeatTime: \"2026-03-01T00:00:00Z\"}]}"
	ran := "\n---\n" + node("{resources: {cpu: 8}}") + "\n---\n" + job("{tasks: [{name: w}]}") + "\nstatus: {placements: [{task: w-0, node: n, started: \"2026-04-01T00:00:00Z\"}]}"
	runs := "\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, creationTimestamp: \"2026-04-30T00:00:00Z\", deletionTimestamp: \"2026-12-01T00:00:00Z\"}\nspec: {nodeName: m}\nstatus: {startTime: \"2026-05-01T00:00:00Z\"}"
	said := "\n---\n" + object("Scenario", "s", "now: \"2026-02-01T00:00:00Z\"\nexpect: {pending: [job/j]}")
	for name, tc := range map[string]struct{ text, want string }{
		"nothing named":      {node("{}"), ""},
		"the last heartbeat": {heart, "2026-03-01T00:00:00Z"},
		"the last start":     {heart + ran, "2026-04-01T00:00:00Z"},
		"not what is to end": {heart + ran + runs, "2026-05-01T00:00:00Z"},
		"as it is said":      {heart + ran + runs + said, "2026-02-01T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := Parse("f", []byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			want := int64(0)
			if tc.want != "" {
				at, err := time.Parse(time.RFC3339, tc.want)
				if err != nil {
					t.Fatal(err)
				}
				want = at.UnixNano()
			}
			if got := b.Now(); got != want {
				t.Errorf("now is %s", time.Unix(0, got).UTC())
			}
		})
	}
	const bad = "3:6: now: want a time from 1970 to 2200, have 1800-01-01T00:00:00Z"
	if got := problems("apiVersion: berth.dev/v1alpha1\nkind: Scenario\nnow: \"1800-01-01T00:00:00Z\"\nmetadata: {name: s}\nexpect: {pending: [job/j]}"); got != bad {
		t.Error(got)
	}
}
