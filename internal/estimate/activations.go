package estimate

import (
	"strings"

	"github.com/berth-project/berth/cluster"
)

// RuntimeOverhead is what CUDA and PyTorch take of a device beside what they
// allocate for a model: the context and the kernels once they are loaded. On an
// H200 with CUDA 13 it was 619 MiB before and at most 689 MiB after a model ran.
const RuntimeOverhead = cluster.Bytes(704 << 20)

// workspace is what the matrix library takes once on a device of the Hopper
// generation; older ones take less.
const workspace = cluster.Bytes(32 << 20)

// rounding: large matrices are handed out in steps of 2 MiB. At most one part in 190
// of the weights was lost to that; one in 128 leaves room for other shapes.
const rounding = 128

// activations are the most that lives at once while a step's tokens go through the
// model. Layers run one after the other, so the widest point of one layer counts.
// Numbers take two bytes unless said otherwise; docs/estimates.md has each term.
func (m *Model) activations(f Form) cluster.Bytes {
	a, tensor := m.Architecture, int64(f.Tensor)
	tokens := cluster.MulDiv(int64(f.Context), int64(f.Sequences), 1)
	tokens = min(tokens, int64(f.BatchTokens))
	hidden, width := int64(a.Hidden), (int64(a.Intermediate)+tensor-1)/tensor

	// The residual stream, its norm and what a block gives back, with room to spare.
	stream := product(tokens, hidden, 6, 2)
	// Queries before and after they are rotated, keys and values alike, the output.
	queries := cluster.Bytes(product(tokens, int64(a.Heads)/tensor, int64(a.HeadDim), 5, 2))
	keys := cluster.Bytes(product(tokens, int64(a.keyHeads(f)), int64(a.HeadDim+a.valueDim()), 2, 2))
	// Gate, up and their product.
	mlp := product(tokens, width, 3, 2)
	if a.Experts > 0 {
		mlp = a.experts(tokens, width)
	}
	layer := sum(cluster.Bytes(stream), max(sum(queries, keys), cluster.Bytes(mlp)), a.ahead(f), m.scratch(width))

	// One row of logits for each sequence that may be sampled at once: as they come,
	// in 32 bits, and as probabilities. Tensor parallelism gathers them whole.
	rows := max(min(int64(f.Sequences), tokens), min(int64(f.Rows), int64(f.BatchTokens)))
	logits := sum(cluster.Bytes(product(tokens, hidden, 2, 2)), cluster.Bytes(product(rows, int64(a.Vocab), 10)))
	return sum(workspace, max(layer, logits), m.weightsOn(f)/rounding)
}

// experts are a token's copies on the way through all experts it is routed to:
// gathered with gate, up and product on the way in; gathered, as they come, weighted
// in 32 bits and put back in order on the way out.
func (a *Architecture) experts(tokens, width int64) int64 {
	copies := product(tokens, int64(max(a.Active, 1)), int64(a.Hidden))
	in := sum(cluster.Bytes(product(copies, 2)), cluster.Bytes(product(tokens, width, 4, 2)))
	return max(int64(in), product(copies, 2+2+4+4))
}

// scratch is for weights that are unpacked to 16 bits before they are used. Other
// ways to store them are read as they are.
func (m *Model) scratch(width int64) cluster.Bytes {
	if !strings.HasPrefix(m.Weights.Quantised, "bitsandbytes") {
		return 0
	}
	return cluster.Bytes(product(int64(m.Architecture.Hidden), width, 2))
}
