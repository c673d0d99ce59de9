package scenario

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/plugins/standard"
	"github.com/google/go-cmp/cmp"
)

const objects = `
---
apiVersion: berth.dev/v1alpha1
kind: Node
metadata: {name: n1}
spec: {resources: {cpu: 8, memory: 16Gi}, devices: {product: L4, count: 2, memory: 24Gi}}
---
apiVersion: berth.dev/v1alpha1
kind: Node
metadata: {name: n2}
spec: {resources: {cpu: 8, memory: 16Gi}, devices: {product: L4, count: 2, memory: 24Gi}}
---
apiVersion: berth.dev/v1alpha1
kind: Job
metadata: {name: a}
spec: {tasks: [{name: t, replicas: 2, devices: {count: 2}}]}
---
apiVersion: berth.dev/v1alpha1
kind: Job
metadata: {name: b}
spec: {tasks: [{name: t, devices: {count: 3}}]}
`

// TestRunOverTime runs two jobs on a node with two devices. b waits until a has ended.
func TestRunOverTime(t *testing.T) {
	const jobs = `
---
apiVersion: berth.dev/v1alpha1
kind: Node
metadata: {name: n1}
spec: {resources: {cpu: 8, memory: 16Gi}, devices: {product: L4, count: 2, memory: 24Gi}}
---
apiVersion: berth.dev/v1alpha1
kind: Job
metadata: {name: a}
spec: {runTime: 2m, tasks: [{name: t, devices: {count: 2}}]}
---
apiVersion: berth.dev/v1alpha1
kind: Job
metadata: {name: b, creationTimestamp: "2026-01-05T10:01:00Z"}
spec: {tasks: [{name: t, devices: {count: 1}}]}
`
	for name, c := range map[string]struct {
		expect string
		want   []Mismatch
	}{
		"all as expected": {
			`{timeline: [{cycle: 1, placements: {a: n1, b: still to come}, queues: {default: 2}}, {at: 1m, pending: [b]},
			  {at: 2m, ended: [a], placements: {b: n1, a: ended}, queues: {default: 1}}, {cycle: 9, placements: {b: n1}}],
			  placements: {b: n1}, evictions: [], settled: true}`,
			nil,
		},
		"all different": {
			`{timeline: [{cycle: 1, placements: {a: n2, b: pending}, pending: [b], queues: {default: 1, unknown: 1}}, {at: 1m, ended: [a, c]}, {cycle: 9, placements: {b: pending}}],
			  pending: [a], refusals: [{workload: a}], evictions: [a/t-0], settled: false}`,
			[]Mismatch{
				{"in cycle 1, placement of a", "n2", "n1"},
				{"in cycle 1, placement of b", "pending", "still to come"},
				{"in cycle 1, workload b", "pending", "still to come"},
				{"in cycle 1, devices of queue default", "1", "2"},
				{"in cycle 1, queue unknown", "to exist", "no such queue"},
				{"in cycle 2, workload a", "ended", "it has not ended"},
				{"in cycle 2, workload c", "to exist", "no such workload; known: job/a, job/b"},
				{"in cycle 9, placement of b", "pending", "n1"},
				{"workload a", "pending", "ended"},
				{"refusal of a", "a refusal", "none: it is ended"},
				{"evictions", "job/a/t-0", "none"},
				{"settled after 4 cycles", "false", "true"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := mismatches(t, "cycles: 9\nnow: 2026-01-05T10:00:00Z\nexpect: "+c.expect+jobs)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func mismatches(t *testing.T, text string) []Mismatch {
	t.Helper()
	b, err := manifest.Parse("s.yaml", []byte("apiVersion: berth.dev/v1alpha1\nkind: Scenario\nmetadata: {name: s}\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Run(standard.Registry(), b)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestRun(t *testing.T) {
	for name, c := range map[string]struct {
		expect string
		want   []Mismatch
	}{
		"all as expected": {
			`{placements: {job/a/t-0: n1, a/t-1: n2}, devices: {a/t-0: [1, 0]}, groups: {a: L4 x 2}, pending: [b],
			  refusals: [{workload: b, reason: TooFewDevices, permanent: true, message: 2 TooFewDevices, counts: {TooFewDevices: 2}}],
			  scores: {a/t-0: {n2: {TaintToleration: 100}}}}`,
			nil,
		},
		"all different": {
			`{placements: {a/t-0: n2, b: n1}, devices: {a/t-0: [1]}, groups: {a: H100}, pending: [a],
			  refusals: [{workload: b, reason: NoNodes, permanent: false, message: none, counts: {NoNodes: 2}}, {workload: a}],
			  scores: {a/t-0: {n2: {TaintToleration: 99, NoPlugin: 1}, n3: {TaintToleration: 1}}, b: {n1: {TaintToleration: 1}}}, evictions: [a/t-0]}`,
			[]Mismatch{
				{"placement of a/t-0", "n2", "n1"},
				{"placement of b", "n1", "pending"},
				{"devices of a/t-0", "[1]", "[0 1]"},
				{"group of a", "H100", "L4 × 2"},
				{"workload a", "pending", "t-0 on n1"},
				{"refusal of b", "NoNodes", "TooFewDevices"},
				{"refusal of b, permanent", "false", "true"},
				{"message for b", `"none"`, `"0/2 nodes: 2 TooFewDevices (want 3, most 2); waiting cannot help"`},
				{"nodes by reason for b", "map[NoNodes:2]", "map[TooFewDevices:2]"},
				{"refusal of a", "a refusal", "none: it is placed"},
				{"score of a/t-0 on n2 by NoPlugin", "1", "no score by this plugin"},
				{"score of a/t-0 on n2 by TaintToleration", "99", "100"},
				{"scores of a/t-0 on n3", "a candidate", "no such node or group, or it was rejected"},
				{"scores of b", "a decision", "no decision"},
				{"evictions", "job/a/t-0", "none"},
			},
		},
		"unknown workloads": {
			`{placements: {c: n1}, pending: [d]}`,
			[]Mismatch{
				{"task c", "to exist", "no such task; known: job/a/t-0, job/a/t-1, job/b/t-0"},
				{"workload d", "to exist", "no such workload; known: job/a, job/b"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := manifest.Parse("test.yaml", []byte("apiVersion: berth.dev/v1alpha1\nkind: Scenario\nmetadata: {name: s}\nexpect: "+c.expect+objects))
			if err != nil {
				t.Fatal(err)
			}
			got, err := Run(standard.Registry(), b)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestRunWithoutScenario(t *testing.T) {
	b, err := manifest.Parse("test.yaml", []byte(objects))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(standard.Registry(), b); err == nil {
		t.Error("no error for input without a Scenario")
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.yaml", "a.yml", "c.txt", ".hidden.yaml", "sub/d.json"} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Files([]string{dir, filepath.Join(dir, "b.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i], _ = filepath.Rel(dir, got[i])
	}
	if d := cmp.Diff([]string{"a.yml", "b.yaml", filepath.Join("sub", "d.json")}, got); d != "" {
		t.Error(d)
	}
	if _, err := Files([]string{filepath.Join(dir, "nowhere")}); err == nil {
		t.Error("no error for a missing file")
	}
}

// TestScoresOfGroups names groups by product, by product and count, and by product,
// count and memory. A name must match only one group.
func TestScoresOfGroups(t *testing.T) {
	const objects = `
---
{apiVersion: berth.dev/v1alpha1, kind: Node, metadata: {name: n1}, spec: {resources: {cpu: 8, memory: 64Gi}, devices: {product: A100, count: 4, memory: 40Gi}}}
---
{apiVersion: berth.dev/v1alpha1, kind: Node, metadata: {name: n2}, spec: {resources: {cpu: 8, memory: 64Gi}, devices: {product: A100, count: 4, memory: 80Gi}}}
---
{apiVersion: berth.dev/v1alpha1, kind: Node, metadata: {name: n3}, spec: {resources: {cpu: 8, memory: 64Gi}, devices: {product: L4, count: 1, memory: 24Gi}}}
---
{apiVersion: berth.dev/v1alpha1, kind: Job, metadata: {name: a}, spec: {placement: {unit: Node}, tasks: [{name: t, devices: {totalMemory: 8Gi}}]}}
`
	for name, c := range map[string]struct {
		expect string
		want   []Mismatch
	}{
		"as expected":          {`{"A100 x 4, 40 GiB each": {ResourceUtilizationScorer: 5}, "A100 × 4, 80 GiB each": {ResourceUtilizationScorer: 2.5}, L4: {ResourceUtilizationScorer: 33.333}}`, nil},
		"another score":        {`{L4 x 1: {ResourceUtilizationScorer: 30}}`, []Mismatch{{"score of a on L4 x 1 by ResourceUtilizationScorer", "30", "33.333"}}},
		"no such group":        {`{L4 x 2: {ResourceUtilizationScorer: 30}}`, []Mismatch{{"scores of a on L4 x 2", "a candidate", "no such node or group, or it was rejected"}}},
		"several groups match": {`{A100: {ResourceUtilizationScorer: 5}}`, []Mismatch{{"scores of a on A100", "a candidate", `several groups; write "A100 × 4, 40 GiB each" or "A100 × 4, 80 GiB each"`}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, mismatches(t, "expect: {scores: {a: "+c.expect+"}}"+objects)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
