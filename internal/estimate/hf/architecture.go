package hf

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

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
	err     error
	assumed []string // sentences about the estimate
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

// largest is wholeNumber for fields that may have one number for each layer. It returns the
// largest.
func (r *reader) largest(names ...string) int {
	name, raw := r.field(names...)
	if len(raw) > 0 && raw[0] == '[' {
		if list := r.numberList(name); len(list) > 0 {
			return slices.Max(list)
		}
		return 0
	}
	return r.wholeNumber(names...)
}

func (r *reader) flag(name string) bool {
	v, _, err := r.config.flag(name)
	if err != nil && r.err == nil {
		r.err = err
	}
	return v
}

// fail records an error if none is recorded yet.
func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// numberList returns a list of whole numbers; nil if the field is not set. true and false
// stand for 1 and 0.
func (r *reader) numberList(name string) []int {
	_, raw := r.field(name)
	if raw == nil {
		return nil
	}
	var numbers []float64
	if json.Unmarshal(raw, &numbers) != nil || len(numbers) > maxLayers+100 {
		r.fail(fmt.Errorf("%s is %s: it must be a list of whole numbers", name, shorten(raw)))
		return nil
	}
	out := make([]int, len(numbers))
	for i, n := range numbers {
		if n != math.Trunc(n) || n < 0 || n > 1<<30 {
			r.fail(fmt.Errorf("%s has %g: it must be a whole number from 0 to %d", name, n, 1<<30))
			return nil
		}
		out[i] = int(n)
	}
	return out
}

// architecture reads the fields that determine the memory in addition to the weights.
// errUnknown means that the memory is not known: fields are missing, or not understood.
func (c config) architecture() (*estimate.Architecture, []string, error) {
	f := familyOf(c.modelType())
	if unknown := c.unknownFields(f); len(unknown) > 0 && !f.encoder {
		return nil, nil, errUnknown{fmt.Sprintf("The configuration has fields that may determine the cache and are not understood for models of type %q: %s. So only the size of the weights is known.",
			c.modelType(), strings.Join(unknown, ", "))}
	}
	if f.prepare != nil {
		f.prepare(c)
	}
	r := &reader{config: c}
	a := &estimate.Architecture{
		Name:       c.name(),
		Layers:     r.required("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
		Hidden:     r.required("hidden_size", "n_embd", "d_model", "dim", "n_embed"),
		Heads:      r.required("num_attention_heads", "n_head", "num_heads", "n_heads"),
		Vocab:      r.required("vocab_size", "padded_vocab_size", "n_vocab"),
		MaxContext: r.wholeNumber(contextFields...),
		Tied:       r.flag("tie_word_embeddings"),
		Encoder:    f.encoder,
		FusedMLP:   slices.Contains(fusedTypes, c.modelType()),
	}
	if r.err == nil && a.Layers > maxLayers {
		r.err = fmt.Errorf("it claims to have %d layers; at most %d are allowed", a.Layers, maxLayers)
	}
	if r.err != nil {
		return nil, nil, r.err
	}
	r.attention(a)
	r.mlp(a)
	r.vision(a)
	if r.err != nil {
		return nil, nil, r.err
	}
	long, assumed, err := c.scaledContext(a.MaxContext)
	if err != nil {
		return nil, nil, err
	}
	a.MaxContext, assumed = long, append(assumed, f.assumed...)
	switch {
	case f.encoder:
		assumed = append(assumed, "The model processes a whole text at once and keeps no cache. A server claims no share of the device for it; vllm must be started with a gpu-memory-utilization that is free.")
	case f.caches != nil:
		a.Caches = f.caches(r, a)
	default:
		a.Caches = windowCaches(r, a, f)
	}
	if r.err != nil {
		return nil, nil, r.err
	}
	if a.Caches != nil && !f.stateOnly && !slices.ContainsFunc(a.Caches, func(c estimate.Cache) bool { return c.Heads+c.Whole+c.Bytes > 0 }) {
		return nil, nil, errUnknown{"According to the configuration no layer has attention, which such a model has, so only the size of the weights is known."}
	}
	assumed = append(assumed, r.assumed...)
	if a.HasState() {
		assumed = append(assumed, "Some layers keep a state of fixed size for each sequence instead of keys and values.")
	}
	return a, assumed, nil
}

// fusedTypes are the types of model in which one matrix computes gate and up.
var fusedTypes = []string{"phi3", "phi3_v", "phi4mm", "phi3small", "glm", "glm4", "chatglm"}

// contextFields are the names of the longest context. As in vLLM, model_max_length takes
// precedence.
var contextFields = []string{
	"model_max_length", "max_position_embeddings", "n_positions", "max_sequence_length", "max_seq_len", "seq_length", "n_ctx",
	"max_position_embedding", "max_target_positions", "context_length", "max_trained_positions",
}

// attention sets the fields that determine the cache of a token.
func (r *reader) attention(a *estimate.Architecture) {
	rank, rope := r.wholeNumber("kv_lora_rank"), r.wholeNumber("qk_rope_head_dim")
	if use, there, _ := r.config.flag("use_mla"); rank > 0 && rope > 0 && (use || !there) {
		a.Latent = &estimate.Latent{Rank: rank, Rope: rope}
		a.KVHeads = a.Heads
		a.HeadDim = r.required("qk_nope_head_dim") + rope
		if v := r.required("v_head_dim"); v != a.HeadDim {
			a.ValueDim = v
		}
		return
	}
	a.HeadDim = r.wholeNumber("head_dim", "attention_head_dim", "kv_channels")
	if a.HeadDim == 0 {
		if a.Hidden%a.Heads != 0 && r.err == nil {
			r.err = fmt.Errorf("hidden_size %d does not divide by %d attention heads, and head_dim is not given", a.Hidden, a.Heads)
		}
		a.HeadDim = a.Hidden / a.Heads
	}
	if v := r.wholeNumber("v_head_dim"); v > 0 && v != a.HeadDim {
		a.ValueDim = v
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
	if n := r.wholeNumber("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", "num_attention_groups"); n > 0 {
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
	dense := max(r.largest("intermediate_size", "ffn_hidden_size", "n_inner", "d_ff", "ffn_dim", "ff_intermediate_size"), r.wholeNumber("intermediate_size_mlp", "dense_intermediate_size"))
	a.Experts = r.largest("n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts")
	if a.Experts < 2 {
		a.Experts = 0
		if dense == 0 {
			dense = 4 * a.Hidden
		}
		a.Intermediate, a.Width = dense, dense
		return
	}
	a.Active = r.largest("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk", "top_k_experts", "moe_k", "moe_top_k")
	if a.Active == 0 {
		a.Active = a.Experts // the upper bound
	}
	width := r.largest("moe_intermediate_size", "expert_intermediate_size")
	if width == 0 {
		width = dense
	}
	if width == 0 && r.err == nil {
		r.err = errUnknown{"The configuration does not have the width of its experts, so only the size of the weights is known."}
	}
	shared := r.wholeNumber("shared_expert_intermediate_size", "shared_intermediate_size", "moe_shared_expert_intermediate_size", "share_expert_dim")
	if shared == 0 {
		shared = r.largest("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert") * width
	}
	a.Intermediate, a.Width = max(a.Active*width+shared, dense), width
}

// vision sets the sizes of a vision encoder.
func (r *reader) vision(a *estimate.Architecture) {
	var part map[string]json.RawMessage
	for _, name := range []string{"vision_config", "visual"} {
		if json.Unmarshal(r.top[name], &part) == nil && part != nil {
			break
		}
	}
	if part == nil {
		return
	}
	v := config{part, part}
	number := func(names ...string) int {
		n, err := v.wholeNumber(names...)
		if err != nil {
			return 0 // some encoders write lists here; their sizes are not known
		}
		return n
	}
	a.Vision = &estimate.Vision{
		Layers: number("num_hidden_layers", "depth", "layers"), Heads: number("num_attention_heads", "num_heads", "heads"),
		Hidden: number("hidden_size", "embed_dim", "width"), Intermediate: number("intermediate_size"),
	}
	if a.Vision.Hidden == 0 {
		r.assumed = append(r.assumed, "The sizes of the vision encoder are not known, so its activations are not counted.")
	}
	if a.Vision.Intermediate == 0 {
		a.Vision.Intermediate = 4 * a.Vision.Hidden
	}
	image, patch := number("image_size"), number("patch_size", "spatial_patch_size")
	if image > 0 && patch > 0 {
		a.Vision.Patches = (image / patch) * (image / patch)
	} else {
		a.Vision.Patches = defaultPatches
	}
	merge := orElse(number("spatial_merge_size"), 2)
	a.Vision.PerToken = merge * merge
	if tokens := r.wholeNumber("mm_tokens_per_image"); tokens > 0 {
		a.Vision.PerToken = max(1, a.Vision.Patches/tokens)
	}
}

// defaultPatches is the most patches of an image if the configuration does not have its
// size: Qwen-VL and models like it take images of up to 16,384 tokens of four patches each.
const defaultPatches = 65_536
