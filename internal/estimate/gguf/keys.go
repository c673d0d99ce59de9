package gguf

import (
	"fmt"

	parser "github.com/gpustack/gguf-parser-go"
)

// Bounds of what metadata may say. They are far above any model, and keep every
// product of them within 64 bits.
const (
	maxWidth   = 1 << 20 // of the residual stream and of MLPs
	maxHeads   = 1 << 14
	maxDim     = 1 << 14 // of a head
	maxVocab   = 1 << 24
	maxExperts = 1 << 12
	maxTokens  = 1 << 28 // of all sequences
	maxSeqs    = 1 << 16
)

// keys reads the metadata of one architecture and keeps the first thing that is
// wrong with it.
type keys struct {
	f    *file
	arch string
	err  error
	// kept is what was read, for the parser, each as one number.
	kept parser.GGUFMetadataKVs
}

func (k *keys) at(key string) (value, bool) {
	v, ok := k.f.values[k.arch+"."+key]
	return v, ok
}

func (k *keys) wrong(key string, v value, format string, args ...any) {
	if k.err == nil {
		k.err = fmt.Errorf("%s: byte %d: %s.%s %s", k.f.path, v.at, k.arch, key, fmt.Sprintf(format, args...))
	}
}

func (k *keys) keep(key string, n uint64) {
	k.keepAs(parser.GGUFMetadataKV{Key: k.arch + "." + key, ValueType: parser.GGUFMetadataValueTypeUint64, Value: n})
}

func (k *keys) keepAs(kv parser.GGUFMetadataKV) {
	for i := range k.kept {
		if k.kept[i].Key == kv.Key {
			k.kept[i] = kv
			return
		}
	}
	k.kept = append(k.kept, kv)
}

// number is a number of the metadata; 0 where it is not given.
func (k *keys) number(key string, most uint64) int {
	v, ok := k.at(key)
	if !ok {
		return 0
	}
	n, ok := v.whole()
	switch {
	case !ok:
		k.wrong(key, v, "must be a whole number")
		return 0
	case n > most:
		k.wrong(key, v, "is %d; %d is the most", n, most)
		return 0
	}
	k.keep(key, n)
	return int(n)
}

// perLayer is a number that may be given once or for each layer; nil where it
// is not given.
func (k *keys) perLayer(key string, layers int, most uint64) []int {
	v, ok := k.at(key)
	if !ok {
		return nil
	}
	if v.kind != parser.GGUFMetadataValueTypeArray {
		return repeated(k.number(key, most), layers)
	}
	if len(v.list) < layers {
		k.wrong(key, v, "has numbers for %d of %d layers", len(v.list), layers)
		return nil
	}
	out := make([]int, layers)
	largest := 0
	for i := range out {
		n := v.list[i]
		if n < 0 || uint64(n) > most {
			k.wrong(key, v, "is %d for layer %d; %d is the most", n, i, most)
			return nil
		}
		out[i] = int(n)
		largest = max(largest, out[i])
	}
	// The parser takes one number for all; the largest is the safe one.
	k.keep(key, uint64(largest))
	return out
}

func repeated(n, times int) []int {
	out := make([]int, times)
	for i := range out {
		out[i] = n
	}
	return out
}

// truth is a yes or no of the metadata.
func (k *keys) truth(key string, unless bool) bool {
	v, ok := k.at(key)
	if !ok {
		return unless
	}
	if v.kind != parser.GGUFMetadataValueTypeBool {
		k.wrong(key, v, "must be true or false")
		return unless
	}
	k.keepAs(parser.GGUFMetadataKV{Key: k.arch + "." + key, ValueType: v.kind, Value: v.integer != 0})
	return v.integer != 0
}
