package command

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/plugins/standard"
)

const twoNodesOfH100 = `
apiVersion: berth.dev/v1alpha1
kind: Node
metadata: {name: a}
spec: {resources: {cpu: 96, memory: 2Ti}, devices: {product: NVIDIA-H100-80GB-HBM3, count: 8, memory: 81559Mi}}
---
apiVersion: berth.dev/v1alpha1
kind: Node
metadata: {name: b}
spec: {resources: {cpu: 96, memory: 2Ti}, devices: {product: NVIDIA-H100-80GB-HBM3, count: 8, memory: 81559Mi}}
`

func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := Main(standard.Registry(), args, strings.NewReader(""), &out, &errs); code != exitOK {
		t.Fatalf("berth %s: %d: %s", strings.Join(args, " "), code, errs.String())
	}
	return out.String()
}

// firstForm returns the form in which the model of a file is placed on an empty cluster, or one that
// is refused.
func firstForm(t *testing.T, file, cluster string) model.Form {
	t.Helper()
	specs, err := manifest.Models(file)
	if err != nil {
		t.Fatal(err)
	}
	p := &program{registry: standard.Registry(), stdout: io.Discard, stderr: io.Discard, stdin: strings.NewReader("")}
	groups, err := p.groups([]string{cluster})
	if err != nil {
		t.Fatal(err)
	}
	result, err := model.Convert(specs[0], groups)
	if err != nil {
		t.Fatal(err)
	}
	var out model.Form
	for _, f := range result.Forms {
		if f.Problem == "" {
			return f
		}
		if f.PerDevice > 0 {
			out = f
		}
	}
	return out
}

// The estimate of a model says the same need of each device as the placement, and that it fits if
// it is placed.
func TestEstimateAgreesWithPlacement(t *testing.T) {
	for name, tt := range map[string]struct {
		spec    string
		devices int
		fits    bool
	}{
		"plain":        {"{source: {preset: llama-3.1-8b}, context: 8192}", 1, true},
		"tensor":       {"{source: {preset: llama-3.3-70b}, context: 8192, parallelism: {tensor: 4}}", 4, true},
		"tensor by pp": {"{source: {preset: llama-3.3-70b}, context: 8192, parallelism: {tensor: 2, pipeline: 2}}", 4, true},
		"over nodes":   {"{source: {preset: deepseek-v3-0324}, context: 16384, placement: {distributed: true}, parallelism: {tensor: 8, pipeline: 2}}", 16, true},
		"ranks":        {"{source: {preset: llama-3.1-8b}, context: 8192, parallelism: {tensor: 2, data: 4}}", 8, true},
		"ranks on two": {"{source: {preset: llama-3.1-8b}, context: 8192, placement: {distributed: true}, parallelism: {tensor: 2, data: 8}}", 16, true},
		"copies":       {"{source: {preset: deepseek-v3-0324}, context: 16384, parallelism: {tensor: 2, data: 8}}", 16, false},
		"experts":      {"{source: {preset: deepseek-v3-0324}, context: 16384, parallelism: {tensor: 2, data: 8, expert: true}}", 16, false},
		"experts fit":  {"{source: {preset: gpt-oss-120b}, context: 8192, parallelism: {tensor: 2, data: 4, expert: true}}", 8, true},
		"draft":        {"{source: {preset: llama-3.1-8b}, context: 8192, draft: {preset: llama-3.1-8b}, gpuMemoryUtilization: 0.46, parallelism: {tensor: 1, pipeline: 1}}", 1, false},
		"draft fits":   {"{source: {preset: llama-3.3-70b}, draft: {preset: llama-3.1-8b}, context: 8192, parallelism: {tensor: 4}}", 4, true},
		"sglang":       {"{source: {preset: llama-3.1-8b}, draft: {preset: phi-4-mini}, backend: sglang, context: 8192}", 1, true},
		"custom":       {"{source: {preset: llama-3.1-8b}, backend: custom, context: 8192}", 1, true},
	} {
		file := filepath.Join(t.TempDir(), "model.yaml")
		cluster := filepath.Join(filepath.Dir(file), "cluster.yaml")
		text := "apiVersion: berth.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec: " + tt.spec + "\n"
		for path, content := range map[string]string{file: text, cluster: twoNodesOfH100} {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var found []estimateView
		if err := json.Unmarshal([]byte(mustRun(t, "estimate", file, "--cluster", cluster, "-o", "json")), &found); err != nil {
			t.Fatal(err)
		}
		row := found[0].Devices[0]
		if row.Devices != tt.devices || row.Fits != tt.fits {
			t.Errorf("%s: the estimate is for %d devices, fits %v; want %d, %v", name, row.Devices, row.Fits, tt.devices, tt.fits)
		}
		if form := firstForm(t, file, cluster); form.PerDevice != row.Each.Total || (form.Problem == "") != row.Fits {
			t.Errorf("%s: the estimate is %d bytes, fits %v, and the form %s takes %d bytes (%s)", name, row.Each.Total, row.Fits, form.Name, form.PerDevice, form.Problem)
		}
		if why := mustRun(t, "why", "model/m", file, cluster); strings.Contains(why, "\nPlaced:") != row.Fits {
			t.Errorf("%s: fits %v, but:\n%s", name, row.Fits, why)
		}
	}
}

// The estimate refuses what the placement refuses, and says what to change.
func TestEstimateRefuses(t *testing.T) {
	for flags, want := range map[string]string{
		"llama-3.1-8b --backend mindie --gpu H100":                          "--gpu NVIDIA-H100-80GB-HBM3: mindie runs on cann, not on cuda; name another device, or another --backend",
		"llama-3.1-8b --backend-version 0.9.0 --gpu Ascend-910B":            "vllm 0.9.0 runs on cuda, rocm",
		"llama-3.1-8b --backend llamacpp":                                   "llamacpp serves GGUF files, and llama-3.1-8b is not one of these; name another --backend",
		"llama-3.1-8b --kv-bits 4":                                          "--kv-bits: the cache of vllm has 16 or 8 bits, not 4; omit it, or name another --backend",
		"llama-3.1-8b --max-sequences 1 --sequences 50":                     "a server that processes at most 1 at once does not hold 50 sequences; raise --max-sequences, or lower --sequences",
		"llama-3.1-8b --expert-parallel":                                    "model llama-3.1-8b has no experts that could be divided; omit expert parallelism",
		"llama-3.1-8b --backend custom --dp 2":                              "--dp: custom has no data-parallel ranks; omit it, or name another --backend",
		"llama-3.1-8b --dp 0 --tp 3":                                        "do not divide over 3 devices",
		"llama-3.1-8b --dp 33":                                              "× 33 data-parallel ranks is too much",
		"deepseek-v3-0324 --backend sglang --expert-parallel --tp 2 --dp 3": "the 256 experts of model deepseek-v3-0324 do not divide over 6 devices",
	} {
		var out, errs bytes.Buffer
		if code := Main(standard.Registry(), append([]string{"estimate"}, strings.Fields(flags)...), strings.NewReader(""), &out, &errs); code == exitOK || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: %d, %s%s; want %s", flags, code, out.String(), errs.String(), want)
		}
	}
}

// A flag for the type of numbers leaves the quantisation of the manifest as it is.
func TestFlagKeepsQuantization(t *testing.T) {
	file := filepath.Join(t.TempDir(), "model.yaml")
	text := "apiVersion: berth.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec: {source: {preset: llama-3.1-8b}, context: 8192, quantization: fp8}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	plain := mustRun(t, "estimate", file, "--gpu", "H100")
	for _, dtype := range []string{"auto", "bfloat16"} {
		if out := mustRun(t, "estimate", file, "--gpu", "H100", "--dtype", dtype); out != plain || !strings.Contains(out, "weights                         8.9 GiB") {
			t.Errorf("--dtype %s: %s\nwant %s", dtype, out, plain)
		}
	}
}
