package gguf

import (
	"errors"

	parser "github.com/gpustack/gguf-parser-go"
)

// cacheTypes maps the bits of a cached number to llama.cpp's type. Quantised numbers are
// stored with their scales, so 8 bits take 8.5.
var cacheTypes = map[int]parser.GGMLType{16: parser.GGMLTypeF16, 8: parser.GGMLTypeQ8_0, 4: parser.GGMLTypeQ4_0}

// cache returns the bytes that each layer caches. The parser's figure is not used: it
// assumes the heads of the first layer for all layers, supports few windows, and does
// not support latents.
func (a *architecture) cache(s servingKey) ([]uint64, error) {
	kind := cacheTypes[s.bits]
	var total float64
	out := make([]uint64, a.layers)
	for i := range out {
		if a.recurrent != nil && a.recurrent[i] {
			out[i] = a.state * uint64(s.slots()) * 4
		}
		if n := a.cells(s, i) * uint64(s.streams()); n > 0 {
			if a.latent != nil {
				out[i] += kind.RowSizeOf([]uint64{uint64(a.latent.Rank+a.latent.Rope) * n})
			} else {
				heads := uint64(a.kvHeads[i])
				key, val := a.headSizes(i)
				out[i] += kind.RowSizeOf([]uint64{heads * uint64(key) * n}) + kind.RowSizeOf([]uint64{heads * uint64(val) * n})
			}
		}
		total += float64(out[i])
	}
	if total > 1<<60 {
		return nil, errors.New("its cache would take more than 2^60 bytes")
	}
	return out, nil
}

// cells returns how many tokens the layer caches for each stream: for the whole context, or
// for the window and one micro-batch.
func (a *architecture) cells(s servingKey, layer int) uint64 {
	if !a.causal || a.kvHeads == nil || a.kvHeads[layer] == 0 {
		return 0
	}
	n := padded(uint64(s.context), padding)
	if a.windows == nil || a.windows[layer] == 0 || s.fullWindow {
		return n
	}
	window := uint64(a.windows[layer])
	if s.streams() == 1 {
		window *= uint64(s.slots())
	}
	return padded(min(n, window+uint64(s.tokens())), padding)
}
