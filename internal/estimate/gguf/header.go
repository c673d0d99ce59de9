package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"

	parser "github.com/gpustack/gguf-parser-go"
)

// No model comes near these. They bound what a hostile file can cost: a header
// is walked once, in order, and only its tensors and numbers are kept.
const (
	maxHeader  = 64 << 20
	maxTensors = 1 << 17
	maxKeys    = 1 << 12
	maxLayers  = 1 << 10
	maxKey     = 1<<16 - 1 // the format's own bound
	maxName    = 1 << 10
	maxText    = 1 << 10 // longer texts, a licence say, are passed over
	maxDims    = 4       // the format's own bound
	maxDepth   = 4       // of arrays in arrays
	maxBytes   = 1 << 50 // of one tensor; 1 PiB
)

// header is what one file says of itself before its tensors' data.
type header struct {
	path    string
	values  map[string]value
	tensors []tensor
	end     int64 // where the data begins
	size    int64 // of the file
	needed  int64 // the size that it has with all of its data
}

// tensor is one tensor as its file describes it.
type tensor struct {
	name       string
	dims       []uint64
	kind       parser.GGMLType
	elements   uint64
	bytes      uint64
	startsFrom uint64 // in the file's data
}

// readHeader walks one file up to its tensors' data.
func readHeader(path string) (*header, error) {
	// A pipe would block and a folder has no header: ask before opening.
	stat, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !stat.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a file but a %s", path, kindOf(stat.Mode()))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	w := &walker{path: path, in: bufio.NewReaderSize(f, 64<<10), order: binary.LittleEndian, size: stat.Size()}
	return w.header()
}

func kindOf(m fs.FileMode) string {
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
		if err := w.pair(h.values); err != nil {
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
			return nil, w.wrong(start, "tensor %q comes twice", t.name)
		}
		seen[t.name] = true
		// Data lies in the order of the descriptions, without gaps. A file that
		// says otherwise is refused by its readers, and its sizes cannot be trusted.
		if t.startsFrom != data {
			return nil, w.wrong(start, "the data of tensor %q is said to start at %d, but %d is where it must", t.name, t.startsFrom, data)
		}
		data += padded(t.bytes, align)
		if data > 1<<62 {
			return nil, w.wrong(start, "the tensors up to %q take more than 2^62 bytes", t.name)
		}
		h.tensors = append(h.tensors, t)
	}
	h.end = int64(padded(uint64(w.at), align))
	h.needed = h.end
	if n := len(h.tensors); n > 0 {
		// The last one's padding may be missing.
		h.needed += int64(h.tensors[n-1].startsFrom + h.tensors[n-1].bytes)
	}
	return h, nil
}

// counts reads what every file starts with, and settles its byte order.
func (w *walker) counts() (tensors, keys uint64, err error) {
	magic, err := w.take(4, "the magic number")
	if err != nil {
		return 0, 0, err
	}
	if string(magic) != "GGUF" {
		return 0, 0, w.wrong(0, "not a GGUF file: it starts with %q", magic)
	}
	version, err := w.uint32("the version")
	if err != nil {
		return 0, 0, err
	}
	// Files for machines of the other byte order show it only here.
	if swapped := bits.ReverseBytes32(version); swapped >= 1 && swapped <= 3 {
		version, w.order = swapped, binary.BigEndian
	}
	if version != 2 && version != 3 {
		return 0, 0, w.wrong(4, "GGUF version %d is not known here: 2 and 3 are; convert the file anew", version)
	}
	if tensors, err = w.uint64("the number of tensors"); err != nil {
		return 0, 0, err
	}
	if keys, err = w.uint64("the number of keys"); err != nil {
		return 0, 0, err
	}
	// The least that one takes is 32 bytes for a tensor and 13 for a key.
	if err := w.plausible(8, "tensors", tensors, 32, maxTensors); err != nil {
		return 0, 0, err
	}
	return tensors, keys, w.plausible(16, "keys", keys, 13, maxKeys)
}

func (w *walker) plausible(at int64, what string, n, least, most uint64) error {
	switch left := uint64(w.size - w.at); {
	case n > left/least:
		return w.wrong(at, "it says that it has %d %s, but the %d bytes that follow cannot hold them", n, what, left)
	case n > most:
		return w.wrong(at, "it says that it has %d %s; more than %d are not read", n, what, most)
	}
	return nil
}

func (w *walker) alignment(values map[string]value) (uint64, error) {
	v, ok := values["general.alignment"]
	if !ok {
		return 32, nil
	}
	n, ok := v.whole()
	if !ok || n == 0 || n > 1<<20 || n&(n-1) != 0 {
		return 0, w.wrong(v.at, "general.alignment must be a power of 2 up to 1048576")
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
		return tensor{}, w.wrong(start, "a tensor has no name")
	}
	t := tensor{name: name}
	n, err := w.uint32("the number of dimensions")
	if err != nil {
		return tensor{}, err
	}
	if n > maxDims {
		return tensor{}, w.wrong(w.at-4, "tensor %q has %d dimensions; %d are the most", name, n, maxDims)
	}
	for range n {
		d, err := w.uint64("a dimension")
		if err != nil {
			return tensor{}, err
		}
		t.dims = append(t.dims, d)
	}
	if n == 0 { // a single number
		t.dims = []uint64{1}
	}
	kind, err := w.uint32("a tensor's type")
	if err != nil {
		return tensor{}, err
	}
	t.kind = parser.GGMLType(kind)
	if err := t.measure(); err != nil {
		return tensor{}, w.wrong(start, "tensor %q: %v", name, err)
	}
	t.startsFrom, err = w.uint64("where a tensor's data starts")
	return t, err
}

// measure works out how many numbers and bytes a tensor has.
func (t *tensor) measure() error {
	trait, ok := t.kind.Trait()
	if !ok || trait.BlockSize == 0 {
		return fmt.Errorf("type %d is not known, and so its size is not", uint32(t.kind))
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
		return fmt.Errorf("rows of %d numbers do not divide into blocks of %d, as type %s has them", t.dims[0], trait.BlockSize, t.kind)
	}
	// 2^50 numbers of at most 292 bytes stay below 2^64.
	if t.bytes = t.elements / trait.BlockSize * trait.TypeSize; t.bytes > maxBytes {
		return fmt.Errorf("dimensions %d: more than 2^50 bytes", t.dims)
	}
	return nil
}
