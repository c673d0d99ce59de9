package command

import (
	"bytes"
	"strings"
	"testing"

	"github.com/berth-project/berth/plugins/standard"
	"github.com/google/go-cmp/cmp"
)

// TestCompletion checks what the shell is offered. The last line is the directive for the shell.
func TestCompletion(t *testing.T) {
	const none, noFiles, noSpace = ":0", ":4", ":6"
	tests := map[string]struct {
		dir  string
		args []string
		want []string
	}{
		"workloads of the directory": {"../examples/reclaim", []string{"why", "job/s"}, []string{"job/serve", "job/sweep-1", "job/sweep-2", "job/sweep-3", "job/sweep-4", noFiles}},
		"no manifests here":          {"..", []string{"why", "job/"}, []string{noFiles}},
		"paths after the workload":   {".", []string{"why", "job/x", ""}, []string{none}},
		"nodes and workloads":        {".", []string{"whatif", "../examples/reclaim", "--remove", ""}, []string{"gpu-1", "gpu-2", "job/ablation", "job/eval", "job/finetune", "job/serve", "job/sweep-1", "job/sweep-2", "job/sweep-3", "job/sweep-4", noFiles}},
		"groups":                     {".", []string{"whatif", "../examples/reclaim", "--add-nodes", "N"}, []string{"NVIDIA-A100-SXM4-80GB=", noSpace}},
		"objects":                    {".", []string{"whatif", "../examples/reclaim", "--set", "node/"}, []string{"node/gpu-1.", "node/gpu-2.", noSpace}},
		"no paths":                   {".", []string{"whatif", "--remove", ""}, []string{noFiles}},
		"paths that do not exist":    {".", []string{"whatif", "nope", "--remove", ""}, []string{noFiles}},
		"presets":                    {".", []string{"estimate", "phi-4"}, []string{"phi-4", "phi-4-mini", none}},
		"products":                   {".", []string{"estimate", "phi-4", "--gpu", "NVIDIA-L"}, []string{"NVIDIA-L4", "NVIDIA-L20", "NVIDIA-L40S", noFiles}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Chdir(tt.dir)
			var out, errs bytes.Buffer
			code := Main(standard.Registry(), append([]string{"__completeNoDesc"}, tt.args...), strings.NewReader(""), &out, &errs)
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, errs.String())
			}
			if d := cmp.Diff(tt.want, strings.Split(strings.TrimSpace(out.String()), "\n")); d != "" {
				t.Error(d)
			}
		})
	}
}
