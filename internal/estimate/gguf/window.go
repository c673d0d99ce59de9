package gguf

import (
	"fmt"

	parser "github.com/gpustack/gguf-parser-go"
)

// periods say after how many layers one looks at everything again, for
// architectures whose files do not say it themselves.
var periods = map[string]int{
	"cohere2": 4, "exaone4": 4, "gemma2": 2, "gemma3": 6, "gemma3n": 5, "gpt-oss": 2, "llama4": 4, "olmo2": 4,
}

// unsaid are windows that files of an architecture may leave out.
var unsaid = map[string]int{"gemma2": 4096, "llama4": 8192}

// windows are how many tokens each layer looks back; nil: all look at everything.
func (k *keys) windows(layers int) ([]int, []string) {
	window := most(k.perLayer("attention.sliding_window", layers, maxTokens))
	if window == 0 {
		window = unsaid[k.arch]
	}
	if window == 0 || k.arch == "phi3" { // phi3 files name a window that llama.cpp does not use
		return nil, nil
	}
	const pattern = "attention.sliding_window_pattern"
	out := make([]int, layers)
	if v, ok := k.at(pattern); ok && v.kind == parser.GGUFMetadataValueTypeArray {
		for i, yes := range k.perLayer(pattern, layers, 1) {
			out[i] = yes * window
		}
		return out, []string{windowed(window)}
	}
	period := k.number(pattern, maxLayers)
	if period == 0 {
		period = periods[k.arch]
	}
	if period < 2 {
		return nil, []string{fmt.Sprintf("The file names a window of %d tokens, but not for which layers: all are taken to look at everything.", window)}
	}
	for i := range out {
		if i%period < period-1 {
			out[i] = window
		}
	}
	return out, []string{windowed(window)}
}

func windowed(window int) string {
	return fmt.Sprintf("Layers that look back %d tokens cache those and one batch, as llama.cpp does unless told to cache all.", window)
}
