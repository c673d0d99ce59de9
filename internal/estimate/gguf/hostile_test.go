package gguf_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/berth-project/berth/internal/estimate/gguf"
)

// text returns a string that is preceded by its length, as in the format.
type text string

// raw concatenates numbers and texts; a plain string is written without its length.
func raw(parts ...any) []byte {
	var b bytes.Buffer
	put := func(v any) {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			b.WriteString(p)
		case text:
			put(uint64(len(p)))
			b.WriteString(string(p))
		default:
			put(p)
		}
	}
	return b.Bytes()
}

// start returns the first fields of a file.
func start(tensors, keys uint64) []byte { return raw("GGUF", uint32(3), tensors, keys) }

const (
	u8, u32, str, list = uint32(0), uint32(4), uint32(8), uint32(9)
	f32, q8, q42       = uint32(0), uint32(8), uint32(4)
)

// room is enough bytes for small counts to be plausible.
var room = strings.Repeat("\x00", 200)

// hostile lists files that are truncated, broken or malicious.
var hostile = map[string]struct {
	file []byte
	said string
}{
	"empty":              {nil, "byte 0: the file ends within its header: the magic number takes 4 bytes and 0 are left"},
	"another format":     {[]byte("PK\x03\x04zip archive"), `byte 0: not a GGUF file: it starts with "PK\x03\x04"`},
	"version 1":          {raw("GGUF", uint32(1), room), "byte 4: GGUF version 1 is not supported"},
	"version 4":          {raw("GGUF", uint32(4), room), "byte 4: GGUF version 4 is not supported"},
	"no counts":          {raw("GGUF", uint32(3)), "byte 8: the file ends within its header: the number of tensors"},
	"2^40 tensors":       {raw(start(1<<40, 0), room), "byte 8: it claims to have 1099511627776 tensors, but the 200 bytes that follow cannot hold them"},
	"2^40 keys":          {raw(start(1, 1<<40), room), "byte 16: it claims to have 1099511627776 keys"},
	"key of 2^60":        {raw(start(0, 1), uint64(1)<<60, room), "byte 24: a key claims to have 1152921504606846976 bytes; at most 65535 are allowed"},
	"empty key":          {raw(start(0, 1), text(""), room), "byte 24: a key is empty"},
	"key twice":          {raw(start(0, 2), text("a"), u8, "1", text("a"), u8, "1", room), `byte 38: key "a" occurs twice`},
	"text of 2^60":       {raw(start(0, 1), text("k"), str, uint64(1)<<60, room), "byte 45: the file ends within its header: a text of k takes 1152921504606846976 bytes and 200 are left"},
	"array of 2^62":      {raw(start(0, 1), text("k"), list, u32, uint64(1)<<62, room), `byte 41: key "k" claims to have 4611686018427387904 items, but only 200 bytes are left`},
	"array of no type":   {raw(start(0, 1), text("k"), list, uint32(99), uint64(1), room), `byte 37: key "k" is an array of type 99, which is not known`},
	"value of no type":   {raw(start(0, 1), text("k"), uint32(13), room), `byte 33: key "k" has a value of type 13, which is not known`},
	"arrays in arrays":   {raw(start(0, 1), text("k"), list, strings.Repeat(string(raw(list, uint64(1))), 64)), "arrays in arrays, more than 4 deep"},
	"a bomb of arrays":   {raw(start(0, 1), text("k"), list, list, uint64(2), list, uint64(1)<<61, room), "claims to have 2305843009213693952 items"},
	"name of 2^60":       {raw(start(1, 0), uint64(1)<<60, room), "byte 24: a tensor's name claims to have 1152921504606846976 bytes; at most 1024 are allowed"},
	"no name":            {raw(start(1, 0), text(""), room), "byte 24: a tensor has no name"},
	"5 dimensions":       {raw(start(1, 0), text("t"), uint32(5), room), `byte 33: tensor "t" has 5 dimensions; at most 4 are allowed`},
	"2^32-1 dimensions":  {raw(start(1, 0), text("t"), ^uint32(0), room), `tensor "t" has 4294967295 dimensions`},
	"a dimension of 0":   {raw(start(1, 0), text("t"), uint32(1), uint64(0), f32, room), `tensor "t": a dimension is 0`},
	"product overflows":  {raw(start(1, 0), text("t"), uint32(2), uint64(1)<<32, uint64(1)<<32, f32, room), `tensor "t": dimensions [4294967296 4294967296]: more than 2^50 numbers`},
	"product wraps to 1": {raw(start(1, 0), text("t"), uint32(2), uint64(3), uint64(12297829382473034411), f32, room), "more than 2^50 numbers"},
	"bytes overflow":     {raw(start(1, 0), text("t"), uint32(1), uint64(1)<<50, f32, room), "more than 2^50 bytes"},
	"half a block":       {raw(start(1, 0), text("t"), uint32(1), uint64(33), q8, room), `byte 24: tensor "t": rows of 33 numbers do not divide into the blocks of 32 of type Q8_0`},
	"unknown type":       {raw(start(1, 0), text("t"), uint32(1), uint64(32), uint32(77), room), `tensor "t": type 77 is not known, so the size is not known either`},
	"withdrawn type":     {raw(start(1, 0), text("t"), uint32(1), uint64(32), q42, room), `tensor "t": type 4 is not known`},
	"data elsewhere":     {raw(start(1, 0), text("t"), uint32(1), uint64(8), f32, uint64(1)<<63, room), `the data of tensor "t" starts at 9223372036854775808 according to the file, but must start at 0`},
	"tensor twice":       {raw(start(2, 0), text("t"), uint32(1), uint64(8), f32, uint64(0), text("t"), uint32(1), uint64(8), f32, uint64(32), room), `tensor "t" occurs twice`},
	"a key that draws":   {raw(start(0, 1), text("k\x1b[2J\x9b"), str, uint64(1)<<60, room), "byte 50: the file ends within its header: a text of k�[2J� takes 1152921504606846976 bytes and 200 are left"},
	"odd alignment":      {raw(start(0, 1), text("general.alignment"), u32, uint32(33), room), "byte 53: general.alignment must be a power of 2"},
}

// Text of a file is shown only after control characters are removed.
func TestTextIsPrintable(t *testing.T) {
	const arch, want = "ll\x1b[31mama\u202e\x9b", "ll�[31mama��"
	m := mustRead(t, write(t, "m\x1b[2J.gguf", tiny(arch), false))
	if m.Architecture.Name != want || m.Name != "m�[2J" {
		t.Errorf("%q of %q, want %q", m.Architecture.Name, m.Name, want)
	}
	fails(t, write(t, "m.gguf", tiny(arch, key(arch+".block_count", "two")), false), want+".block_count must be a whole number")
	m = mustRead(t, write(t, "m.gguf", tiny(arch, key(arch+".block_count", nil)), false))
	if s := want + " is not a known language model"; len(m.Assumed) == 0 || !strings.HasPrefix(m.Assumed[len(m.Assumed)-1], s) {
		t.Errorf("assumed %q, want %q", m.Assumed, s)
	}
}

func TestHostileFiles(t *testing.T) {
	for name, test := range hostile {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "m.gguf")
			if err := os.WriteFile(path, test.file, 0o644); err != nil {
				t.Fatal(err)
			}
			cheaply(t, func() { fails(t, path, test.said) })
		})
	}
}

// A sparse file can be very large at no cost. Reading it must not cost more than reading
// the largest header.
func TestHostileHoles(t *testing.T) {
	for name, test := range map[string]struct {
		file []byte
		said string
	}{
		"2^30 tensors": {start(1<<30, 0), "it claims to have 1073741824 tensors; at most 131072 are allowed"},
		"2^30 keys":    {start(1, 1<<30), "it claims to have 1073741824 keys; at most 4096 are allowed"},
		"zeros":        {start(1000, 10), "byte 24: a key is empty"},
		"2^32 texts":   {raw(start(0, 1), text("k"), list, str, uint64(1)<<32), "which makes the header larger than 64 MiB"},
		"2^35 bytes":   {raw(start(0, 1), text("k"), list, u8, uint64(1)<<35), "the array k takes 34359738368 bytes, which makes the header larger than 64 MiB"},
		"a long text":  {raw(start(0, 1), text("k"), str, uint64(1)<<35), "a text of k takes 34359738368 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "m.gguf")
			if err := os.WriteFile(path, test.file, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path, 1<<40); err != nil {
				t.Fatal(err)
			}
			cheaply(t, func() { fails(t, path, test.said) })
		})
	}
}

// A file that ends within its header is refused with a message that says so. The padding
// after the header may be missing.
func TestCutHeaders(t *testing.T) {
	whole := tiny("llama").Header()
	end := len(bytes.TrimRight(whole, "\x00")) // the last number is below 2^16
	path := filepath.Join(t.TempDir(), "m.gguf")
	for n := range end {
		if err := os.WriteFile(path, whole[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := gguf.Read(path); err == nil || !strings.Contains(err.Error(), ": byte ") {
			t.Fatalf("with %d of %d bytes: %v", n, len(whole), err)
		}
	}
}

// cheaply checks that a function allocates little memory in total.
func cheaply(t *testing.T, do func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("it took %d bytes of memory", n)
	}
}
