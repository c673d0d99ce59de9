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
	m := &estimate.Model{Name: base(dir), Format: "safetensors", Assumed: c.setDefaults()}
	a, assumed, err := c.architecture()
	var unknown errUnknown
	switch {
	case errors.As(err, &unknown):
		assumed = []string{unknown.onlyWeights()}
	case err != nil:
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, configFile), err)
	}
	m.Architecture, m.Assumed = a, append(m.Assumed, assumed...)
	how, err := c.quantised()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, cmp.Or(c.storedIn, configFile)), err)
	}
	paths, total, err := files(dir)
	if err != nil {
		return nil, err
	}
	if total > 0 {
		m.Weights = divideTotal(cluster.Bytes(total), how, a)
		assumed = []string{fmt.Sprintf("No shard is downloaded yet; the index says that all of them take %d bytes.", total)}
	} else if m.Weights, assumed, err = sumTensors(paths, c, how, a); err != nil {
		return nil, err
	}
	if m.KVBits = how.kvBits; m.KVBits > 0 {
		assumed = append(assumed, fmt.Sprintf("The files have scales for a KV cache of %d bits; servers that use them keep such a cache.", m.KVBits))
	}
	m.Assumed = append(m.Assumed, assumed...)
	return m, nil
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
