package hf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// file returns a file with this header and without data.
func file(header string) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
}

func tensorText(name, dtype, shape, offsets string) string {
	return fmt.Sprintf(`{%q:{"dtype":%q,"shape":%s,"data_offsets":%s}}`, name, dtype, shape, offsets)
}

func many(n int) string {
	var b strings.Builder
	b.WriteString(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`)
	for i := range n - 1 {
		fmt.Fprintf(&b, `,"%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`, i)
	}
	return b.String() + "}"
}

func TestDamagedAndHostileHeaders(t *testing.T) {
	length := func(n uint64) []byte { return append(binary.LittleEndian.AppendUint64(nil, n), "{}"...) }
	tests := map[string]struct {
		file []byte
		want string
	}{
		"empty":              {nil, "not a safetensors file"},
		"cut in the length":  {[]byte{1, 2, 3}, "not a safetensors file"},
		"length 2^63":        {length(1 << 63), "9223372036854775808 bytes long"},
		"length 2^64 - 1":    {length(1<<64 - 1), "bytes long"},
		"length 100 MB":      {length(maxHeader), "only 2 are there"},
		"cut in the header":  {file(tensorText("a", "F32", "[1]", "[0,4]"))[:30], "are there"},
		"not an object":      {file(`[1]`), "not a JSON object"},
		"not JSON":           {file(`hello`), "not a JSON object"},
		"deep JSON":          {file(`{"__metadata__":` + strings.Repeat("[", 1<<20) + `}`), "damaged"},
		"object not closed":  {file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}`), "damaged"},
		"unknown dtype":      {file(tensorText("a", "Q9", "[1]", "[0,4]")), `dtype "Q9" is not known`},
		"no dtype":           {file(`{"a":{"shape":[1],"data_offsets":[0,4]}}`), `dtype "" is not known`},
		"no offsets":         {file(`{"a":{"dtype":"F32","shape":[1]}}`), "0 numbers instead of 2"},
		"backwards":          {file(tensorText("a", "F32", "[1]", "[4,0]")), "not a range"},
		"negative offset":    {file(tensorText("a", "F32", "[1]", "[-4,0]")), "not a range"},
		"offset beyond all":  {file(tensorText("a", "U8", "[4611686018427387904]", "[0,4611686018427387904]")), "not a range"},
		"shape overflows":    {file(tensorText("a", "F32", "[4294967296,4294967296,4294967296]", "[0,4]")), "too many elements"},
		"bytes overflow":     {file(tensorText("a", "F64", "[4611686018427387904]", "[0,0]")), "does not take"},
		"negative dimension": {file(tensorText("a", "F32", "[-1]", "[0,4]")), "negative"},
		"number too large":   {file(tensorText("a", "F32", "[1e300]", "[0,4]")), "tensor"},
		"span too long":      {file(tensorText("a", "F32", "[2]", "[0,4]")), "does not take the 4 bytes"},
		"half a byte":        {file(tensorText("a", "F4", "[3]", "[0,1]")), "does not take"},
		"many dimensions":    {file(tensorText("a", "F32", "["+strings.Repeat("1,", 40)+"1]", "[0,4]")), "dimensions"},
		"very long entry":    {file(tensorText("a", "F32", "["+strings.Repeat("1,", 5<<20)+"1]", "[0,4]")), "longer than 8388608 bytes"},
		"too many tensors":   {file(many(maxTensors + 1)), "more than 120000 tensors"},
		"twice":              {file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`), "twice"},
		"overlap":            {file(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}}`), "overlap"},
	}
	for name, test := range tests {
		_, _, err := decodeHeader(bytes.NewReader(test.file), int64(len(test.file)))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: the error is %v, want %q in it", name, err, test.want)
		}
	}
}

func TestHeaderOfFewBytesTakesLittleMemory(t *testing.T) {
	liar := append(binary.LittleEndian.AppendUint64(nil, maxHeader), `{"a":{"dtype":"F32","shape":[1099511627776]`...)
	n := testing.AllocsPerRun(10, func() {
		// The size is wrong too, as that of a sparse file would be.
		if _, _, err := decodeHeader(bytes.NewReader(liar), 1<<40); err == nil {
			t.Fatal("no error")
		}
	})
	if n > 100 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzHeader(f *testing.F) {
	f.Add(file(tensorText("a", "BF16", "[2,3]", "[0,12]")))
	f.Add(file(`{"__metadata__":{"format":"pt"},"a":{"dtype":"F4","shape":[4],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}}  `))
	f.Add(file(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, end, err := decodeHeader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		sum := int64(0)
		for _, x := range list {
			if x.bytes < 0 || x.count < 0 {
				t.Fatalf("%+v", x)
			}
			sum += x.bytes
			placeOf(x.name)
			if x.parameters(4) < 0 {
				t.Fatalf("%+v", x)
			}
		}
		if sum < 0 || sum > end {
			t.Fatalf("tensors of %d bytes end at %d", sum, end)
		}
	})
}
