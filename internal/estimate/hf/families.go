package hf

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/internal/estimate"
)

// family is how the models of some types determine what their layers keep.
type family struct {
	// types are the values of model_type.
	types []string
	// fields are the fields about memory that are read, or may be ignored, for these models.
	fields []string
	// caches returns what the layers keep. Nil: every layer keeps keys and values, as layers
	// with windows do; see windowCaches.
	caches func(r *reader, a *estimate.Architecture) []estimate.Cache
	// prepare changes the configuration before it is read.
	prepare func(c config)
	// encoder is set for models that process a whole text at once, and stateOnly for models
	// without attention.
	encoder, stateOnly bool
	// windowed is set if every layer has the window of sliding_window, unless the
	// configuration says which layers have it.
	windowed bool
	// assumed are sentences about the estimate of such models.
	assumed []string
}

// families lists all types of model that have rules of their own. All other models have
// keys and values in every layer.
var families = []family{
	{types: []string{"mistral", "mixtral", "ministral", "phi3", "phi3_v", "phi4mm", "starcoder2", "phimoe"}, windowed: true},
	{types: []string{"gemma2", "gemma3", "gemma3_text"}},
	{types: []string{"gemma3n", "gemma3n_text"}, fields: []string{"num_kv_shared_layers"}, caches: sharedCaches},
	{types: []string{"gemma4", "gemma4_text"}, fields: []string{"num_kv_shared_layers", "global_head_dim", "num_global_key_value_heads"}, caches: gemma4Caches},
	{types: []string{"cohere2", "exaone4", "exaone4_5", "exaone4_5_text", "gpt_oss", "olmo3", "olmo2"}},
	{types: []string{"afmoe"}, fields: []string{"global_attn_every_n_layers"}},
	{types: []string{"llama4", "llama4_text"}, fields: []string{"attention_chunk_size", "no_rope_layers", "no_rope_layer_interval"}, caches: llama4Caches},
	{types: []string{"smollm3"}, fields: []string{"no_rope_layers"}},
	{types: []string{"mimo_v2_flash", "mimo_v2"}, fields: []string{
		"hybrid_layer_pattern", "attention_chunk_size", "swa_num_attention_heads", "swa_num_key_value_heads", "swa_head_dim", "swa_v_head_dim",
	}, caches: mimoCaches},
	{types: []string{"step3_text", "step3_vl", "step3p5", "step3p7"}, fields: []string{
		"attention_other_setting", "attention_other_setting.attention_type", "attention_other_setting.num_attention_heads",
		"attention_other_setting.num_attention_groups", "attention_other_setting.head_dim", "attention_other_setting.true_head_dim",
	}, caches: otherCaches},
	{types: []string{"phi3small"}, fields: []string{
		"blocksparse_block_size", "blocksparse_homo_head_pattern", "blocksparse_num_local_blocks", "blocksparse_triton_kernel_block_size",
		"blocksparse_vert_stride", "dense_attention_every_n_layers",
	}, assumed: []string{"Attention that is sparse in blocks keeps the whole context."}},
	{types: []string{"dbrx", "mpt"}, fields: []string{
		"attn_config", "attn_config.alibi", "attn_config.alibi_bias_max", "attn_config.attn_impl", "attn_config.attn_pdrop", "attn_config.attn_type",
		"attn_config.attn_uses_sequence_id", "attn_config.kv_n_heads", "attn_config.model_type", "attn_config.prefix_lm", "attn_config.qk_ln",
		"attn_config.qk_gn", "attn_config.rope", "attn_config.rope_theta", "attn_config.softmax_scale",
	}, prepare: config.liftAttention},
	{types: []string{"gpt_bigcode"}, fields: []string{"attention_type"}},
	{types: []string{"nemotron-nas"}, fields: []string{"block_configs"}, caches: blockCaches},
	{types: []string{"mllama", "mllama_text_model"}, fields: []string{"cross_attention_layers"}, caches: crossCaches},
	{types: []string{"hunyuan", "hunyuan_v1_dense", "hunyuan_v1_moe"}, fields: []string{"use_cla"}, caches: hunyuanCaches},
	{types: []string{"minicpm3"}, prepare: config.setValueSize, caches: plainLatentCaches},
	{types: []string{"pangu_ultra_moe"}, fields: []string{
		"attention_kv_lora_dim", "attention_q_lora_dim", "attention_qk_dim", "attention_qk_rope_dim", "attention_v_dim",
	}, prepare: config.liftLatent},
	{types: []string{"deepseek_v32", "glm_moe_dsa"}, fields: []string{
		"index_head_dim", "index_n_heads", "index_topk", "index_topk_freq", "index_topk_pattern", "index_skip_topk_offset",
		"index_share_for_mtp_iteration", "indexer_rope_interleave", "indexer_types",
	}, caches: indexedCaches},
	{types: []string{"deepseek_v4", "deepseek_ref"}, fields: []string{
		"index_head_dim", "index_n_heads", "index_topk", "compress_ratios", "compress_rope_theta", "compress_rates", "compress_rates.compressed_sparse_attention",
		"compress_rates.heavily_compressed_attention", "hc_sinkhorn_iters",
	}, caches: compressedCaches, assumed: []string{"The caches of several layers are packed into blocks of equal size; 40 % are added to their entries for that, and the states of tokens under way are included."}},
	{types: []string{"minimax_m3", "minimax_m3_vl"}, fields: sparseFields, caches: sparseIndexCaches},
	{types: []string{"minimax_m2"}, fields: []string{
		"attn_type_list", "layernorm_full_attention_beta", "layernorm_linear_attention_beta", "layernorm_full_attention_alpha", "layernorm_linear_attention_alpha",
	}, caches: lightningCaches},
	{types: []string{"minimax", "minimax_text_01", "minimax_m1"}, fields: []string{
		"attn_type_list", "layernorm_full_attention_alpha", "layernorm_full_attention_beta", "layernorm_linear_attention_alpha", "layernorm_linear_attention_beta",
		"full_attn_alpha_factor", "full_attn_beta_factor", "linear_attn_alpha_factor", "linear_attn_beta_factor",
	}, caches: lightningCaches},
	{types: []string{"qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"}, fields: []string{
		"full_attention_interval", "linear_conv_kernel_dim", "linear_key_head_dim", "linear_num_key_heads", "linear_num_value_heads",
		"linear_value_head_dim", "mamba_ssm_dtype",
	}, caches: deltaCaches},
	{types: []string{"nemotron_h"}, fields: []string{
		"hybrid_override_pattern", "layers_block_type", "mamba_head_dim", "mamba_num_heads", "mamba_num_groups", "ssm_state_size", "mamba_state_dim",
		"mamba_d_state", "conv_kernel", "mamba_d_conv", "mamba_ssm_cache_dtype", "mamba_hidden_act", "mamba_proj_bias", "use_conv_bias",
		"use_mamba_kernels", "chunk_size", "mamba_chunk_size", "moe_shared_expert_overlap",
	}, prepare: config.countBlocks, caches: nemotronCaches},
	{types: []string{"granitemoehybrid", "bamba"}, fields: slices.Concat(mamba2Fields, []string{"attn_layer_indices"}), caches: graniteCaches},
	{types: []string{"falcon_h1"}, fields: slices.Concat(mamba2Fields, []string{"attn_layer_indices", "mamba_d_ssm"}), caches: falconH1Caches},
	{types: []string{"zamba2"}, fields: slices.Concat(mamba2Fields, []string{
		"layers_block_type", "hybrid_layer_ids", "n_mamba_heads", "mamba_headdim", "mamba_ngroups", "attention_hidden_size", "use_shared_attention_adapter",
	}), prepare: config.setSharedHeads, caches: zamba2Caches},
	{types: []string{"jamba"}, fields: slices.Concat(mamba2Fields, []string{"attn_layer_offset", "attn_layer_period", "layers_block_type"}), caches: jambaCaches},
	{types: []string{"mamba", "falcon_mamba"}, fields: mambaFields, prepare: config.withoutAttention, caches: mambaCaches, stateOnly: true},
	{types: []string{"mamba2"}, fields: mambaFields, prepare: config.withoutAttention, caches: mamba2Caches, stateOnly: true},
	{types: []string{"rwkv", "rwkv5", "rwkv6", "rwkv7"}, fields: []string{"attention_hidden_size", "attn_mode"}, prepare: config.withoutAttention, caches: rwkvCaches, stateOnly: true},
	{types: []string{"kimi_linear", "kimi_k3"}, fields: []string{
		"linear_attn_config", "linear_attn_config.full_attn_layers", "linear_attn_config.kda_layers", "linear_attn_config.num_heads",
		"linear_attn_config.head_dim", "linear_attn_config.short_conv_kernel_size", "linear_attn_config.gate_lower_bound", "linear_attn_config.use_full_rank_gate",
		"mla_use_nope", "mla_use_output_gate", "attn_res_block_size", "activation_situ_linear_beta"}, caches: kimiCaches},
	{types: []string{"lfm2", "lfm2_moe"}, fields: []string{
		"conv_L_cache", "conv_bias", "conv_dim", "conv_dim_out", "conv_use_xavier_init", "full_attn_idxs",
	}, caches: shortConvolutionCaches},
	{types: []string{"bailing_moe_linear", "bailing_hybrid"}, fields: []string{"layer_group_size", "linear_silu", "linear_attn_norm_group_size", "linear_rope"}, caches: bailingCaches},
	{types: []string{"whisper", "bart", "mbart", "t5", "mt5", "umt5"}, fields: []string{"decoder_attention_heads", "encoder_attention_heads", "d_kv"},
		prepare: config.liftDecoder, caches: encodedCaches},
	{types: []string{"bert", "roberta", "xlm-roberta", "distilbert", "mpnet", "electra", "albert", "deberta", "deberta-v2", "nomic_bert", "new", "gte", "modernbert", "eurobert"},
		fields: []string{"global_attn_every_n_layers", "local_attention"}, encoder: true},
}

var sparseFields = []string{
	"sparse_attention_config", "sparse_attention_config.sparse_attention_freq", "sparse_attention_config.sparse_block_size",
	"sparse_attention_config.sparse_disable_index_value", "sparse_attention_config.sparse_index_dim", "sparse_attention_config.sparse_init_block",
	"sparse_attention_config.sparse_local_block", "sparse_attention_config.sparse_num_index_heads", "sparse_attention_config.sparse_score_type",
	"sparse_attention_config.sparse_topk_blocks", "sparse_attention_config.use_sparse_attention",
}

var mamba2Fields = []string{
	"mamba_chunk_size", "mamba_conv_bias", "mamba_d_conv", "mamba_d_head", "mamba_d_state", "mamba_expand", "mamba_n_groups", "mamba_n_heads",
	"mamba_proj_bias", "mamba_dt_rank", "mamba_norm_before_gate", "mamba_rms_norm", "mamba_use_mlp", "use_mamba_kernels", "use_conv_bias", "chunk_size",
	"ssm_in_multiplier", "ssm_multipliers", "ssm_out_multiplier", "mamba_ssm_dtype", "mamba_ssm_cache_dtype", "time_step_limit",
}

var mambaFields = []string{"conv_kernel", "state_size", "use_conv_bias", "chunk_size", "use_mambapy"}

// familyOf returns the family of models of this type.
func familyOf(kind string) *family {
	for i := range families {
		if slices.Contains(families[i].types, kind) {
			return &families[i]
		}
	}
	return &family{}
}

// liftAttention copies the fields of attn_config and ffn_config to the names that other
// models use.
func (c config) liftAttention() {
	for part, names := range map[string]map[string]string{
		"attn_config": {"kv_n_heads": "num_key_value_heads"},
		"ffn_config":  {"ffn_hidden_size": "intermediate_size", "moe_num_experts": "num_local_experts", "moe_top_k": "num_experts_per_tok"},
	} {
		var inner map[string]json.RawMessage
		if json.Unmarshal(c.text[part], &inner) != nil {
			continue
		}
		for from, to := range names {
			if !isNull(inner[from]) && isNull(c.text[to]) {
				c.text[to] = inner[from]
			}
		}
		if kind := string(inner["attn_type"]); strings.Contains(kind, "multiquery") {
			c.text["num_key_value_heads"] = json.RawMessage("1")
		}
	}
}

// liftDecoder copies the fields of the decoder to the names that other models use. Only the
// decoder keeps a cache.
func (c config) liftDecoder() {
	for to, names := range map[string][]string{
		"num_hidden_layers":       {"decoder_layers", "num_decoder_layers", "num_layers"},
		"num_attention_heads":     {"decoder_attention_heads", "num_heads"},
		"intermediate_size":       {"decoder_ffn_dim", "d_ff"},
		"head_dim":                {"d_kv"},
		"max_position_embeddings": {"max_target_positions", "max_position_embeddings", "n_positions"},
	} {
		if _, raw := c.field(names...); raw != nil {
			c.text[to] = raw
		}
	}
}

// withoutAttention sets attention heads for models that have none, so that the other sizes
// are read as usual: those of the state, or 64 if there are none.
func (c config) withoutAttention() {
	heads, _ := c.wholeNumber("num_heads")
	hidden, _ := c.wholeNumber("hidden_size", "d_model", "n_embd")
	heads = cmp.Or(heads, 64)
	for name, n := range map[string]int{"num_attention_heads": heads, "num_key_value_heads": heads, "head_dim": max(1, hidden/heads)} {
		if isNull(c.text[name]) {
			c.text[name] = json.RawMessage(strconv.Itoa(n))
		}
	}
}

// setSharedHeads sets the size of a head that configurations of Zamba2 may omit: attention has
// twice the width of the residual stream.
func (c config) setSharedHeads() {
	hidden, _ := c.wholeNumber("hidden_size")
	heads, _ := c.wholeNumber("num_attention_heads")
	if _, raw := c.field("head_dim", "attention_head_dim"); raw == nil && heads > 0 {
		c.text["head_dim"] = json.RawMessage(strconv.Itoa(2 * hidden / heads))
	}
}

// setValueSize sets the size of a value that configurations of MiniCPM3 omit.
func (c config) setValueSize() {
	hidden, _ := c.wholeNumber("hidden_size")
	heads, _ := c.wholeNumber("num_attention_heads")
	if _, raw := c.field("v_head_dim"); raw == nil && heads > 0 {
		c.text["v_head_dim"] = json.RawMessage(strconv.Itoa(hidden / heads))
	}
}

// liftLatent copies the sizes of latents to the names that other models use.
func (c config) liftLatent() {
	for from, to := range map[string]string{
		"attention_kv_lora_dim": "kv_lora_rank", "attention_qk_rope_dim": "qk_rope_head_dim", "attention_qk_dim": "qk_nope_head_dim", "attention_v_dim": "v_head_dim",
	} {
		if raw := c.text[from]; !isNull(raw) && isNull(c.text[to]) {
			c.text[to] = raw
		}
	}
}

// countBlocks sets the number of layers of a configuration that only lists them.
func (c config) countBlocks() {
	if _, raw := c.field("num_hidden_layers"); raw != nil {
		return
	}
	n := len(c.stringList("layers_block_type"))
	if _, raw := c.field("hybrid_override_pattern"); raw != nil {
		if pattern := c.stringList("hybrid_override_pattern"); len(pattern) == 1 {
			n = len(pattern[0])
		}
	}
	if n > 0 {
		c.text["num_hidden_layers"] = json.RawMessage(strconv.Itoa(n))
	}
}
