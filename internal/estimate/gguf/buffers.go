package gguf

import parser "github.com/gpustack/gguf-parser-go"

// The formulas of this file were compared with what llama.cpp itself reserves (version of
// August 2026, commit b21e4de); see TestBuffers. It reserves one buffer per device that is
// large enough for any step of the computation. The step that takes most is an MLP, the
// attention, or the logits.

// copies is how many steps llama.cpp computes at the same time if the layers are on several
// devices. Each device then has as many copies of the inputs.
const copies = 4

// buffers is what llama.cpp reserves on a device in addition to weights and cache, in
// bytes.
type buffers struct {
	layer  uint64 // for the layer that takes most
	output uint64 // for the output layer
	inputs uint64 // the masks of attention, which are a part of layer
	hidden uint64 // one residual stream
	state  uint64 // the input of a state space model
	pool   uint64 // what operations allocate while they run
}

// buffers returns the buffers of a model that is served so. Sizes in the cache are those of
// the layer that caches most.
func (a *architecture) buffers(s servingKey) buffers {
	w, tokens := a.widths, uint64(s.tokens())
	of := func(numbers int) uint64 { return uint64(numbers) * tokens * 4 }
	key, val := max(a.key, a.windowKey), max(a.val, a.windowVal)
	kv := most(a.kvHeads) * (key + val)
	b := buffers{hidden: of(w.hidden), state: of(w.ssmIn)}
	var cells, windowCells uint64
	for i := range a.layers {
		if n := a.cells(s, i); a.windows != nil && a.windows[i] > 0 {
			windowCells = max(windowCells, n)
		} else {
			cells = max(cells, n)
		}
	}
	cellBytes := uint64(2)
	if s.noFlash {
		cellBytes = 4
		b.inputs = uint64(most(a.kvHeads)*val) * tokens * 8 // where values are written
	}
	b.inputs += (cells + windowCells) * tokens * cellBytes
	attention := of(a.attentionWidth(kv))
	if s.noFlash {
		attention += max(cells, windowCells) * tokens * uint64(w.heads) * 4 // a score for each pair of tokens and head
	}
	mlp := of(3*w.dense + 3*w.hidden)
	if w.experts > 0 {
		mlp = max(mlp, of(w.active*max(3*w.expert, w.expert+2*w.hidden)+3*w.shared+3*w.hidden+kv+8*w.experts))
	}
	var recurrent uint64
	if a.state > 0 {
		recurrent = of(2*w.ssmIn+2*w.ssmConv+w.hidden) + a.state*uint64(s.slots())*4
	}
	const small = 64 << 10 // positions and the like
	b.layer = b.inputs + max(attention, mlp, recurrent) + small
	b.output = of(w.vocab+2*w.hidden+w.active*w.hidden) + small
	// An operation converts its input and its output to 16 bits.
	b.pool = of(w.hidden+max(w.dense, w.active*w.expert, w.shared, w.heads*max(key, val), w.ssmIn)) / 2
	if s.bits < 16 { // attention converts the cache of a layer to 16 bits
		b.pool += max(cells, windowCells) * uint64(s.streams()) * uint64(kv) * 2
	}
	return b
}

// attentionWidth returns how many numbers the attention of a layer has for one token.
func (a *architecture) attentionWidth(kv int) int {
	w := a.widths
	if l := a.latent; l != nil {
		return 4*w.hidden + w.heads*(l.Rank+l.Rope+l.Rank+a.key) + 2*(l.Rank+l.Rope)
	}
	return 2*w.hidden + w.heads*(2*max(a.key, a.windowKey)+max(a.val, a.windowVal)) + 2*kv
}

// one returns what one device needs that holds all layers.
func (b buffers) one() uint64 { return max(b.layer, b.output) + b.pool }

// divided returns what each of several devices needs, and what the device with the output
// layer needs in addition. Besides the copies of the inputs, a device keeps copies of what it
// gets from the device before it.
func (b buffers) divided() (each, output uint64) {
	between := 9*b.hidden + 5*b.state
	if b.state > 0 {
		between += 3 * b.hidden
	}
	each = b.layer + (copies-1)*b.inputs + between + b.pool
	return each, atLeast0(b.output+copies*b.inputs+between+b.pool, each)
}

// partly is divided for a model of which some layers are in the node's memory. The weights
// of such a layer are copied to a device for large batches, one tensor at a time.
func (b buffers) partly(largest uint64) (each, output uint64) {
	each = b.layer + b.inputs + 3*b.hidden + largest + b.pool
	return each, atLeast0(b.output+b.pool, each)
}

// atLeast0 returns a − b, or 0 if b is larger.
func atLeast0(a, b uint64) uint64 { return max(a, b) - b }

// largestTensor returns the size of the largest tensor that is in a layer.
func largestTensor(tensors []tensor) uint64 {
	largest := uint64(0)
	for _, t := range tensors {
		if placeOf(t.name) == inLayer {
			largest = max(largest, t.bytes)
		}
	}
	return largest
}

// parserTakes returns what the parser counts for a device in addition to weights and cache.
func parserTakes(d parser.LLaMACppRunDeviceUsage) uint64 {
	return uint64(d.Footprint + d.Computation.Sum())
}
