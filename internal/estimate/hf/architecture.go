package hf

import (
	"cmp"
	"encoding/json"
	"errors"
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

// errUnknown is a sentence that says why it is not known what the layers of a model keep. The
// weights are still counted.
type errUnknown struct{ why string }

func (e errUnknown) Error() string { return e.why }

// onlyWeights returns the sentence for a model of which only the weights are known.
func (e errUnknown) onlyWeights() string { return e.why + " So only the size of the weights is known." }

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
	encoder bool     // the model keeps no cache
}

func (r *reader) wholeNumber(names ...string) int {
	n, err := r.config.wholeNumber(names...)
	if err != nil && r.err == nil {
		r.err = err
	}
	return n
}

// required is wholeNumber for fields without which the model is not known.
func (r *reader) required(names ...string) int {
	n := r.wholeNumber(names...)
	if n == 0 && r.err == nil {
		r.err = errUnknown{r.missing(names...)}
	}
	return n
}

// missing returns a sentence that says why a number is 0.
func (c config) missing(names ...string) string {
	if name, raw := c.field(names...); raw != nil {
		return fmt.Sprintf("%s is %s; it must be at least 1.", name, shorten(raw))
	}
	for _, level := range c.levels {
		for _, name := range names {
			if _, there := level[name]; there {
				return fmt.Sprintf("%s is null or not a number; it must be at least 1.", name)
			}
		}
	}
	return fmt.Sprintf("The configuration does not have %s.", names[0])
}

// orAssume is wholeNumber for fields that have a default. If the default is used, a sentence
// says so.
func (r *reader) orAssume(otherwise int, names ...string) int {
	if n := r.wholeNumber(names...); n > 0 {
		return n
	}
	r.assume(fmt.Sprintf("The configuration does not have %s; %d is assumed.", names[0], otherwise))
	return otherwise
}

// assume adds a sentence to the assumptions, unless they have it.
func (r *reader) assume(sentence string) {
	if !slices.Contains(r.assumed, sentence) {
		r.assumed = append(r.assumed, sentence)
	}
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
// errUnknown means that the sizes of the model are not known. If only what its layers keep is not
// known, the result is an upper bound, and a sentence says why.
func (c config) architecture() (*estimate.Architecture, []string, error) {
	f := familyOf(c.modelType())
	unknown := c.unknownFields(f)
	if f.prepare != nil {
		f.prepare(c)
	}
	r := &reader{config: c, encoder: f.encoder}
	a := r.sizes(f)
	if r.err == nil {
		r.longestContext(a)
	}
	if r.err != nil {
		return nil, nil, r.err
	}
	r.assumed = append(r.assumed, f.assumed...)
	a.Caches = r.caches(a, f)
	if len(unknown) > 0 && !f.encoder {
		r.err = errUnknown{fmt.Sprintf("The configuration has fields that may determine the cache and are not understood for models of type %q: %s.", c.modelType(), enumerate(unknown))}
	}
	var why errUnknown
	if errors.As(r.err, &why) {
		return r.bound(a, why), r.assumed, nil
	}
	if r.err != nil {
		return nil, nil, r.err
	}
	if a.HasState() {
		r.assume("Some layers keep a state of fixed size for each sequence instead of keys and values.")
	}
	return a, r.assumed, nil
}

// enumerate returns names separated by commas, of a long list only the first.
func enumerate(names []string) string {
	const most, longest = 12, 80
	var out []string
	for _, name := range names[:min(len(names), most)] {
		if runes := []rune(name); len(runes) > longest {
			name = string(runes[:longest]) + "…"
		}
		out = append(out, name)
	}
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(out, ", "), more)
	}
	return strings.Join(out, ", ")
}

// sizes reads the sizes of all layers.
func (r *reader) sizes(f *family) *estimate.Architecture {
	a := &estimate.Architecture{
		Name:       r.name(),
		Layers:     r.required("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
		Hidden:     r.required("hidden_size", "n_embd", "d_model", "dim", "n_embed"),
		Heads:      r.required("num_attention_heads", "n_head", "num_heads", "n_heads"),
		Vocab:      r.required("vocab_size", "padded_vocab_size", "n_vocab"),
		MaxContext: r.wholeNumber(contextFields...),
		Tied:       r.flag("tie_word_embeddings"),
		Encoder:    f.encoder,
		FusedMLP:   slices.Contains(fusedTypes, r.modelType()),
	}
	if a.Layers > maxLayers {
		r.fail(fmt.Errorf("it claims to have %d layers; at most %d are allowed", a.Layers, maxLayers))
	}
	if r.err != nil {
		return nil
	}
	r.attention(a)
	r.mlp(a)
	r.vision(a)
	return a
}

// longestContext sets the longest context with rope scaling.
func (r *reader) longestContext(a *estimate.Architecture) {
	long, assumed, err := r.scaledContext(a.MaxContext)
	if err != nil {
		r.fail(err)
	}
	a.MaxContext, r.assumed = long, append(assumed, r.assumed...)
}

// caches returns what the layers keep; nil: every layer keeps keys and values of all tokens.
func (r *reader) caches(a *estimate.Architecture, f *family) []estimate.Cache {
	var out []estimate.Cache
	switch {
	case f.encoder:
		r.assume("The model processes a whole text at once and keeps no cache. A server claims no share of the device for it; vllm must be started with a gpu-memory-utilization that is free.")
	case f.caches != nil:
		out = f.caches(r, a)
	default:
		out = windowCaches(r, a, f)
	}
	if out != nil && !f.stateOnly && !slices.ContainsFunc(out, func(c estimate.Cache) bool { return c.Heads+c.Whole+c.Bytes > 0 }) {
		r.fail(errUnknown{"According to the configuration no layer has attention, which such a model has."})
	}
	if r.err != nil {
		return nil
	}
	return out
}

// bound returns an upper bound for a model of which it is not known what its layers keep: every
// layer keeps keys and values of all tokens. Their heads are the most and the largest that any
// field names, because layers may differ.
func (r *reader) bound(a *estimate.Architecture, why errUnknown) *estimate.Architecture {
	out, largest := *a, r.largestSizes()
	b := &estimate.Cache{Heads: out.KVHeads, Key: max(out.HeadDim, largest.dim), Value: cmp.Or(out.ValueDim, out.HeadDim)}
	if out.Latent == nil {
		b.Heads, b.Value = max(b.Heads, largest.heads), max(b.Value, largest.dim)
	}
	out.Bound, out.HeadDim, out.ValueDim = b, b.Key, b.Value
	if b.Value == b.Key {
		out.ValueDim = 0
	}
	r.assume(fmt.Sprintf("%s So the need is an upper bound: each of the %d layers is assumed to keep the keys and values of all tokens, uncompressed (%d heads, %d and %d numbers), and the need is at least 1.2 × the weights and 2 GiB.",
		why.why, out.Layers, b.Heads, b.Key, b.Value))
	return &out
}

// fusedTypes are the types of model in which one matrix computes gate and up.
var fusedTypes = []string{"phi3", "phi3_v", "phi4mm", "phi3small", "glm", "glm4", "chatglm"}

// dividedTypes are the types of model in which the attention heads divide the residual stream
// unless the configuration says otherwise.
var dividedTypes = strings.Fields(`
	llama smollm3 mistral mixtral qwen2 qwen2_moe qwen2_vl qwen2_5_vl qwen2_5_vl_text qwen2_5_omni_text gpt2 gpt_neo gpt_neox gptj gpt_bigcode opt bloom mpt dbrx falcon
	RefinedWeb RefinedWebModel phi phi-msft phi3 phi3_v phi3small phi4mm phimoe starcoder2 stablelm cohere cohere2 granite granitemoe
	granitemoehybrid bamba olmo olmo2 olmo3 olmoe internlm internlm2 internlm3 baichuan chatglm exaone exaone4 jamba lfm2 lfm2_moe minicpm minicpm3 nemotron
	nemotron-nas mllama_text_model mimo ernie4_5 ernie4_5_moe hunyuan whisper bart mbart t5 mt5 umt5 mamba mamba2 falcon_mamba rwkv rwkv5 rwkv6 rwkv7
`)

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
		if !slices.Contains(dividedTypes, r.modelType()) && !r.encoder {
			r.assume(fmt.Sprintf("The configuration does not have head_dim; %d is assumed, the width of the residual stream divided by the attention heads.", a.HeadDim))
		}
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
			r.assume(fmt.Sprintf("The configuration does not have intermediate_size; %d is assumed, four times the width of the residual stream.", dense))
		}
		a.Intermediate, a.Width = dense, dense
		return
	}
	a.Active = r.largest("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk", "top_k_experts", "moe_k", "moe_top_k")
	if a.Active == 0 {
		a.Active = a.Experts
		r.assume(fmt.Sprintf("The configuration does not say how many experts process a token; all %d are assumed, so the activations are an upper bound.", a.Experts))
	}
	width := r.largest("moe_intermediate_size", "expert_intermediate_size")
	if width == 0 {
		width = dense
	}
	if width == 0 && r.err == nil {
		r.err = errUnknown{r.missing("moe_intermediate_size", "expert_intermediate_size", "intermediate_size")}
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
	v := config{text: part, top: part}
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
		r.assume("The sizes of the vision encoder are not known, so its activations are not counted.")
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
	merge := cmp.Or(number("spatial_merge_size"), 2)
	a.Vision.PerToken = merge * merge
	if tokens := r.wholeNumber("mm_tokens_per_image"); tokens > 0 {
		a.Vision.PerToken = max(1, a.Vision.Patches/tokens)
	}
}

// defaultPatches is the most patches of an image if the configuration does not have its
// size: Qwen-VL and models like it take images of up to 16,384 tokens of four patches each.
const defaultPatches = 65_536
