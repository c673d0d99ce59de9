package estimate

import "github.com/berth-project/berth/cluster"

// maxContext is the upper bound of the search for the largest context, for models that
// do not give their longest context.
const maxContext = 10_000_000

// KVPerToken returns how many bytes one token takes in the cache of one device if no layer
// has a window. Tables of models give this upper bound. The cache of a model with windows
// grows more slowly once the windows are full; KVAt returns its true size.
func (m *Model) KVPerToken(s Serving) (cluster.Bytes, error) {
	s.Context = orElse(s.Context, 1)
	s, err := m.normalize(s)
	if err != nil {
		return 0, err
	}
	a := m.Architecture
	return times(a.tokenBytes(s), int64((a.cached()+s.Pipeline-1)/s.Pipeline)), nil
}

// KVAt returns the size of the cache of one sequence of this many tokens on one device.
func (m *Model) KVAt(s Serving, context int) (cluster.Bytes, error) {
	s.Context = context
	s, err := m.normalize(s)
	if err != nil {
		return 0, err
	}
	return m.Architecture.cacheBytes(s, s.Context), nil
}

// LargestContext returns the most tokens that a sequence can have if each device has
// this much memory; 0: not even one token fits. It is never more than the model
// supports.
func (m *Model) LargestContext(s Serving, memory cluster.Bytes) (int, error) {
	return m.LargestContextWhere(s, func(b Breakdown) bool { return b.Total() <= memory })
}

// LargestContextWhere is like LargestContext, but the caller decides what fits. If fits
// returns true for a context, it must return true for all shorter ones.
func (m *Model) LargestContextWhere(s Serving, fits func(Breakdown) bool) (int, error) {
	s.Context = 1
	if _, err := m.normalize(s); err != nil {
		return 0, err
	}
	low, high := 0, orElse(m.Architecture.MaxContext, maxContext)
	for low < high {
		mid := low + (high-low+1)/2
		s.Context = mid
		if b, err := m.PerDevice(s); err == nil && fits(b) { // the only possible error is that the need exceeds maxBytes
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low, nil
}

// tokenBytes returns how many bytes one token takes in the cache of one layer on one
// device. Tensor parallelism does not divide a latent; every device keeps all of it.
func (a *Architecture) tokenBytes(s Serving) cluster.Bytes {
	numbers := product(int64(a.keyHeads(s)), int64(a.HeadDim+a.valueDim()))
	if a.Latent != nil {
		numbers = int64(a.Latent.Rank + a.Latent.Rope)
	}
	return cluster.Bytes(cluster.MulDivUp(numbers, int64(s.KVBits), 8))
}

// cacheBytes returns the size of the cache of one sequence on the device with the largest
// cache.
func (a *Architecture) cacheBytes(s Serving, context int) cluster.Bytes {
	tokens := int64(0)
	a.eachStage(s, func(first, end int) {
		n := int64(0)
		for i := first; i < end; i++ {
			n += int64(a.keptTokens(s, i, context))
		}
		tokens = max(tokens, n)
	})
	return times(a.tokenBytes(s), tokens)
}

// stepCache returns how many bytes the tokens of one step take in layers with a window. A
// server keeps them in addition to the window until the step ends.
func (a *Architecture) stepCache(s Serving) cluster.Bytes {
	most := int64(0)
	a.eachStage(s, func(first, end int) {
		n := int64(0)
		for i := first; i < end; i++ {
			room := cluster.MulDiv(int64(s.Context-a.keptTokens(s, i, s.Context)), int64(s.Sequences), 1)
			n += min(int64(s.BatchTokens), room)
		}
		most = max(most, n)
	})
	return times(a.tokenBytes(s), most)
}

// eachStage calls stage for each pipeline stage, with the index of its first layer that
// keeps a cache and the index after the last.
func (a *Architecture) eachStage(s Serving, stage func(first, end int)) {
	layers := a.cached()
	size := (layers + s.Pipeline - 1) / s.Pipeline
	for first := 0; first < layers; first += size {
		stage(first, min(first+size, layers))
	}
}

// keptTokens returns how many tokens of the context a layer keeps.
func (a *Architecture) keptTokens(s Serving, layer, context int) int {
	if a.Windows == nil || a.Windows[layer] == 0 {
		return context
	}
	floor := cluster.MulDivUp(int64(context), int64(s.WindowFloor), int64(cluster.Whole))
	return min(context, max(a.Windows[layer], int(floor)))
}
