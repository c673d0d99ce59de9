// Package hf reads models as they are published for PyTorch: a directory with
// config.json and safetensors files. It reads headers and never tensor data.
// What a model needs in which form is worked out by package estimate.
package hf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/printable"
)

// Read is the model in the directory. Its weights are exact to the byte where the
// files are there; an index alone gives their sum. An architecture that is not
// understood leaves Model.Architecture nil and says why in Assumed.
func Read(dir string) (*estimate.Model, error) {
	c, err := readConfig(dir)
	if err != nil {
		return nil, err
	}
	m := &estimate.Model{Name: base(dir), Format: "safetensors", Assumed: c.fill()}
	a, assumed, err := c.architecture()
	var unknown errUnknown
	switch {
	case errors.As(err, &unknown):
		assumed = []string{unknown.why}
	case err != nil:
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, "config.json"), err)
	}
	m.Architecture, m.Assumed = a, append(m.Assumed, assumed...)
	paths, total, err := files(dir)
	if err != nil {
		return nil, err
	}
	if total > 0 {
		m.Weights, err = divideTotal(cluster.Bytes(total), c, a)
		assumed = []string{fmt.Sprintf("No shard is there yet; the index says that all of them take %d bytes.", total)}
	} else {
		m.Weights, assumed, err = count(paths, c, a)
	}
	if err != nil {
		return nil, err
	}
	m.Assumed = append(m.Assumed, assumed...)
	return m, nil
}

// ReadAdapter is what the weights of a LoRA adapter take.
func ReadAdapter(dir string) (cluster.Bytes, error) {
	if _, err := os.Stat(filepath.Join(dir, "adapter_config.json")); err != nil {
		return 0, fmt.Errorf("%w: an adapter's directory has an adapter_config.json", err)
	}
	path := filepath.Join(dir, "adapter_model.safetensors")
	list, _, err := tensors(path)
	if err != nil {
		return 0, fmt.Errorf("%w: an adapter is sized by its adapter_model.safetensors", err)
	}
	var sum cluster.Bytes
	for _, t := range list {
		sum += cluster.Bytes(t.bytes) // they do not overlap and end below a pebibyte
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
