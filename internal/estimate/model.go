// Package estimate computes how much memory a model needs of each device, for given
// serving parameters. It contains the arithmetic for known architectures. The packages
// below it read files; other packages decide where a model is placed.
//
// If a figure is not known, the result is an error and never 0. Every assumption is
// reported as a sentence.
package estimate

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// Model is what is known about a model, regardless of the format from which it was read.
type Model struct {
	// Name is the name of a preset, a directory or a file, for messages.
	Name string
	// Format is the format from which the model was read: safetensors, gguf, preset or
	// table.
	Format string
	// Weights is the size of all weights, by how they are divided over devices.
	Weights Weights
	// Files is the size of all published files if they hold the weights more than once;
	// 0: they do not.
	Files cluster.Bytes
	// Architecture is nil if only the size of the weights is known. If its sizes are known and
	// what its layers keep is not, it is an upper bound; see Architecture.Bound.
	Architecture *Architecture
	// KVBits is the size of a number in the KV cache for which the files of the model have
	// scales; 0: they have none.
	KVBits int
	// Layered computes the memory layer by layer, for backends that divide a model so;
	// nil: the layers are not known.
	Layered *Layered
	// Assumed lists the assumptions that were made in reading the model, as whole sentences.
	Assumed []string
}

// PublishedSize returns the size of all published files, which is the figure that tables
// of models give. Package nodes uses it.
func (m *Model) PublishedSize() cluster.Bytes { return max(m.Files, m.Weights.Total()) }

// Weights is the bytes of a model's weights, by how they are divided over devices.
type Weights struct {
	// Layers is the size of the weights of all repeated layers that tensor and pipeline
	// parallelism divide.
	Layers cluster.Bytes
	// Embedding and Head are divided by tensor parallelism. They are on the first and on
	// the last stage of a pipeline. Tied weights are counted once, as Embedding.
	Embedding, Head cluster.Bytes
	// Replicated is the size of what every device holds: norms, routers and all other
	// weights that are not divided.
	Replicated cluster.Bytes
	// Bits is the average size of a parameter in hundredths of a bit: 1600 is 16 bits;
	// 0: not known.
	Bits int
	// Quantised names the format of quantised weights, such as fp8, gptq, awq or Q8_0;
	// "": the weights are plain numbers.
	Quantised string
	// Block is how many numbers along the width of an MLP share one scale. A device must
	// hold whole blocks. 0: the weights are not in blocks.
	Block int
	// Parameters is the number of parameters; 0: not known.
	Parameters int64
	// Plain is the part of the weights that are plain numbers of 16 bits.
	Plain cluster.Bytes
}

// Total returns the size of all weights.
func (w Weights) Total() cluster.Bytes { return w.Layers + w.Embedding + w.Head + w.Replicated }

// Architecture is the part of a model's configuration that determines how much memory it
// needs in addition to its weights.
type Architecture struct {
	Name         string // the name in the model's configuration, such as LlamaForCausalLM or llama
	Layers       int
	Hidden       int // width of the residual stream
	Intermediate int // width of the widest MLP that processes a token, over all its active experts
	// Width is the width of one MLP, or of one expert in a mixture of experts. Tensor
	// parallelism divides it. 0: not known.
	Width   int
	Heads   int
	KVHeads int
	HeadDim int
	// ValueDim is the size of a value if it differs from HeadDim; 0: it does not.
	ValueDim int
	// Latent is set for models that cache a compressed latent instead of keys and
	// values.
	Latent *Latent
	// Caches is what the layers keep of a sequence. Nil: every layer keeps the keys and
	// values of KVHeads, or the latent, of all tokens.
	Caches []Cache
	// Bound is set if it is not known what the layers keep. It is what each layer is then assumed
	// to keep of all tokens, even if Caches has less: keys and values, uncompressed. PerDevice
	// is then at least the crude figure.
	Bound *Cache
	// Encoder is set for models that process a whole text at once and keep nothing of it.
	Encoder    bool
	Vocab      int
	MaxContext int // tokens; 0: not known
	// Experts is how many routed experts a layer has, and Active how many of them
	// process a token; 0: the model is not a mixture.
	Experts, Active int
	Tied            bool    // embedding and head are one tensor
	FusedMLP        bool    // one matrix computes gate and up
	Vision          *Vision // nil: the model has no vision encoder
}

// Vision is the sizes of a vision encoder.
type Vision struct {
	Layers, Heads, Hidden, Intermediate int
	// Patches is the most patches of one image, and PerToken how many patches become one
	// token of the language model.
	Patches, PerToken int
}

// Latent is the sizes of multi-head latent attention (MLA), which caches one latent and
// one rotary key per token.
type Latent struct{ Rank, Rope int }

// Serving is the parameters with which a model is served.
type Serving struct {
	Tensor, Pipeline int // parallelism; 0: 1
	// Data is the number of data-parallel ranks, each of which holds a whole copy of the
	// model on tensor × pipeline devices, except experts if Expert is set; 0: 1.
	Data int
	// Expert is set if each device holds whole routed experts, which are divided over
	// tensor × data devices.
	Expert bool
	// ExpertsOverRanks is set if routed experts are divided over tensor × data devices also
	// without Expert: then each device holds a part of every expert.
	ExpertsOverRanks bool
	// UnevenExperts is set if devices may hold different numbers of whole experts.
	UnevenExperts bool
	Context       int // tokens of one sequence; 0: the longest that the model supports
	Sequences     int // sequences that are held at once; 0: 1
	// BatchTokens is how many tokens one step processes; 0: 2048. If the context is not longer
	// than Prompt, a step processes at least a whole prompt.
	BatchTokens, Prompt int
	// KVBits is the size of a number in the KV cache in bits: 4, 8, 16 or 32; 0: 16.
	KVBits int
	// WeightBits is the size of a number of the weights if the backend converts plain
	// numbers as it loads them: 32, 16, 8 or 4; 0: 16.
	WeightBits int
	// PlainLoad is set if a backend that quantises weights to 8 bits first loads all of them
	// with 16 bits.
	PlainLoad bool
	// Rows is the least number of rows of logits for which a backend allocates memory,
	// even if fewer sequences are held; 0: one row for each sequence. LogitBytes is the
	// memory for one number of these rows; 0: 10 bytes.
	Rows, LogitBytes int
	// WindowFloor is the share of the context that a backend keeps even in layers with a
	// shorter window, in thousandths; 0: such layers keep the window only.
	WindowFloor cluster.Milli
	// WindowSteps is of how many steps layers with a window also keep the tokens; 0: such
	// layers keep the window only.
	WindowSteps int
	// WholeChunks is set if layers that look at a chunk of the context keep all of it.
	WholeChunks bool
	// Page is the number of tokens for which the cache is allocated at once; 0: 1.
	Page int
	// Groups is set if caches of different kinds are allocated in groups of equally many
	// layers. A group has as many layers as the rarest kind, or as the most frequent kind if
	// that has less than Groups % of them.
	Groups int
	// States is how many states of a sequence a layer keeps; 0: one.
	States int
	// StateRatio is the least size of the states of all layers, as a part of the rest of the
	// cache, in thousandths.
	StateRatio cluster.Milli
	// Eager is set if the backend captures no graphs.
	Eager bool
	// VocabMultiple is the number to a multiple of which the vocabulary is padded before
	// tensor parallelism divides it; 0: it is not padded.
	VocabMultiple int
	// LatentTokens is for how many tokens the backend allocates memory to expand latents into
	// keys and values; 0: it allocates none.
	LatentTokens int
	// ExtraWeights is how much more quantised weights of layers take in the backend than in
	// the files, in thousandths.
	ExtraWeights cluster.Milli
	// Graph is what the backend takes of each device for captured graphs, and Overhead
	// what the runtime and the backend take for themselves.
	Graph, Overhead cluster.Bytes
	// The following parameters are those of llama.cpp. MicroBatch is how many tokens are
	// computed at once; 0: 512. NoFlashAttention is true if flash attention is switched off,
	// and FullWindowCache if layers with a window cache the whole context.
	MicroBatch       int
	NoFlashAttention bool
	FullWindowCache  bool
}

// Breakdown is what a model needs of one device: the device that needs most.
type Breakdown struct {
	Weights, KVCache, Activations, Graph, Overhead cluster.Bytes
}

// Total returns the sum of all parts.
func (b Breakdown) Total() cluster.Bytes {
	return b.Weights + b.KVCache + b.Activations + b.Graph + b.Overhead
}

// Layered is a model that can be divided layer by layer, with some layers on devices and
// the rest in the node's memory.
type Layered struct {
	// Need computes how much memory the model needs. It uses the context, the sequences and
	// KVBits, and ignores all other parameters.
	Need func(Serving) (LayeredNeed, error)
	// Assumed lists those entries of Model.Assumed that apply only if the model is divided
	// layer by layer.
	Assumed []string
}

// Assumptions returns the entries of Assumed that apply: all of them if the model is
// divided layer by layer, and otherwise those that are not about layers.
func (m *Model) Assumptions(layered bool) []string {
	if layered || m.Layered == nil {
		return m.Assumed
	}
	return slices.DeleteFunc(slices.Clone(m.Assumed), func(s string) bool { return slices.Contains(m.Layered.Assumed, s) })
}

// CrudeAssumption says how PerDeviceEvenly computes the need of a model whose architecture is
// not known.
const CrudeAssumption = "The architecture is not known. The need is taken to be 1.2 × the weights and 2 GiB for any context, divided equally over all devices."

// IsCrude reports whether PerDeviceEvenly returns the crude figure for the model.
func (m *Model) IsCrude() bool { return m.Architecture == nil && m.Format != "table" }

// LayeredNeed is how much memory a model needs that is divided layer by layer.
type LayeredNeed struct {
	Layers   int           // with the output layer, which counts as one
	Bytes    cluster.Bytes // of the largest layer, with its KV cache
	Host     cluster.Bytes // of the node's memory, if all layers are on devices
	HostOnly cluster.Bytes // of the node's memory, if no device is used
	// Whole is the need of one device that holds all layers.
	Whole Breakdown
	// Divided is what devices need in addition to their layers if all layers are on several
	// devices, and Partly the same if some layers are in the node's memory.
	Divided, Partly Working
	// Sizes is the memory of each layer with its KV cache, in the order of the model, the
	// output layer last; nil: Bytes for each layer.
	Sizes []cluster.Bytes
}

// Working is what devices need in addition to the layers that they hold.
type Working struct {
	Each   cluster.Bytes // on every device that is used
	Output cluster.Bytes // in addition on the device with the output layer
}

// Divisible returns the layers as a request for devices that need w in addition.
func (n *LayeredNeed) Divisible(w Working) cluster.Layers {
	if n.Sizes == nil {
		return cluster.Layers{Total: n.Layers, Bytes: n.Bytes, Fixed: w.Each + w.Output}
	}
	sizes := slices.Clone(n.Sizes)
	sizes[len(sizes)-1] += w.Output
	return cluster.LayersOf(sizes, w.Each)
}
