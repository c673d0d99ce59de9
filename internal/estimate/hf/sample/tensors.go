package sample

import (
	"encoding/json"
	"fmt"
)

// shape is the fields of config.json that determine the tensors.
type shape struct {
	Kind       string `json:"model_type"`
	Layers     int    `json:"num_hidden_layers"`
	Hidden     int64  `json:"hidden_size"`
	MLP        int64  `json:"intermediate_size"`
	Heads      int64  `json:"num_attention_heads"`
	KV         int64  `json:"num_key_value_heads"`
	FalconKV   int64  `json:"num_kv_heads"`
	HeadDim    int64  `json:"head_dim"`
	Vocab      int64  `json:"vocab_size"`
	Tied       bool   `json:"tie_word_embeddings"`
	Experts    int64  `json:"num_local_experts"`
	Routed     int64  `json:"n_routed_experts"`
	Shared     int64  `json:"n_shared_experts"`
	MoE        int64  `json:"moe_intermediate_size"`
	Dense      int    `json:"first_k_dense_replace"`
	KVRank     int64  `json:"kv_lora_rank"`
	QRank      int64  `json:"q_lora_rank"`
	Nope       int64  `json:"qk_nope_head_dim"`
	Rope       int64  `json:"qk_rope_head_dim"`
	Value      int64  `json:"v_head_dim"`
	Text       *shape `json:"text_config"`
	Vision     *shape `json:"vision_config"`
	NewDecoder bool   `json:"new_decoder_architecture"`
}

// list collects tensors under a prefix.
type list struct {
	tensors []Tensor
	prefix  string
}

func (l *list) add(dtype, name string, dims ...int64) {
	l.tensors = append(l.tensors, Tensor{Name: l.prefix + name, Dtype: dtype, Shape: dims})
}

func (l *list) bf16(name string, dims ...int64) { l.add("BF16", name, dims...) }

// fp8 adds a matrix in blocks of 128 × 128, each with a scale.
func (l *list) fp8(name string, rows, columns int64) {
	l.add("F8_E4M3", name+".weight", rows, columns)
	l.add("F32", name+".weight_scale_inv", (rows+127)/128, (columns+127)/128)
}

// Tensors returns the tensors of the sample as in the published files.
func Tensors(name string) ([]Tensor, error) {
	text, err := Config(name)
	if err != nil {
		return nil, err
	}
	var s shape
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	l := &list{}
	if s.HeadDim == 0 && s.Heads > 0 {
		s.HeadDim = s.Hidden / s.Heads
	}
	switch s.Kind {
	case "llama", "mistral", "qwen2", "phi3", "mixtral", "gpt_oss", "deepseek_v3":
		l.decoder(s, "model.")
	case "falcon":
		l.falcon(s)
	case "gemma3":
		l.gemma(*s.Text, *s.Vision)
	default:
		return nil, fmt.Errorf("the tensors of a %s are not known", s.Kind)
	}
	return l.tensors, nil
}

func (l *list) decoder(s shape, model string) {
	l.prefix = model
	l.bf16("embed_tokens.weight", s.Vocab, s.Hidden)
	for i := range s.Layers {
		l.prefix = fmt.Sprintf("%slayers.%d.", model, i)
		l.bf16("input_layernorm.weight", s.Hidden)
		l.bf16("post_attention_layernorm.weight", s.Hidden)
		switch s.Kind {
		case "phi3":
			l.bf16("self_attn.qkv_proj.weight", (s.Heads+2*s.KV)*s.HeadDim, s.Hidden)
			l.bf16("self_attn.o_proj.weight", s.Hidden, s.Heads*s.HeadDim)
			l.bf16("mlp.gate_up_proj.weight", 2*s.MLP, s.Hidden)
			l.bf16("mlp.down_proj.weight", s.Hidden, s.MLP)
		case "deepseek_v3":
			l.latent(s)
			l.experts(s, i)
		default:
			l.attention(s)
			l.mlp(s)
		}
	}
	l.prefix = ""
	l.bf16(model+"norm.weight", s.Hidden)
	if !s.Tied {
		l.bf16("lm_head.weight", s.Vocab, s.Hidden)
	}
}

func (l *list) attention(s shape) {
	biased := s.Kind == "qwen2" || s.Kind == "gpt_oss"
	for _, p := range []struct {
		name string
		rows int64
	}{{"q_proj", s.Heads}, {"k_proj", s.KV}, {"v_proj", s.KV}} {
		l.bf16("self_attn."+p.name+".weight", p.rows*s.HeadDim, s.Hidden)
		if biased {
			l.bf16("self_attn."+p.name+".bias", p.rows*s.HeadDim)
		}
	}
	l.bf16("self_attn.o_proj.weight", s.Hidden, s.Heads*s.HeadDim)
	if s.Kind == "gpt_oss" {
		l.bf16("self_attn.o_proj.bias", s.Hidden)
		l.bf16("self_attn.sinks", s.Heads)
	}
}

func (l *list) mlp(s shape) {
	switch s.Kind {
	case "mixtral":
		l.bf16("block_sparse_moe.gate.weight", s.Experts, s.Hidden)
		for e := range s.Experts {
			l.bf16(fmt.Sprintf("block_sparse_moe.experts.%d.w1.weight", e), s.MLP, s.Hidden)
			l.bf16(fmt.Sprintf("block_sparse_moe.experts.%d.w2.weight", e), s.Hidden, s.MLP)
			l.bf16(fmt.Sprintf("block_sparse_moe.experts.%d.w3.weight", e), s.MLP, s.Hidden)
		}
	case "gpt_oss":
		l.bf16("mlp.router.weight", s.Experts, s.Hidden)
		l.bf16("mlp.router.bias", s.Experts)
		l.mxfp4("mlp.experts.gate_up_proj", s.Experts, 2*s.MLP, s.Hidden)
		l.mxfp4("mlp.experts.down_proj", s.Experts, s.Hidden, s.MLP)
	default:
		l.bf16("mlp.gate_proj.weight", s.MLP, s.Hidden)
		l.bf16("mlp.up_proj.weight", s.MLP, s.Hidden)
		l.bf16("mlp.down_proj.weight", s.Hidden, s.MLP)
	}
}

// mxfp4 adds a tensor with four bits per number and a scale for each 32 numbers.
func (l *list) mxfp4(name string, experts, rows, columns int64) {
	l.add("U8", name+"_blocks", experts, rows, columns/32, 16)
	l.add("U8", name+"_scales", experts, rows, columns/32)
	l.bf16(name+"_bias", experts, rows)
}

func (l *list) latent(s shape) {
	l.fp8("self_attn.q_a_proj", s.QRank, s.Hidden)
	l.bf16("self_attn.q_a_layernorm.weight", s.QRank)
	l.fp8("self_attn.q_b_proj", s.Heads*(s.Nope+s.Rope), s.QRank)
	l.fp8("self_attn.kv_a_proj_with_mqa", s.KVRank+s.Rope, s.Hidden)
	l.bf16("self_attn.kv_a_layernorm.weight", s.KVRank)
	l.fp8("self_attn.kv_b_proj", s.Heads*(s.Nope+s.Value), s.KVRank)
	l.fp8("self_attn.o_proj", s.Hidden, s.Heads*s.Value)
}

func (l *list) experts(s shape, layer int) {
	one := func(name string, width int64) {
		l.fp8(name+".gate_proj", width, s.Hidden)
		l.fp8(name+".up_proj", width, s.Hidden)
		l.fp8(name+".down_proj", s.Hidden, width)
	}
	if layer < s.Dense {
		one("mlp", s.MLP)
		return
	}
	l.bf16("mlp.gate.weight", s.Routed, s.Hidden)
	l.add("F32", "mlp.gate.e_score_correction_bias", s.Routed)
	one("mlp.shared_experts", s.Shared*s.MoE)
	for e := range s.Routed {
		one(fmt.Sprintf("mlp.experts.%d", e), s.MoE)
	}
}

func (l *list) falcon(s shape) {
	kv := int64(1)
	if s.NewDecoder {
		kv = s.FalconKV
	}
	l.bf16("transformer.word_embeddings.weight", s.Vocab, s.Hidden)
	for i := range s.Layers {
		l.prefix = fmt.Sprintf("transformer.h.%d.", i)
		norms := []string{"input_layernorm"}
		if s.NewDecoder {
			norms = []string{"ln_attn", "ln_mlp"}
		}
		for _, n := range norms {
			l.bf16(n+".weight", s.Hidden)
			l.bf16(n+".bias", s.Hidden)
		}
		l.bf16("self_attention.query_key_value.weight", (s.Heads+2*kv)*s.HeadDim, s.Hidden)
		l.bf16("self_attention.dense.weight", s.Hidden, s.Hidden)
		l.bf16("mlp.dense_h_to_4h.weight", 4*s.Hidden, s.Hidden)
		l.bf16("mlp.dense_4h_to_h.weight", s.Hidden, 4*s.Hidden)
	}
	l.prefix = ""
	l.bf16("transformer.ln_f.weight", s.Hidden)
	l.bf16("transformer.ln_f.bias", s.Hidden)
}

func (l *list) gemma(s, vision shape) {
	if s.Heads == 0 { // the smaller models omit these fields
		s.Heads, s.KV, s.HeadDim = 8, 4, 256
	}
	s.Vocab = 262208
	l.prefix = "language_model.model."
	l.bf16("embed_tokens.weight", s.Vocab, s.Hidden)
	for i := range s.Layers {
		l.prefix = fmt.Sprintf("language_model.model.layers.%d.", i)
		for _, n := range []string{"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"} {
			l.bf16(n+".weight", s.Hidden)
		}
		l.bf16("self_attn.q_norm.weight", s.HeadDim)
		l.bf16("self_attn.k_norm.weight", s.HeadDim)
		l.attention(s)
		l.mlp(s)
	}
	l.prefix = ""
	l.bf16("language_model.model.norm.weight", s.Hidden)
	l.bf16("multi_modal_projector.mm_input_projection_weight", vision.Hidden, s.Hidden)
	l.bf16("multi_modal_projector.mm_soft_emb_norm.weight", vision.Hidden)
	l.tower(vision)
}

func (l *list) tower(v shape) {
	l.prefix = "vision_tower.vision_model."
	l.bf16("embeddings.patch_embedding.weight", v.Hidden, 3, 14, 14)
	l.bf16("embeddings.patch_embedding.bias", v.Hidden)
	l.bf16("embeddings.position_embedding.weight", 4096, v.Hidden)
	pair := func(name string, rows int64, columns ...int64) {
		l.bf16(name+".weight", append([]int64{rows}, columns...)...)
		l.bf16(name+".bias", rows)
	}
	for i := range v.Layers {
		l.prefix = fmt.Sprintf("vision_tower.vision_model.encoder.layers.%d.", i)
		pair("layer_norm1", v.Hidden)
		pair("layer_norm2", v.Hidden)
		for _, p := range []string{"q_proj", "k_proj", "v_proj", "out_proj"} {
			pair("self_attn."+p, v.Hidden, v.Hidden)
		}
		pair("mlp.fc1", v.MLP, v.Hidden)
		pair("mlp.fc2", v.Hidden, v.MLP)
	}
	l.prefix = "vision_tower.vision_model."
	pair("post_layernorm", v.Hidden)
	l.prefix = ""
}
