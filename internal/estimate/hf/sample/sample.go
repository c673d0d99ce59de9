// Package sample writes directories that look like published models and take a
// few kilobytes: the configuration and the headers of the weights, without the
// weights. It is for tests and scenarios.
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

// Names are the models there are.
func Names() []string {
	entries, err := configs.ReadDir("configs")
	if err != nil {
		panic(err) // it is part of the binary
	}
	var out []string
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".json"))
	}
	return out
}

// Config is the configuration of the model.
func Config(name string) ([]byte, error) {
	text, err := configs.ReadFile("configs/" + name + ".json")
	if err != nil {
		return nil, fmt.Errorf("there is no sample %q: there are %s", name, strings.Join(Names(), ", "))
	}
	return text, nil
}

// Write puts config.json and model.safetensors into the directory, the latter
// without its data. A model of very many tensors takes megabytes; WriteIndex never does.
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

// WriteIndex puts config.json and an index into the directory: the model as it is
// before its shards are downloaded.
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

// Header is a safetensors file up to where the data begins.
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

// Bytes is what the tensor takes.
func (t Tensor) Bytes() int64 {
	n := widths[t.Dtype]
	for _, d := range t.Shape {
		n *= d
	}
	return n
}
