package command

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/berth-project/berth/plugins/standard"
)

func TestFitGrid(t *testing.T) {
	rows := [][]string{
		{"ACTION", "WORKLOAD", "NODE", "SCORE"},
		{"Bind", "job/a", "production-gpu-worker-1.eu-west.example.com", "90.0"},
		{"Bind", "job/b", "production-gpu-worker-12.eu-west.example.com", "8.0"},
	}
	var b strings.Builder
	fitGrid(&b, rows, 44, 1, 2)
	for _, line := range strings.Split(b.String(), "\n") {
		if utf8.RuneCountInString(line) > 44 {
			t.Errorf("too wide: %s", line)
		}
	}
	if rows[1][2] == rows[2][2] || !strings.Contains(rows[2][2], "12") {
		t.Errorf("%q and %q", rows[1][2], rows[2][2])
	}
}

func TestWrapLast(t *testing.T) {
	var b strings.Builder
	grid(&b, wrapLast([][]string{{"NODE", "FOR"}, {"gpu-1", "job/finetune (Reclaimed)"}, {"gpu-2", ""}}, 21))
	if want := "NODE   FOR\ngpu-1  job/finetune\n       (Reclaimed)\ngpu-2\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

func TestBreakName(t *testing.T) {
	for name, want := range map[string]string{
		"NVIDIA-L4 × 2":                         "NVIDIA-L4 × 2",
		"NVIDIA-A100-SXM4-80GB-MIG-1g.10gb × 7": "NVIDIA-A100-|  SXM4-80GB-|  MIG-1g.10gb|   × 7",
		"aaaaaaaaaaaaaaaaaaaaaaaaa":             "aaaaaaaaaaaaa|  aaaaaaaaaaa|  a",
	} {
		if got := strings.Join(breakName(name, 13), "|"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestTablesFit checks that the tables of all commands have at most 80 columns, with long names
// and with large amounts, that rows of different names differ, and that -o wide cuts nothing.
func TestTablesFit(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	const head = "apiVersion: berth.dev/v1alpha1\nkind: "
	var in strings.Builder
	product := "NVIDIA-RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition"
	for i := range 3 {
		fmt.Fprintf(&in, head+"Node\nmetadata: {name: production-gpu-worker-%d.eu-west-1.compute.example.com}\nspec: {resources: {cpu: 123456, memory: 1234Gi}, devices: {product: %s-%d, count: 8, memory: 9%dGi}}\n---\n", i, product, i, i)
		fmt.Fprintf(&in, head+"Queue\nmetadata: {name: department-of-machine-learning-research-%d}\nspec: {quota: {nvidia.com/gpu: 1234.567, memory: 12345.6Gi}, limits: {nvidia.com/gpu: 1234.567}}\n---\n", i)
		fmt.Fprintf(&in, head+"Queue\nmetadata: {name: team-of-the-department-%d}\nspec: {parent: department-of-machine-learning-research-%d}\n---\n", i, i)
		fmt.Fprintf(&in, head+"Job\nmetadata: {name: finetune-the-large-language-model-number-%d}\nspec: {queue: team-of-the-department-%d, tasks: [{name: worker-with-a-long-name, replicas: 2, resources: {memory: 123Gi}, devices: {count: 1}}]}\n---\n", i, i)
	}
	run := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := Main(standard.Registry(), args, strings.NewReader(in.String()), &out, &errs); code != exitOK {
			t.Fatalf("%q: %s", args, errs.String())
		}
		return out.String()
	}
	for _, args := range [][]string{
		{"simulate", "-"}, {"queues", "-"}, {"estimate", "phi-4"}, {"estimate", "phi-4", "--cluster", "-"},
		{"estimate", "llama-3.3-70b", "--cluster", "-"}, {"estimate", "deepseek-v3", "--cluster", "-"}, {"estimate", "deepseek-v3"},
	} {
		lines := map[string]bool{}
		for _, line := range strings.Split(run(args...), "\n") {
			if utf8.RuneCountInString(line) > 80 {
				t.Errorf("%q: %d columns: %s", args, utf8.RuneCountInString(line), line)
			}
			if f := strings.Fields(line); len(f) > 5 && lines[line] && !strings.HasPrefix(line, "     ") {
				t.Errorf("%q: two rows are the same: %s", args, line)
			}
			lines[line] = true
		}
		if wide := run(append(args, "-o", "wide")...); strings.Contains(wide, "…") {
			t.Errorf("%q is cut: %s", args, wide)
		}
	}
	for i := range 2 { // these do not fit, and are not alike
		fmt.Fprintf(&in, head+"Job\nmetadata: {name: evaluate-the-large-language-model-number-%d}\nspec: {queue: team-of-the-department-0, tasks: [{name: worker-with-a-long-name, resources: {memory: %dGi}, devices: {count: 9}}]}\n---\n", i, 12345+i)
	}
	names := filepath.Join(t.TempDir(), "names.yaml")
	var long strings.Builder
	for i, n := range []string{"ip-10-0-1-1", "ip-10-0-11-1", "ip-10-0-11-12", "gke-production-a100-pool-0a1b2c3d", "gke-production-a100-pool-0a1b2c3e"} {
		fmt.Fprintf(&long, head+"Node\nmetadata: {name: %s.eu-west-1.compute.internal}\nspec: {resources: {cpu: 64, memory: 64Gi}, devices: {product: L4, count: 8, memory: 24Gi}}\n---\n", n)
		fmt.Fprintf(&long, head+"Job\nmetadata: {namespace: a-long-name-of-a-team, name: finetune-the-large-language-model-%d-of-the-department-of-everything}\nspec: {tasks: [{name: t, devices: {count: 7}}]}\n---\n", i)
	}
	if err := os.WriteFile(names, []byte(long.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	const job, node = "job/evaluate-the-large-language-model-number-1", "production-gpu-worker-1.eu-west-1.compute.example.com"
	for _, args := range [][]string{
		{"simulate", "-"}, {"simulate", names}, {"simulate", "-", "--cycles", "3", "--every", "1m"}, {"simulate", "-", "--timings"},
		{"why", job, "-"}, {"why", "job/finetune-the-large-language-model-number-1", "-"}, {"why", "node/" + node, "-"}, {"why", "queue/team-of-the-department-0", "-"},
		{"whatif", "--remove", "node/" + node, "-"}, {"whatif", "--add-nodes", node + "=2", "-"}, {"plugins"},
	} {
		for _, line := range strings.Split(run(args...), "\n") {
			if utf8.RuneCountInString(line) > 80 {
				t.Errorf("%q: %d columns: %s", args, utf8.RuneCountInString(line), line)
			}
		}
	}
}
