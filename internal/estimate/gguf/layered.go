package gguf

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	parser "github.com/gpustack/gguf-parser-go"
)

const (
	// deviceOverhead is what the runtime of a device takes before a model is loaded, unless
	// the serving parameters say otherwise: the CUDA context of an H200. hostOverhead is the
	// same for the node's memory; the figure is that of gguf-parser-go.
	deviceOverhead cluster.Bytes = 620 << 20
	hostOverhead   cluster.Bytes = 150 << 20

	// llama.cpp's defaults: how many tokens it accepts at once, and how many it computes at
	// once. It rounds the number of cached tokens up to a multiple of padding.
	defaultBatch      = 2048
	defaultMicroBatch = 512

	// stateOverhead is what a process takes in addition if layers keep a state. 98 MiB were
	// measured on an H200.
	stateOverhead cluster.Bytes = 100 << 20
	padding                     = 256

	// autoSlots is how many sequences llama-server serves if their number is not set. They
	// share one cache.
	autoSlots = 4
)

// layered computes what llama.cpp needs. Results are cached by the serving parameters.
type layered struct {
	arch    *architecture
	file    *parser.GGUFFile
	path    string
	layers  []uint64 // bytes of the weights of each layer
	weights uint64   // bytes of all tensors
	largest uint64   // bytes of the largest tensor of a layer
	tensors int

	mu    sync.Mutex
	needs map[servingKey]cachedNeed
}

// servingKey is the serving parameters that llama.cpp's need depends on.
type servingKey struct {
	context    int // tokens of each sequence, or of all sequences together if their number is 0
	sequences  int // 0: not set
	bits       int
	batch      int
	microBatch int
	noFlash    bool
	fullWindow bool
	overhead   cluster.Bytes
}

// slots returns how many sequences are served at once.
func (s servingKey) slots() int { return cmp.Or(s.sequences, autoSlots) }

// streams returns how many caches there are: one for each sequence, or one that all share.
func (s servingKey) streams() int { return cmp.Or(s.sequences, 1) }

// tokens returns how many tokens are computed at once.
func (s servingKey) tokens() int {
	return min(s.microBatch, s.batch, int(padded(uint64(s.context), padding))*s.streams())
}

type cachedNeed struct {
	need estimate.LayeredNeed
	err  error
}

// layered prepares the computation layer by layer. It returns nil and a sentence if the
// tensors are not in layers.
func (f *file) layered(a *architecture) (*estimate.Layered, []string, error) {
	l := &layered{arch: a, path: f.path, tensors: len(f.tensors), largest: largestTensor(f.tensors), layers: make([]uint64, a.layers), needs: map[servingKey]cachedNeed{}}
	for _, t := range f.tensors {
		l.weights += t.bytes
		if placeOf(t.name) == inStack {
			return nil, []string{"An encoder and a decoder are not divided layer by layer."}, nil
		}
		if placeOf(t.name) != inLayer {
			continue
		}
		n, _ := layerOf(t.name)
		if n >= a.layers {
			return nil, nil, fmt.Errorf("%s: tensor %q is of layer %d, but the file says that there are %d", f.path, t.name, n, a.layers)
		}
		if d := slices.Max(t.dims); d > maxTokens {
			return nil, nil, fmt.Errorf("%s: tensor %q has a dimension of %d", f.path, t.name, d)
		}
		l.layers[n] += t.bytes
	}
	if most := slices.Max(l.layers); most == 0 {
		return nil, []string{"No tensor is in a layer, so the model is not divided layer by layer."}, nil
	}
	l.file = f.forParser(a, l.layers, l.weights)
	assumed := []string{"llama.cpp computes 512 tokens at once with flash attention, and reserves memory for the logits of all of them, unless the model says otherwise."}
	if a.windows != nil || a.state > 0 {
		assumed = append(assumed, "llama.cpp's server has 4 sequences that share one context unless their number is set; windows and states are counted for 4 then.")
	}
	return &estimate.Layered{Need: l.need}, assumed, nil
}

// forParser returns a short version of the file for the parser. The parser examines only
// the tensors of the last layer; of the other layers it needs the size. With all tensors
// it would take milliseconds for each set of serving parameters.
//
// Layers are last and in order, because the parser takes the last tensors of a file for
// its last layer.
func (f *file) forParser(a *architecture, layers []uint64, weights uint64) *parser.GGUFFile {
	gf := &parser.GGUFFile{ModelSize: parser.GGUFBytesScalar(weights), Size: parser.GGUFBytesScalar(weights + f.header)}
	gf.Header.MetadataKV = a.metadata
	last := len(layers) - 1
	for layers[last] == 0 {
		last--
	}
	var before, inLast []parser.GGUFTensorInfo
	for _, t := range f.tensors {
		info := parser.GGUFTensorInfo{Name: t.name, NDimensions: uint32(len(t.dims)), Dimensions: t.dims, Type: t.kind}
		switch n, inside := layerOf(t.name); {
		case !inside:
			gf.TensorInfos = append(gf.TensorInfos, info)
		case n == last:
			inLast = append(inLast, info)
		}
	}
	for i, size := range layers[:last] {
		if size > 0 {
			before = append(before, parser.GGUFTensorInfo{Name: fmt.Sprintf("blk.%d.all", i), NDimensions: 1, Dimensions: []uint64{size}, Type: parser.GGMLTypeI8})
		}
	}
	gf.TensorInfos = append(append(gf.TensorInfos, before...), inLast...)
	return gf
}

// bookkeeping returns what the parser counts for the descriptions of tensors. It is the
// only part that depends on the number of tensors.
func bookkeeping(tensors int) cluster.Bytes {
	nodes := max(1024, 8*uint64(tensors))
	return cluster.Bytes(parser.GGMLTensorOverhead()*(nodes+2*uint64(tensors)) + parser.GGMLComputationGraphOverhead(nodes, false))
}

// need returns the need for the serving parameters. It is safe for concurrent use.
func (l *layered) need(serving estimate.Serving) (estimate.LayeredNeed, error) {
	s := servingKey{
		context: cmp.Or(serving.Context, l.arch.context), sequences: serving.Sequences, bits: cmp.Or(serving.KVBits, 16),
		batch: cmp.Or(serving.BatchTokens, defaultBatch), microBatch: cmp.Or(serving.MicroBatch, defaultMicroBatch),
		noFlash: serving.NoFlashAttention, fullWindow: serving.FullWindowCache, overhead: cmp.Or(serving.Overhead, deviceOverhead),
	}
	if l.arch.state > 0 {
		s.overhead += stateOverhead
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a, ok := l.needs[s]
	if !ok {
		a.need, a.err = l.compute(s)
		l.needs[s] = a
	}
	return a.need, a.err
}

func (l *layered) compute(s servingKey) (estimate.LayeredNeed, error) {
	if err := l.check(s); err != nil {
		return estimate.LayeredNeed{}, err
	}
	runs, err := l.runs(s)
	if err != nil {
		return estimate.LayeredNeed{}, err
	}
	cache, err := l.arch.cache(s)
	if err != nil {
		return estimate.LayeredNeed{}, fmt.Errorf("%s: %w", l.path, err)
	}
	need := estimate.LayeredNeed{Layers: l.arch.layers + 1}
	var blocks, kv uint64
	for i, weights := range l.layers {
		blocks += weights
		kv += cache[i]
		need.Sizes = append(need.Sizes, cluster.Bytes(weights+cache[i]))
	}
	whole := runs.whole.Devices[1]
	size := l.arch.buffers(s)
	if l.arch.unusual {
		for _, run := range []parser.LLaMACppRunEstimate{runs.whole, runs.split, runs.part} {
			for _, d := range run.Devices[1:] {
				size.layer = max(size.layer, parserTakes(d))
			}
		}
	}
	need.Whole = estimate.Breakdown{
		Weights:     cluster.Bytes(whole.Weight.Sum()),
		KVCache:     cluster.Bytes(kv),
		Activations: cluster.Bytes(size.one()),
		Overhead:    s.overhead,
	}
	need.Divided, need.Partly = with(s.overhead)(size.divided()), with(s.overhead)(size.partly(l.largest))
	need.Sizes = append(need.Sizes, need.Whole.Weights-cluster.Bytes(blocks)) // the output layer
	need.Bytes = slices.Max(need.Sizes)
	host := runs.whole.Devices[0]
	more := hostOverhead + bookkeeping(l.tensors) - bookkeeping(len(l.file.TensorInfos))
	need.Host = more + cluster.Bytes(max(parserTakes(host), copies*size.inputs+2*size.hidden)+uint64(host.Weight.Input+host.Weight.Compute))
	// The parser omits the MLP from the buffers of a run without devices, so the buffers of a
	// partial run are used.
	need.HostOnly = more + cluster.Bytes(max(parserTakes(runs.part.Devices[0]), size.one()-size.pool)+l.weights+kv)
	return need, nil
}

// with returns a function that adds the overhead to what each device needs.
func with(overhead cluster.Bytes) func(each, output uint64) estimate.Working {
	return func(each, output uint64) estimate.Working {
		return estimate.Working{Each: overhead + cluster.Bytes(each), Output: cluster.Bytes(output)}
	}
}

func (l *layered) check(s servingKey) error {
	switch {
	case s.context == 0:
		return fmt.Errorf("%s: the longest context is not in the file; set a context", l.path)
	case s.context < 0 || s.sequences < 0:
		return fmt.Errorf("%s: %d sequences of %d tokens are not possible", l.path, s.streams(), s.context)
	case s.batch < 0 || s.microBatch < 0:
		return fmt.Errorf("%s: batches of %d and %d tokens are not possible", l.path, s.batch, s.microBatch)
	case s.microBatch > maxMicroBatch:
		return fmt.Errorf("%s: a micro-batch of %d tokens is too large; at most %d are allowed", l.path, s.microBatch, maxMicroBatch)
	case s.noFlash && s.bits < 16:
		return fmt.Errorf("%s: llama.cpp has no cache of %d bits without flash attention", l.path, s.bits)
	case s.sequences > maxSeqs:
		return fmt.Errorf("%s: %d sequences are too many; at most %d are allowed", l.path, s.sequences, maxSeqs)
	case s.context > maxTokens/s.streams():
		return fmt.Errorf("%s: %d sequences of %d tokens are too many; at most %d tokens are allowed", l.path, s.streams(), s.context, maxTokens)
	}
	_, ok := cacheTypes[s.bits]
	if !ok {
		return fmt.Errorf("%s: llama.cpp has no cache of %d bits; use 16, 8 or 4", l.path, s.bits)
	}
	return nil
}

// parserRuns is the parser's estimates: with the whole model on one device, with it divided
// over two devices, and with a part of it on two devices.
type parserRuns struct{ whole, split, part parser.LLaMACppRunEstimate }

func (l *layered) runs(s servingKey) (r parserRuns, err error) {
	// The parser expects files that it has read itself, and panics if something is missing.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: gguf-parser-go cannot estimate it: %v", l.path, p)
		}
	}()
	kind := cacheTypes[s.bits]
	run := func(layers int, split ...float64) parser.LLaMACppRunEstimate {
		return l.file.EstimateLLaMACppRun(
			parser.WithLLaMACppContextSize(int32(s.context*s.streams())),
			parser.WithParallelSize(int32(s.streams())),
			parser.WithFlashAttention(),
			parser.WithLLaMACppCacheKeyType(kind),
			parser.WithLLaMACppCacheValueType(kind),
			parser.WithLLaMACppOffloadLayers(uint64(layers)),
			parser.WithTensorSplitFraction(split),
		)
	}
	all := l.arch.layers + 1
	r.whole = run(all, 1)
	r.split = run(all, 0.5, 1)
	r.part = run(max(l.arch.layers/2, 1), 0.5, 1)
	return r, nil
}
