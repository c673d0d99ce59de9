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

func TestCureTries(t *testing.T) {
	for _, tt := range []struct{ workloads, pending, most, each int }{
		{1, 1, 1, 64}, {10, 10, 10, 64}, {32, 100, 32, 20}, {100, 500, 32, 20}, {100, 1000, 26, 12}, {300, 20_000, 8, 12}, {0, 0, 0, 64},
	} {
		if most, each := cureTries(tt.workloads, tt.pending); most != tt.most || each != tt.each {
			t.Errorf("%d workloads, %d pending: %d with %d tries each, want %d with %d", tt.workloads, tt.pending, most, each, tt.most, tt.each)
		}
	}
}

func TestProgressLine(t *testing.T) {
	for text, want := range map[string]string{"8 changes": "8 changes", "abcdefghijkl": "abcdefghi…", "a\x1b[2J\nb": "a�[2J�b"} {
		if got := line(text, 10); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
