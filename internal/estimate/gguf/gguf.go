// Package gguf reads what a GGUF file says of its model: its weights to the byte,
// its architecture, and what llama.cpp needs to run it layer by layer. It reads
// headers only, never a tensor's data, and it takes no count in them on trust.
//
// It walks the header itself, in bounded memory, and hands what it found to
// gguf-parser-go, which knows llama.cpp's buffers.
package gguf

import (
	"fmt"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
)

// Format is the format of the models that Read returns.
const Format = "gguf"

// Read reads the header of a GGUF file. Of a model in parts any may be named.
//
// Architecture and Layered are nil where the file is no language model that is
// known here; Assumed says so. A file without weights is an error.
func Read(path string) (*estimate.Model, error) {
	parts, err := readParts(path)
	if err != nil {
		return nil, err
	}
	f, err := join(path, parts)
	if err != nil {
		return nil, err
	}
	m := &estimate.Model{Name: showName(path), Format: Format, Weights: f.weights()}
	if f.cut {
		m.Assumed = append(m.Assumed, "The file ends before its tensors; sizes are those of its header.")
	}
	a, said, err := f.architecture()
	if err != nil {
		return nil, err
	}
	m.Assumed = append(m.Assumed, said...)
	if a == nil {
		return m, nil
	}
	m.Architecture = a.shape
	if m.Layered, said, err = f.layered(a); err != nil {
		return nil, err
	}
	m.Assumed = append(m.Assumed, said...)
	for _, s := range m.Assumed {
		if strings.Contains(s, "llama.cpp") { // says how that serves it, not what the file holds
			m.Layered.Assumed = append(m.Layered.Assumed, s)
		}
	}
	return m, nil
}

// file is a model's header, from all of its parts.
type file struct {
	path    string
	values  map[string]value
	tensors []tensor
	header  uint64 // bytes of all headers
	cut     bool   // data is missing
}

func join(path string, parts []*header) (*file, error) {
	f := &file{path: path, values: parts[0].values}
	seen := map[string]string{}
	var total uint64
	for _, h := range parts {
		for _, t := range h.tensors {
			if first, twice := seen[t.name]; twice {
				return nil, fmt.Errorf("%s: tensor %q is also in %s", h.path, t.name, first)
			}
			seen[t.name] = h.path
			total += t.bytes
			if total > 1<<60 {
				return nil, fmt.Errorf("%s: the tensors up to %q take more than 2^60 bytes", h.path, t.name)
			}
		}
		f.tensors = append(f.tensors, h.tensors...)
		f.header += uint64(h.end)
		f.cut = f.cut || h.size < h.needed
	}
	if len(f.tensors) == 0 {
		return nil, fmt.Errorf("%s: it has no tensors, so the size of its weights is not known; is it a vocabulary alone?", path)
	}
	return f, nil
}

// weights adds up the tensors by their names, which every architecture shares.
func (f *file) weights() estimate.Weights {
	var w estimate.Weights
	for _, t := range f.tensors {
		b := cluster.Bytes(t.bytes)
		switch placeOf(t.name) {
		case inLayer, inStack:
			w.Layers += b
		case asEmbedding:
			w.Embedding += b
		case asHead:
			w.Head += b
		default:
			w.Replicated += b
		}
		w.Parameters += int64(t.elements)
	}
	w.Bits = hundredths(w.Total(), w.Parameters)
	w.Quantised = f.quantised()
	return w
}

// hundredths are the bits of a parameter, rounded. Floats: the figure is an
// average for people, and the product may not fit an int64.
func hundredths(b cluster.Bytes, parameters int64) int {
	return int(float64(b)*800/float64(parameters) + 0.5)
}
