package hf

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"slices"
)

// maxHeader is the longest header that readers of the format accept.
const maxHeader = 100_000_000

// maxWeights is a pebibyte, which is far beyond any model and keeps sums from
// overflowing.
const maxWeights = 1 << 50

// maxTensors and maxEntry bound the memory that a header can take. The largest models
// have 91,000 tensors in all their files, and an entry takes a few hundred bytes.
const (
	maxTensors = 120_000
	maxEntry   = 8 << 20
)

// maxDims is far above any real tensor; a longer shape is an attack.
const maxDims = 32

// tensor is one entry of a header.
type tensor struct {
	name  string
	dtype string
	shape []int64
	bytes int64
	count int64 // elements as stored; several numbers packed into one element count once
}

// bitsOf is the size of one element in bits.
var bitsOf = map[string]int64{
	"BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "U32": 32, "I32": 32, "U64": 64, "I64": 64,
	"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8,
	"F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
	"F16": 16, "BF16": 16, "F32": 32, "F64": 64, "C64": 64,
}

// tensors returns the tensors of one file. Only the header is read. short reports that
// the file is shorter than its data.
func tensors(path string) (out []tensor, short bool, err error) {
	f, size, err := open(path)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	out, end, err := decodeHeader(f, size)
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", path, err)
	}
	return out, size < end, nil
}

// limitedFile is an open file, of which no more than its size is read. A file that the kernel shows,
// such as /proc/kmsg, has the size 0 and may have no end.
type limitedFile struct {
	io.Reader
	io.Closer
}

// open returns an error for anything but a regular file, because reading a pipe would
// block.
func open(path string) (limitedFile, int64, error) {
	st, err := os.Stat(path)
	if err != nil {
		return limitedFile{}, 0, err
	}
	if !st.Mode().IsRegular() {
		return limitedFile{}, 0, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return limitedFile{}, 0, err
	}
	return limitedFile{io.LimitReader(f, st.Size()), f}, st.Size(), nil
}

// decodeHeader reads the tensors of a safetensors file of the given size, and returns
// where its data ends. It allocates memory for what it reads, and never according to a
// length in the file.
func decodeHeader(r io.Reader, size int64) (out []tensor, end int64, err error) {
	var prefix [8]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return nil, 0, fmt.Errorf("it has %d bytes and is not a safetensors file; download it again", size)
	}
	length := binary.LittleEndian.Uint64(prefix[:])
	if length > maxHeader {
		return nil, 0, fmt.Errorf("its header claims to be %d bytes long; at most %d are allowed, so it is not a safetensors file or is damaged", length, maxHeader)
	}
	if int64(length) > size-8 {
		return nil, 0, fmt.Errorf("its header is %d bytes long, but only %d are there; download it again", length, max(0, size-8))
	}
	in := &io.LimitedReader{R: io.LimitReader(r, int64(length)), N: maxEntry}
	d := json.NewDecoder(in)
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, 0, errors.New("its header is not a JSON object; it is not a safetensors file or is damaged")
	}
	spans := []span{}
	seen := map[string]bool{}
	for in.N = maxEntry; d.More(); in.N = maxEntry {
		key, err := d.Token()
		if err != nil {
			return nil, 0, fmt.Errorf("its header is damaged: %w", err)
		}
		if len(out) == maxTensors {
			return nil, 0, fmt.Errorf("it has more than %d tensors, which no model has", maxTensors)
		}
		name, _ := key.(string)
		if seen[name] {
			return nil, 0, fmt.Errorf("tensor %q is in its header twice", name)
		}
		seen[name] = true
		if name == "__metadata__" {
			var skip json.RawMessage
			if err := d.Decode(&skip); err != nil {
				return nil, 0, fmt.Errorf("its header is damaged: %w", err)
			}
			continue
		}
		var e entry
		if err := d.Decode(&e); err != nil {
			if in.N <= 0 {
				err = fmt.Errorf("its entry is longer than %d bytes", maxEntry)
			}
			return nil, 0, fmt.Errorf("tensor %q: %w", name, err)
		}
		t, s, err := e.tensor(name)
		if err != nil {
			return nil, 0, fmt.Errorf("tensor %q: %w", name, err)
		}
		out, spans = append(out, t), append(spans, s)
	}
	if _, err := d.Token(); err != nil {
		return nil, 0, fmt.Errorf("its header is damaged: %w", err)
	}
	dataEnd, err := checkSpans(spans)
	if err != nil {
		return nil, 0, err
	}
	return out, 8 + int64(length) + dataEnd, nil
}

type entry struct {
	Dtype   string  `json:"dtype"`
	Shape   []int64 `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
}

type span struct {
	begin, end int64
	name       string
}

func (e entry) tensor(name string) (tensor, span, error) {
	width, known := bitsOf[e.Dtype]
	switch {
	case !known:
		return tensor{}, span{}, fmt.Errorf("dtype %q is not known", e.Dtype)
	case len(e.Shape) > maxDims:
		return tensor{}, span{}, fmt.Errorf("it has %d dimensions; at most %d are allowed", len(e.Shape), maxDims)
	case len(e.Offsets) != 2:
		return tensor{}, span{}, fmt.Errorf("data_offsets has %d numbers instead of 2", len(e.Offsets))
	}
	begin, end := e.Offsets[0], e.Offsets[1]
	if begin < 0 || end < begin || end > maxWeights {
		return tensor{}, span{}, fmt.Errorf("data_offsets [%d, %d] are not a range", begin, end)
	}
	count := uint64(1)
	for _, n := range e.Shape {
		if n < 0 {
			return tensor{}, span{}, fmt.Errorf("shape %v has a negative number", e.Shape)
		}
		hi, lo := bits.Mul64(count, uint64(n))
		if hi != 0 || lo > 1<<62 {
			return tensor{}, span{}, fmt.Errorf("shape %v has too many elements to count", e.Shape)
		}
		count = lo
	}
	hi, lo := bits.Mul64(count, uint64(width))
	if hi != 0 || lo%8 != 0 || lo/8 != uint64(end-begin) {
		return tensor{}, span{}, fmt.Errorf("shape %v of %s does not take the %d bytes of its data_offsets", e.Shape, e.Dtype, end-begin)
	}
	return tensor{name: name, dtype: e.Dtype, shape: e.Shape, bytes: end - begin, count: int64(count)},
		span{begin, end, name}, nil
}

// checkSpans returns where the last tensor ends. It returns an error if tensors overlap,
// because they would be counted twice.
func checkSpans(spans []span) (int64, error) {
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	end := int64(0)
	for i, s := range spans {
		if s.begin < end && s.end > s.begin {
			return 0, fmt.Errorf("tensors %q and %q overlap", spans[i-1].name, s.name)
		}
		end = max(end, s.end)
	}
	return end, nil
}
