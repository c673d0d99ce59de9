package estimate

import "github.com/berth-project/berth/cluster"

// maxContext is the upper bound of the search for the largest context, for models that
// do not give their longest context.
const maxContext = 10_000_000

// KVPerToken returns what one token takes in the cache of one device if no layer has a
// window. Tables of models give this upper bound. The cache of a model with windows
// grows more slowly once the windows are full; KVAt returns its true size.
func (m *Model) KVPerToken(f Form) (cluster.Bytes, error) {
	f.Context = orElse(f.Context, 1)
	f, err := m.normalize(f)
	if err != nil {
		return 0, err
	}
	a := m.Architecture
	return times(a.tokenBytes(f), int64((a.cached()+f.Pipeline-1)/f.Pipeline)), nil
}

// KVAt returns the cache of one sequence of this many tokens on one device.
func (m *Model) KVAt(f Form, context int) (cluster.Bytes, error) {
	f.Context = context
	f, err := m.normalize(f)
	if err != nil {
		return 0, err
	}
	return m.Architecture.cacheBytes(f, f.Context), nil
}

// LargestContext returns the most tokens that a sequence can have if each device has
// this much memory; 0: not even one token fits. It is never more than the model
// supports.
func (m *Model) LargestContext(f Form, memory cluster.Bytes) (int, error) {
	return m.Largest(f, func(b Breakdown) bool { return b.Total() <= memory })
}

// Largest is like LargestContext, with a condition of the caller's. A need that fits
// must also fit with fewer tokens.
func (m *Model) Largest(f Form, fits func(Breakdown) bool) (int, error) {
	f.Context = 1
	if _, err := m.normalize(f); err != nil {
		return 0, err
	}
	low, high := 0, orElse(m.Architecture.MaxContext, maxContext)
	for low < high {
		mid := low + (high-low+1)/2
		f.Context = mid
		if b, err := m.Device(f); err == nil && fits(b) { // the only possible error is that the need exceeds maxBytes
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low, nil
}

// tokenBytes returns what one token takes in the cache of one layer on one device.
// Tensor parallelism does not divide a latent; every device keeps all of it.
func (a *Architecture) tokenBytes(f Form) cluster.Bytes {
	numbers := product(int64(a.keyHeads(f)), int64(a.HeadDim+a.valueDim()))
	if a.Latent != nil {
		numbers = int64(a.Latent.Rank + a.Latent.Rope)
	}
	return cluster.Bytes(cluster.MulDivUp(numbers, int64(f.KVBits), 8))
}

// cacheBytes returns the cache of one sequence on the device with the largest cache.
func (a *Architecture) cacheBytes(f Form, context int) cluster.Bytes {
	tokens := int64(0)
	a.eachStage(f, func(first, end int) {
		n := int64(0)
		for i := first; i < end; i++ {
			n += int64(a.keptTokens(f, i, context))
		}
		tokens = max(tokens, n)
	})
	return times(a.tokenBytes(f), tokens)
}

// stepCache returns what the tokens of one step take in layers with a window. A server
// keeps them in addition to the window until the step ends.
func (a *Architecture) stepCache(f Form) cluster.Bytes {
	most := int64(0)
	a.eachStage(f, func(first, end int) {
		n := int64(0)
		for i := first; i < end; i++ {
			room := cluster.MulDiv(int64(f.Context-a.keptTokens(f, i, f.Context)), int64(f.Sequences), 1)
			n += min(int64(f.BatchTokens), room)
		}
		most = max(most, n)
	})
	return times(a.tokenBytes(f), most)
}

// eachStage calls stage for each pipeline stage, with the index of its first layer that
// keeps a cache and the index after the last.
func (a *Architecture) eachStage(f Form, stage func(first, end int)) {
	layers := a.cached()
	size := (layers + f.Pipeline - 1) / f.Pipeline
	for first := 0; first < layers; first += size {
		stage(first, min(first+size, layers))
	}
}

// keptTokens returns how many tokens of the context a layer keeps.
func (a *Architecture) keptTokens(f Form, layer, context int) int {
	if a.Windows == nil || a.Windows[layer] == 0 {
		return context
	}
	floor := cluster.MulDivUp(int64(context), int64(f.WindowFloor), int64(cluster.Whole))
	return min(context, max(a.Windows[layer], int(floor)))
}
