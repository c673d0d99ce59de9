// Package hf reads models as they are published for PyTorch: a directory with
// config.json and safetensors files. It reads the headers of the files and never the
// data of tensors. Package estimate computes the memory that a model needs.
package hf

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/printable"
)

// Read returns the model in the directory. The size of its weights is exact if the files
// exist; an index without files gives only the total. If the architecture is not known,
// Model.Architecture is nil and Assumed says why.
func Read(dir string) (*estimate.Model, error) {
	c, err := readConfig(dir)
	if err != nil {
		return nil, err
	}
	m, err := c.model(base(dir))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, configFile), err)
	}
	how, err := c.quantised()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, cmp.Or(c.storedIn, configFile)), err)
	}
	paths, total, err := files(dir)
	if err != nil {
		return nil, err
	}
	var assumed []string
	if total > 0 {
		m.Weights = divideTotal(cluster.Bytes(total), how, m.Architecture)
		assumed = []string{fmt.Sprintf("No shard is downloaded yet; the index says that all of them take %d bytes.", total)}
	} else if m.Weights, assumed, err = sumTensors(paths, c, how, m.Architecture); err != nil {
		return nil, err
	}
	m.Assumed = append(m.Assumed, assumed...)
	useScales(m, how)
	return m, nil
}

// Parse returns the model that the text of a config.json describes, with the given name and the
// size of all its safetensors files together. It reads no files.
func Parse(name, text string, weights cluster.Bytes) (*estimate.Model, error) {
	switch {
	case len(text) > maxConfig:
		return nil, fmt.Errorf("it has %d bytes, which is too large for the configuration of a model", len(text))
	case weights < 1 || weights > maxWeights:
		return nil, fmt.Errorf("weights of %d bytes: want from 1 to %d", weights, int64(maxWeights))
	}
	c, err := decodeConfig([]byte(text))
	if err != nil {
		return nil, err
	}
	m, err := c.model(name)
	if err != nil {
		return nil, err
	}
	how, err := c.quantised()
	if err != nil {
		return nil, err
	}
	m.Weights = divideTotal(weights, how, m.Architecture)
	m.Assumed = append(m.Assumed, "The size of the weights is that of source.weights.")
	useScales(m, how)
	return m, nil
}

// model returns the model without its weights.
func (c config) model(name string) (*estimate.Model, error) {
	m := &estimate.Model{Name: name, Format: "safetensors", Assumed: c.setDefaults()}
	a, assumed, err := c.architecture()
	var unknown errUnknown
	switch {
	case errors.As(err, &unknown):
		assumed = []string{unknown.onlyWeights()}
	case err != nil:
		return nil, err
	}
	m.Architecture, m.Assumed = a, append(m.Assumed, assumed...)
	return m, nil
}

// useScales sets the size of a number in the KV cache if the files have scales for it.
func useScales(m *estimate.Model, how storage) {
	if m.KVBits = how.kvBits; m.KVBits > 0 {
		m.Assumed = append(m.Assumed, fmt.Sprintf("The files have scales for a KV cache of %d bits; servers that use them keep such a cache.", m.KVBits))
	}
}

// ReadAdapter returns the size of the weights of a LoRA adapter.
func ReadAdapter(dir string) (cluster.Bytes, error) {
	if _, err := os.Stat(filepath.Join(dir, "adapter_config.json")); err != nil {
		return 0, fmt.Errorf("%w; the directory of an adapter must have an adapter_config.json", err)
	}
	path := filepath.Join(dir, "adapter_model.safetensors")
	list, _, err := tensors(path)
	if err != nil {
		return 0, fmt.Errorf("%w; the directory of an adapter must have an adapter_model.safetensors", err)
	}
	var sum cluster.Bytes
	for _, t := range list {
		sum += cluster.Bytes(t.bytes) // no overflow: tensors do not overlap and end below a pebibyte
	}
	if sum == 0 {
		return 0, fmt.Errorf("%s has no tensors", path)
	}
	return sum, nil
}

func base(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return printable.Text(filepath.Base(dir))
}
