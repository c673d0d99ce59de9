package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/berth-project/berth/internal/wire"
	"github.com/berth-project/berth/plugins/standard"
)

// TestCuresAreBounded: at most 32 workloads are asked about, and the others are listed.
func TestCuresAreBounded(t *testing.T) {
	var in strings.Builder
	in.WriteString("{apiVersion: berth.dev/v1alpha1, kind: Node, metadata: {name: n}, spec: {resources: {cpu: 4, memory: 8Gi}}}\n")
	const jobs = 40
	for i := range jobs {
		for _, name := range []string{"a", "b"} { // two that are alike
			fmt.Fprintf(&in, "---\n{apiVersion: berth.dev/v1alpha1, kind: Job, metadata: {name: %s-%d}, spec: {tasks: [{name: t, resources: {cpu: %d}}]}}\n", name, i, 5+i)
		}
	}
	var out, errs bytes.Buffer
	if code := Main(standard.Registry(), []string{"simulate", "-", "--cures", "-o", "json"}, strings.NewReader(in.String()), &out, &errs); code != 0 {
		t.Fatal(errs.String())
	}
	var result wire.Result
	if err := json.Unmarshal(out.Bytes(), &result); err != nil {
		t.Fatal(err)
	}
	if len(result.Cures) != mostCures || len(result.WithoutCures) != 2*(jobs-mostCures) {
		t.Errorf("%d cures, %d workloads without; want %d and %d", len(result.Cures), len(result.WithoutCures), mostCures, 2*(jobs-mostCures))
	}
	for _, c := range result.Cures {
		if len(c.Alike) != 1 || !strings.HasPrefix(c.Change, "4 cores instead of ") {
			t.Errorf("%+v", c)
		}
	}
}

func TestCureSteps(t *testing.T) {
	for _, tt := range []struct{ workloads, base, most, each int }{
		{1, 100, 1, 3_999_800}, {10, 3000, 10, 394_000}, {32, 3000, 32, 119_000}, {32, 90_000, 5, 620_000}, {32, 1_000_000, 0, 2_000_000}, {0, 1, 0, 3_999_998},
	} {
		if most, each := cureSteps(tt.workloads, tt.base, stepsOfCures); most != tt.most || each != tt.each {
			t.Errorf("%d workloads, %d steps: %d with %d steps each, want %d with %d", tt.workloads, tt.base, most, each, tt.most, tt.each)
		}
	}
}
