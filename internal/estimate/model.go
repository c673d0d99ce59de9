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
	// Architecture is nil if only the size of the weights is known.
	Architecture *Architecture
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
	// Windows is, for each layer with a cache, how many tokens attention looks back; 0:
	// all tokens. Nil: no layer has a window.
	Windows []int
	// Cached is how many layers keep a cache; 0: all layers.
	Cached     int
	Vocab      int
	MaxContext int // tokens; 0: not known
	// Experts is how many routed experts a layer has, and Active how many of them
	// process a token; 0: the model is not a mixture.
	Experts, Active int
	Tied            bool // embedding and head are one tensor
}

// Latent is the sizes of multi-head latent attention (MLA), which caches one latent and
// one rotary key per token.
type Latent struct{ Rank, Rope int }

// Serving is the parameters with which a model is served.
type Serving struct {
	Tensor, Pipeline int // parallelism; 0: 1
	Context          int // tokens of one sequence; 0: the longest that the model supports
	Sequences        int // sequences that are held at once; 0: 1
	// BatchTokens is how many tokens one step processes; 0: 2048.
	BatchTokens int
	// KVBits is the size of a number in the KV cache in bits: 4, 8, 16 or 32; 0: 16.
	KVBits int
	// Rows is the least number of rows of logits for which a backend allocates memory,
	// even if fewer sequences are held; 0: one row for each sequence.
	Rows int
	// WindowFloor is the share of the context that a backend keeps even in layers with a
	// shorter window, in thousandths; 0: such layers keep the window only.
	WindowFloor cluster.Milli
	// VocabMultiple is the number to a multiple of which the vocabulary is padded before
	// tensor parallelism divides it; 0: it is not padded.
	VocabMultiple int
	// Graph is what the backend takes of each device for captured graphs, and Overhead
	// what the runtime and the backend take for themselves.
	Graph, Overhead cluster.Bytes
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

// LayeredNeed is how much memory a model needs that is divided layer by layer.
type LayeredNeed struct {
	Layers   int           // with the output layer, which counts as one
	Bytes    cluster.Bytes // of the largest layer, with its KV cache
	Fixed    cluster.Bytes // on every device that is used, in addition to its layers
	Host     cluster.Bytes // of the node's memory, if all layers are on devices
	HostOnly cluster.Bytes // of the node's memory, if no device is used
	// Whole is the need of one device that holds all layers.
	Whole Breakdown
}
