// Package sample writes GGUF files with the headers of published models and without
// data, for tests and scenarios. Such a file has a few kilobytes.
package sample

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strings"

	parser "github.com/gpustack/gguf-parser-go"
)

// File is a GGUF file. Its fields are in the order in which they are written.
type File struct {
	Order   binary.ByteOrder // nil: little endian
	Version uint32           // 0: 3
	Keys    []Key
	Tensors []Tensor
}

// Key is one entry of the metadata. Value is a uint32, uint64, float32, bool,
// string, or a list of uint32, int32, bool or string.
type Key struct {
	Name  string
	Value any
}

// sizes are the sizes of a model that most files have. A head size, or a number of key heads, that
// is 0 is not written.
type sizes struct{ layers, context, hidden, wide, heads, kvHeads, head uint32 }

// newModel returns a file without tensors that has these sizes and more keys. The names of keys
// are written without the architecture, except those of the tokenizer.
func newModel(arch, name string, fileType uint32, s sizes, more ...Key) File {
	f := File{Keys: []Key{{"general.architecture", arch}, {"general.type", "model"}, {"general.name", name}, {"general.file_type", fileType}}}
	f.Keys = append(f.Keys, Key{arch + ".block_count", s.layers}, Key{arch + ".context_length", s.context},
		Key{arch + ".embedding_length", s.hidden}, Key{arch + ".feed_forward_length", s.wide})
	if s.kvHeads > 0 {
		f.Keys = append(f.Keys, Key{arch + ".attention.head_count", s.heads}, Key{arch + ".attention.head_count_kv", s.kvHeads})
	}
	if s.head > 0 {
		f.Keys = append(f.Keys, Key{arch + ".attention.key_length", s.head}, Key{arch + ".attention.value_length", s.head})
	}
	for _, k := range more {
		if !strings.HasPrefix(k.Name, "tokenizer.") {
			k.Name = arch + "." + k.Name
		}
		f.Keys = append(f.Keys, k)
	}
	return f
}

// Tensor is one tensor. The first dimension is contiguous.
type Tensor struct {
	Name string
	Type parser.GGMLType
	Dims []uint64
}

const alignment = 32

// Elements returns how many numbers the tensor has.
func (t Tensor) Elements() uint64 {
	n := uint64(1)
	for _, d := range t.Dims {
		n *= d
	}
	return n
}

// Bytes returns the size of the tensor's data.
func (t Tensor) Bytes() uint64 {
	trait, _ := t.Type.Trait()
	return t.Elements() / trait.BlockSize * trait.TypeSize
}

// Header returns the file without its data.
func (f File) Header() []byte {
	w := &writer{order: f.Order}
	if w.order == nil {
		w.order = binary.LittleEndian
	}
	version := f.Version
	if version == 0 {
		version = 3
	}
	w.out.WriteString("GGUF")
	w.put(version)
	w.put(uint64(len(f.Tensors)))
	w.put(uint64(len(f.Keys)))
	for _, k := range f.Keys {
		w.text(k.Name)
		w.value(k.Value)
	}
	var offset uint64
	for _, t := range f.Tensors {
		w.text(t.Name)
		w.put(uint32(len(t.Dims)))
		for _, d := range t.Dims {
			w.put(d)
		}
		w.put(uint32(t.Type))
		w.put(offset)
		offset += pad(t.Bytes())
	}
	w.out.Write(make([]byte, pad(uint64(w.out.Len()))-uint64(w.out.Len())))
	return w.out.Bytes()
}

// Size returns the size of the whole file, including the data that Write omits.
func (f File) Size() int64 {
	n := uint64(len(f.Header()))
	for _, t := range f.Tensors {
		n += pad(t.Bytes())
	}
	return int64(n)
}

// Write writes the header. If whole is set, the file gets its true size as a sparse
// file, which takes no space on the disk.
func (f File) Write(path string, whole bool) error {
	if err := os.WriteFile(path, f.Header(), 0o644); err != nil || !whole {
		return err
	}
	return os.Truncate(path, f.Size())
}

func pad(n uint64) uint64 { return (n + alignment - 1) / alignment * alignment }

type writer struct {
	out   bytes.Buffer
	order binary.ByteOrder
}

// put writes a number. It panics on an error, because writing to a buffer cannot fail.
func (w *writer) put(v any) {
	if err := binary.Write(&w.out, w.order, v); err != nil {
		panic(err)
	}
}

func (w *writer) text(s string) {
	w.put(uint64(len(s)))
	w.out.WriteString(s)
}

func (w *writer) value(v any) {
	switch v := v.(type) {
	case string:
		w.put(parser.GGUFMetadataValueTypeString)
		w.text(v)
	case []string:
		w.list(parser.GGUFMetadataValueTypeString, len(v))
		for _, s := range v {
			w.text(s)
		}
	case []uint32:
		w.list(parser.GGUFMetadataValueTypeUint32, len(v))
		w.put(v)
	case []int32:
		w.list(parser.GGUFMetadataValueTypeInt32, len(v))
		w.put(v)
	case []bool:
		w.list(parser.GGUFMetadataValueTypeBool, len(v))
		w.put(v)
	default:
		w.put(kindOf(v))
		w.put(v)
	}
}

func (w *writer) list(kind parser.GGUFMetadataValueType, n int) {
	w.put(parser.GGUFMetadataValueTypeArray)
	w.put(kind)
	w.put(uint64(n))
}

func kindOf(v any) parser.GGUFMetadataValueType {
	switch v.(type) {
	case uint16:
		return parser.GGUFMetadataValueTypeUint16
	case uint32:
		return parser.GGUFMetadataValueTypeUint32
	case uint64:
		return parser.GGUFMetadataValueTypeUint64
	case float32:
		return parser.GGUFMetadataValueTypeFloat32
	case bool:
		return parser.GGUFMetadataValueTypeBool
	}
	panic(fmt.Sprintf("sample: no GGUF type for %T", v))
}
