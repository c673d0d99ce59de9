package hf

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/berth-project/berth/internal/estimate"
)

// maxLayers is far above any real model; it bounds the memory for per-layer values.
const maxLayers = 10_000

// defaults are values that some published configurations omit because the library that
// wrote them has them as defaults. They are used only if the file does not have the
// field.
var defaults = map[string]map[string]string{
	"gemma3_text": {
		"num_attention_heads": "8", "num_key_value_heads": "4", "head_dim": "256", "vocab_size": "262208",
		"sliding_window_pattern": "6", "max_position_embeddings": "131072", "tie_word_embeddings": "true",
	},
	"gemma2":          {"sliding_window_pattern": "2", "tie_word_embeddings": "true"},
	"falcon":          {"max_position_embeddings": "2048", "tie_word_embeddings": "true"},
	"RefinedWeb":      {"max_position_embeddings": "2048"},
	"RefinedWebModel": {"max_position_embeddings": "2048"},
}

// stateFields are fields of models in which some layers keep a state instead of keys and
// values.
var stateFields = []string{"mamba_d_state", "ssm_cfg", "state_size", "attn_layer_period", "full_attention_interval", "linear_num_value_heads", "hybrid_override_pattern"}

// errUnknown says why a configuration gives no architecture. The weights are still
// counted.
type errUnknown struct{ why string }

func (e errUnknown) Error() string { return e.why }

// setDefaults adds the defaults of the model's type and returns a sentence for each that
// was added.
func (c config) setDefaults() []string {
	kind := c.modelType()
	var taken []string
	for _, name := range []string{"num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size", "sliding_window_pattern", "max_position_embeddings", "tie_word_embeddings"} {
		value, known := defaults[kind][name]
		if _, raw := c.field(name); !known || raw != nil {
			continue
		}
		if _, types := c.field("layer_types"); name == "sliding_window_pattern" && types != nil {
			continue
		}
		c.text[name] = json.RawMessage(value)
		taken = append(taken, fmt.Sprintf("The configuration does not have %s; %s is the default of the model type %s.", name, value, kind))
	}
	return taken
}

// reader records the first error, so that the caller checks for errors once.
type reader struct {
	config
	err error
}

func (r *reader) wholeNumber(names ...string) int {
	n, err := r.config.wholeNumber(names...)
	if err != nil && r.err == nil {
		r.err = err
	}
	return n
}

func (r *reader) required(names ...string) int {
	n := r.wholeNumber(names...)
	if n == 0 && r.err == nil {
		r.err = errUnknown{fmt.Sprintf("The configuration does not have %s, so only the size of the weights is known.", names[0])}
	}
	return n
}

func (r *reader) flag(name string) bool {
	v, _, err := r.config.flag(name)
	if err != nil && r.err == nil {
		r.err = err
	}
	return v
}

// architecture reads the fields that determine the memory in addition to the weights. It
// depends on the fields and not on a list of known architectures. errUnknown means that
// fields are missing.
func (c config) architecture() (*estimate.Architecture, []string, error) {
	for _, name := range stateFields {
		if _, raw := c.field(name); raw != nil {
			return nil, nil, errUnknown{fmt.Sprintf("The configuration has %s: some layers keep a state instead of keys and values, so only the size of the weights is known.", name)}
		}
	}
	r := &reader{config: c}
	a := &estimate.Architecture{
		Name:       c.name(),
		Layers:     r.required("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
		Hidden:     r.required("hidden_size", "n_embd", "d_model", "dim"),
		Heads:      r.required("num_attention_heads", "n_head", "num_heads", "n_heads"),
		Vocab:      r.required("vocab_size", "padded_vocab_size", "n_vocab"),
		MaxContext: r.wholeNumber("max_position_embeddings", "n_positions", "max_sequence_length", "max_seq_len", "seq_length", "n_ctx"),
		Tied:       r.flag("tie_word_embeddings"),
	}
	if r.err == nil && a.Layers > maxLayers {
		r.err = fmt.Errorf("it claims to have %d layers; at most %d are allowed", a.Layers, maxLayers)
	}
	if r.err != nil {
		return nil, nil, r.err
	}
	r.attention(a)
	r.mlp(a)
	windows, assumed, err := r.windows(a.Layers)
	if err := cmp.Or(r.err, err); err != nil {
		return nil, nil, err
	}
	long, more, err := c.scaledContext(a.MaxContext)
	if err != nil {
		return nil, nil, err
	}
	a.MaxContext, assumed = long, append(assumed, more...)
	for i, w := range windows {
		if a.MaxContext > 0 && w >= a.MaxContext {
			windows[i] = 0
		}
	}
	if slices.ContainsFunc(windows, func(w int) bool { return w > 0 }) {
		a.Windows = windows
	}
	return a, assumed, nil
}

// attention sets the fields that determine the cache of a token.
func (r *reader) attention(a *estimate.Architecture) {
	if rank, rope := r.wholeNumber("kv_lora_rank"), r.wholeNumber("qk_rope_head_dim"); rank > 0 && rope > 0 {
		a.Latent = &estimate.Latent{Rank: rank, Rope: rope}
		a.KVHeads = a.Heads
		a.HeadDim = r.required("qk_nope_head_dim") + rope
		if v := r.required("v_head_dim"); v != a.HeadDim {
			a.ValueDim = v
		}
		return
	}
	a.HeadDim = r.wholeNumber("head_dim", "kv_channels", "attention_head_dim")
	if a.HeadDim == 0 {
		if a.Hidden%a.Heads != 0 && r.err == nil {
			r.err = fmt.Errorf("hidden_size %d does not divide by %d attention heads, and head_dim is not given", a.Hidden, a.Heads)
		}
		a.HeadDim = a.Hidden / a.Heads
	}
	a.KVHeads = r.keyHeads(a.Heads)
	if a.KVHeads > a.Heads && r.err == nil {
		r.err = fmt.Errorf("it has %d key heads but only %d attention heads", a.KVHeads, a.Heads)
	}
}

func (r *reader) keyHeads(heads int) int {
	if _, raw := r.field("new_decoder_architecture"); raw != nil && !r.flag("new_decoder_architecture") {
		// Such a model ignores num_kv_heads.
		if r.flag("multi_query") {
			return 1
		}
		return heads
	}
	if n := r.wholeNumber("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num"); n > 0 {
		return n
	}
	if r.flag("multi_query") {
		return 1
	}
	return heads
}

// mlp sets the width of the MLPs that process a token: all experts to which it is
// routed, and the shared experts.
func (r *reader) mlp(a *estimate.Architecture) {
	dense := r.wholeNumber("intermediate_size", "ffn_hidden_size", "n_inner", "d_ff", "ffn_dim")
	a.Experts = r.wholeNumber("n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts")
	if a.Experts < 2 {
		a.Experts = 0
		if dense == 0 {
			dense = 4 * a.Hidden
		}
		a.Intermediate, a.Width = dense, dense
		return
	}
	a.Active = r.wholeNumber("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk", "top_k_experts")
	if a.Active == 0 {
		a.Active = a.Experts // the upper bound
	}
	width := r.wholeNumber("moe_intermediate_size", "expert_intermediate_size")
	if width == 0 {
		width = dense
	}
	if width == 0 && r.err == nil {
		r.err = errUnknown{"The configuration does not have the width of its experts, so only the size of the weights is known."}
	}
	shared := r.wholeNumber("shared_expert_intermediate_size", "shared_intermediate_size")
	if shared == 0 {
		shared = r.wholeNumber("n_shared_experts", "num_shared_experts", "moe_num_shared_experts") * width
	}
	a.Intermediate, a.Width = max(a.Active*width+shared, dense), width
}

// windows returns how many tokens each layer looks back; 0: all tokens.
func (r *reader) windows(layers int) ([]int, []string, error) {
	window := r.wholeNumber("sliding_window", "sliding_window_size")
	if _, raw := r.field("layer_types"); raw != nil {
		return r.windowsByType(r.stringList("layer_types"), layers, window)
	}
	if _, raw := r.field("attention_chunk_size"); raw != nil {
		return nil, []string{"The configuration does not say which layers look at a chunk only, so all layers are assumed to look at the whole context."}, nil
	}
	if use, there, err := r.config.flag("use_sliding_window"); err != nil || (there && !use) || window == 0 {
		return nil, nil, err
	}
	full := func(int) bool { return false }
	if pattern := r.wholeNumber("sliding_window_pattern"); pattern > 0 {
		full = func(i int) bool { return (i+1)%pattern == 0 }
	} else if first := r.wholeNumber("max_window_layers"); first > 0 {
		full = func(i int) bool { return i < first }
	}
	out := make([]int, layers)
	for i := range out {
		if !full(i) {
			out[i] = window
		}
	}
	return out, nil, nil
}

func (r *reader) windowsByType(types []string, layers, window int) ([]int, []string, error) {
	if len(types) != layers {
		return nil, nil, fmt.Errorf("layer_types names %d layers, but there are %d", len(types), layers)
	}
	out := make([]int, layers)
	for i, kind := range types {
		switch kind {
		case "full_attention":
			continue
		case "sliding_attention":
			out[i] = window
		case "chunked_attention":
			out[i] = r.wholeNumber("attention_chunk_size")
		default:
			return nil, nil, errUnknown{fmt.Sprintf("Layers of type %q are not known, so only the size of the weights is known.", kind)}
		}
		if out[i] == 0 && r.err == nil {
			return nil, nil, errors.New("layer_types has layers with a window, but sliding_window is not given")
		}
	}
	return out, nil, nil
}
