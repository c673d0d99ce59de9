package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/bits"
	"os"

	parser "github.com/gpustack/gguf-parser-go"
)

// The limits are far above any real model. They bound the cost of reading a hostile
// file: a header is read once, in order, and only its tensors and numbers are kept.
const (
	maxHeader  = 64 << 20
	maxTensors = 1 << 17
	maxKeys    = 1 << 12
	maxLayers  = 1 << 10
	maxKey     = 1<<16 - 1 // a limit of the format
	maxName    = 1 << 10
	maxText    = 1 << 10 // longer texts, such as a licence, are skipped
	maxDims    = 4       // a limit of the format
	maxDepth   = 4       // of arrays in arrays
	maxBytes   = 1 << 50 // of one tensor; 1 PiB
)

// header is the part of one file before the data of its tensors.
type header struct {
	path    string
	values  map[string]value
	tensors []tensor
	end     int64 // offset of the data
	size    int64 // size of the file
	needed  int64 // size of the file if all its data is there
}

// tensor is the description of one tensor in a header.
type tensor struct {
	name       string
	dims       []uint64
	kind       parser.GGMLType
	elements   uint64
	bytes      uint64
	startsFrom uint64 // offset in the data of the file
}

// readHeader reads one file up to the data of its tensors.
func readHeader(path string) (*header, error) {
	// Opening a pipe would block, and a folder has no header.
	stat, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !stat.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: it is a %s, not a file", path, modeName(stat.Mode()))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// A file that the kernel shows, such as /proc/kmsg, has the size 0 and may have no end.
	w := &walker{path: path, in: bufio.NewReaderSize(io.LimitReader(f, stat.Size()), 64<<10), order: binary.LittleEndian, size: stat.Size()}
	return w.header()
}

func modeName(m fs.FileMode) string {
	if m.IsDir() {
		return "folder"
	}
	return "device or pipe"
}

func (w *walker) header() (*header, error) {
	tensors, keys, err := w.counts()
	if err != nil {
		return nil, err
	}
	h := &header{path: w.path, values: map[string]value{}, size: w.size}
	for range keys {
		if err := w.keyValue(h.values); err != nil {
			return nil, err
		}
	}
	align, err := w.alignment(h.values)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var data uint64
	for range tensors {
		start := w.at
		t, err := w.tensor()
		if err != nil {
			return nil, err
		}
		if seen[t.name] {
			return nil, w.errorAt(start, "tensor %q occurs twice", t.name)
		}
		seen[t.name] = true
		// The data is in the order of the descriptions, without gaps. llama.cpp refuses other
		// files, and their sizes cannot be trusted.
		if t.startsFrom != data {
			return nil, w.errorAt(start, "the data of tensor %q starts at %d according to the file, but must start at %d", t.name, t.startsFrom, data)
		}
		data += padded(t.bytes, align)
		if data > 1<<62 {
			return nil, w.errorAt(start, "the tensors up to %q take more than 2^62 bytes", t.name)
		}
		h.tensors = append(h.tensors, t)
	}
	h.end = int64(padded(uint64(w.at), align))
	h.needed = h.end
	if n := len(h.tensors); n > 0 {
		// The padding of the last tensor may be missing.
		h.needed += int64(h.tensors[n-1].startsFrom + h.tensors[n-1].bytes)
	}
	return h, nil
}

// counts reads the first fields of a file and sets the byte order.
func (w *walker) counts() (tensors, keys uint64, err error) {
	magic, err := w.take(4, "the magic number")
	if err != nil {
		return 0, 0, err
	}
	if string(magic) != "GGUF" {
		return 0, 0, w.errorAt(0, "not a GGUF file: it starts with %q", magic)
	}
	version, err := w.uint32("the version")
	if err != nil {
		return 0, 0, err
	}
	// Only the version shows that a file has the other byte order.
	if swapped := bits.ReverseBytes32(version); swapped >= 1 && swapped <= 3 {
		version, w.order = swapped, binary.BigEndian
	}
	if version != 2 && version != 3 {
		return 0, 0, w.errorAt(4, "GGUF version %d is not supported, only 2 and 3; convert the file again", version)
	}
	if tensors, err = w.uint64("the number of tensors"); err != nil {
		return 0, 0, err
	}
	if keys, err = w.uint64("the number of keys"); err != nil {
		return 0, 0, err
	}
	// A tensor takes at least 32 bytes, and a key at least 13.
	if err := w.plausible(8, "tensors", tensors, 32, maxTensors); err != nil {
		return 0, 0, err
	}
	return tensors, keys, w.plausible(16, "keys", keys, 13, maxKeys)
}

func (w *walker) plausible(at int64, what string, n, least, most uint64) error {
	switch left := uint64(w.size - w.at); {
	case n > left/least:
		return w.errorAt(at, "it claims to have %d %s, but the %d bytes that follow cannot hold them", n, what, left)
	case n > most:
		return w.errorAt(at, "it claims to have %d %s; at most %d are allowed", n, what, most)
	}
	return nil
}

func (w *walker) alignment(values map[string]value) (uint64, error) {
	v, ok := values["general.alignment"]
	if !ok {
		return 32, nil
	}
	n, ok := v.wholeNumber()
	if !ok || n == 0 || n > 1<<20 || n&(n-1) != 0 {
		return 0, w.errorAt(v.at, "general.alignment must be a power of 2 up to 1048576")
	}
	return n, nil
}

func padded(n, align uint64) uint64 { return (n + align - 1) / align * align }

// tensor reads the description of one tensor.
func (w *walker) tensor() (tensor, error) {
	start := w.at
	name, err := w.text(maxName, "a tensor's name")
	if err != nil {
		return tensor{}, err
	}
	if name == "" {
		return tensor{}, w.errorAt(start, "a tensor has no name")
	}
	t := tensor{name: name}
	n, err := w.uint32("the number of dimensions")
	if err != nil {
		return tensor{}, err
	}
	if n > maxDims {
		return tensor{}, w.errorAt(w.at-4, "tensor %q has %d dimensions; at most %d are allowed", name, n, maxDims)
	}
	for range n {
		d, err := w.uint64("a dimension")
		if err != nil {
			return tensor{}, err
		}
		t.dims = append(t.dims, d)
	}
	if n == 0 { // a scalar
		t.dims = []uint64{1}
	}
	kind, err := w.uint32("a tensor's type")
	if err != nil {
		return tensor{}, err
	}
	t.kind = parser.GGMLType(kind)
	if err := t.measure(); err != nil {
		return tensor{}, w.errorAt(start, "tensor %q: %v", name, err)
	}
	t.startsFrom, err = w.uint64("where a tensor's data starts")
	return t, err
}

// measure computes how many numbers and bytes the tensor has.
func (t *tensor) measure() error {
	trait, ok := t.kind.Trait()
	if !ok || trait.BlockSize == 0 {
		return fmt.Errorf("type %d is not known, so the size is not known either", uint32(t.kind))
	}
	t.elements = 1
	for _, d := range t.dims {
		if d == 0 {
			return errors.New("a dimension is 0")
		}
		high, low := bits.Mul64(t.elements, d)
		if high != 0 || low > maxBytes {
			return fmt.Errorf("dimensions %d: more than 2^50 numbers", t.dims)
		}
		t.elements = low
	}
	if t.dims[0]%trait.BlockSize != 0 {
		return fmt.Errorf("rows of %d numbers do not divide into the blocks of %d of type %s", t.dims[0], trait.BlockSize, t.kind)
	}
	// The product cannot overflow: 2^50 numbers of at most 292 bytes are below 2^64.
	if t.bytes = t.elements / trait.BlockSize * trait.TypeSize; t.bytes > maxBytes {
		return fmt.Errorf("dimensions %d: more than 2^50 bytes", t.dims)
	}
	return nil
}
