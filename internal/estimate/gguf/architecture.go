package gguf

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-project/berth/internal/estimate"
	parser "github.com/gpustack/gguf-parser-go"
)

// architecture is what the metadata says about the architecture of a model.
type architecture struct {
	generic *estimate.Architecture // nil: no layer has a KV cache
	layers  int
	causal  bool
	context int   // the longest context in tokens; 0: not known
	kvHeads []int // of each layer
	key     int   // width of a key head, in layers without a window if they differ
	val     int   // width of a value head
	// windowKey and windowVal are the widths in layers with a window.
	windowKey, windowVal int
	latent               *estimate.Latent
	windows              []int
	state                uint64 // numbers that each recurrent layer keeps per sequence, regardless of its length
	metadata             parser.GGUFMetadataKVs
	widths               perToken
	// recurrent says which layers keep a state; nil: no layer.
	recurrent []bool
	unusual   bool // the buffers of its layers were not measured
}

// perToken is how many numbers the parts of a model have for one token.
type perToken struct {
	hidden, heads, vocab                   int
	dense, expert, shared, experts, active int // MLPs; active: experts that process a token
	ssmIn, ssmConv                         int // input and convolution of a state space model
}

// architecture reads the metadata. It returns nil and a sentence that says why if the
// file is not a language model or lacks a required key.
func (f *file) architecture() (*architecture, []string, error) {
	name := f.values["general.architecture"].text
	switch kind := f.values["general.type"].text; {
	case kind == "imatrix" || name == "imatrix":
		return nil, nil, fmt.Errorf("%s: it holds statistics for quantising, not a model", f.path)
	case kind == "adapter":
		return weightsOnly("The file is an adapter, not a model of its own")
	case kind == "mmproj" || name == "clip":
		return weightsOnly("The file is a projector for images or sound, not a language model")
	case name == "":
		return weightsOnly("The file names no architecture")
	}
	k := &keys{f: f, arch: name}
	a := &architecture{layers: k.number("block_count", maxLayers), context: k.number("context_length", maxTokens)}
	hidden := k.number("embedding_length", maxWidth)
	heads := k.perLayer("attention.head_count", a.layers, maxHeads)
	a.state = k.state(hidden, heads)
	a.causal = k.boolean("attention.causal", true) && !k.isRanker()
	if k.err != nil {
		return nil, nil, k.err
	}
	switch {
	case a.layers == 0:
		return weightsOnly(fmt.Sprintf("%s is not a known language model, or the file lacks %s.block_count", name, name))
	case hidden == 0:
		return weightsOnly(fmt.Sprintf("The file lacks %s.embedding_length", name))
	case !a.causal && a.context == 0:
		return weightsOnly(fmt.Sprintf("The file lacks %s.context_length", name))
	case most(heads) == 0 && a.state == 0:
		return weightsOnly(fmt.Sprintf("The file lacks %s.attention.head_count", name))
	}
	vocab := f.vocabulary(k)
	experts, active := k.number("expert_count", maxExperts), k.number("expert_used_count", maxExperts)
	mlps := k.perLayer("feed_forward_length", a.layers, maxWidth)
	a.widths = k.widths(most(mlps), experts, active)
	a.widths.hidden, a.widths.heads, a.widths.vocab = hidden, most(heads), vocab
	wide := max(a.widths.dense, a.widths.expert, k.number("expert_shared_feed_forward_length", maxWidth))
	var assumed []string
	if most(heads) > 0 {
		assumed = a.readAttention(k, hidden, heads)
	}
	a.recurrent = a.recurrentLayers(name, mlps)
	a.unusual = a.state > 0 && !measuredStates[name]
	if most(a.kvHeads) == 0 {
		assumed = append(assumed, fmt.Sprintf("%s keeps a state of fixed size, not a cache; its memory is computed layer by layer only.", name))
	} else {
		a.generic = &estimate.Architecture{
			Name: name, Layers: a.layers, Hidden: hidden, Intermediate: wide,
			Heads: most(heads), KVHeads: most(a.kvHeads), HeadDim: max(a.key, a.windowKey), Latent: a.latent,
			Vocab: vocab, MaxContext: a.context, Experts: experts, Active: active,
			Tied: a.causal && !f.has("output.weight") && f.has("token_embd.weight"),
		}
		if val := max(a.val, a.windowVal); val != a.generic.HeadDim {
			a.generic.ValueDim = val
		}
		if a.latent != nil { // one latent replaces the keys and values of all heads
			a.generic.KVHeads = a.generic.Heads
		}
		a.generic.Caches = a.caches()
		if !a.causal {
			assumed = append(assumed, fmt.Sprintf("%s reads whole texts at once and keeps no cache.", name))
		}
	}
	a.metadata = append(k.metadata, f.tokenizer(name)...)
	return a, assumed, k.err
}

func weightsOnly(why string) (*architecture, []string, error) {
	return nil, []string{why + "; only the size of its weights is known."}, nil
}

// caches returns what the layers keep; nil: every layer keeps the same of all tokens.
func (a *architecture) caches() []estimate.Cache {
	if a.windows == nil && cached(a.kvHeads) == a.layers && slices.Min(a.kvHeads) == most(a.kvHeads) {
		return nil
	}
	var out []estimate.Cache
	for i, heads := range a.kvHeads {
		key, val := a.headSizes(i)
		c := estimate.Cache{Layer: i, Heads: heads, Key: key, Value: val}
		switch {
		case heads == 0:
			continue
		case a.latent != nil:
			c = estimate.Cache{Layer: i, Whole: a.latent.Rank + a.latent.Rope}
		}
		if a.windows != nil {
			c.Window = a.windows[i]
		}
		out = append(out, c)
	}
	return out
}

// readAttention reads the keys that determine the cache of a token.
func (a *architecture) readAttention(k *keys, hidden int, heads []int) (assumed []string) {
	a.kvHeads = k.perLayer("attention.head_count_kv", a.layers, maxHeads)
	if a.kvHeads == nil {
		a.kvHeads = slices.Clone(heads)
	}
	a.key = k.number("attention.key_length", maxDim)
	if a.key == 0 {
		a.key = min(hidden/most(heads), maxDim)
	}
	a.val = k.number("attention.value_length", maxDim)
	if a.val == 0 {
		a.val = min(hidden/most(heads), maxDim)
	}
	if v, _ := k.at("attention.head_count"); a.key == 0 || a.val == 0 {
		k.wrong("attention.head_count", v, "is %d, more than %s.embedding_length", most(heads), k.arch)
	}
	if v, _ := k.at("attention.head_count_kv"); most(a.kvHeads) == 0 && a.state == 0 {
		k.wrong("attention.head_count_kv", v, "is 0")
	}
	a.omitAttention(k)
	assumed = a.omitShared(k)
	if low := slices.MinFunc(a.kvHeads, lowNotZero); low != most(a.kvHeads) {
		assumed = append(assumed, fmt.Sprintf("KV heads differ from layer to layer, from %d to %d; where layers are not distinguished, the largest number is used.", low, most(a.kvHeads)))
	}
	assumed = append(assumed, a.readLatent(k)...)
	windows, more := k.windows(a.layers)
	a.windows = windows
	if a.windows != nil && a.latent == nil {
		a.windowKey, a.windowVal = k.number("attention.key_length_swa", maxDim), k.number("attention.value_length_swa", maxDim)
	}
	return append(assumed, more...)
}

// headSizes returns the widths of a key head and of a value head of a layer.
func (a *architecture) headSizes(layer int) (key, val int) {
	if a.windows == nil || a.windows[layer] == 0 {
		return a.key, a.val
	}
	return cmp.Or(a.windowKey, a.key), cmp.Or(a.windowVal, a.val)
}

// omitShared removes the KV heads of the last layers if these use the keys and values of earlier
// layers. As in llama.cpp, the file says so for gemma4, and gemma3n has 20 layers with a cache.
func (a *architecture) omitShared(k *keys) []string {
	own := a.layers
	switch k.arch {
	case "gemma3n":
		own = min(own, 20)
	case "gemma4":
		shared := k.number("attention.shared_kv_layers", maxLayers)
		if v, _ := k.at("attention.shared_kv_layers"); shared >= a.layers && shared > 0 {
			k.wrong("attention.shared_kv_layers", v, "is %d, and there are %d layers", shared, a.layers)
			return nil
		}
		own -= shared
	}
	if own == a.layers {
		return nil
	}
	for i := own; i < a.layers; i++ {
		a.kvHeads[i] = 0
	}
	return []string{fmt.Sprintf("Only the first %d of %d layers keep keys and values; the others use those of earlier layers.", own, a.layers)}
}

// readLatent sets latent if the cache holds latents. Files from before llama.cpp cached
// latents lack the sizes of the heads; llama.cpp caches keys and values for them.
func (a *architecture) readLatent(k *keys) []string {
	rank := k.number("attention.kv_lora_rank", maxDim)
	keyHead, valueHead := k.number("attention.key_length_mla", maxDim), k.number("attention.value_length_mla", maxDim)
	rope := k.number("rope.dimension_count", maxDim)
	switch {
	case rank == 0:
		return nil
	case keyHead == 0 || valueHead == 0:
		return []string{"The file is from before llama.cpp cached latents: it caches the keys and values of all heads."}
	}
	if rope == 0 && a.key > rank { // the cached key is the latent and its rotary part
		rope = a.key - rank
	}
	a.latent = &estimate.Latent{Rank: rank, Rope: rope}
	parserTakes := (keyHead + valueHead) * most(a.kvHeads)
	a.key, a.val = keyHead, valueHead
	return []string{fmt.Sprintf("The cache holds one latent of %d numbers a token and layer (rank %d, rotary %d); gguf-parser-go counts %d, and llama.cpp from before February 2026 keeps %d.",
		rank+rope, rank, rope, parserTakes, 2*rank+rope)}
}

// isRanker reports whether the model pools the last token of a text or ranks texts. Such
// a model generates no tokens.
func (k *keys) isRanker() bool {
	v, ok := k.at("pooling_type")
	if !ok {
		return false
	}
	n, ok := v.wholeNumber()
	if !ok || n > maxDim {
		k.wrong("pooling_type", v, "must be a small whole number")
		return false
	}
	k.keepAs(parser.GGUFMetadataKV{Key: k.arch + ".pooling_type", ValueType: parser.GGUFMetadataValueTypeUint32, Value: uint32(n)})
	return n > 2
}

func most(of []int) int {
	if len(of) == 0 {
		return 0
	}
	return slices.Max(of)
}

func cached(kvHeads []int) (n int) {
	for _, h := range kvHeads {
		if h > 0 {
			n++
		}
	}
	return n
}

// lowNotZero compares head counts so that 0, a layer without attention, is last.
func lowNotZero(a, b int) int {
	switch {
	case a == b:
		return 0
	case a == 0 || b != 0 && b < a:
		return 1
	}
	return -1
}
