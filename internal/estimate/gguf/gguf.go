// Package gguf reads the header of a GGUF file: the size of its weights, its
// architecture, and what llama.cpp needs to run it layer by layer. It never reads the
// data of a tensor, and it checks every count of the header before it uses it.
//
// The package parses the header itself, in bounded memory. It passes the result to
// gguf-parser-go, which computes the sizes of llama.cpp's buffers.
package gguf

import (
	"fmt"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
)

// Format is the format of the models that Read returns.
const Format = "gguf"

// Read reads the header of a GGUF file. For a model in several parts, path may name any
// of them.
//
// Architecture and Layered are nil if the file is not a known language model; Assumed
// says so. A file without weights is an error.
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
	a, assumed, err := f.architecture()
	if err != nil {
		return nil, err
	}
	m.Assumed = append(m.Assumed, assumed...)
	if a == nil {
		return m, nil
	}
	m.Architecture = a.generic
	if m.Layered, assumed, err = f.layered(a); err != nil {
		return nil, err
	}
	m.Assumed = append(m.Assumed, assumed...)
	for _, s := range m.Assumed {
		if strings.Contains(s, "llama.cpp") { // such a sentence is about llama.cpp and not about the file
			m.Layered.Assumed = append(m.Layered.Assumed, s)
		}
	}
	return m, nil
}

// file is the header of a model, merged from all its parts.
type file struct {
	path    string
	values  map[string]value
	tensors []tensor
	header  uint64 // size of all headers in bytes
	cut     bool   // the file is shorter than its tensors
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
		return nil, fmt.Errorf("%s: it has no tensors, so the size of its weights is not known; it may contain only a vocabulary", path)
	}
	return f, nil
}

// weights adds up the tensors by their names. All architectures use the same names.
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

// hundredths returns the average size of a parameter in hundredths of a bit, rounded. It
// uses floats because the product may overflow an int64, and the figure is only shown.
func hundredths(b cluster.Bytes, parameters int64) int {
	return int(float64(b)*800/float64(parameters) + 0.5)
}
