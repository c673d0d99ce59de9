package hf

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-project/berth/internal/printable"
)

// aboutMemory matches the names of fields that may determine what layers keep of a
// sequence. Such a field must be understood: in common, or for the family of the model.
var aboutMemory = regexp.MustCompile(`(?i)attn|attention|cache|window|chunk|state|ssm|mamba|conv|recur|index|compress|kv|sliding|swa|sparse|linear|hybrid|layer_type|block_type|pattern|mla_|lora_rank|retention|rwkv|wkv|delta|memory|kv_shared|global_head|no_rope_layers|layer_group|cla_|use_cla|sink_|_sink`)

// understood lists the fields that match aboutMemory and that are read for every model, or
// that do not affect how much memory a model needs in addition to its weights.
var understood = fieldSet(`
	num_attention_heads num_key_value_heads num_kv_heads n_head_kv kv_channels attention_head_dim
	multi_query_attention num_attention_groups cla_share_factor
	kv_lora_rank q_lora_rank o_lora_rank qk_nope_head_dim
	sliding_window sliding_window_size use_sliding_window max_window_layers layer_types
	sliding_window_pattern _sliding_window_pattern

	attention_bias attention_out_bias attention_output_bias add_qkv_bias qkv_bias qkv_proj_bias use_qkv_bias
	attention_dropout attention_dropout_prob attention_probs_dropout_prob attn_pdrop attn_dropout_prob
	attention_multiplier attention_in_multiplier attention_out_multiplier mup_attn_multiplier
	attention_softmax_in_fp32 scale_attention_softmax_in_fp32 enable_attention_fp32_softmax
	reorder_and_upcast_attn scale_attn_weights scale_attn_by_inverse_layer_idx
	attention_value_scale attn_scale attn_temperature_tuning attention_logit_cap attn_logit_softcapping
	attention_logits_soft_cap query_pre_attn_scalar use_logn_attn use_flash_attn use_flash_attention flash_attn
	clip_qkv attention_k_eq_v attention_output_gate attn_output_gate attn_sink attn_rotary_emb
	add_swa_attention_sink_bias add_full_attention_sink_bias enable_gated_attention
	_attn_implementation _attn_implementation_autoset _attn_implementation_internal attn_implementation
	full_attn_mod fuse_attn_ffn moe_num_attn_experts output_attentions add_cross_attention
	cross_attention_hidden_size use_bidirectional_attention deterministic_flash_attn
	relative_attention_num_buckets relative_attention_max_distance unk_attention_mask
	use_cache cache_implementation pre_allocate_kv_cache cachekv_quant kv_cache_dtype
	chunk_size_feed_forward output_hidden_states
	image_token_index audio_token_index video_token_index boi_token_index eoi_token_index eoa_token_index
	ignore_index ignored_index moe_layer_start_index moe_layer_end_index
	for_llm_compressor compression_ratio compression_config
	decoder_sparse_step mlp_layer_types activation_sparsity_pattern router_sparse
	add_bias_linear fuse_linear swa_rope_theta rope_local_base_freq
	mtp_layer_types mtp_hybrid_override_pattern mtp_layers_block_type
	parallel_attn parallel_attn_mlp_res enc_index
`)

func fieldSet(text string) map[string]bool {
	out := map[string]bool{}
	for name := range strings.FieldsSeq(text) {
		out[name] = true
	}
	return out
}

// unknownFields returns the fields of the language model that may determine what layers keep
// and that are not understood for this family, sorted. A field that is null, false, 0 or
// empty is ignored, because it switches something off.
func (c config) unknownFields(f *family) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(c.text)) {
		if !aboutMemory.MatchString(name) || understood[name] || slices.Contains(f.fields, name) {
			continue
		}
		switch strings.Join(strings.Fields(string(c.text[name])), "") {
		case "", "null", "false", "0", "0.0", `""`, "[]", "{}":
			continue
		}
		out = append(out, printable.Text(name))
	}
	return out
}
