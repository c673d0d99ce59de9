package gguf

import (
	"fmt"

	parser "github.com/gpustack/gguf-parser-go"
)

// defaultPeriods is, for architectures that omit it in their files, after how many
// layers there is a layer without a window.
var defaultPeriods = map[string]int{
	"cohere2": 4, "exaone4": 4, "gemma2": 2, "gemma3": 6, "gemma3n": 5, "gpt-oss": 2, "llama4": 4, "olmo2": 4,
}

// defaultWindows is the window of architectures that may omit it in their files.
var defaultWindows = map[string]int{"gemma2": 4096, "llama4": 8192}

// windows returns how many tokens each layer looks back; nil: no layer has a window.
func (k *keys) windows(layers int) ([]int, []string) {
	window := most(k.perLayer("attention.sliding_window", layers, maxTokens))
	if window == 0 {
		window = defaultWindows[k.arch]
	}
	if window == 0 || k.arch == "phi3" { // phi3 files contain a window that llama.cpp does not use
		return nil, nil
	}
	const pattern = "attention.sliding_window_pattern"
	out := make([]int, layers)
	if v, ok := k.at(pattern); ok && v.kind == parser.GGUFMetadataValueTypeArray {
		for i, yes := range k.perLayer(pattern, layers, 1) {
			out[i] = yes * window
		}
		return out, []string{windowSentence(window)}
	}
	period := k.number(pattern, maxLayers)
	if period == 0 {
		period = defaultPeriods[k.arch]
	}
	if period < 2 {
		return nil, []string{fmt.Sprintf("The file names a window of %d tokens, but not for which layers: all layers are assumed to look at the whole context.", window)}
	}
	for i := range out {
		if i%period < period-1 {
			out[i] = window
		}
	}
	return out, []string{windowSentence(window)}
}

func windowSentence(window int) string {
	return fmt.Sprintf("Layers that look back %d tokens cache those and one micro-batch, as llama.cpp does by default.", window)
}
