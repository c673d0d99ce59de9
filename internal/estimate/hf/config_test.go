package hf

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/printable"
)

func architecture(text string) (*estimate.Architecture, []string, error) {
	c, err := decodeConfig([]byte(text))
	if err != nil {
		return nil, nil, err
	}
	c.setDefaults()
	return c.architecture()
}

// windows returns the caches of layers that look back this many tokens; 0: all tokens.
func windows(heads, dim int, tokens ...int) []estimate.Cache {
	a := estimate.Architecture{KVHeads: heads, HeadDim: dim}
	return a.WithWindows(tokens)
}

func TestArchitectureByFields(t *testing.T) {
	tests := map[string]struct {
		config string
		want   estimate.Architecture
	}{
		"gpt2": {
			`{"model_type":"gpt2","n_layer":12,"n_head":12,"n_embd":768,"vocab_size":50257,"n_positions":1024}`,
			estimate.Architecture{Name: "gpt2", Layers: 12, Hidden: 768, Intermediate: 3072, Width: 3072, Heads: 12, KVHeads: 12, HeadDim: 64, Vocab: 50257, MaxContext: 1024},
		},
		"one key head": {
			`{"model_type":"gpt_bigcode","multi_query":true,"n_layer":2,"n_head":16,"n_embd":2048,"n_inner":8192,"vocab_size":100}`,
			estimate.Architecture{Name: "gpt_bigcode", Layers: 2, Hidden: 2048, Intermediate: 8192, Width: 8192, Heads: 16, KVHeads: 1, HeadDim: 128, Vocab: 100},
		},
		"falcon that ignores its key heads": {
			`{"model_type":"falcon","new_decoder_architecture":false,"multi_query":false,"num_kv_heads":3,"num_hidden_layers":2,"num_attention_heads":4,"hidden_size":64,"vocab_size":100}`,
			estimate.Architecture{Name: "falcon", Layers: 2, Hidden: 64, Intermediate: 256, Width: 256, Heads: 4, KVHeads: 4, HeadDim: 16, Vocab: 100, MaxContext: 2048, Tied: true},
		},
		"every other layer looks back 4096": {
			`{"model_type":"gemma2","sliding_window":4096,"num_hidden_layers":4,"num_attention_heads":8,"num_key_value_heads":4,"head_dim":256,"hidden_size":2304,"intermediate_size":9216,"vocab_size":256000,"max_position_embeddings":8192}`,
			estimate.Architecture{Name: "gemma2", Layers: 4, Hidden: 2304, Intermediate: 9216, Width: 9216, Heads: 8, KVHeads: 4, HeadDim: 256, Caches: windows(4, 256, 4096, 0, 4096, 0), Vocab: 256000, MaxContext: 8192, Tied: true},
		},
		"all layers look back": {
			`{"model_type":"mistral","sliding_window":4096,"num_hidden_layers":2,"num_attention_heads":4,"hidden_size":64,"intermediate_size":128,"vocab_size":100,"max_position_embeddings":32768}`,
			estimate.Architecture{Name: "mistral", Layers: 2, Hidden: 64, Intermediate: 128, Width: 128, Heads: 4, KVHeads: 4, HeadDim: 16, Caches: windows(4, 16, 4096, 4096), Vocab: 100, MaxContext: 32768},
		},
		"the later layers look back": {
			`{"use_sliding_window":true,"max_window_layers":1,"sliding_window":4096,"num_hidden_layers":3,"num_attention_heads":4,"hidden_size":64,"intermediate_size":128,"vocab_size":100}`,
			estimate.Architecture{Layers: 3, Hidden: 64, Intermediate: 128, Width: 128, Heads: 4, KVHeads: 4, HeadDim: 16, Caches: windows(4, 16, 0, 4096, 4096), Vocab: 100},
		},
		"a window that is off": {
			`{"use_sliding_window":false,"sliding_window":4096,"num_hidden_layers":3,"num_attention_heads":4,"hidden_size":64,"intermediate_size":128,"vocab_size":100}`,
			estimate.Architecture{Layers: 3, Hidden: 64, Intermediate: 128, Width: 128, Heads: 4, KVHeads: 4, HeadDim: 16, Vocab: 100},
		},
		"shared and routed experts": {
			`{"num_experts":60,"num_experts_per_tok":4,"moe_intermediate_size":1408,"shared_expert_intermediate_size":5632,"intermediate_size":5632,"num_hidden_layers":2,"num_attention_heads":16,"hidden_size":2048,"vocab_size":100}`,
			estimate.Architecture{Layers: 2, Hidden: 2048, Intermediate: 4*1408 + 5632, Width: 1408, Heads: 16, KVHeads: 16, HeadDim: 128, Vocab: 100, Experts: 60, Active: 4},
		},
		"text two levels down": {
			`{"architectures":["Omni"],"thinker_config":{"text_config":{"num_hidden_layers":2,"num_attention_heads":4,"hidden_size":64,"intermediate_size":128,"vocab_size":100}}}`,
			estimate.Architecture{Name: "Omni", Layers: 2, Hidden: 64, Intermediate: 128, Width: 128, Heads: 4, KVHeads: 4, HeadDim: 16, Vocab: 100},
		},
	}
	for name, test := range tests {
		got, _, err := architecture(test.config)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff(&test.want, got); d != "" {
			t.Errorf("%s: (-want +got)\n%s", name, d)
		}
	}
}

func TestInvalidConfigurations(t *testing.T) {
	const rest = `"num_hidden_layers":2,"num_attention_heads":4,"hidden_size":64,"vocab_size":100}`
	tests := map[string]struct {
		config, want string
		unknown      bool // the weights are still counted
	}{
		"not JSON":                    {`{`, "JSON", false},
		"null":                        {`null`, "null", false},
		"a list":                      {`[]`, "it is a list; it must be an object", false},
		"layers as text":              {`{"num_hidden_layers":"two"}`, `num_hidden_layers is "two"`, false},
		"negative":                    {`{"num_hidden_layers":-1}`, "whole number", false},
		"half a layer":                {`{"num_hidden_layers":1.5}`, "whole number", false},
		"too many layers":             {`{"num_hidden_layers":100000,"hidden_size":1,"num_attention_heads":1,"vocab_size":1}`, "100000 layers", false},
		"heads do not divide":         {`{"num_hidden_layers":2,"num_attention_heads":3,"hidden_size":64,"vocab_size":100}`, "64 does not divide by 3", false},
		"more key heads":              {`{"num_key_value_heads":8,` + rest, "8 key heads", false},
		"too few layer types":         {`{"layer_types":["full_attention"],` + rest, "names 1 layers, but there are 2", false},
		"layer types are not a list":  {`{"layer_types":7,` + rest, "layer_types is 7: it must be a list of texts", false},
		"a window without a size":     {`{"layer_types":["full_attention","sliding_attention"],` + rest, "layers of type sliding_attention, but the size of their window", false},
		"flag as number":              {`{"tie_word_embeddings":1,` + rest, "true or false", false},
		"part is not an object":       {`{"text_config":3}`, "text_config", false},
		"no fields":                   {`{}`, "num_hidden_layers", true},
		"unknown layer type":          {`{"layer_types":["linear_attention","full_attention"],` + rest, `"linear_attention"`, true},
		"a state":                     {`{"mamba_d_state":16,` + rest, "not understood for models of type \"\": mamba_d_state", true},
		"a kind of layer":             {`{"model_type":"nemotron_h","hybrid_override_pattern":"MX","mamba_num_heads":8,"mamba_head_dim":8,"n_groups":1,"ssm_state_size":8,"conv_kernel":4,` + rest, `Layers of type "" are not known`, true},
		"no layer attends":            {`{"model_type":"jamba","attn_layer_period":8,"attn_layer_offset":4,"mamba_d_conv":4,"mamba_d_state":16,` + rest, "no layer has attention", true},
		"an offset beyond the period": {`{"model_type":"jamba","attn_layer_period":2,"attn_layer_offset":2,"mamba_d_conv":4,"mamba_d_state":16,` + rest, "attn_layer_offset 2", false},
		"all layers share":            {`{"model_type":"gemma3n_text","num_kv_shared_layers":2,` + rest, "num_kv_shared_layers is 2", false},
		"a layer that is not there":   {`{"model_type":"lfm2","conv_L_cache":3,"full_attn_idxs":[7],` + rest, "full_attn_idxs names layer 7", false},
		"another compression":         {`{"model_type":"deepseek_v4","head_dim":512,"index_head_dim":128,"sliding_window":128,"compress_ratios":[4,16],` + rest, "compressed by 16", true},
		"a window for some layers":    {`{"sliding_window":128,` + rest, "does not say which layers", true},
		"unknown compression":         {`{"model_type":"llama","compress_ratios":[4,4],"kv_shared":true,` + rest, "compress_ratios, kv_shared", true},
	}
	for name, test := range tests {
		a, assumed, err := architecture(test.config)
		var unknown errUnknown
		said, bound := strings.Join(assumed, " "), a != nil && a.Bound != nil
		if err != nil {
			said = err.Error()
		}
		if err == nil && !bound || !strings.Contains(said, test.want) || (bound || errors.As(err, &unknown)) != test.unknown {
			t.Errorf("%s: %q, want %q in it", name, said, test.want)
		}
	}
}

func TestPackedWeightsCountEveryParameter(t *testing.T) {
	tests := map[string]struct {
		tensor tensor
		width  int
		want   int64
	}{
		"gptq":       {tensor{name: "model.layers.0.mlp.up_proj.qweight", dtype: "I32", count: 10}, 4, 80},
		"gptq zeros": {tensor{name: "model.layers.0.mlp.up_proj.qzeros", dtype: "I32", count: 10}, 4, 0},
		"gptq order": {tensor{name: "model.layers.0.mlp.up_proj.g_idx", dtype: "I32", count: 10}, 4, 0},
		"nf4":        {tensor{name: "model.layers.0.mlp.up_proj.weight", dtype: "U8", count: 10}, 4, 20},
		"nf4 state":  {tensor{name: "model.layers.0.mlp.up_proj.weight.quant_state.bitsandbytes__nf4", dtype: "U8", count: 10}, 4, 0},
		"plain":      {tensor{name: "model.layers.0.mlp.up_proj.weight", dtype: "BF16", count: 10}, 0, 10},
	}
	for name, test := range tests {
		if got := test.tensor.parameters(test.width); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// Text of a configuration is shown only after control characters are replaced.
func TestTextIsPrintable(t *testing.T) {
	const sizes = `"num_hidden_layers":2,"num_attention_heads":4,"hidden_size":64,"vocab_size":100`
	tests := map[string]struct{ config, want string }{
		"an escape sequence":   {`{"architectures":["\u001b[31mLlama"],` + sizes + `}`, "�[31mLlama"},
		"another line":         {`{"architectures":["Llama\r\nFAKE"],` + sizes + `}`, "Llama��FAKE"},
		"an override":          {`{"model_type":"a` + "\u202e" + `b",` + sizes + `}`, "a�b"},
		"C1":                   {`{"model_type":"a` + "\u009b" + `2J",` + sizes + `}`, "a�2J"},
		"invalid UTF-8":        {`{"model_type":"a` + "\x9b" + `2J",` + sizes + `}`, "a�2J"},
		"the quantisation":     {`{"quantization_config":{"quant_method":"\u001b[2Jawq"},` + sizes + `}`, "�[2jawq"},
		"an invalid value":     {`{"num_hidden_layers":"a` + "\u202e" + `b"}`, `num_hidden_layers is "a�b": it must be a whole number from 0 to 1073741824`},
		"a long value":         {`{"num_hidden_layers":"` + strings.Repeat("é", 30) + `"}`, `num_hidden_layers is "` + strings.Repeat("é", 19) + `�…: it must be a whole number from 0 to 1073741824`},
		"a value of two lines": {"{\"num_hidden_layers\":[1,\n  2]}", "num_hidden_layers is [1, 2]: it must be a whole number from 0 to 1073741824"},
	}
	for name, test := range tests {
		c, err := decodeConfig([]byte(test.config))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got string
		a, _, err := c.architecture()
		how, _ := c.quantised()
		switch {
		case err != nil:
			got = err.Error()
		case how.method != "":
			got = how.method
		default:
			got = a.Name
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"model_type":"gemma3","text_config":{"model_type":"gemma3_text","num_hidden_layers":34,"hidden_size":2560,"sliding_window":1024}}`))
	f.Add([]byte(`{"num_experts":60,"num_experts_per_tok":4,"moe_intermediate_size":1408,"num_hidden_layers":2,"num_attention_heads":16,"hidden_size":2048,"vocab_size":100,"max_position_embeddings":8}`))
	f.Add([]byte(`{"kv_lora_rank":512,"qk_rope_head_dim":64,"qk_nope_head_dim":128,"v_head_dim":128,"num_hidden_layers":2,"num_attention_heads":16,"hidden_size":2048,"vocab_size":100,"layer_types":["full_attention","sliding_attention"],"sliding_window":5}`))
	f.Add([]byte(`{"architectures":["\u001b[31m"],"model_type":"\u202e","quantization_config":{"quant_method":"\u009b"},"hidden_size":"\u2066"}`))
	f.Add([]byte(`{"weight_map":{"a":"b.safetensors"},"metadata":{"total_size":1e9}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if ix, err := decodeIndex(data); err == nil && len(ix.WeightMap) == 0 {
			t.Fatal("an index without files")
		}
		c, err := decodeConfig(data)
		if err != nil {
			return
		}
		c.setDefaults()
		shown := []string{c.name()}
		how, err := c.quantised()
		if shown = append(shown, how.method); err != nil {
			shown = append(shown, err.Error())
		}
		a, assumed, err := c.architecture()
		if shown = append(shown, assumed...); err != nil {
			shown = append(shown, err.Error())
		}
		for _, s := range shown {
			if !printable.All(s) {
				t.Fatalf("%q is not printable", s)
			}
		}
		if err != nil {
			return
		}
		w := divideTotal(1<<40, how, a)
		m := &estimate.Model{Name: "fuzzed", Weights: w, Architecture: a}
		b, err := m.PerDevice(estimate.Serving{Context: 1000})
		if err != nil {
			return
		}
		for _, part := range []cluster.Bytes{b.Weights, b.KVCache, b.Activations} {
			if part <= 0 {
				text, _ := json.Marshal(a)
				t.Fatalf("%+v of %s", b, text)
			}
		}
	})
}
