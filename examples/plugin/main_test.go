package main

import (
	"bytes"
	"encoding/json"
	"testing"
)

// TestBerthWithOneMorePlugin runs the whole command. The configuration in cluster.yaml
// names the plugin, and its filter and score take effect.
func TestBerthWithOneMorePlugin(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"simulate", "-o", "json", "cluster.yaml"}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	var result struct {
		Decisions []struct {
			Workload, Node string
			Scores         map[string]float64
		}
	}
	if err := json.Unmarshal(out.Bytes(), &result); err != nil {
		t.Fatal(err)
	}
	want := map[string]struct {
		node  string
		score float64
	}{"job/training": {"gpu-2", 100}, "job/sweep": {"gpu-1", 0}}
	if len(result.Decisions) != len(want) {
		t.Errorf("%d decisions, want %d", len(result.Decisions), len(want))
	}
	for _, d := range result.Decisions {
		if w := want[d.Workload]; d.Node != w.node || d.Scores["QuietRacks"] != w.score {
			t.Errorf("%s is on %s with a score of %v, want %v", d.Workload, d.Node, d.Scores["QuietRacks"], w)
		}
	}
}
