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
