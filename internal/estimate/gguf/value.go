package gguf

import (
	"math"

	"github.com/berth-project/berth/internal/printable"
	parser "github.com/gpustack/gguf-parser-go"
)

// value is the value of a metadata key, as far as it is used here: a short text, a
// number, a boolean, or a list of numbers with at most one number per layer.
type value struct {
	at      int64 // offset in the file
	kind    parser.GGUFMetadataValueType
	item    parser.GGUFMetadataValueType // type of the items of an array
	length  uint64                       // length of an array or a text
	text    string                       // "" if it is longer than maxText
	integer int64                        // 0 or 1 for a boolean; 0 for a float
	list    []int64
}

// wholeNumber returns the value as a whole number; false if it is not one or is
// negative. A key that is not in the file has the zero value, and its offset is 0.
func (v value) wholeNumber() (uint64, bool) {
	if v.at == 0 || !isWhole(v.kind) || v.integer < 0 {
		return 0, false
	}
	return uint64(v.integer), true
}

func isWhole(k parser.GGUFMetadataValueType) bool {
	switch k {
	case parser.GGUFMetadataValueTypeFloat32, parser.GGUFMetadataValueTypeFloat64,
		parser.GGUFMetadataValueTypeString, parser.GGUFMetadataValueTypeArray, parser.GGUFMetadataValueTypeBool:
		return false
	}
	return true
}

// widths is the size in bytes of each type with a fixed size.
var widths = map[parser.GGUFMetadataValueType]uint64{
	parser.GGUFMetadataValueTypeUint8:   1,
	parser.GGUFMetadataValueTypeInt8:    1,
	parser.GGUFMetadataValueTypeBool:    1,
	parser.GGUFMetadataValueTypeUint16:  2,
	parser.GGUFMetadataValueTypeInt16:   2,
	parser.GGUFMetadataValueTypeUint32:  4,
	parser.GGUFMetadataValueTypeInt32:   4,
	parser.GGUFMetadataValueTypeFloat32: 4,
	parser.GGUFMetadataValueTypeUint64:  8,
	parser.GGUFMetadataValueTypeInt64:   8,
	parser.GGUFMetadataValueTypeFloat64: 8,
}

// keyValue reads one key and its value.
func (w *walker) keyValue(into map[string]value) error {
	start := w.at
	key, err := w.text(maxKey, "a key")
	if err != nil {
		return err
	}
	if key == "" {
		return w.errorAt(start, "a key is empty")
	}
	if _, twice := into[key]; twice {
		return w.errorAt(start, "key %q occurs twice", key)
	}
	kind, err := w.uint32("the type of a value")
	if err != nil {
		return err
	}
	v, err := w.value(parser.GGUFMetadataValueType(kind), key)
	if err != nil {
		return err
	}
	into[key] = v
	return nil
}

func (w *walker) value(kind parser.GGUFMetadataValueType, key string) (value, error) {
	v := value{at: w.at, kind: kind}
	switch kind {
	case parser.GGUFMetadataValueTypeString:
		n, err := w.uint64("the length of a text")
		if err != nil {
			return v, err
		}
		v.length = n
		if n > maxText {
			return v, w.skip(n, "a text of "+key)
		}
		b, err := w.take(int(n), "a text of "+key)
		v.text = printable.Text(string(b))
		return v, err
	case parser.GGUFMetadataValueTypeArray:
		return w.array(v, key, 1)
	}
	width, ok := widths[kind]
	if !ok {
		return v, w.errorAt(v.at-4, "key %q has a value of type %d, which is not known", key, uint32(kind))
	}
	b, err := w.take(int(width), "the value of "+key)
	if err != nil {
		return v, err
	}
	v.integer = w.number(kind, b)
	return v, nil
}

// array reads a list. Its numbers are kept if there may be one per layer; otherwise only
// the length is kept.
func (w *walker) array(v value, key string, depth int) (value, error) {
	if depth > maxDepth {
		return v, w.errorAt(v.at, "key %q has arrays in arrays, more than %d deep", key, maxDepth)
	}
	item, err := w.uint32("the type of an array")
	if err != nil {
		return v, err
	}
	v.item = parser.GGUFMetadataValueType(item)
	start := w.at
	if v.length, err = w.uint64("the length of an array"); err != nil {
		return v, err
	}
	width, fixed := widths[v.item]
	least := width
	switch {
	case v.item == parser.GGUFMetadataValueTypeString:
		least = 8
	case v.item == parser.GGUFMetadataValueTypeArray:
		least = 12
	case !fixed:
		return v, w.errorAt(start-4, "key %q is an array of type %d, which is not known", key, item)
	}
	if left := uint64(w.size - w.at); v.length > left/least {
		return v, w.errorAt(start, "key %q claims to have %d items, but only %d bytes are left", key, v.length, left)
	}
	if fixed && (v.length > maxLayers || !isWhole(v.item) && v.item != parser.GGUFMetadataValueTypeBool) {
		return v, w.skip(v.length*width, "the array "+key)
	}
	what := "an item of " + key
	for range v.length {
		switch v.item {
		case parser.GGUFMetadataValueTypeString:
			var n uint64
			if n, err = w.uint64("the length of a text"); err == nil {
				err = w.skip(n, what)
			}
		case parser.GGUFMetadataValueTypeArray:
			_, err = w.array(value{at: w.at}, key, depth+1)
		default:
			var b []byte
			if b, err = w.take(int(width), what); err == nil {
				v.list = append(v.list, w.number(v.item, b))
			}
		}
		if err != nil {
			return v, err
		}
	}
	return v, nil
}

// number decodes a whole number. A number above the range of int64 becomes the largest
// int64, which all checks reject. Floats are not used and become 0.
func (w *walker) number(kind parser.GGUFMetadataValueType, b []byte) int64 {
	switch kind {
	case parser.GGUFMetadataValueTypeUint8, parser.GGUFMetadataValueTypeBool:
		return int64(b[0])
	case parser.GGUFMetadataValueTypeInt8:
		return int64(int8(b[0]))
	case parser.GGUFMetadataValueTypeUint16:
		return int64(w.order.Uint16(b))
	case parser.GGUFMetadataValueTypeInt16:
		return int64(int16(w.order.Uint16(b)))
	case parser.GGUFMetadataValueTypeUint32:
		return int64(w.order.Uint32(b))
	case parser.GGUFMetadataValueTypeInt32:
		return int64(int32(w.order.Uint32(b)))
	case parser.GGUFMetadataValueTypeUint64:
		return int64(min(w.order.Uint64(b), math.MaxInt64))
	case parser.GGUFMetadataValueTypeInt64:
		return int64(w.order.Uint64(b))
	}
	return 0
}
