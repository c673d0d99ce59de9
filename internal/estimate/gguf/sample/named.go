package sample

import (
	"fmt"
	"maps"
	"slices"
)

var files = map[string]func() File{
	"deepseek-v2-lite-q8_0": DeepSeekV2Lite,
	"deepseek-v3-q4_k_m":    DeepSeekV3,
	"gemma-3-4b-q4_0":       Gemma4B,
	"gpt-oss-20b-mxfp4":     GPTOSS20B,
	"lfm2-1.2b-f16":         LFM2,
	"llama-3.1-8b-q8_0":     Llama8B,
	"llama-3.2-1b-f16":      Llama1B,
	"llama-3.3-70b-q4_k_m":  Llama70B,
	"mamba2-2.7b-f16":       Mamba2,
	"qwen2.5-7b-q8_0":       Qwen7B,
	"qwen3-30b-a3b-q4_0":    Qwen30B,
}

// Names lists the names that Named accepts.
var Names = slices.Sorted(maps.Keys(files))

// Named returns the file of a published model.
func Named(name string) (File, error) {
	if file, ok := files[name]; ok {
		return file(), nil
	}
	return File{}, fmt.Errorf("no model named %q: there are %q", name, Names)
}
