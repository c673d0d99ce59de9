package hf

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/printable"
)

// periods is after how many layers there is a layer without a window, for types of model
// whose configurations may omit it.
var periods = map[string]int{"gpt_oss": 2, "olmo3": 4, "cohere2": 4, "gemma3n_text": 5, "gemma3n": 5, "exaone4": 4}

// windowCaches returns the caches of a model in which every layer keeps keys and values, and
// some of them only within a window; nil: no layer has a window. It records an error if the
// configuration has a window and does not say which layers have it.
func windowCaches(r *reader, a *estimate.Architecture, f *family) []estimate.Cache {
	windows := r.windows(a.Layers, f)
	for i, w := range windows {
		if a.MaxContext > 0 && w >= a.MaxContext {
			windows[i] = 0
		}
	}
	if !slices.ContainsFunc(windows, func(w int) bool { return w > 0 }) {
		return nil
	}
	return a.WithWindows(windows)
}

// windows returns how many tokens each layer looks back; 0: all tokens.
func (r *reader) windows(layers int, f *family) []int {
	window := r.wholeNumber("sliding_window", "sliding_window_size")
	if use, there, err := r.config.flag("use_sliding_window"); err != nil {
		r.fail(err)
		return nil
	} else if there && !use {
		window = 0
	}
	if _, raw := r.field("layer_types"); raw != nil {
		return r.windowsByType(layers, window)
	}
	if window == 0 {
		return nil
	}
	full := r.layersWithoutWindow(f)
	if full == nil {
		r.fail(errUnknown{"The configuration has sliding_window and does not say which layers have that window."})
		return nil
	}
	out := make([]int, layers)
	for i := range out {
		if !full(i) {
			out[i] = window
		}
	}
	return out
}

// layersWithoutWindow returns a function that reports whether a layer of a model with a window
// has none; nil: that is not known.
func (r *reader) layersWithoutWindow(f *family) func(layer int) bool {
	if period := r.wholeNumber("global_attn_every_n_layers"); period > 0 {
		return func(i int) bool { return (i+1)%period == 0 }
	}
	if pattern := r.pattern(); pattern != "" {
		return func(i int) bool { return pattern[i%len(pattern)] == 'G' }
	}
	if first := r.wholeNumber("max_window_layers"); first > 0 {
		return func(i int) bool { return i < first }
	}
	if f.windowed {
		return never
	}
	return nil
}

// pattern returns the order of layers with a window (L) and without one (G), which repeats;
// "": it is not known. It is written as LLLG, or as the number of layers.
func (r *reader) pattern() string {
	name, raw := r.field("sliding_window_pattern", "_sliding_window_pattern")
	period := periods[r.modelType()]
	if raw != nil {
		var text string
		if json.Unmarshal(raw, &text) == nil && strings.Trim(text, "LG") == "" && text != "" {
			return text
		}
		period = r.wholeNumber(name)
	} else if period > 0 {
		r.assume(fmt.Sprintf("The configuration does not say which layers have a window; all except every %s layer are assumed to have it, as in other models of type %s.", ordinal(period), r.modelType()))
	}
	if period < 1 || period > maxLayers {
		return ""
	}
	return strings.Repeat("L", period-1) + "G"
}

// ordinal returns a small number as an ordinal number.
func ordinal(n int) string {
	switch n {
	case 1:
		return "1st"
	case 2:
		return "2nd"
	case 3:
		return "3rd"
	}
	return fmt.Sprintf("%dth", n)
}

// layerTypes returns the type of each layer. Entries beyond the layers of the model belong
// to layers for drafting tokens.
func (r *reader) layerTypes(layers int) []string { return r.kinds("layer_types", layers) }

// kinds returns a list that names the kind of each layer.
func (r *reader) kinds(name string, layers int) []string {
	_, raw := r.field(name)
	out := r.stringList(name)
	switch {
	case out == nil && string(raw) != "[]":
		r.fail(fmt.Errorf("%s is %s: it must be a list of texts", name, shorten(raw)))
		return nil
	case len(out) < layers:
		r.fail(fmt.Errorf("%s names %d layers, but there are %d", name, len(out), layers))
		return nil
	}
	return out[:layers]
}

func (r *reader) windowsByType(layers, window int) []int {
	out := make([]int, layers)
	for i, kind := range r.layerTypes(layers) {
		switch kind {
		case "full_attention", "attention":
			continue
		case "sliding_attention":
			out[i] = window
		case "chunked_attention":
			out[i] = r.wholeNumber("attention_chunk_size")
		default:
			r.fail(errUnknown{fmt.Sprintf("Layers of type %q are not known.", kind)})
			return nil
		}
		if out[i] == 0 {
			r.fail(fmt.Errorf("layer_types has layers of type %s, but the size of their window is not given", kind))
			return nil
		}
	}
	return out
}

// withShared returns the caches without those of the last layers, which use the keys and
// values of earlier layers.
func (r *reader) withShared(a *estimate.Architecture, caches []estimate.Cache) []estimate.Cache {
	own := a.Layers - r.wholeNumber("num_kv_shared_layers")
	if own < 1 {
		r.fail(fmt.Errorf("num_kv_shared_layers is %d, and there are %d layers", a.Layers-own, a.Layers))
	}
	return slices.DeleteFunc(caches, func(c estimate.Cache) bool { return c.Layer >= own })
}

// sharedCaches returns the caches of Gemma-3n.
func sharedCaches(r *reader, a *estimate.Architecture) []estimate.Cache {
	return r.withShared(a, a.WithWindows(orNone(r.windows(a.Layers, &family{}), a.Layers)))
}

// orNone returns the windows, or no window for each layer if there are none.
func orNone(windows []int, layers int) []int {
	if windows == nil {
		return make([]int, layers)
	}
	return windows
}

// gemma4Caches returns the caches of Gemma-4. Layers without a window have heads of their
// own size and, if keys and values are equal, of their own number. Both are kept.
func gemma4Caches(r *reader, a *estimate.Architecture) []estimate.Cache {
	out := a.WithWindows(orNone(r.windows(a.Layers, &family{}), a.Layers))
	dim, heads := r.orAssume(512, "global_head_dim"), 0
	if r.flag("attention_k_eq_v") {
		heads = r.wholeNumber("num_global_key_value_heads")
	}
	for i := range out {
		if c := &out[i]; c.Window == 0 {
			c.Key, c.Value = dim, dim
			if heads > 0 {
				c.Heads = heads
			}
		}
	}
	return r.withShared(a, out)
}

// llama4Caches returns the caches of Llama-4. Every layer with rotary positions looks back
// to the beginning of a chunk. By default every fourth layer has none; an empty list is the
// default too.
func llama4Caches(r *reader, a *estimate.Architecture) []estimate.Cache {
	chunk := r.wholeNumber("attention_chunk_size")
	windows := make([]int, a.Layers)
	rotary := r.numberList("no_rope_layers")
	var types []string
	every := 1
	if _, raw := r.field("layer_types"); raw != nil {
		types = r.layerTypes(a.Layers)
	} else if len(rotary) < a.Layers {
		every = r.orAssume(4, "no_rope_layer_interval")
	}
	for i := range windows {
		chunked := (i+1)%every != 0
		switch {
		case len(types) > 0:
			chunked = types[i] == "chunked_attention"
		case i < len(rotary):
			chunked = rotary[i] != 0
		}
		if chunked {
			windows[i] = chunk
		}
	}
	out := a.WithWindows(windows)
	for i := range out {
		out[i].Chunked = out[i].Window > 0
	}
	return out
}

// mimoCaches returns the caches of MiMo-V2. Layers with a window have heads of their own.
// The configuration also has the size of a chunk, which servers ignore.
func mimoCaches(r *reader, a *estimate.Architecture) []estimate.Cache {
	window := r.required("sliding_window", "sliding_window_size")
	pattern := r.numberList("hybrid_layer_pattern")
	if pattern == nil {
		r.assume("The configuration does not have hybrid_layer_pattern; all layers except the first and every 6th are assumed to have a window, as in other models of type " + r.modelType() + ".")
	}
	out := make([]estimate.Cache, a.Layers)
	for i := range out {
		windowed := i > 0 && (i+1)%6 != 0
		if pattern != nil && len(pattern) != a.Layers {
			r.fail(fmt.Errorf("hybrid_layer_pattern names %d layers, but there are %d", len(pattern), a.Layers))
			return nil
		} else if pattern != nil {
			windowed = pattern[i] != 0
		}
		out[i] = estimate.Cache{Layer: i, Heads: a.KVHeads, Key: a.HeadDim, Value: cmp.Or(a.ValueDim, a.HeadDim)}
		if windowed {
			out[i].Window = window
			out[i].Heads = r.orAssume(out[i].Heads, "swa_num_key_value_heads")
			out[i].Key = r.orAssume(out[i].Key, "swa_head_dim")
			out[i].Value = r.orAssume(out[i].Value, "swa_v_head_dim")
		}
	}
	return out
}

// crossCaches returns the caches of a model in which some layers look at an image instead of
// the text. An image has at most four tiles and a token more than 40 × 40 for each.
func crossCaches(r *reader, a *estimate.Architecture) []estimate.Cache {
	const imageTokens = 4 * 1601
	cross := r.numberList("cross_attention_layers")
	if cross == nil {
		r.fail(errUnknown{r.missing("cross_attention_layers")})
	}
	r.checkLayers("cross_attention_layers", cross, 0, a.Layers-1)
	out := a.WithWindows(make([]int, a.Layers))
	for i := range out {
		if slices.Contains(cross, i) {
			out[i].Tokens = imageTokens
		}
	}
	return out
}

// encodedCaches returns the caches of a decoder whose layers look at their own tokens and at
// those of an encoder.
func encodedCaches(r *reader, a *estimate.Architecture) []estimate.Cache {
	tokens := r.wholeNumber("max_source_positions", "n_positions")
	if tokens == 0 {
		tokens = r.required("max_position_embeddings")
		r.assume(fmt.Sprintf("The configuration does not have max_source_positions; the encoder is assumed to have %d tokens.", tokens))
	}
	var out []estimate.Cache
	for _, own := range a.WithWindows(make([]int, a.Layers)) {
		encoded := own
		encoded.Tokens = tokens
		out = append(out, own, encoded)
	}
	return out
}

// hunyuanCaches returns the caches of Hunyuan. In some of these models layers share keys and
// values, but servers keep them for every layer.
func hunyuanCaches(r *reader, _ *estimate.Architecture) []estimate.Cache {
	if r.flag("use_cla") {
		r.assume("Layers share their keys and values (use_cla); all layers are counted, because servers keep them for each layer.")
	}
	return nil
}

// blockCaches returns the caches of a model whose configuration describes each layer.
func blockCaches(r *reader, a *estimate.Architecture) []estimate.Cache {
	_, raw := r.field("block_configs")
	var blocks []struct {
		Attention map[string]json.RawMessage `json:"attention"`
	}
	if err := decode("block_configs", raw, &blocks); err != nil {
		r.fail(err)
		return nil
	}
	if len(blocks) != a.Layers {
		r.fail(fmt.Errorf("block_configs describes %d layers, but there are %d", len(blocks), a.Layers))
		return nil
	}
	var out []estimate.Cache
	for i, b := range blocks {
		var at struct {
			None   bool `json:"no_op"`
			Linear bool `json:"replace_with_linear"`
			Group  int  `json:"n_heads_in_group"`
			Window int  `json:"window_length"`
		}
		whole, _ := json.Marshal(b.Attention) // of valid parts
		if err := decode("block_configs.attention", whole, &at); err != nil {
			r.fail(err)
			return nil
		}
		for _, name := range slices.Sorted(maps.Keys(b.Attention)) {
			if !slices.Contains([]string{"no_op", "replace_with_linear", "n_heads_in_group", "window_length"}, name) && !isOff(b.Attention[name]) {
				r.fail(errUnknown{fmt.Sprintf("block_configs.attention.%s is not understood.", printable.Text(name))})
			}
		}
		if at.None || at.Linear {
			continue
		}
		if at.Group < 1 || at.Group > a.Heads {
			r.fail(fmt.Errorf("block_configs has %d heads in a group, and there are %d heads", at.Group, a.Heads))
			return nil
		}
		out = append(out, estimate.Cache{Layer: i, Heads: (a.Heads + at.Group - 1) / at.Group, Key: a.HeadDim, Value: cmp.Or(a.ValueDim, a.HeadDim), Window: max(0, at.Window)})
	}
	return out
}

// otherCaches returns the caches of Step-3.5 and its successors. Layers of the type that
// attention_other_setting names have heads of their own.
func otherCaches(r *reader, a *estimate.Architecture) []estimate.Cache {
	_, raw := r.field("attention_other_setting")
	out := windowCaches(r, a, &family{})
	if raw == nil || r.err != nil {
		return out
	}
	var other struct {
		Type  string `json:"attention_type"`
		Heads int    `json:"num_attention_groups"`
		Dim   int    `json:"head_dim"`
	}
	if err := decode("attention_other_setting", raw, &other); err != nil {
		r.fail(err)
		return nil
	}
	if other.Heads < 1 || other.Dim < 1 || max(other.Heads, other.Dim) > 1<<20 {
		r.fail(errUnknown{fmt.Sprintf("attention_other_setting has %d groups of heads of %d numbers; it must have at least 1 of each.", other.Heads, other.Dim)})
		return nil
	}
	if out == nil {
		out = a.WithWindows(make([]int, a.Layers))
	}
	for i, kind := range r.layerTypes(a.Layers) {
		if kind == other.Type {
			out[i].Heads, out[i].Key, out[i].Value = other.Heads, other.Dim, other.Dim
		}
	}
	return out
}
