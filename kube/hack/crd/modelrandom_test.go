package main

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/berth-project/berth/kube/internal/crdtest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// modelField is a field of a model and values for it: usual ones, values at limits, and wrong
// ones. The path is below spec.
type modelField struct {
	path   string
	values []any
}

type list = []any
type object = map[string]any

var sizes = list{0, 1, "1Gi", "8Ti", "9Ti", -1, "1e31", "1e999999999", "lots", "", " 1Gi ", "1.5Gi", "0.5"}

// modelFields are the fields that are drawn. Texts that package convert does not check are not
// among them.
var modelFields = []modelField{
	{"replicas", list{0, 1, 10_000, 10_001, -1, "1", nil}},
	{"backend", list{"", "vllm", "VLLM", "sglang", "mindie", "voxbox", "llamacpp", "llama.cpp", "llama-box", "custom", "ollama", nil}},
	{"backendVersion", list{"", "0.9.1", "v0.10.1rc2", "V0.5.1.POST3", "b4567", "1.2.3.4.5", "new", "1.0+cu126", "2.1.rc2"}},
	{"context", list{0, 4096, 100_000_000, 100_000_001, -1}},
	{"sequences", list{0, 4, 1_000_000, 1_000_001}},
	{"maxSequences", list{0, 2, 4, 1_000_000, 1_000_001}},
	{"batchTokens", list{0, 2048, 100_000_001}},
	{"dtype", list{"", "auto", "bfloat16", "float32", "float", "half", "int4"}},
	{"quantization", list{"", "fp8", "int8", "bitsandbytes", "awq"}},
	{"gpuMemoryUtilization", list{1, "0.5", "500m", "1.001", 0, "-0.5", "half", "1"}},
	{"kvCacheBits", list{0, 16, 8, 4, 5, 32}},
	{"microBatch", list{0, 64, 65536, 65537}},
	{"flashAttention", list{true, false, nil}},
	{"fullWindowCache", list{true, false}},
	{"eager", list{true, "yes"}},
	{"priority", list{0, maxPriority, -maxPriority, int64(1) << 31, -5}},
	{"staleGrace", list{"10m", "-1s", "0", "100000h", "100001h", "9999999h", "1d", "", "-0", "+1.5h"}},
	{"preemptionDelay", list{"5m", "-1ns", "100000h0m1s", "soon"}},
	{"source.preset", list{"phi-4", "whisper-small", "", nil}},
	{"source.gguf", list{"a.gguf", ""}},
	{"source.huggingFace", list{"dir", ""}},
	{"source.localPath", list{"/m/a.gguf", "/m/a.GGUF", "/m/a", ""}},
	{"source.config", list{"{}", "", nil}},
	{"source.weights", sizes},
	{"source.repository", list{"", "Qwen/Qwen3-8B", "gpt2", "a/b/c", "-a", "a/", "a..b/c", "ä"}},
	{"draft.preset", list{"phi-4", ""}},
	{"draft.weights", list{"1Gi"}},
	{"memory.device", sizes},
	{"memory.total", sizes},
	{"memory.host", sizes},
	{"adapters", list{list{}, list{object{"name": "a", "memory": "1Gi"}}, list{object{"name": "a", "path": "x"}}, list{object{"name": "a"}}, list{object{"name": "", "memory": 1}},
		list{object{"name": "a", "memory": 1}, object{"name": "a", "memory": 1}}, list{object{"name": "a", "memory": 0}}, list{object{"name": "a", "memory": -1}}, list{object{"memory": 1}}}},
	{"resources", list{object{"cpu": 1}, object{"cpu": "500m", "memory": "1Gi"}, object{"nvidia.com/gpu": 1}, object{"nvidia.com/mig-1g.10gb": 1}, object{"example.com/nic": 1}, object{"example.com/nic": "1.5"},
		object{"pods": "1500m"}, object{"": 1}, object{"cpu": 1<<30 + 1}, object{"memory": "2Ei"}, object{"cpu": -1}, object{"a:b": 1}, object{"tab\t": 1}}},
	{"parallelism.tensor", list{0, 1, 2, 4096, 4097, -1}},
	{"parallelism.pipeline", list{0, 1, 2, 4096}},
	{"parallelism.data", list{0, 1, 2, 3}},
	{"parallelism.expert", list{true, false}},
	{"placement.strategy", list{"", "Pack", "Spread", "Binpack", "pack", nil}},
	{"placement.unit", list{"", "Device", "Node", "node", nil}},
	{"placement.cells", list{list{}, list{"a", "b"}, list{"a", "a"}, list{""}, list{" "}}},
	{"placement.nodeSelector", list{object{"a": "b"}, object{"a/b": ""}, object{"a b": "c"}, object{"a": "b c"}, object{"A/b": "c"}, object{"": "a"}, object{"node.kubernetes.io/instance-type": "g5.xlarge"},
		object{strings.Repeat("a", 63): "c"}, object{strings.Repeat("a", 64): "c"}, object{"a": strings.Repeat("b", 64)}}},
	{"placement.devices", list{list{}, list{"a:cuda:0"}, list{"a:cuda:0", "a:cuda:1"}, list{"a:cuda:0", "a:cuda:0"}, list{"a:cuda"}, list{"a:cuda:1023"}, list{"a:cuda:1024"}, list{"a:cuda:-1"}, list{":cuda:1"}, list{"a::1"}, list{"a:b:c:1"}}},
	{"placement.devicesPerReplica", list{0, 1, 2, 4, 4096, 4097, -1}},
	{"placement.partition", list{"", "1g.10gb"}},
	{"placement.distributed", list{true, false}},
	{"placement.instanceType", list{"", "g5.xlarge", "g6.xlarge", "a b"}},
	{"placement.deviceLayers", list{0, 4096, 4097, -1}},
	{"isolation.cpu", list{"", "WholeCore", "Whole"}},
	{"isolation.gpu", list{"", "Shared", "SessionExclusive"}},
	{"isolation.session", list{"", "a"}},
	{"tolerations", list{list{object{"operator": "Exists"}}, list{object{"key": "a"}}, list{object{}}, list{object{"key": "a", "operator": "Exists", "value": "b"}}, list{object{"key": "a b"}}, list{object{"key": "a", "effect": "NoExecute"}}, list{object{"key": "a", "effect": "None"}}}},
	{"server.image", list{"", "a/b:1", "a b"}},
	{"server.port", list{0, 8000, 65535, 65536, -1}},
	{"server.distribution", list{"", "Ray", "Native", "ray"}},
	{"server.command", list{list{"a"}, list{"a\nb"}, "a"}},
	{"server.cache", list{object{"claim": "a"}, object{"hostPath": "/a"}, object{"claim": "a", "hostPath": "/a"}, object{}, object{"hostPath": "a"}, object{"hostPath": "/a/.."}, object{"hostPath": "/a..b"}, object{"hostPath": "/a:b"}, object{"claim": "A"}, object{"claim": "a", "mountPath": "b"}}},
	{"server.tokenSecret", list{object{"name": "a"}, object{"name": ""}, object{}, object{"name": "a", "key": "."}, object{"name": "a", "key": "..b"}, object{"name": "a", "key": ".b"}, object{"name": "a", "key": "b/c"}, object{"name": "A"}}},
	{"server.imagePullSecrets", list{list{"a", "b"}, list{"a", "a"}, list{""}, list{"A"}}},
	{"template", list{object{}, object{"spec": object{"hostIPC": true}}, object{"spec": object{"schedulerName": "a"}}, object{"spec": object{"nodeName": "a"}}, list{}, "a", nil}},
	{"replica", list{1}},
}

// set sets the value at a path.
func set(o object, path string, value any) {
	name, rest, below := strings.Cut(path, ".")
	if !below {
		o[name] = value
		return
	}
	inner, _ := o[name].(object)
	if inner == nil {
		inner = object{}
	}
	o[name] = inner
	set(inner, rest, value)
}

// modelSpec draws a source or memory and a few fields, so that most specs have one wrong field
// at most.
func (d dice) modelSpec() object {
	out := object{}
	switch d.IntN(4) {
	case 0:
		set(out, "source.preset", "phi-4")
	case 1:
		set(out, "source.gguf", "a.gguf")
	case 2:
		set(out, "source.config", "{}")
		set(out, "source.weights", "1Gi")
	case 3:
		set(out, "memory.device", "1Gi")
	}
	for range 1 + d.IntN(4) {
		f := modelFields[d.IntN(len(modelFields))]
		set(out, f.path, f.values[d.IntN(len(f.values))])
	}
	return out
}

// testModelsSameAsReader compares the API server with the reader of manifests on random models:
// both accept a model, or both reject it. What package convert reports about the settings of a
// preset without a backend depends on whether it is a speech model, and is not compared.
func (s server) testModelsSameAsReader(t *testing.T) {
	d := dice{rand.New(rand.NewPCG(3, 4))}
	accepted, wrong := 0, 0
	for range *cases {
		spec := d.modelSpec()
		data, err := json.Marshal(object{"apiVersion": "berth.dev/v1alpha1", "kind": "Model", "metadata": object{"name": "a"}, "spec": spec})
		if err != nil {
			t.Fatal(err)
		}
		reader := modelProblem(string(data))
		_, server := s.create(t.Context(), crdtest.Object(t, string(data)), metav1.DryRunAll)
		if reader == "" {
			accepted++
		}
		if (reader == "") != (server == nil) && !(server == nil && dependsOnPreset(reader)) {
			if t.Errorf("%s\nreader: %v\nserver: %s", data, reader, causes(server)); wrong > 20 {
				t.Fatal("and more")
			}
			wrong++
		}
	}
	t.Logf("%d of %d models were accepted", accepted, *cases)
	if accepted < *cases/4 || accepted > *cases*3/4 {
		t.Errorf("%d of %d models were accepted; the test needs more of both kinds", accepted, *cases)
	}
}

// dependsOnPreset reports whether the problem is about a setting that the backend of a preset
// does not have.
func dependsOnPreset(problem string) bool {
	for _, text := range []string{"spec.gpuMemoryUtilization: voxbox", "voxbox has no data-parallel ranks", "voxbox does not divide experts", "spec.server.distribution: voxbox", "the cache of vllm has"} {
		if strings.Contains(problem, text) {
			return true
		}
	}
	return false
}
