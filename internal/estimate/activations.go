package estimate

import (
	"cmp"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// RuntimeOverhead is how many bytes of a device CUDA and PyTorch take in addition to what
// they allocate for a model: the CUDA context, and the kernels once they are loaded. On an
// H200 with CUDA 13, 619 MiB were measured before a model ran and at most 689 MiB after
// it.
const RuntimeOverhead = cluster.Bytes(704 << 20)

// workspace is what the matrix library allocates once on a device of the Hopper
// generation. On older devices it is less.
const workspace = cluster.Bytes(32 << 20)

// rounding is the divisor of the weights that gives the memory that is lost because large
// matrices are allocated in steps of 2 MiB. At most 1/190 of the weights was measured;
// 1/128 leaves a margin for other shapes.
const rounding = 128

// logitBytes is the memory for one logit: in 16 bits, in 32 bits, and as a probability.
const logitBytes = 10

// activations returns the most memory that is in use at once while the model processes
// the tokens of one step. Layers run one after the other, so the widest point of one
// layer counts. Numbers have two bytes unless a comment says otherwise.
// docs/estimates.md explains each term.
func (m *Model) activations(s Serving) cluster.Bytes {
	a, tensor := m.Architecture, int64(s.Tensor)
	tokens := cluster.MulDiv(int64(s.Context), int64(s.Sequences), 1)
	tokens = min(tokens, int64(s.BatchTokens))
	hidden, width := int64(a.Hidden), (int64(a.Intermediate)+tensor-1)/tensor

	// The residual stream, its norm and the output of a block, with a margin.
	stream := product(tokens, hidden, 6, 2)
	// Queries before and during their rotation, and the output; keys and values in the same way.
	queries := cluster.Bytes(product(tokens, int64(a.Heads)/tensor, int64(a.HeadDim), 5, 2))
	keys := cluster.Bytes(product(tokens, int64(a.keyHeads(s)), int64(a.HeadDim+a.valueDim()), 2, 2))
	// The outputs of gate and up, and their product. If one matrix computes both, the
	// activated gate is in addition to its output.
	parts := int64(3)
	if a.FusedMLP {
		parts = 4
	}
	mlp := product(tokens, width, parts, 2)
	if a.Experts > 0 {
		mlp = a.expertActivations(tokens, width)
	}
	layer := sum(cluster.Bytes(stream), max(sum(queries, keys), cluster.Bytes(mlp)), a.stepCache(s), m.unpackedWeights(s, width))
	if s.WeightBits == 32 {
		layer = times(layer, 2)
	}

	// One row of logits for each sequence that may be sampled at once. Tensor parallelism
	// does not divide them.
	rows := max(min(int64(s.Sequences), tokens), min(int64(s.Rows), int64(s.BatchTokens)))
	if a.Encoder {
		rows = 0
	}
	copies := int64(1) // of the last hidden states, and of the output of a vision encoder
	if a.Vision != nil {
		copies = 2
	}
	logits := sum(cluster.Bytes(product(tokens, hidden, copies, 2)), cluster.Bytes(product(rows, int64(a.Vocab), int64(cmp.Or(s.LogitBytes, logitBytes)))))
	return sum(workspace, max(layer, logits, a.visionActivations(s)), a.expandedLatents(s))
}

// expandedLatents returns the memory that a backend allocates to expand latents: the latents
// of some tokens, and their keys.
func (a *Architecture) expandedLatents(s Serving) cluster.Bytes {
	if a.Latent == nil {
		return 0
	}
	each := int64(a.Latent.Rank+a.Latent.Rope) + product(int64(a.Heads/s.Tensor), int64(a.HeadDim))
	return cluster.Bytes(product(int64(s.LatentTokens), each, 2))
}

// expertActivations returns the size of the copies of the tokens that are routed to
// experts. Before the experts these are the gathered tokens and four times the width
// of the experts. After the experts they are the gathered tokens and the outputs in 16
// bits, and the weighted outputs, before and after they are reordered, in 32 bits.
func (a *Architecture) expertActivations(tokens, width int64) int64 {
	copies := product(tokens, int64(max(a.Active, 1)), int64(a.Hidden))
	in := sum(cluster.Bytes(product(copies, 2)), cluster.Bytes(product(tokens, width, 4, 2)))
	return max(int64(in), product(copies, 2+2+4+4))
}

// visionActivations returns the memory that the vision encoder takes while it processes as
// many images as one step has tokens for, and at least one: the residual stream, and the
// widest point of one layer. It runs before the language model. Servers may keep the whole
// encoder on each device.
func (a *Architecture) visionActivations(s Serving) cluster.Bytes {
	v := a.Vision
	if v == nil {
		return 0
	}
	wide := max(5*int64(v.Hidden), 3*int64(v.Intermediate))
	patches := max(int64(v.Patches), product(int64(s.BatchTokens), int64(v.PerToken)))
	return cluster.Bytes(product(patches, 6*int64(v.Hidden)+wide, 2))
}

// unpackedWeights returns the memory for weights that are unpacked to 16 bits before
// they are used, as bitsandbytes does: one matrix, or all experts of a layer. Other formats are
// used without unpacking.
func (m *Model) unpackedWeights(s Serving, width int64) cluster.Bytes {
	if !strings.HasPrefix(m.Weights.Quantised, "bitsandbytes") && (s.WeightBits != 4 || m.Weights.Plain == 0) {
		return 0
	}
	a := m.Architecture
	one := product(int64(a.Hidden), width, 2)
	if a.Experts == 0 {
		return cluster.Bytes(one)
	}
	all := product(int64(a.Experts), 3, int64(a.Hidden), (int64(a.Width)+int64(s.Tensor)-1)/int64(s.Tensor), 2)
	return cluster.Bytes(max(one, all))
}
