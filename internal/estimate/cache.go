package estimate

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// maxContext is the upper bound of the search for the largest context, for models that
// do not give their longest context.
const maxContext = 10_000_000

// Cache is what one layer keeps of a sequence. A layer may have several caches.
type Cache struct {
	Layer int // the number of the layer, from 0
	// Heads is how many key heads are kept of each token. A key has Key numbers and a value
	// has Value numbers. Tensor parallelism divides the heads.
	Heads, Key, Value int
	// Whole is how many numbers of each token every device keeps, such as a latent.
	Whole int
	// Bytes is how many bytes of each token every device keeps, whatever the size of a
	// number.
	Bytes int
	// Window is how many tokens attention looks back; 0: all tokens. Chunked is set if it
	// looks back to the beginning of a chunk of so many tokens.
	Window  int
	Chunked bool
	// Stride is how many tokens one entry stands for; 0: 1.
	Stride int
	// Tokens is how many tokens are kept of each sequence, whatever its length; 0: all
	// tokens.
	Tokens int
	// State is how many bytes are kept of each sequence in addition to its tokens. Tensor
	// parallelism divides it.
	State cluster.Bytes
}

// tokens returns of how many tokens of a sequence the layer keeps something.
func (c *Cache) tokens(s Serving, context int) int {
	n := context
	switch {
	case c.Tokens > 0:
		return c.Tokens
	case c.isWindow(s):
		kept := c.Window
		if s.WindowSteps > 0 {
			kept += s.WindowSteps*s.BatchTokens - 1
		}
		floor := cluster.MulDivUp(int64(context), int64(s.WindowFloor), int64(cluster.Whole))
		n = min(context, max(kept, int(floor)))
	}
	if c.Stride > 1 {
		n = (n + c.Stride - 1) / c.Stride
	}
	return n
}

// isScratch reports whether the layer keeps something of the last tokens from which it computes
// what it keeps of all.
func (c *Cache) isScratch() bool { return c.Window > 0 && c.Bytes > 0 }

// isWindow reports whether the layer keeps less than the context.
func (c *Cache) isWindow(s Serving) bool { return c.Window > 0 && !(c.Chunked && s.WholeChunks) }

// tokenBytes returns how many bytes one token takes on one device. Tensor parallelism does
// not divide a latent; every device keeps all of it.
func (c *Cache) tokenBytes(s Serving) cluster.Bytes {
	heads := int64((c.Heads + s.Tensor - 1) / s.Tensor)
	numbers := product(heads, int64(c.Key+c.Value)) + int64(c.Whole)
	return sum(cluster.Bytes(cluster.MulDivUp(numbers, int64(s.KVBits), 8)), cluster.Bytes(c.Bytes))
}

// bytes returns the size of the cache of one sequence on one device.
func (c *Cache) bytes(s Serving, context int) cluster.Bytes {
	tokens, page := int64(c.tokens(s, context)), int64(cmp.Or(s.Page, 1))
	pages := (tokens + page - 1) / page
	if c.isWindow(s) && s.WindowSteps > 0 { // the window may begin within a page
		pages++
	}
	return sum(times(c.tokenBytes(s), cluster.MulDiv(pages, page, 1)), c.stateBytes(s))
}

// stateBytes returns the size of the state of one sequence on one device.
func (c *Cache) stateBytes(s Serving) cluster.Bytes {
	return cluster.Bytes(cluster.MulDivUp(int64(c.State), int64(cmp.Or(s.States, 1)), int64(s.Tensor)))
}

// sameKind reports whether two layers keep the same.
func (c Cache) sameKind(o Cache) bool {
	c.Layer, o.Layer = 0, 0
	return c == o
}

// WithWindows returns the caches of layers that look back this many tokens each; 0: all
// tokens. They keep keys and values of KVHeads, or the latent.
func (a *Architecture) WithWindows(windows []int) []Cache {
	out := make([]Cache, len(windows))
	for i, w := range windows {
		out[i] = a.plainCache(i)
		out[i].Window = w
	}
	return out
}

// plainCache returns the cache of a layer that keeps all tokens.
func (a *Architecture) plainCache(layer int) Cache {
	if a.Latent != nil {
		return Cache{Layer: layer, Whole: a.Latent.Rank + a.Latent.Rope}
	}
	return Cache{Layer: layer, Heads: a.KVHeads, Key: a.HeadDim, Value: a.valueDim()}
}

// HasWindows reports whether some layer looks back a limited number of tokens.
func (a *Architecture) HasWindows() bool {
	return slices.ContainsFunc(a.Caches, func(c Cache) bool { return c.Window > 0 })
}

// HasState reports whether some layer keeps a state of fixed size.
func (a *Architecture) HasState() bool {
	return slices.ContainsFunc(a.Caches, func(c Cache) bool { return c.State > 0 })
}

// KVPerToken returns how many bytes one token takes in the cache of one device if no layer
// has a window. Tables of models give this upper bound. The cache of a model with windows
// grows more slowly once the windows are full; KVAt returns its true size.
func (m *Model) KVPerToken(s Serving) (cluster.Bytes, error) {
	s.Context = cmp.Or(s.Context, 1)
	s, err := m.normalize(s)
	if err != nil {
		return 0, err
	}
	a := m.Architecture
	s.Page = 1
	most := a.boundBytes(s, 1)
	if a.Caches == nil {
		return max(most, a.plainBytes(s, 1)), nil
	}
	a.eachStage(s, func(caches []Cache) {
		var all cluster.Bytes
		for i := range caches {
			if c := &caches[i]; c.Tokens == 0 && !c.isScratch() {
				stride := int64(cmp.Or(c.Stride, 1))
				all = sum(all, cluster.Bytes(cluster.MulDivUp(int64(c.tokenBytes(s)), 1, stride)))
			}
		}
		most = max(most, all)
	})
	return most, nil
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
// returns true, it must return true for every smaller need.
//
// The need grows with the context, except that it may be less for a context that is longer than
// s.Prompt than for one that is not. Each of the two ranges is searched.
func (m *Model) LargestContextWhere(s Serving, fits func(Breakdown) bool) (int, error) {
	s.Context = 1
	if _, err := m.normalize(s); err != nil {
		return 0, err
	}
	holds := func(context int) bool {
		s.Context = context
		b, err := m.PerDevice(s) // the only possible error is that the need exceeds maxBytes
		return err == nil && fits(b)
	}
	low, high := 0, cmp.Or(m.Architecture.MaxContext, maxContext)
	if first := s.Prompt + 1; s.Prompt > 0 && first <= high {
		if holds(first) {
			low = first
		} else {
			high = s.Prompt
		}
	}
	for low < high {
		mid := low + (high-low+1)/2
		if holds(mid) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low, nil
}

// cacheBytes returns the size of the cache of one sequence on the device with the largest
// cache.
func (a *Architecture) cacheBytes(s Serving, context int) cluster.Bytes {
	most := a.boundBytes(s, context)
	if a.Caches == nil {
		return max(most, a.plainBytes(s, context))
	}
	a.eachStage(s, func(caches []Cache) {
		if s.Groups > 0 && !haveSeveral(caches) {
			most = max(most, groupedBytes(caches, s, context))
			return
		}
		var tokens, states cluster.Bytes
		for i := range caches {
			state := caches[i].stateBytes(s)
			tokens, states = sum(tokens, caches[i].bytes(s, context)-state), sum(states, state)
		}
		if states > 0 {
			states = max(states, cluster.Bytes(cluster.MulDivUp(int64(tokens), int64(s.StateRatio), int64(cluster.Whole))))
		}
		most = max(most, sum(tokens, states))
	})
	return most
}

// haveSeveral reports whether a layer has several caches. Such caches are not allocated in
// groups.
func haveSeveral(caches []Cache) bool {
	for i := 1; i < len(caches); i++ {
		if caches[i].Layer == caches[i-1].Layer {
			return true
		}
	}
	return false
}

// plainBytes returns the size of the cache of one sequence if every layer keeps all tokens.
func (a *Architecture) plainBytes(s Serving, context int) cluster.Bytes {
	if a.Encoder {
		return 0
	}
	c := a.plainCache(0)
	return times(c.bytes(s, context), int64(a.layersPerStage(s)))
}

// boundBytes returns the least size of the cache of one sequence if it is not known what the
// layers keep.
func (a *Architecture) boundBytes(s Serving, context int) cluster.Bytes {
	if a.Bound == nil {
		return 0
	}
	return times(a.Bound.bytes(s, context), int64(a.layersPerStage(s)))
}

// groupedBytes returns the size of caches that are allocated in groups of equally many
// layers; see Serving.Groups. The layers of each kind are rounded up to a multiple of the
// size of a group. A state is rounded up to whole pages of the tokens of another kind, and
// as many tokens are a page then.
func groupedBytes(caches []Cache, s Serving, context int) cluster.Bytes {
	type kind struct {
		cache *Cache
		count int
	}
	var kinds []kind
	for i := range caches {
		c := &caches[i]
		at := slices.IndexFunc(kinds, func(k kind) bool { return k.cache.sameKind(*c) })
		if at < 0 {
			kinds, at = append(kinds, kind{cache: c}), len(kinds)
		}
		kinds[at].count++
	}
	least, most := len(caches), 0
	var token, state cluster.Bytes // the largest of all kinds
	for _, k := range kinds {
		least, most = min(least, k.count), max(most, k.count)
		token = max(token, k.cache.tokenBytes(s))
		state = max(state, k.cache.stateBytes(s))
	}
	size := max(1, least)
	if 100*most < s.Groups*least {
		size = most
	}
	if token > maxBytes/maxContext || state > maxBytes {
		return maxBytes + 1 // an error for every context; see PerDevice
	}
	if token > 0 && state > 0 {
		page := cluster.Bytes(cmp.Or(s.Page, 1)) * token
		pages := (state + page - 1) / page
		state, s.Page = pages*page, int(min(pages*cluster.Bytes(cmp.Or(s.Page, 1)), maxContext))
	}
	var all cluster.Bytes
	for _, k := range kinds {
		layers := int64((k.count + size - 1) / size * size)
		each := k.cache.bytes(s, context)
		if k.cache.State > 0 {
			each = sum(each-k.cache.stateBytes(s), state)
		}
		all = sum(all, times(each, layers))
	}
	return all
}

// stepCache returns how many bytes the tokens of one step take in the layer with a window
// where they take most, in addition to the window: attention needs both. If the cache itself
// has room for them, it returns 0.
func (a *Architecture) stepCache(s Serving) cluster.Bytes {
	if s.WindowSteps > 0 {
		return 0
	}
	most := cluster.Bytes(0)
	for i := range a.Caches {
		if c := &a.Caches[i]; c.isWindow(s) {
			window := cluster.MulDiv(int64(c.tokens(s, s.Context)), int64(s.Sequences), 1)
			room := cluster.MulDiv(int64(s.Context), int64(s.Sequences), 1) - window
			most = max(most, times(c.tokenBytes(s), sumTokens(window, min(int64(s.BatchTokens), room))))
		}
	}
	return most
}

func sumTokens(a, b int64) int64 { return int64(sum(cluster.Bytes(a), cluster.Bytes(b))) }

// eachStage calls stage for each pipeline stage, with the caches of its layers.
func (a *Architecture) eachStage(s Serving, stage func(caches []Cache)) {
	size := a.layersPerStage(s)
	for first := 0; first < len(a.Caches); {
		end := first
		for end < len(a.Caches) && a.Caches[end].Layer/size == a.Caches[first].Layer/size {
			end++
		}
		stage(a.Caches[first:end])
		first = end
	}
}
