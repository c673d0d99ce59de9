package hf

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/internal/estimate"
)

const plainSizes = `"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"hidden_size":64,"intermediate_size":128,"vocab_size":100,"max_position_embeddings":4096`

// A field that may determine the cache must be understood, wherever it is and however it is
// written. Otherwise the architecture is an upper bound, and the field is named.
func TestUnknownFieldsGiveABound(t *testing.T) {
	tests := map[string]struct{ config, named string }{
		"another case":                    {`{"SlidingWindow":128,` + plainSizes + `}`, `type "": SlidingWindow.`},
		"an object":                       {`{"compress_config":{"ratio":4},` + plainSizes + `}`, "compress_config."},
		"a field of an object":            {`{"engine_config":{"mode":"x","kv_ratio":4},` + plainSizes + `}`, "engine_config.kv_ratio."},
		"a field of an inner object":      {`{"engine_config":{"inner":{"cache_ratio":4}},` + plainSizes + `}`, "engine_config.inner.cache_ratio."},
		"too many objects":                {`{"a":` + strings.Repeat(`{"b":`, 9000) + `1` + strings.Repeat("}", 9000) + `,` + plainSizes + `}`, "a.b.b.b.b.b.b.b.b."},
		"a field that is read elsewhere":  {`{"engine_config":{"sliding_window":4},` + plainSizes + `}`, "engine_config.sliding_window."},
		"beside the language model":       {`{"text_config":{` + plainSizes + `},"vision_config":{"window_size":8},"index_dim":128}`, "index_dim."},
		"between the parts":               {`{"thinker_config":{"attn_window":7,"text_config":{` + plainSizes + `}}}`, "attn_window."},
		"two fields":                      {`{"text_config":{"state_dim":7,` + plainSizes + `},"chunk_len":7}`, "chunk_len, state_dim."},
		"dbrx":                            {`{"model_type":"dbrx","attn_config":{"kv_n_heads":2,"sliding_window_size":512},` + plainSizes + `}`, "attn_config.sliding_window_size."},
		"mpt":                             {`{"model_type":"mpt","attn_config":{"clip_qkv":8,"group_size":7},` + plainSizes + `}`, "attn_config.group_size."},
		"step3p5":                         {`{"model_type":"step3p5","attention_other_setting":{"attention_type":"sliding_attention","num_attention_groups":2,"head_dim":16,"stride":2},` + plainSizes + `}`, "attention_other_setting.stride."},
		"nemotron-nas":                    {`{"model_type":"nemotron-nas","block_configs":[{"attention":{"n_heads_in_group":2}},{"attention":{"n_heads_in_group":2,"mamba":{"size":1}}}],` + plainSizes + `}`, "block_configs.attention.mamba is not understood."},
		"deepseek_v4 without the layers":  {`{"model_type":"deepseek_v4","compress_rates":{"compressed_sparse_attention":4},` + plainSizes + `}`, "neither compress_ratios nor layer_types."},
		"deepseek_v4 without a ratio":     {`{"model_type":"deepseek_v4","compress_rates":{"compressed_sparse_attention":4},"layer_types":["sliding_attention","b"],` + plainSizes + `}`, `Layers of type "b" are not known: compress_rates does not have their ratio.`},
		"a size that is 0":                {`{"model_type":"qwen3_next","linear_num_key_heads":2,"linear_key_head_dim":8,"linear_num_value_heads":2,"linear_value_head_dim":8,"linear_conv_kernel_dim":0,` + plainSizes + `}`, "linear_conv_kernel_dim is 0; it must be at least 1."},
		"a size that is not a number":     {`{"model_type":"qwen3_next","linear_num_key_heads":2,"linear_key_head_dim":8,"linear_num_value_heads":2,"linear_value_head_dim":8,"linear_conv_kernel_dim":NaN,` + plainSizes + `}`, "linear_conv_kernel_dim is null or not a number; it must be at least 1."},
		"a size that is missing":          {`{"model_type":"qwen3_next","linear_num_key_heads":2,"linear_key_head_dim":8,"linear_num_value_heads":2,"linear_value_head_dim":8,` + plainSizes + `}`, "The configuration does not have linear_conv_kernel_dim."},
		"kimi_linear without its objects": {`{"model_type":"kimi_linear",` + plainSizes + `}`, "The configuration does not have linear_attn_config."},
	}
	for name, test := range tests {
		a, assumed, err := architecture(test.config)
		if err != nil || a.Bound == nil {
			t.Errorf("%s: %+v, %q, %v", name, a, assumed, err)
			continue
		}
		last := assumed[len(assumed)-1]
		if !strings.Contains(last, test.named) || !strings.Contains(last, "So the need is an upper bound: each of the 2 layers") {
			t.Errorf("%s: %s, want %q", name, last, test.named)
		}
		if a.MaxContext != 4096 {
			t.Errorf("%s: the longest context is %d", name, a.MaxContext)
		}
	}
}

// These fields do not make a model unknown.
func TestUnderstoodFields(t *testing.T) {
	for name, config := range map[string]string{
		"an encoder":               `{"text_config":{` + plainSizes + `},"vision_config":{"window_size":8},"audio_config":{"chunk":{"x":1}},"image_token_index":5}`,
		"something switched off":   `{"attn_window":-1,"cache_ratio":0,"state_config":{},"SlidingWindow":null,` + plainSizes + `}`,
		"scaled positions":         `{"rope_scaling":{"type":"llama3","attention_factor":1},` + plainSizes + `}`,
		"weights that are packed":  `{"quantization_config":{"quant_method":"fp8","kv_cache_scheme":{"num_bits":8}},` + plainSizes + `}`,
		"heads of windowed layers": `{"model_type":"step3p5","layer_types":["full_attention","sliding_attention"],"sliding_window":512,"attention_other_setting":{"attention_type":"sliding_attention","num_attention_heads":8,"num_attention_groups":4,"head_dim":32},` + plainSizes + `}`,
	} {
		a, assumed, err := architecture(config)
		if err != nil || a.Bound != nil {
			t.Errorf("%s: %+v, %q, %v", name, a, assumed, err)
		}
		if name == "heads of windowed layers" && (a.Caches[1].Heads != 4 || a.Caches[1].Key != 32 || a.Caches[0].Heads != 2) {
			t.Errorf("%s: %+v", name, a.Caches)
		}
	}
}

// In an upper bound the heads are the most and the largest that any field names, and the cache is
// not compressed. With the field that is not understood, the need is never less than without it.
func TestBoundOfHeads(t *testing.T) {
	tests := map[string]struct {
		config     string
		heads      int
		key, value int
	}{
		"plain":        {plainSizes, 2, 16, 16},
		"other layers": {`"swa_num_key_value_heads":3,"global_head_dim":32,"head_dim":16,"swa_v_head_dim":24,` + plainSizes, 3, 32, 32},
		"nested":       {`"other_setting":{"num_attention_groups":4,"head_dim":20},` + plainSizes, 4, 20, 20},
		"not encoders": {`"vision_config":{"num_key_value_heads":99,"head_dim":99},` + plainSizes, 2, 16, 16},
		"latents":      {`"kv_lora_rank":512,"qk_rope_head_dim":64,"qk_nope_head_dim":128,"v_head_dim":128,` + plainSizes, 4, 192, 128},
	}
	for name, test := range tests {
		a, _, err := architecture(`{"unknown_cache":1,` + test.config + `}`)
		if err != nil || a.Bound == nil {
			t.Errorf("%s: %+v, %v", name, a, err)
			continue
		}
		if b := a.Bound; b.Heads != test.heads || b.Key != test.key || b.Value != test.value {
			t.Errorf("%s: %d heads of %d and %d numbers, want %+v", name, b.Heads, b.Key, b.Value, test)
		}
		m := &estimate.Model{Name: name, Architecture: a, Weights: estimate.Weights{Layers: 1 << 20}}
		want := fmt.Sprint(2 * test.heads * (test.key + test.value) * 2)
		if got, err := m.KVPerToken(estimate.Serving{}); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: a token takes %d, %v, want %s", name, got, err, want)
		}
	}
}

// If sizes are not in the configuration, only the weights are known.
func TestNoBoundWithoutSizes(t *testing.T) {
	for config, want := range map[string]string{
		`{"unknown_cache":1}`: "The configuration does not have num_hidden_layers. So only the size of the weights is known.",
		`{"num_hidden_layers":2,"hidden_size":8,"num_attention_heads":0,"vocab_size":100}`: "num_attention_heads is 0; it must be at least 1. So only the size of the weights is known.",
	} {
		_, _, err := architecture(config)
		unknown, ok := err.(errUnknown)
		if !ok || unknown.onlyWeights() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A pattern or a number that the configuration does not have is said to be assumed.
func TestDefaultsAreSaid(t *testing.T) {
	const moe = `"num_experts":8,"moe_intermediate_size":16,`
	tests := map[string]struct{ config, said string }{
		"mimo":      {`"model_type":"mimo_v2","sliding_window":128,`, "does not have hybrid_layer_pattern; all layers except the first and every 6th are assumed to have a window"},
		"exaone4":   {`"model_type":"exaone4","sliding_window":128,`, "all except every 4th layer are assumed to have it, as in other models of type exaone4."},
		"cohere2":   {`"model_type":"cohere2","sliding_window":128,`, "every 4th layer"},
		"olmo3":     {`"model_type":"olmo3","sliding_window":128,`, "every 4th layer"},
		"gpt_oss":   {`"model_type":"gpt_oss","sliding_window":128,`, "every 2nd layer"},
		"gemma3n":   {`"model_type":"gemma3n_text","sliding_window":128,`, "every 5th layer"},
		"experts":   {moe, "does not say how many experts process a token; all 8 are assumed"},
		"llama4":    {`"model_type":"llama4_text","attention_chunk_size":8,`, "does not have no_rope_layer_interval; 4 is assumed."},
		"mamba":     {`"model_type":"falcon_h1","mamba_d_state":8,"mamba_d_conv":4,"mamba_n_groups":1,`, "does not have mamba_expand; 2 is assumed."},
		"an MLP":    {`"model_type":"gpt2",`, ""},
		"all given": {`"model_type":"gpt_oss","sliding_window":128,"layer_types":["sliding_attention","full_attention"],"num_experts_per_tok":2,"head_dim":16,` + moe, ""},
	}
	for name, test := range tests {
		_, assumed, err := architecture("{" + test.config + plainSizes + "}")
		said := strings.Join(assumed, " ")
		if err != nil || !strings.Contains(said, test.said) || test.said == "" && said != "" {
			t.Errorf("%s: %q, %v, want %q", name, said, err, test.said)
		}
	}
}

// The layers of DeepSeek-V4 are described by a ratio for each of them, or by their kinds and the
// ratio of each kind.
func TestCompressRates(t *testing.T) {
	const rest = `{"model_type":"deepseek_v4","sliding_window":128,"index_head_dim":128,"head_dim":512,"num_hidden_layers":3,"num_attention_heads":4,"hidden_size":64,"intermediate_size":128,"vocab_size":100,`
	byLayer, _, err := architecture(rest + `"compress_ratios":[0,4,128]}`)
	if err != nil || byLayer.Bound != nil {
		t.Fatalf("%+v, %v", byLayer, err)
	}
	byKind, _, err := architecture(rest + `"layer_types":["sliding_attention","compressed_sparse_attention","heavily_compressed_attention"],"compress_rates":{"compressed_sparse_attention":4,"heavily_compressed_attention":128}}`)
	if diff := cmp.Diff(byLayer, byKind); err != nil || diff != "" {
		t.Errorf("%v (-by layer +by kind)\n%s", err, diff)
	}
}

// Errors name the file and the field, what it has and what it must have, in words.
func TestErrorsNameFileAndField(t *testing.T) {
	const sizes = "{" + plainSizes + ","
	tests := map[string]struct{ config, quantisation, want string }{
		"a list":            {`[1]`, "", "config.json: it is a list; it must be an object"},
		"text part":         {`{"text_config":"x"}`, "", `config.json: text_config is "x"; it must be an object`},
		"bits":              {sizes + `"quantization_config":{"quant_method":"gptq","bits":"4"}}`, "", "config.json: quantization_config.bits is a text; it must be a number"},
		"group":             {sizes + `"quantization_config":{"quant_method":"gptq","group_size":1.5}}`, "", "config.json: quantization_config.group_size is 1.5; it must be a whole number"},
		"method":            {sizes + `"quantization_config":"fp8"}`, "", `config.json: quantization_config is "fp8"; it must be an object`},
		"a file of its own": {sizes + `"x":1}`, `{"quantization":5}`, "hf_quant_config.json: quantization is 5; it must be an object"},
		"not an object":     {sizes + `"x":1}`, `[]`, "hf_quant_config.json: it is a list; it must be an object"},
		"no method":         {sizes + `"x":1}`, `{"quantization":{"x":1}}`, "hf_quant_config.json: quantization does not have quant_method"},
		"rope":              {sizes + `"rope_scaling":"x"}`, "", `config.json: rope_scaling is "x"; it must be an object`},
		"factor":            {sizes + `"rope_scaling":{"factor":"x"}}`, "", "config.json: rope_scaling.factor is a text; it must be a number"},
		"layers":            {sizes + `"layer_types":[1,2]}`, "", "config.json: layer_types is [1,2]: it must be a list of texts"},
		"sparse":            {sizes + `"model_type":"minimax_m3","sparse_attention_config":{"sparse_attention_freq":"x"}}`, "", "config.json: sparse_attention_config.sparse_attention_freq is a text; it must be a list"},
		"linear":            {sizes + `"model_type":"kimi_linear","linear_attn_config":{"num_heads":true}}`, "", "config.json: linear_attn_config.num_heads is true or false; it must be a whole number"},
		"blocks":            {sizes + `"model_type":"nemotron-nas","block_configs":7}`, "", "config.json: block_configs is 7; it must be a list"},
	}
	for name, test := range tests {
		dir := t.TempDir()
		write := func(file, text string) {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("config.json", test.config)
		if test.quantisation != "" {
			write("hf_quant_config.json", test.quantisation)
		}
		write("model.safetensors.index.json", `{"metadata":{"total_size":1000},"weight_map":{"w":"model-00001-of-00001.safetensors"}}`)
		_, err := Read(dir)
		if want := dir + string(filepath.Separator) + test.want; err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}
