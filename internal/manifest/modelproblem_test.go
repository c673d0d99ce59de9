package manifest

import "testing"

// What the model or its backend does not support is an error.
func TestModelProblems(t *testing.T) {
	model := func(spec string) string {
		return node("{devices: {product: L4, count: 4, memory: 24Gi}}") + "\n---\n" + object("Model", "m", "spec: "+spec)
	}
	const file = "source: {gguf: ../../scenarios/models/files/llama-3.1-8b-q8_0.gguf}"
	tests := map[string]struct{ text, want string }{
		"context":                  {model("{source: {preset: llama-3.1-8b}, context: 131073}"), "9:49: spec.context: llama-3.1-8b takes at most 131,072 tokens, have 131,073"},
		"all the context":          {model("{source: {preset: llama-3.1-8b}, context: 131072}"), ""},
		"the memory is given":      {model("{source: {preset: llama-3.1-8b}, context: 131073, memory: {device: 20Gi}}"), ""},
		"heads":                    {model("{source: {preset: llama-3.1-8b}, parallelism: {tensor: 3}}"), "9:62: spec.parallelism.tensor: 3 devices (tp 3): the 32 attention heads of model llama-3.1-8b do not divide over 3 devices"},
		"heads, memory is given":   {model("{source: {preset: llama-3.1-8b}, memory: {total: 20Gi}, parallelism: {tensor: 3}}"), "9:85: spec.parallelism.tensor: 3 devices (tp 3): the 32 attention heads of model llama-3.1-8b do not divide over 3 devices"},
		"heads, per device":        {model("{source: {preset: llama-3.1-8b}, memory: {device: 20Gi}, parallelism: {tensor: 3}}"), "9:86: spec.parallelism.tensor: 3 devices (tp 3): the 32 attention heads of model llama-3.1-8b do not divide over 3 devices"},
		"stages, memory is given":  {model("{source: {preset: llama-3.1-8b}, memory: {total: 20Gi}, parallelism: {pipeline: 33}}"), "9:87: spec.parallelism.pipeline: 33 devices (tp 1, pp 33): the 32 layers of model llama-3.1-8b cannot be divided into 33 stages"},
		"memory of a divided file": {model("{" + file + ", memory: {total: 20Gi}, parallelism: {tensor: 3}}"), ""},
		"two slices":               {model("{memory: {device: 8Gi}, parallelism: {tensor: 2}, placement: {partition: 1g.10gb}}"), "9:80: spec.placement.partition: slices are not combined: a replica takes one, not 2"},
		"slice of a whole node":    {model("{memory: {device: 8Gi}, placement: {unit: Node, partition: 1g.10gb}}"), "9:66: spec.placement.partition: a replica with unit: Node takes whole nodes, and no slice; leave one out"},
		"ranks":                    {model("{memory: {device: 8Gi}, backend: custom, parallelism: {data: 2, expert: true}}"), "9:68: spec.parallelism.data: custom has no data-parallel ranks; for more copies of the model write replicas: 2\n9:79: spec.parallelism.expert: custom does not divide experts; leave it out"},
		"no experts":               {model("{source: {preset: llama-3.1-8b}, parallelism: {tensor: 2, data: 2, expert: true}}"), "9:82: spec.parallelism.expert: model llama-3.1-8b has no experts that could be divided; leave it out"},
		"devices of ranks":         {model("{memory: {device: 8Gi}, parallelism: {data: 2}, placement: {devicesPerReplica: 3}}"), "9:86: spec.placement.devicesPerReplica: 3 devices cannot be divided over 2 data-parallel ranks"},
		"layers on devices":        {model("{" + file + ", placement: {deviceLayers: 33}}"), ""},
		"too many layers":          {model("{" + file + ", placement: {deviceLayers: 34}}"), "9:103: spec.placement.deviceLayers: llama-3.1-8b-q8_0 has 33 layers with the output layer, have 34"},
		"layers of another file":   {model("{source: {preset: llama-3.1-8b}, placement: {deviceLayers: 3}}"), "9:66: spec.placement.deviceLayers: only llamacpp divides a model by layers, and only if it reads the layers from a GGUF file; leave it out"},
		"settings of llamacpp":     {model("{" + file + ", microBatch: 1024, flashAttention: false, fullWindowCache: true}"), ""},
		"settings of another":      {model("{source: {preset: llama-3.1-8b}, microBatch: 1024, flashAttention: true, fullWindowCache: true}"), "9:52: spec.microBatch: vllm does not have this setting, only llamacpp has; leave it out\n9:74: spec.flashAttention: vllm does not have this setting, only llamacpp has; leave it out\n9:97: spec.fullWindowCache: vllm does not have this setting, only llamacpp has; leave it out"},
		"a small cache":            {model("{" + file + ", kvCacheBits: 8, flashAttention: false}"), "9:109: spec.flashAttention: a cache of 8 bits needs flash attention; leave one out"},
		"a huge micro-batch":       {model("{" + file + ", microBatch: 100000}"), "9:89: spec.microBatch: want from 1 to 65536, have 100000"},
		"parallelism of layers":    {model("{" + file + ", parallelism: {tensor: 2, pipeline: 2}}"), "9:90: spec.parallelism: llamacpp divides such a file layer by layer; for a fixed number of devices write placement: {devicesPerReplica: 4}"},
		"the same file for vllm":   {model("{" + file + ", backend: vllm, parallelism: {tensor: 2}}"), ""},
		"weights that are unknown": {model("{source: {localPath: /nowhere/to/be/found}}"), "9:16: spec.source: /nowhere/to/be/found does not exist; if it is on the nodes only, say how much memory it needs under memory"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := problems(tt.text); got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}
