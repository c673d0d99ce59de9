// Package estimate says how much memory a model needs: on each device, for the
// form in which it is served. It knows architectures and arithmetic; files are
// read by the packages below it, and where a model goes is decided elsewhere.
//
// What is not known is an error, never 0, and what is assumed is said.
package estimate

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// Model is what is known of a model, whatever it was read from.
type Model struct {
	// Name to show: a preset's name, a directory's, a file's.
	Name string
	// Format is what it was read from: safetensors, gguf, preset or table.
	Format string
	// Weights are all its weights, and how they divide.
	Weights Weights
	// Files is what all published files take, where they hold the weights more than
	// once; 0: they do not.
	Files cluster.Bytes
	// Architecture is nil where nothing but the size of the weights is known.
	Architecture *Architecture
	// Layered is the work layer by layer, for those that split it so; nil: it is not known.
	Layered *Layered
	// Assumed are whole sentences on what was taken for granted in reading it.
	Assumed []string
}

// Published is the figure that tables give for the weights: all files that were
// published. The rule for whole nodes goes by it.
func (m *Model) Published() cluster.Bytes { return max(m.Files, m.Weights.Total()) }

// Weights are the bytes of a model's weights by how they divide over devices.
type Weights struct {
	// Layers are the weights of all repeated layers that tensor and pipeline
	// parallelism divide.
	Layers cluster.Bytes
	// Embedding and Head are divided by tensor parallelism; they are on the first
	// and the last stage of a pipeline. Tied weights are counted once, as Embedding.
	Embedding, Head cluster.Bytes
	// Replicated is on every device: norms, routers, what no rule divides.
	Replicated cluster.Bytes
	// Bits a parameter takes on average, in hundredths: 1600 is 16 bits. 0: not known.
	Bits int
	// Quantised names how weights are stored if not as plain numbers: fp8, gptq, awq, Q8_0, …
	Quantised string
	// Block is how many numbers along an MLP's width have one scale: a device must
	// have whole blocks. 0: nothing keeps it from any part.
	Block int
	// Parameters is how many there are; 0: not known.
	Parameters int64
}

// Total is all of them.
func (w Weights) Total() cluster.Bytes { return w.Layers + w.Embedding + w.Head + w.Replicated }

// Architecture is what decides how much memory a model needs beside its weights.
type Architecture struct {
	Name         string // as its own configuration says it: LlamaForCausalLM, llama
	Layers       int
	Hidden       int // width of the residual stream
	Intermediate int // width of the widest MLP that a token goes through
	// Width is that of one MLP, in a mixture of one expert: tensor parallelism
	// divides each of them. 0: not known.
	Width   int
	Heads   int
	KVHeads int
	HeadDim int
	// ValueDim is the width of a value head where it differs from HeadDim; 0: it does not.
	ValueDim int
	// Latent is for models that cache a compressed latent instead of keys and values.
	Latent *Latent
	// Windows are the tokens that each layer with a cache looks back; 0: all of them.
	// Nil: all layers look at everything.
	Windows []int
	// Cached is how many layers keep a cache; 0: all of them do.
	Cached     int
	Vocab      int
	MaxContext int // tokens; 0: not known
	// Experts are all routed experts of a layer, Active those a token goes through; 0: not a mixture.
	Experts, Active int
	Tied            bool // embedding and head are one tensor
}

// Latent is multi-head latent attention: one latent and one rotary key a token.
type Latent struct{ Rank, Rope int }

// Form is how a model is served.
type Form struct {
	Tensor, Pipeline int // parallelism; 1 each unless given
	Context          int // tokens of one sequence; 0: as many as the model can
	Sequences        int // that are held at once; 1 unless given
	// BatchTokens go through the model in one step; 2048 unless given.
	BatchTokens int
	// KVBits is what a cached number takes: 16 unless given, 8 or 4 where quantised.
	KVBits int
	// Rows of logits that a backend makes room for, however few sequences are held;
	// 0: one for each sequence.
	Rows int
	// WindowFloor is the share of the context that layers with a window keep all the
	// same, in thousandths; 0: they keep the window alone.
	WindowFloor cluster.Milli
	// VocabMultiple is what the vocabulary is filled up to a multiple of before
	// tensor parallelism divides it; 0: it is divided as it is.
	VocabMultiple int
	// Graph and Overhead are what the backend takes of each device for captured
	// graphs and for itself.
	Graph, Overhead cluster.Bytes
}

// Breakdown is what a model needs of one device: the fullest of those it is on.
type Breakdown struct {
	Weights, KVCache, Activations, Graph, Overhead cluster.Bytes
}

// Total is all of it.
func (b Breakdown) Total() cluster.Bytes {
	return b.Weights + b.KVCache + b.Activations + b.Graph + b.Overhead
}

// Layered is a model that splits layer by layer, some on devices and the rest in
// the node's own memory.
type Layered struct {
	// Of says what the form needs; context, sequences and KVBits count.
	Of func(Form) (LayeredNeed, error)
	// Assumed are those sentences of the model's that count only where it is split so.
	Assumed []string
}

// AssumedWhere is what was taken for granted, where the model is split layer by
// layer or where it is not.
func (m *Model) AssumedWhere(layered bool) []string {
	if layered || m.Layered == nil {
		return m.Assumed
	}
	return slices.DeleteFunc(slices.Clone(m.Assumed), func(s string) bool { return slices.Contains(m.Layered.Assumed, s) })
}

// LayeredNeed is what such a model needs in one form.
type LayeredNeed struct {
	Layers int           // the output layer counts as one
	Bytes  cluster.Bytes // of the largest layer, its KV cache included
	Fixed  cluster.Bytes // on every device used, beside its layers
	Host   cluster.Bytes // of the node's memory with all layers on devices
	Alone  cluster.Bytes // of the node's memory with no device at all
	// Whole is the breakdown with all layers on one device.
	Whole Breakdown
}
