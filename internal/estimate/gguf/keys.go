package gguf

import (
	"fmt"

	parser "github.com/gpustack/gguf-parser-go"
)

// The limits of metadata values are far above any real model. They keep all products of
// the values within 64 bits.
const (
	maxWidth   = 1 << 20 // width of the residual stream and of MLPs
	maxHeads   = 1 << 14
	maxDim     = 1 << 14 // size of a head
	maxVocab   = 1 << 24
	maxExperts = 1 << 12
	maxTokens  = 1 << 28 // tokens of all sequences together
	maxSeqs    = 1 << 16

	maxMicroBatch = 1 << 16
)

// keys reads the metadata of one architecture. It records the first error.
type keys struct {
	f    *file
	arch string
	err  error
	// metadata is the values that were read, one number for each key, as the parser expects.
	metadata parser.GGUFMetadataKVs
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
	for i := range k.metadata {
		if k.metadata[i].Key == kv.Key {
			k.metadata[i] = kv
			return
		}
	}
	k.metadata = append(k.metadata, kv)
}

// number returns a number of the metadata; 0 if it is not in the file.
func (k *keys) number(key string, most uint64) int {
	v, ok := k.at(key)
	if !ok {
		return 0
	}
	n, ok := v.wholeNumber()
	switch {
	case !ok:
		k.wrong(key, v, "must be a whole number")
		return 0
	case n > most:
		k.wrong(key, v, "is %d; at most %d is allowed", n, most)
		return 0
	}
	k.keep(key, n)
	return int(n)
}

// perLayer returns a number that is given once for all layers or for each layer; nil if
// it is not in the file.
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
			k.wrong(key, v, "is %d for layer %d; at most %d is allowed", n, i, most)
			return nil
		}
		out[i] = int(n)
		largest = max(largest, out[i])
	}
	// The parser uses one number for all layers. The largest never gives too little memory.
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

// boolean returns a boolean of the metadata; otherwise if it is not in the file.
func (k *keys) boolean(key string, otherwise bool) bool {
	v, ok := k.at(key)
	if !ok {
		return otherwise
	}
	if v.kind != parser.GGUFMetadataValueTypeBool {
		k.wrong(key, v, "must be true or false")
		return otherwise
	}
	k.keepAs(parser.GGUFMetadataKV{Key: k.arch + "." + key, ValueType: v.kind, Value: v.integer != 0})
	return v.integer != 0
}
