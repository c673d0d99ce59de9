// Package sample writes directories like those of published models that take a few
// kilobytes: the configuration and the headers of the weights, without the weights. It
// is for tests and scenarios.
package sample

import (
	"embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:embed configs
var configs embed.FS

// Tensor is one entry of a safetensors header.
type Tensor struct {
	Name  string
	Dtype string
	Shape []int64
}

// Names returns the names of all samples.
func Names() []string {
	entries, err := configs.ReadDir("configs")
	if err != nil {
		panic(err) // the files are embedded in the binary
	}
	var out []string
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".json"))
	}
	return out
}

// Config returns the config.json of the sample.
func Config(name string) ([]byte, error) {
	text, err := configs.ReadFile("configs/" + name + ".json")
	if err != nil {
		return nil, fmt.Errorf("there is no sample %q; the samples are %s", name, strings.Join(Names(), ", "))
	}
	return text, nil
}

// Write writes config.json and model.safetensors without its data into the directory.
// For a model with many tensors this takes megabytes; WriteIndex takes little in any
// case.
func Write(dir, name string) error {
	text, err := Config(name)
	if err != nil {
		return err
	}
	list, err := Tensors(name)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), text, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "model.safetensors"), Header(list), 0o644)
}

// WriteIndex writes config.json and an index into the directory, as for a model before its
// shards are downloaded.
func WriteIndex(dir, name string) error {
	text, err := Config(name)
	if err != nil {
		return err
	}
	list, err := Tensors(name)
	if err != nil {
		return err
	}
	total := int64(0)
	for _, t := range list {
		total += t.Bytes()
	}
	index, err := json.MarshalIndent(map[string]any{
		"metadata":   map[string]any{"total_size": total},
		"weight_map": map[string]string{list[0].Name: "model-00001-of-00002.safetensors", list[len(list)-1].Name: "model-00002-of-00002.safetensors"},
	}, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), text, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "model.safetensors.index.json"), append(index, '\n'), 0o644)
}

// Header returns a safetensors file without its data.
func Header(list []Tensor) []byte {
	var b strings.Builder
	b.WriteString(`{"__metadata__":{"format":"pt"}`)
	at := int64(0)
	for _, t := range list {
		shape, _ := json.Marshal(t.Shape)
		name, _ := json.Marshal(t.Name)
		fmt.Fprintf(&b, `,%s:{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`, name, t.Dtype, shape, at, at+t.Bytes())
		at += t.Bytes()
	}
	b.WriteString("}")
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(b.Len())), b.String()...)
}

var widths = map[string]int64{"BF16": 2, "F16": 2, "F32": 4, "F8_E4M3": 1, "U8": 1, "I32": 4}

// Bytes returns the size of the tensor's data.
func (t Tensor) Bytes() int64 {
	n := widths[t.Dtype]
	for _, d := range t.Shape {
		n *= d
	}
	return n
}
