package main

import (
	"testing"

	"github.com/berth-project/berth/kube/internal/crdtest"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testRejectedModels creates models that are not valid. The reader of manifests rejects them as
// well, except those with accepted set.
func (s server) testRejectedModels(t *testing.T) {
	for name, tc := range map[string]struct {
		fields, want string
		accepted     bool // by the reader of manifests
	}{
		"no source":                           {"spec: {}", "spec: Invalid value: say under source where the model comes from: preset, gguf, huggingFace, localPath or config; or say how much memory it needs under memory", false},
		"no spec":                             {"", "<nil>: Invalid value: there is no spec; say under source where the model comes from: preset, gguf, huggingFace, localPath or config; or say how much memory it needs under memory", false},
		"empty source":                        {"spec: {source: {preset: ''}}", "spec: Invalid value: say under source where the model comes from: preset, gguf, huggingFace, localPath or config; or say how much memory it needs under memory", false},
		"two sources":                         {"spec: {source: {preset: phi-4, gguf: a.gguf}}", "spec.source: Invalid value: preset, gguf, huggingFace, localPath and config each say where the model comes from; keep one", false},
		"a preset and a config":               {"spec: {source: {preset: phi-4, config: '{}', weights: 1Gi}}", "spec.source: Invalid value: preset, gguf, huggingFace, localPath and config each say where the model comes from; keep one", false},
		"config without weights":              {"spec: {source: {config: '{}'}}", "spec.source: Invalid value: the size of the weights is not part of a config.json; write how large all safetensors files are together beside it, such as weights: 16Gi", false},
		"weights without config":              {"spec: {source: {preset: phi-4, weights: 1Gi}}", "spec.source: Invalid value: weights is the size of the model that config describes; write config beside it, or leave it out", false},
		"weights of 0":                        {"spec: {source: {config: '{}', weights: 0}}", "spec.source.weights: Invalid value: 0: want how large all safetensors files are together, such as 16Gi; the most is 8Ti", false},
		"weights too large":                   {"spec: {source: {config: '{}', weights: 9Ti}}", "spec.source.weights: want how large all safetensors files are together, such as 16Gi; the most is 8Ti", false},
		"repository":                          {"spec: {source: {preset: phi-4, repository: --flag}}", "spec.source.repository: this is not the name of a repository: write owner/name, such as Qwen/Qwen3-8B", false},
		"draft without a source":              {"spec: {source: {preset: phi-4}, draft: {}}", "spec.draft: Invalid value: say where the draft comes from: preset, gguf, huggingFace, localPath or config", false},
		"two sources of a draft":              {"spec: {source: {preset: phi-4}, draft: {preset: phi-4, huggingFace: a}}", "spec.draft: Invalid value: preset, gguf, huggingFace, localPath and config each say where the model comes from; keep one", false},
		"replicas":                            {"spec: {source: {preset: phi-4}, replicas: -1}", "spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0; .spec.replicas: Invalid value: -1: should be a non-negative integer", false},
		"too many replicas":                   {"spec: {source: {preset: phi-4}, replicas: 10001}", "spec.replicas: Invalid value: 10001: spec.replicas in body should be less than or equal to 10000", false},
		"backend":                             {"spec: {source: {preset: phi-4}, backend: vlm}", "spec.backend: no backend has this name; want vllm, sglang, mindie, voxbox, llamacpp or custom", false},
		"version":                             {"spec: {source: {preset: phi-4}, backendVersion: new}", "spec.backendVersion: this is not a version; write it as in 0.8.5, 2.1.rc2 or 0.5.1.post3", false},
		"context":                             {"spec: {source: {preset: phi-4}, context: 100000001}", "spec.context: Invalid value: 100000001: spec.context in body should be less than or equal to 100000000", false},
		"negative context":                    {"spec: {source: {preset: phi-4}, context: -1}", "spec.context: Invalid value: -1: spec.context in body should be greater than or equal to 0", false},
		"sequences":                           {"spec: {source: {preset: phi-4}, sequences: 1000001}", "spec.sequences: Invalid value: 1000001: spec.sequences in body should be less than or equal to 1000000", false},
		"more sequences than at once":         {"spec: {source: {preset: phi-4}, sequences: 4, maxSequences: 2}", "spec: Invalid value: a server that processes at most maxSequences at once does not hold that many sequences; raise it, or set fewer sequences", false},
		"dtype":                               {"spec: {source: {preset: phi-4}, dtype: int4}", `spec.dtype: supported values: "", "auto", "bfloat16", "float16", "float32", "half", "float"`, false},
		"quantization":                        {"spec: {source: {preset: phi-4}, quantization: awq}", `spec.quantization: supported values: "", "fp8", "int8", "bitsandbytes"`, false},
		"quantised 32 bits":                   {"spec: {source: {preset: phi-4}, dtype: float32, quantization: fp8}", "spec: Invalid value: numbers of 32 bits are not quantised; leave dtype or quantization out", false},
		"cache bits":                          {"spec: {source: {preset: phi-4}, kvCacheBits: 5}", `spec.kvCacheBits: Unsupported value: 5: supported values: "0", "16", "8", "4"`, false},
		"cache bits of vllm":                  {"spec: {source: {huggingFace: a}, kvCacheBits: 4}", "spec: Invalid value: the cache of this backend has 16 or 8 bits; leave kvCacheBits out", false},
		"micro-batch of vllm":                 {"spec: {source: {preset: phi-4}, microBatch: 64}", "spec: Invalid value: only llamacpp has microBatch; leave it out", false},
		"huge micro-batch":                    {"spec: {source: {gguf: a.gguf}, microBatch: 65537}", "spec.microBatch: Invalid value: 65537: spec.microBatch in body should be less than or equal to 65536", false},
		"flash attention of vllm":             {"spec: {source: {preset: phi-4}, flashAttention: true}", "spec: Invalid value: only llamacpp has flashAttention; leave it out", false},
		"small cache without flash attention": {"spec: {source: {gguf: a.gguf}, kvCacheBits: 8, flashAttention: false}", "spec: Invalid value: a cache of less than 16 bits needs flash attention; leave flashAttention or kvCacheBits out", false},
		"window cache of vllm":                {"spec: {source: {preset: phi-4}, fullWindowCache: true}", "spec: Invalid value: only llamacpp has fullWindowCache; leave it out", false},
		"share above 1":                       {`spec: {source: {preset: phi-4}, gpuMemoryUtilization: "1.1"}`, "spec.gpuMemoryUtilization: want a share above 0 and at most 1, such as 0.5", false},
		"share of 0":                          {"spec: {source: {preset: phi-4}, gpuMemoryUtilization: 0}", "spec.gpuMemoryUtilization: Invalid value: 0: want a share above 0 and at most 1, such as 0.5", false},
		"no share":                            {"spec: {source: {preset: phi-4}, gpuMemoryUtilization: most}", "spec.gpuMemoryUtilization: want a quantity such as 8, 500m, 80Gi or 1.5Ti", false},
		"share of llamacpp":                   {`spec: {source: {gguf: a.gguf}, gpuMemoryUtilization: "0.5"}`, "spec: Invalid value: the backend claims the memory that it needs, not a part of each device; leave gpuMemoryUtilization out", false},
		"whole share of sglang":               {"spec: {source: {preset: phi-4}, backend: SGLang, gpuMemoryUtilization: 1}", "spec: Invalid value: the share of sglang is for weights and cache alone, and must leave room for the rest; want less than 1, such as 0.88", false},
		"tensor":                              {"spec: {source: {preset: phi-4}, parallelism: {tensor: 4097}}", "spec.parallelism.tensor: Invalid value: 4097: spec.parallelism.tensor in body should be less than or equal to 4096; spec: Invalid value: parallelism is tensor × pipeline × data devices; the most is 4096", false},
		"product":                             {"spec: {source: {preset: phi-4}, parallelism: {tensor: 128, pipeline: 64}}", "spec: Invalid value: parallelism is tensor × pipeline × data devices; the most is 4096", false},
		"ranks of custom":                     {"spec: {memory: {device: 1Gi}, backend: custom, parallelism: {data: 2}}", "spec: Invalid value: the backend has no data-parallel ranks; for more copies of the model raise replicas", false},
		"experts of custom":                   {"spec: {memory: {device: 1Gi}, backend: custom, parallelism: {expert: true}}", "spec: Invalid value: the backend does not divide experts; leave parallelism.expert out", false},
		"other number of devices":             {"spec: {memory: {device: 1Gi}, parallelism: {tensor: 2}, placement: {devicesPerReplica: 3}}", "spec: Invalid value: placement.devicesPerReplica is another number of devices than parallelism: tensor × pipeline × data; leave one out", false},
		"devices of ranks":                    {"spec: {memory: {device: 1Gi}, parallelism: {data: 2}, placement: {devicesPerReplica: 3}}", "spec: Invalid value: placement.devicesPerReplica cannot be divided over the data-parallel ranks of parallelism.data", false},
		"parallelism of whole nodes":          {"spec: {memory: {device: 1Gi}, parallelism: {tensor: 2}, placement: {unit: Node}}", "spec: Invalid value: with unit: Node a replica takes all devices of its nodes, and its parallelism follows from them; leave parallelism out", false},
		"memory twice":                        {"spec: {memory: {device: 1Gi, total: 1Gi}}", "spec.memory: Invalid value: device is of each device, total of all together; keep one", false},
		"memory of 0":                         {"spec: {memory: {device: 0}}", "spec.memory.device: Invalid value: 0: want more than 0 and at most 8Ti; leave it out to have it estimated", false},
		"too much memory":                     {"spec: {memory: {device: 9Ti}}", "spec.memory.device: want more than 0 and at most 8Ti; leave it out to have it estimated", false},
		"negative memory of the node":         {"spec: {memory: {device: 1Gi, host: -1}}", "spec.memory.host: Invalid value: -1: want more than 0 and at most 8Ti; leave it out to have it estimated", false},
		"memory of the node alone":            {"spec: {memory: {host: 1Gi}}", "spec: Invalid value: say under source where the model comes from: preset, gguf, huggingFace, localPath or config; or say how much memory it needs under memory", false},
		"adapter":                             {"spec: {memory: {device: 1Gi}, adapters: [{name: a}]}", "spec.adapters[0]: Invalid value: say either memory, or path, which is read", false},
		"adapter with both":                   {"spec: {memory: {device: 1Gi}, adapters: [{name: a, path: x, memory: 1Gi}]}", "spec.adapters[0]: Invalid value: say either memory, or path, which is read", false},
		"adapter without a name":              {"spec: {memory: {device: 1Gi}, adapters: [{memory: 1Gi}]}", "spec.adapters[0].name: Required value", false},
		"adapter twice":                       {"spec: {memory: {device: 1Gi}, adapters: [{name: a, memory: 1Gi}, {name: a, memory: 1Gi}]}", `spec.adapters[1]: Duplicate value: {"name":"a"}`, false},
		"negative adapter":                    {"spec: {memory: {device: 1Gi}, adapters: [{name: a, memory: -1}]}", "spec.adapters[0].memory: Invalid value: -1: the amount is negative, or too large for a model: the most is 8Ti", false},
		"devices as resources":                {"spec: {memory: {device: 1Gi}, resources: {nvidia.com/gpu: 2}}", "spec.resources: Invalid value: devices are counted by the needs of the model itself: nvidia.com/gpu; for a fixed number write placement.devicesPerReplica", false},
		"fraction of a resource":              {"spec: {memory: {device: 1Gi}, resources: {example.com/nic: 500m}}", "spec.resources: Invalid value: the amount is not a whole number, and the resource is counted in whole numbers: example.com/nic", false},
		"negative resource":                   {"spec: {memory: {device: 1Gi}, resources: {cpu: -1}}", "spec.resources[cpu]: Invalid value: -1: the amount is negative", false},
		"too many cores":                      {"spec: {memory: {device: 1Gi}, resources: {cpu: 1073741825}}", "spec.resources: Invalid value: the amount is too large: cpu; the most is 1073741824 for cores, and 1Ei for other resources", false},
		"resource without a name":             {`spec: {memory: {device: 1Gi}, resources: {"": 1}}`, "spec.resources: Invalid value: a resource without a name", false},
		"strategy":                            {"spec: {memory: {device: 1Gi}, placement: {strategy: pack}}", `spec.placement.strategy: supported values: "", "Pack", "Spread", "Binpack"`, false},
		"unit":                                {"spec: {memory: {device: 1Gi}, placement: {unit: Nodes}}", `spec.placement.unit: supported values: "", "Device", "Node"`, false},
		"cells":                               {"spec: {memory: {device: 1Gi}, placement: {cells: [a, a]}}", `spec.placement.cells[1]: Duplicate value: "a"`, false},
		"blank cell":                          {"spec: {memory: {device: 1Gi}, placement: {cells: [' ']}}", "spec.placement.cells[0]: a cell is missing", false},
		"key of a selector":                   {"spec: {memory: {device: 1Gi}, placement: {nodeSelector: {a b: c}}}", "spec.placement.nodeSelector: Invalid value: this is not a valid label key: a b; write name or domain/name", false},
		"value of a selector":                 {"spec: {memory: {device: 1Gi}, placement: {nodeSelector: {a: b c}}}", "spec.placement.nodeSelector[a]: this is not a valid label value: use at most 63 letters, digits, -, _ and ., and begin and end with a letter or digit", false},
		"device":                              {"spec: {memory: {device: 1Gi}, placement: {devices: ['a:cuda']}}", "spec.placement.devices[0]: this is not a device: write node:type:index, such as gpu-1:cuda:0", false},
		"device index":                        {"spec: {memory: {device: 1Gi}, placement: {devices: ['a:cuda:1024']}}", "spec.placement.devices[0]: this is not a device: write node:type:index, such as gpu-1:cuda:0", false},
		"device twice":                        {"spec: {memory: {device: 1Gi}, placement: {devices: ['a:cuda:0', 'a:cuda:0']}}", `spec.placement.devices[1]: Duplicate value: "a:cuda:0"`, false},
		"too few devices":                     {"spec: {memory: {device: 1Gi}, placement: {devices: ['a:cuda:0'], devicesPerReplica: 2}}", "spec.placement: Invalid value: fewer devices are selected than each replica takes", false},
		"slice of a whole node":               {"spec: {memory: {device: 1Gi}, placement: {unit: Node, partition: 1g.10gb}}", "spec.placement: Invalid value: a replica with unit: Node takes whole nodes, and no slice; leave one out", false},
		"two slices":                          {"spec: {memory: {device: 1Gi}, placement: {partition: 1g.10gb, devicesPerReplica: 2}}", "spec.placement: Invalid value: slices are not combined: a replica takes one; leave devicesPerReplica out", false},
		"slices and parallelism":              {"spec: {memory: {device: 1Gi}, parallelism: {pipeline: 2}, placement: {partition: 1g.10gb}}", "spec: Invalid value: slices are not combined: a replica with placement.partition takes one, and parallelism more; leave one out", false},
		"instance type":                       {"spec: {memory: {device: 1Gi}, placement: {instanceType: g5.xlarge}}", "spec.placement: Invalid value: an instance type needs unit: Node beside it", false},
		"two instance types":                  {"spec: {memory: {device: 1Gi}, placement: {unit: Node, instanceType: g5.xlarge, nodeSelector: {node.kubernetes.io/instance-type: g6.xlarge}}}", "spec.placement: Invalid value: nodeSelector already asks for another instance type; keep one", false},
		"instance type as a label":            {"spec: {memory: {device: 1Gi}, placement: {unit: Node, instanceType: a b}}", "spec.placement.instanceType: this is not a valid label value: use at most 63 letters, digits, -, _ and ., and begin and end with a letter or digit", false},
		"layers":                              {"spec: {source: {gguf: a.gguf}, placement: {deviceLayers: 4097}}", "spec.placement.deviceLayers: Invalid value: 4097: spec.placement.deviceLayers in body should be less than or equal to 4096", false},
		"isolation":                           {"spec: {memory: {device: 1Gi}, isolation: {gpu: Exclusive}}", `spec.isolation.gpu: supported values: "", "Shared", "SessionExclusive", "DeviceExclusive", "PartitionExclusive"`, false},
		"session":                             {"spec: {memory: {device: 1Gi}, isolation: {gpu: Shared, session: a}}", "spec.isolation: Invalid value: a session needs gpu: SessionExclusive beside it", false},
		"toleration of all":                   {"spec: {memory: {device: 1Gi}, tolerations: [{operator: Equal}]}", "spec.tolerations[0]: Invalid value: a toleration without a key tolerates everything only with operator: Exists", false},
		"toleration with a value":             {"spec: {memory: {device: 1Gi}, tolerations: [{key: a, operator: Exists, value: b}]}", "spec.tolerations[0]: Invalid value: operator Exists compares no value; leave it out", false},
		"key of a toleration":                 {"spec: {memory: {device: 1Gi}, tolerations: [{key: a b}]}", "spec.tolerations[0].key: this is not a valid label key: write name or domain/name", false},
		"effect":                              {"spec: {memory: {device: 1Gi}, tolerations: [{key: a, effect: Never}]}", `spec.tolerations[0].effect: supported values: "", "NoSchedule", "PreferNoSchedule", "NoExecute"`, false},
		"long grace":                          {"spec: {memory: {device: 1Gi}, staleGrace: 100001h}", "spec.staleGrace: want 100000h at most, such as 5m; a negative time means without limit", false},
		"delay":                               {"spec: {memory: {device: 1Gi}, preemptionDelay: soon}", "spec.preemptionDelay: want a duration such as 30s or 1h30m", false},
		"port":                                {"spec: {memory: {device: 1Gi}, server: {port: 65536}}", "spec.server.port: Invalid value: 65536: spec.server.port in body should be less than or equal to 65535", false},
		"image":                               {"spec: {memory: {device: 1Gi}, server: {image: a b}}", "spec.server.image: this is not an image: write one such as vllm/vllm-openai:v0.11.2", false},
		"distribution":                        {"spec: {memory: {device: 1Gi}, server: {distribution: ray}}", `spec.server.distribution: supported values: "", "Ray", "Native"`, false},
		"distribution of sglang":              {"spec: {memory: {device: 1Gi}, backend: sglang, server: {distribution: Ray}}", "spec: Invalid value: only vllm has server.distribution; leave it out", false},
		"two caches":                          {"spec: {memory: {device: 1Gi}, server: {cache: {claim: a, hostPath: /b}}}", "spec.server.cache: Invalid value: say either claim, the name of a PersistentVolumeClaim, or hostPath, a directory of the nodes", false},
		"no cache":                            {"spec: {memory: {device: 1Gi}, server: {cache: {mountPath: /b}}}", "spec.server.cache: Invalid value: say either claim, the name of a PersistentVolumeClaim, or hostPath, a directory of the nodes", false},
		"relative path":                       {"spec: {memory: {device: 1Gi}, server: {cache: {hostPath: b}}}", "spec.server.cache.hostPath: want an absolute path such as /var/lib/models, without a colon and without a step upwards (..)", false},
		"path upwards":                        {"spec: {memory: {device: 1Gi}, server: {cache: {hostPath: /a/../b}}}", "spec.server.cache.hostPath: want an absolute path such as /var/lib/models, without a colon and without a step upwards (..)", false},
		"claim":                               {"spec: {memory: {device: 1Gi}, server: {cache: {claim: A}}}", "spec.server.cache.claim: this is not a valid name: use lower-case letters, digits, - and ., and begin and end with a letter or digit", false},
		"no secret":                           {"spec: {memory: {device: 1Gi}, server: {tokenSecret: {key: a}}}", "spec.server.tokenSecret.name: Required value", false},
		"key of a secret":                     {"spec: {memory: {device: 1Gi}, server: {tokenSecret: {name: a, key: ..}}}", "spec.server.tokenSecret.key: this is not a key of a secret: use letters, digits, -, _ and .", false},
		"pull secret twice":                   {"spec: {memory: {device: 1Gi}, server: {imagePullSecrets: [a, a]}}", `spec.server.imagePullSecrets[1]: Duplicate value: "a"`, false},
		"template":                            {"spec: {memory: {device: 1Gi}, template: []}", `spec.template: spec.template in body must be of type object: "array"`, false},
		"scheduler of a template":             {"spec: {memory: {device: 1Gi}, template: {spec: {schedulerName: default-scheduler}}}", "spec.template: Invalid value: spec.schedulerName: Berth sets it, to the name of its scheduler; leave it out, and write schedulerName of the model to choose a profile", false},
		"node of a template":                  {"spec: {memory: {device: 1Gi}, template: {spec: {nodeName: a}}}", "spec.template: Invalid value: spec.nodeName: the scheduler chooses the node; leave it out, and restrict the nodes with placement.nodeSelector", false},
		"priority of a system class":          {"spec: {memory: {device: 1Gi}, priority: 1000000001}", "spec.priority: Invalid value: 1000000001: spec.priority in body should be less than or equal to 1000000000", true},
		"priority too low":                    {"spec: {memory: {device: 1Gi}, priority: -1000000001}", "spec.priority: Invalid value: -1000000001: spec.priority in body should be greater than or equal to -1000000000", true},
		"priority above 32 bits":              {"spec: {memory: {device: 1Gi}, priority: 2147483648}", "<nil>: Checked value must be of type integer with format int32 in spec.priority; spec.priority: Invalid value: 2147483648: spec.priority in body should be less than or equal to 1000000000", false},
		"unknown field":                       {"spec: {memory: {device: 1Gi}, replica: 2}", `Model in version "v1alpha1" cannot be handled as a Model: strict decoding error: unknown field "spec.replica"`, false},
		"decimal number":                      {"spec: {source: {preset: phi-4}, gpuMemoryUtilization: 0.5}", `spec.gpuMemoryUtilization: spec.gpuMemoryUtilization in body must be of type integer,string: "number"; <nil>: "spec.gpuMemoryUtilization" must validate at least one schema (anyOf); spec.gpuMemoryUtilization: spec.gpuMemoryUtilization in body must be of type integer: "number"; <nil>: Checked value must be of type integer (default format) in spec.gpuMemoryUtilization`, true},
	} {
		t.Run(name, func(t *testing.T) {
			text := aModel("a", tc.fields)
			_, err := s.create(t.Context(), crdtest.Object(t, text), metav1.DryRunAll)
			if diff := cmp.Diff(tc.want, causes(err)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if problem := modelProblem(text); (problem == "") != tc.accepted {
				t.Errorf("the reader of manifests: want accepted %t, have %q", tc.accepted, problem)
			}
		})
	}
}
