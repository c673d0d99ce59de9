package estimate

import "github.com/berth-project/berth/cluster"

// maxContext bounds the search for the largest context of a model that does not say its own.
const maxContext = 10_000_000

// KVPerToken is what one token takes in the cache of one device if every layer
// looks at everything: the bound that tables of models give. With windows the cache
// grows more slowly once they are full; KVAt says how much it holds.
func (m *Model) KVPerToken(f Form) (cluster.Bytes, error) {
	f.Context = orElse(f.Context, 1)
	f, err := m.settle(f)
	if err != nil {
		return 0, err
	}
	a := m.Architecture
	return times(a.tokenInLayer(f), int64((a.cached()+f.Pipeline-1)/f.Pipeline)), nil
}

// KVAt is the cache of one sequence of that many tokens on one device.
func (m *Model) KVAt(f Form, context int) (cluster.Bytes, error) {
	f.Context = context
	f, err := m.settle(f)
	if err != nil {
		return 0, err
	}
	return m.Architecture.kept(f, f.Context), nil
}

// LargestContext is the most tokens a sequence can have so that the form fits into
// so much memory of each device; 0: not one. It is never more than the model can take.
func (m *Model) LargestContext(f Form, memory cluster.Bytes) (int, error) {
	return m.Largest(f, func(b Breakdown) bool { return b.Total() <= memory })
}

// Largest is LargestContext for those who judge by more than the sum. What fits
// must fit with fewer tokens as well.
func (m *Model) Largest(f Form, fits func(Breakdown) bool) (int, error) {
	f.Context = 1
	if _, err := m.settle(f); err != nil {
		return 0, err
	}
	low, high := 0, orElse(m.Architecture.MaxContext, maxContext)
	for low < high {
		mid := low + (high-low+1)/2
		f.Context = mid
		if b, err := m.Device(f); err == nil && fits(b) { // the one error left is that it is too much to count
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low, nil
}

// tokenInLayer is what one token takes of one layer's cache on one device. Tensor
// parallelism does not divide a latent: every device keeps all of it.
func (a *Architecture) tokenInLayer(f Form) cluster.Bytes {
	numbers := product(int64(a.keyHeads(f)), int64(a.HeadDim+a.valueDim()))
	if a.Latent != nil {
		numbers = int64(a.Latent.Rank + a.Latent.Rope)
	}
	return cluster.Bytes(cluster.MulDivUp(numbers, int64(f.KVBits), 8))
}

// kept is the cache of one sequence on the device whose layers keep most.
func (a *Architecture) kept(f Form, context int) cluster.Bytes {
	tokens := int64(0)
	a.stages(f, func(first, end int) {
		n := int64(0)
		for i := first; i < end; i++ {
			n += int64(a.inWindow(f, i, context))
		}
		tokens = max(tokens, n)
	})
	return times(a.tokenInLayer(f), tokens)
}

// ahead is what the tokens of one step take in layers with a window: a server keeps
// them beside what the window holds until the step is over.
func (a *Architecture) ahead(f Form) cluster.Bytes {
	most := int64(0)
	a.stages(f, func(first, end int) {
		n := int64(0)
		for i := first; i < end; i++ {
			room := cluster.MulDiv(int64(f.Context-a.inWindow(f, i, f.Context)), int64(f.Sequences), 1)
			n += min(int64(f.BatchTokens), room)
		}
		most = max(most, n)
	})
	return times(a.tokenInLayer(f), most)
}

// stages calls back with each stage's first layer that keeps a cache and the one after its last.
func (a *Architecture) stages(f Form, stage func(first, end int)) {
	layers := a.cached()
	size := (layers + f.Pipeline - 1) / f.Pipeline
	for first := 0; first < layers; first += size {
		stage(first, min(first+size, layers))
	}
}

// inWindow is how many of the context's tokens a layer keeps.
func (a *Architecture) inWindow(f Form, layer, context int) int {
	if a.Windows == nil || a.Windows[layer] == 0 {
		return context
	}
	floor := cluster.MulDivUp(int64(context), int64(f.WindowFloor), int64(cluster.Whole))
	return min(context, max(a.Windows[layer], int(floor)))
}
