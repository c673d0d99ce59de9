package hf

import (
	"fmt"

	"github.com/berth-project/berth/internal/estimate"
)

// plainLatentCaches returns the caches of models that compress keys and values, but whose
// servers keep them uncompressed. Values are kept as wide as keys.
func plainLatentCaches(r *reader, a *estimate.Architecture) []estimate.Cache {
	if a.Latent == nil {
		r.fail(errUnknown{"The configuration does not have the sizes of latents: kv_lora_rank and qk_rope_head_dim."})
		return nil
	}
	out := make([]estimate.Cache, a.Layers)
	for i := range out {
		out[i] = estimate.Cache{Layer: i, Heads: a.Heads, Key: a.HeadDim, Value: max(a.HeadDim, a.ValueDim)}
	}
	a.Latent, a.KVHeads = nil, a.Heads
	return out
}

// indexBytes returns what an index keeps of a token: numbers of 8 bits, and a scale of 4
// bytes for 128 of them.
func indexBytes(dim int) int { return dim + (dim+127)/128*4 }

// indexedCaches returns the caches of models with latents and an index that selects tokens:
// DeepSeek-V3.2 and GLM-5. Some models have an index only in some layers.
func indexedCaches(r *reader, a *estimate.Architecture) []estimate.Cache {
	if a.Latent == nil {
		r.fail(errUnknown{"The configuration has an index and no latents."})
		return nil
	}
	types := r.stringList("indexer_types")
	r.checkKinds(types, "full", "shared")
	var out []estimate.Cache
	for i := range a.Layers {
		out = append(out, estimate.Cache{Layer: i, Whole: a.Latent.Rank + a.Latent.Rope})
		if len(types) <= i || types[i] == "full" {
			out = append(out, estimate.Cache{Layer: i, Bytes: indexBytes(r.required("index_head_dim"))})
		}
	}
	return out
}

// packing is by how much the caches of DeepSeek-V4 take more than their entries, in percent.
// A server packs the caches of several layers into blocks of equal size. Published sizes are
// 17 to 38 % more than the sum of the entries.
const packing = 140

// compressedCaches returns the caches of DeepSeek-V4. Every layer keeps a window; most layers
// also keep entries that stand for 4 or 128 tokens, and the states from which these are
// computed. Entries have 8 bits and rotary parts of 16 bits. The figures are those of the
// blocks that vLLM allocates.
func compressedCaches(r *reader, a *estimate.Architecture) []estimate.Cache {
	const (
		entry     = 585  // bytes of an entry for one token, or for 4
		sparse    = 864  // of an entry for 128 tokens
		state4    = 8208 // of the state of a token from which entries for 4 tokens are computed
		state128  = 4104
		indexed   = 135 // of the index for 4 tokens
		indexing4 = 2160
	)
	ratios := r.compressRatios(a.Layers)
	if r.err != nil {
		return nil
	}
	window := r.required("sliding_window")
	if dim, index := r.required("head_dim"), r.required("index_head_dim"); dim != 512 || index != 128 {
		r.fail(errUnknown{fmt.Sprintf("The compressed cache of heads of %d numbers with an index of %d is not known.", dim, index)})
	}
	var out []estimate.Cache
	add := func(layer, bytes, window, stride int) {
		out = append(out, estimate.Cache{Layer: layer, Bytes: bytes * packing / 100, Window: window, Stride: stride})
	}
	for i, ratio := range ratios {
		add(i, entry, window, 0)
		switch {
		case ratio <= 1:
		case ratio == 4:
			add(i, entry, 0, ratio)
			add(i, indexed, 0, ratio)
			add(i, state4, 2*ratio, 0)
			add(i, indexing4, 2*ratio, 0)
		case ratio == 128:
			add(i, sparse, 0, ratio)
			add(i, state128, ratio, 0)
		default:
			r.fail(errUnknown{fmt.Sprintf("A cache that is compressed by %d is not known.", ratio)})
		}
	}
	a.KVHeads = 1
	return out
}

// compressRatios returns for each layer how many tokens an entry stands for; 0: the layer has only
// a window. The configuration has a list of them, or names the kind of each layer and the ratio of
// each kind.
func (r *reader) compressRatios(layers int) []int {
	if ratios := r.numberList("compress_ratios"); ratios != nil {
		if len(ratios) < layers {
			r.fail(fmt.Errorf("compress_ratios names %d layers, but there are %d", len(ratios), layers))
			return nil
		}
		return ratios[:layers]
	}
	if _, raw := r.field("layer_types"); raw == nil {
		r.fail(errUnknown{"The configuration has neither compress_ratios nor layer_types."})
		return nil
	}
	var rates map[string]int
	if _, raw := r.field("compress_rates"); raw == nil {
		r.fail(errUnknown{"The configuration has neither compress_ratios nor compress_rates."})
		return nil
	} else if err := decode("compress_rates", raw, &rates); err != nil {
		r.fail(err)
		return nil
	}
	out := make([]int, layers)
	for i, kind := range r.layerTypes(layers) {
		if kind == "sliding_attention" {
			continue
		}
		rate, known := rates[kind]
		if !known || rate < 1 {
			r.fail(errUnknown{fmt.Sprintf("Layers of type %q are not known: compress_rates does not have their ratio.", kind)})
			return nil
		}
		out[i] = rate
	}
	return out
}

// sparseIndexCaches returns the caches of MiniMax-M3: keys and values in every layer, and in
// some layers the keys of an index.
func sparseIndexCaches(r *reader, a *estimate.Architecture) []estimate.Cache {
	_, raw := r.field("sparse_attention_config")
	var sparse struct {
		Layers []int `json:"sparse_attention_freq"`
		Dim    int   `json:"sparse_index_dim"`
		Used   *bool `json:"use_sparse_attention"`
	}
	if raw != nil {
		if err := decode("sparse_attention_config", raw, &sparse); err != nil {
			r.fail(err)
			return nil
		}
	}
	if raw == nil {
		r.assume("The configuration does not have sparse_attention_config; no layer is assumed to have an index.")
		return nil
	}
	if sparse.Used != nil && !*sparse.Used {
		return nil
	}
	if sparse.Dim < 1 || sparse.Dim > 1<<20 {
		r.fail(errUnknown{fmt.Sprintf("sparse_attention_config.sparse_index_dim is missing or %d; it must be at least 1.", sparse.Dim)})
	}
	var out []estimate.Cache
	for i := range a.Layers {
		out = append(out, estimate.Cache{Layer: i, Heads: a.KVHeads, Key: a.HeadDim, Value: a.HeadDim})
		if len(sparse.Layers) <= i || sparse.Layers[i] != 0 {
			out = append(out, estimate.Cache{Layer: i, Whole: sparse.Dim})
		}
	}
	return out
}
