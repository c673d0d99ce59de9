package hf

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
)

// half and full are the bytes of a number with 16 and with 32 bits.
const (
	half = 2
	full = 4
)

// stateBytes returns the size of a state: the numbers of a convolution in 16 bits, and other
// numbers of the given size.
func stateBytes(convolution, numbers int64, bytes int) cluster.Bytes {
	return cluster.Bytes(min(multiply(convolution, half)+multiply(numbers, bytes), mostState))
}

// mostState is far above any real state. A larger product is limited to it, so that sums do
// not overflow.
const mostState = 1 << 50

// multiply returns the product of numbers that are not negative, at most mostState.
func multiply[N int | int64](first N, others ...int) int64 {
	out := min(int64(first), mostState)
	for _, n := range others {
		out = min(cluster.MulDiv(out, int64(n), 1), mostState)
	}
	return out
}

// stateNumber returns the size of a number of a state in bytes: 4 if the field says float32, 2 if
// it says something else, and otherwise if there is no field.
func (r *reader) stateNumber(otherwise int, names ...string) int {
	for _, name := range names {
		switch kind := r.stringList(name); {
		case len(kind) != 1:
		case kind[0] == "float32":
			return full
		default:
			return half
		}
	}
	r.assume(fmt.Sprintf("The configuration does not have %s; numbers of states are assumed to have %d bits.", names[0], 8*otherwise))
	return otherwise
}

// mixedCaches returns the caches of a model in which attends reports the layers with keys
// and values, and keeps the layers with a state.
func mixedCaches(a *estimate.Architecture, state cluster.Bytes, attends, keeps func(int) bool) []estimate.Cache {
	var out []estimate.Cache
	for i, c := range a.WithWindows(make([]int, a.Layers)) {
		if !attends(i) {
			c = estimate.Cache{Layer: i}
		}
		if keeps(i) {
			c.State = state
		}
		if attends(i) || keeps(i) {
			out = append(out, c)
		}
	}
	return out
}

// checkLayers records an error if the list names a layer that is not between first and last.
func (r *reader) checkLayers(field string, layers []int, first, last int) {
	for _, n := range layers {
		if n < first || n > last {
			r.fail(fmt.Errorf("%s names layer %d, and the layers are %d to %d", field, n, first, last))
		}
	}
}

// checkKinds records that the model is not known if a layer is of another kind than these.
func (r *reader) checkKinds(kinds []string, known ...string) {
	for _, kind := range kinds {
		if !slices.Contains(known, kind) {
			r.fail(errUnknown{fmt.Sprintf("Layers of type %q are not known.", kind)})
		}
	}
}

func not(f func(int) bool) func(int) bool { return func(i int) bool { return !f(i) } }

func every(int) bool { return true }
func never(int) bool { return false }

// deltaCaches returns the caches of models with gated delta networks: Qwen3-Next, Qwen3.5.
func deltaCaches(r *reader, a *estimate.Architecture) []estimate.Cache {
	keys := multiply(r.required("linear_num_key_heads"), r.required("linear_key_head_dim"))
	values := multiply(r.required("linear_num_value_heads"), r.required("linear_value_head_dim"))
	kernel := r.required("linear_conv_kernel_dim")
	state := stateBytes(multiply(2*keys+values, max(0, kernel-1)), multiply(values, r.wholeNumber("linear_key_head_dim")), r.stateNumber(half, "mamba_ssm_dtype"))
	var attends func(int) bool
	if _, raw := r.field("layer_types"); raw != nil {
		attends = r.attendsByType(a.Layers)
	} else {
		interval := r.orAssume(4, "full_attention_interval")
		attends = func(i int) bool { return (i+1)%interval == 0 }
	}
	return mixedCaches(a, state, attends, not(attends))
}

// attendsByType returns a function that reports whether a layer has attention according to
// layer_types; all other layers keep a state. It records an error if a type is not known.
// Versions of transformers write different names for the same type.
func (r *reader) attendsByType(layers int) func(int) bool {
	all := r.layerTypes(layers)
	r.checkKinds(all, "full_attention", "attention", "linear_attention", "mamba", "conv")
	return func(i int) bool { return i < len(all) && (all[i] == "full_attention" || all[i] == "attention") }
}

// mamba2State returns the state of a Mamba-2 layer with an inner width and groups, whose
// state has size numbers for each of the inner width.
func mamba2State(inner int64, groups, size, kernel, bytes int) cluster.Bytes {
	return stateBytes(multiply(inner+multiply(groups, size, 2), max(0, kernel-1)), multiply(inner, size), bytes)
}

// nemotronCaches returns the caches of Nemotron-H: a layer is a Mamba-2 layer, attention, or
// an MLP.
func nemotronCaches(r *reader, a *estimate.Architecture) []estimate.Cache {
	inner := multiply(r.required("mamba_num_heads"), r.required("mamba_head_dim"))
	state := mamba2State(inner, r.required("n_groups", "mamba_num_groups"), r.required("ssm_state_size", "mamba_state_dim", "mamba_d_state"),
		r.required("conv_kernel", "mamba_d_conv"), r.stateNumber(full, "mamba_ssm_cache_dtype"))
	kinds := make([]string, a.Layers)
	if blocks := r.stringList("layers_block_type"); len(blocks) >= a.Layers {
		copy(kinds, blocks)
	} else if pattern := strings.Join(r.stringList("hybrid_override_pattern"), ""); len(pattern) == a.Layers {
		for i := range pattern {
			kinds[i] = map[byte]string{'M': "mamba", '*': "attention", '-': "mlp", 'E': "moe"}[pattern[i]]
		}
	} else {
		r.fail(fmt.Errorf("hybrid_override_pattern does not describe the %d layers", a.Layers))
	}
	r.checkKinds(kinds, "mamba", "attention", "mlp", "moe")
	is := func(kind string) func(int) bool { return func(i int) bool { return kinds[i] == kind } }
	return mixedCaches(a, state, is("attention"), is("mamba"))
}

// graniteCaches returns the caches of Granite-4-H and Bamba.
func graniteCaches(r *reader, a *estimate.Architecture) []estimate.Cache {
	attends := every
	if _, raw := r.field("layer_types"); raw != nil {
		attends = r.attendsByType(a.Layers)
	} else if indices := r.numberList("attn_layer_indices"); indices != nil {
		r.checkLayers("attn_layer_indices", indices, 0, a.Layers-1)
		attends = func(i int) bool { return slices.Contains(indices, i) }
	}
	if _, raw := r.field("mamba_d_state"); raw == nil && allLayers(a, attends) {
		return nil // models without states have the same type
	}
	inner := multiply(r.orAssume(2, "mamba_expand"), a.Hidden)
	state := mamba2State(inner, r.orAssume(1, "mamba_n_groups"), r.required("mamba_d_state"), r.required("mamba_d_conv"), half)
	return mixedCaches(a, state, attends, not(attends))
}

func allLayers(a *estimate.Architecture, is func(int) bool) bool {
	for i := range a.Layers {
		if !is(i) {
			return false
		}
	}
	return true
}

// falconH1Caches returns the caches of Falcon-H1: every layer has attention and a state.
func falconH1Caches(r *reader, a *estimate.Architecture) []estimate.Cache {
	inner := int64(r.wholeNumber("mamba_d_ssm"))
	if inner == 0 {
		inner = multiply(r.orAssume(2, "mamba_expand"), a.Hidden)
	}
	state := mamba2State(inner, r.orAssume(1, "mamba_n_groups"), r.required("mamba_d_state"), r.required("mamba_d_conv"), half)
	return mixedCaches(a, state, every, every)
}

// zamba2Caches returns the caches of Zamba2: every layer has a state, and some have
// attention too.
func zamba2Caches(r *reader, a *estimate.Architecture) []estimate.Cache {
	kinds := r.kinds("layers_block_type", a.Layers)
	if kinds == nil {
		return nil
	}
	r.checkKinds(kinds, "mamba", "hybrid")
	inner := multiply(r.orAssume(2, "mamba_expand"), a.Hidden)
	state := mamba2State(inner, r.orAssume(1, "mamba_ngroups"), r.required("mamba_d_state"), r.required("mamba_d_conv"), half)
	return mixedCaches(a, state, func(i int) bool { return kinds[i] == "hybrid" }, every)
}

// jambaCaches returns the caches of Jamba: Mamba layers, and attention in every nth layer.
func jambaCaches(r *reader, a *estimate.Architecture) []estimate.Cache {
	period, offset := r.required("attn_layer_period"), r.wholeNumber("attn_layer_offset")
	inner := multiply(r.orAssume(2, "mamba_expand"), a.Hidden)
	state := stateBytes(multiply(inner, max(0, r.required("mamba_d_conv")-1)), multiply(inner, r.required("mamba_d_state")), full)
	if offset >= period {
		r.fail(fmt.Errorf("attn_layer_offset %d is not less than attn_layer_period %d", offset, period))
	}
	attends := func(i int) bool { return i%max(1, period) == offset }
	return mixedCaches(a, state, attends, not(attends))
}

// mambaCaches returns the caches of Mamba, which has no attention.
func mambaCaches(r *reader, a *estimate.Architecture) []estimate.Cache {
	inner := r.required("intermediate_size", "d_inner")
	state := stateBytes(multiply(inner, max(0, r.required("conv_kernel")-1)), multiply(inner, r.required("state_size")), full)
	return mixedCaches(a, state, never, every)
}

// mamba2Caches returns the caches of Mamba-2, which has no attention.
func mamba2Caches(r *reader, a *estimate.Architecture) []estimate.Cache {
	inner := multiply(r.orAssume(2, "expand"), a.Hidden)
	state := mamba2State(inner, r.orAssume(1, "n_groups"), r.required("state_size"), r.required("conv_kernel"), full)
	return mixedCaches(a, state, never, every)
}

// rwkvCaches returns the caches of RWKV: two earlier tokens and a matrix for each head.
func rwkvCaches(r *reader, a *estimate.Architecture) []estimate.Cache {
	head := r.orAssume(64, "head_size", "rwkv_head_size")
	return mixedCaches(a, cluster.Bytes(multiply(a.Hidden, 2+head, full)), never, every)
}

// lightningCaches returns the caches of MiniMax-01 and its successors: linear attention
// keeps a matrix for each head.
func lightningCaches(r *reader, a *estimate.Architecture) []estimate.Cache {
	state := cluster.Bytes(multiply(a.Heads, a.HeadDim, a.HeadDim, full))
	if _, raw := r.field("layer_types"); raw != nil {
		attends := r.attendsByType(a.Layers)
		return mixedCaches(a, state, attends, not(attends))
	}
	kinds := r.numberList("attn_type_list")
	switch {
	case kinds == nil:
		return nil
	case len(kinds) < a.Layers:
		r.fail(fmt.Errorf("attn_type_list names %d layers, but there are %d", len(kinds), a.Layers))
		return nil
	}
	attends := func(i int) bool { return kinds[i] != 0 }
	return mixedCaches(a, state, attends, not(attends))
}

// bailingCaches returns the caches of Ling and Ring with linear attention: the last layer of
// each group has attention, and so have layers after the last whole group.
func bailingCaches(r *reader, a *estimate.Architecture) []estimate.Cache {
	group := r.required("layer_group_size")
	state := cluster.Bytes(multiply(a.Heads, a.HeadDim, a.HeadDim, full))
	attends := func(i int) bool { return (i+1)%max(1, group) == 0 || i >= a.Layers/max(1, group)*group }
	return mixedCaches(a, state, attends, not(attends))
}

// kimiCaches returns the caches of Kimi Linear: delta networks, and latents in some layers,
// which are counted from 1.
func kimiCaches(r *reader, a *estimate.Architecture) []estimate.Cache {
	_, raw := r.field("linear_attn_config")
	var c struct {
		Full   []int `json:"full_attn_layers"`
		Heads  int   `json:"num_heads"`
		Dim    int   `json:"head_dim"`
		Kernel int   `json:"short_conv_kernel_size"`
	}
	if raw == nil {
		r.fail(errUnknown{"The configuration does not have linear_attn_config."})
		return nil
	}
	if err := decode("linear_attn_config", raw, &c); err != nil {
		r.fail(err)
		return nil
	}
	if min(c.Heads, c.Dim, c.Kernel) < 1 || max(c.Heads, c.Dim, c.Kernel) > 1<<20 {
		r.fail(fmt.Errorf("linear_attn_config has num_heads %d, head_dim %d and short_conv_kernel_size %d; each must be from 1 to %d", c.Heads, c.Dim, c.Kernel, 1<<20))
		return nil
	}
	state := stateBytes(multiply(c.Heads, 3, c.Dim, c.Kernel-1), multiply(c.Heads, c.Dim, c.Dim), full)
	r.checkLayers("linear_attn_config.full_attn_layers", c.Full, 1, a.Layers)
	attends := func(i int) bool { return slices.Contains(c.Full, i+1) }
	return mixedCaches(a, state, attends, not(attends))
}

// shortConvolutionCaches returns the caches of LFM2: some layers keep a few tokens of a
// convolution.
func shortConvolutionCaches(r *reader, a *estimate.Architecture) []estimate.Cache {
	state := stateBytes(multiply(cmp.Or(r.wholeNumber("conv_dim"), a.Hidden), max(0, r.required("conv_L_cache")-1)), 0, half)
	attends := every
	if _, raw := r.field("layer_types"); raw != nil {
		attends = r.attendsByType(a.Layers)
	} else if indices := r.numberList("full_attn_idxs"); indices != nil {
		r.checkLayers("full_attn_idxs", indices, 0, a.Layers-1)
		attends = func(i int) bool { return slices.Contains(indices, i) }
	}
	return mixedCaches(a, state, attends, not(attends))
}
