package hf

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-project/berth/internal/printable"
)

// memoryWords are parts of the names of fields that may determine what layers keep of a sequence.
// Such a field must be understood: in common, or for the family of the model.
var memoryWords = strings.Fields(`
	attn attention cache window chunk state ssm mamba conv recur index compress kv sliding swa sparse linear hybrid layer_type block_type pattern mla_ lora_rank retention delta memory global_head no_rope_layers layer_group layer_config cla_ use_cla sink_ _sink
`)

// aboutMemory reports whether the name of a field has one of memoryWords, in any case.
func aboutMemory(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(memoryWords, func(word string) bool { return strings.Contains(name, word) })
}

// read lists the fields that are about memory and that are read for every model.
var read = fieldSet(`
	num_attention_heads num_key_value_heads num_kv_heads n_head_kv kv_channels attention_head_dim
	multi_query_attention num_attention_groups cla_share_factor
	kv_lora_rank q_lora_rank o_lora_rank qk_nope_head_dim
	sliding_window sliding_window_size use_sliding_window max_window_layers layer_types
	sliding_window_pattern _sliding_window_pattern
`)

// harmless lists the fields that are about memory and that do not affect how much memory a model
// needs in addition to its weights.
var harmless = fieldSet(`
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
	parallel_attn parallel_attn_mlp_res enc_index seconds_per_chunk use_unified_vision_chunk
`)

// otherParts matches the names of objects that do not describe the layers of the language model:
// encoders and speakers, and how numbers are stored, initialised and positions are scaled.
var otherParts = regexp.MustCompile(`^(vision|visual|image|img|video|audio|speech|sound|talker|token2wav|code2wav|quantization_config$|compression_config$|rope_scaling$|rope_parameters$|auto_map$|id2label$|label2id$|task_specific_params$|generation_config$|init_config$)`)

func fieldSet(text string) map[string]bool {
	out := map[string]bool{}
	for name := range strings.FieldsSeq(text) {
		out[name] = true
	}
	return out
}

// maxDepth is how many objects within each other are searched.
const maxDepth = 8

// unknownFields returns the fields that may determine what layers keep and that are not
// understood for this family, sorted. Objects within the configuration are searched too; their
// fields are written as object.field.
func (c config) unknownFields(f *family) []string {
	var out []string
	for _, level := range c.levels {
		out = append(out, unknownIn(level, "", f, maxDepth)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// unknownIn returns the fields of an object that are not understood. inside is the name of the
// object with a dot; "": it is the configuration, or its part about the language model.
//
// A family reads objects that are about memory field by field, so it must list all their fields.
// An object that is more than depth levels deep is not understood.
func unknownIn(object map[string]json.RawMessage, inside string, f *family, depth int) []string {
	var out []string
	allMatter := aboutMemory(inside)
	for name, raw := range object {
		full := inside + name
		listed := slices.Contains(f.fields, full)
		known := listed || harmless[name] || inside == "" && read[name]
		if isOff(raw) || otherParts.MatchString(name) && isObject(raw) || inside == "" && slices.Contains(textParts, name) {
			continue
		}
		if (allMatter || aboutMemory(name)) && !known || isObject(raw) && depth == 0 {
			out = append(out, printable.Text(full))
			continue
		}
		var inner map[string]json.RawMessage
		if isObject(raw) && !(listed && inside != "") && json.Unmarshal(raw, &inner) == nil {
			out = append(out, unknownIn(inner, full+".", f, depth-1)...)
		}
	}
	return out
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// isOff reports whether a value switches something off.
func isOff(raw json.RawMessage) bool {
	switch strings.Join(strings.Fields(string(raw)), "") {
	case "", "null", "false", "0", "0.0", "-1", `""`, "[]", "{}":
		return true
	}
	return false
}

// headSizes is the most key heads, and the most numbers of a head, that any field names.
type headSizes struct{ heads, dim int }

var (
	keyHeadFields  = regexp.MustCompile(`(?i)key_value_heads|kv_heads|kv_n_heads|head_kv|attention_groups|query_group_num`)
	headSizeFields = regexp.MustCompile(`(?i)head_dim|head_size|kv_channels`)
)

// largestSizes returns the most key heads and the largest head of all fields of the language
// model.
func (c config) largestSizes() headSizes {
	var out headSizes
	var search func(object map[string]json.RawMessage, depth int)
	search = func(object map[string]json.RawMessage, depth int) {
		for name, raw := range object {
			var n float64
			var inner map[string]json.RawMessage
			switch {
			case otherParts.MatchString(name) || depth == maxDepth && slices.Contains(textParts, name):
			case isObject(raw):
				if depth > 0 && json.Unmarshal(raw, &inner) == nil {
					search(inner, depth-1)
				}
			case json.Unmarshal(raw, &n) != nil || n < 1 || n > 1<<20:
			case keyHeadFields.MatchString(name):
				out.heads = max(out.heads, int(n))
			case headSizeFields.MatchString(name):
				out.dim = max(out.dim, int(n))
			}
		}
	}
	for _, level := range c.levels {
		search(level, maxDepth)
	}
	return out
}
