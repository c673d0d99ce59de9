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

// text is a string with its length before it, as the format has them.
type text string

// raw puts numbers and texts one after the other; a plain string stands for its bytes.
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

// start is what a file starts with.
func start(tensors, keys uint64) []byte { return raw("GGUF", uint32(3), tensors, keys) }

const (
	u8, u32, str, list = uint32(0), uint32(4), uint32(8), uint32(9)
	f32, q8, q42       = uint32(0), uint32(8), uint32(4)
)

// room is enough for what counts must be plausible against.
var room = strings.Repeat("\x00", 200)

// hostile are files that are cut, broken or meant to do harm.
var hostile = map[string]struct {
	file []byte
	said string
}{
	"empty":              {nil, "byte 0: the file ends within its header: the magic number takes 4 bytes and 0 are left"},
	"another format":     {[]byte("PK\x03\x04zip archive"), `byte 0: not a GGUF file: it starts with "PK\x03\x04"`},
	"version 1":          {raw("GGUF", uint32(1), room), "byte 4: GGUF version 1 is not known here"},
	"version 4":          {raw("GGUF", uint32(4), room), "byte 4: GGUF version 4 is not known here"},
	"no counts":          {raw("GGUF", uint32(3)), "byte 8: the file ends within its header: the number of tensors"},
	"2^40 tensors":       {raw(start(1<<40, 0), room), "byte 8: it says that it has 1099511627776 tensors, but the 200 bytes that follow cannot hold them"},
	"2^40 keys":          {raw(start(1, 1<<40), room), "byte 16: it says that it has 1099511627776 keys"},
	"key of 2^60":        {raw(start(0, 1), uint64(1)<<60, room), "byte 24: a key is said to have 1152921504606846976 bytes; 65535 are the most"},
	"empty key":          {raw(start(0, 1), text(""), room), "byte 24: a key is empty"},
	"key twice":          {raw(start(0, 2), text("a"), u8, "1", text("a"), u8, "1", room), `byte 38: key "a" comes twice`},
	"text of 2^60":       {raw(start(0, 1), text("k"), str, uint64(1)<<60, room), "byte 45: the file ends within its header: a text of k takes 1152921504606846976 bytes and 200 are left"},
	"array of 2^62":      {raw(start(0, 1), text("k"), list, u32, uint64(1)<<62, room), `byte 41: key "k" is said to have 4611686018427387904 items, but only 200 bytes are left`},
	"array of no type":   {raw(start(0, 1), text("k"), list, uint32(99), uint64(1), room), `byte 37: key "k" is an array of type 99, which is not known`},
	"value of no type":   {raw(start(0, 1), text("k"), uint32(13), room), `byte 33: key "k" has a value of type 13, which is not known`},
	"arrays in arrays":   {raw(start(0, 1), text("k"), list, strings.Repeat(string(raw(list, uint64(1))), 64)), "arrays in arrays, more than 4 deep"},
	"a bomb of arrays":   {raw(start(0, 1), text("k"), list, list, uint64(2), list, uint64(1)<<61, room), "is said to have 2305843009213693952 items"},
	"name of 2^60":       {raw(start(1, 0), uint64(1)<<60, room), "byte 24: a tensor's name is said to have 1152921504606846976 bytes; 1024 are the most"},
	"no name":            {raw(start(1, 0), text(""), room), "byte 24: a tensor has no name"},
	"5 dimensions":       {raw(start(1, 0), text("t"), uint32(5), room), `byte 33: tensor "t" has 5 dimensions; 4 are the most`},
	"2^32-1 dimensions":  {raw(start(1, 0), text("t"), ^uint32(0), room), `tensor "t" has 4294967295 dimensions`},
	"a dimension of 0":   {raw(start(1, 0), text("t"), uint32(1), uint64(0), f32, room), `tensor "t": a dimension is 0`},
	"product overflows":  {raw(start(1, 0), text("t"), uint32(2), uint64(1)<<32, uint64(1)<<32, f32, room), `tensor "t": dimensions [4294967296 4294967296]: more than 2^50 numbers`},
	"product wraps to 1": {raw(start(1, 0), text("t"), uint32(2), uint64(3), uint64(12297829382473034411), f32, room), "more than 2^50 numbers"},
	"bytes overflow":     {raw(start(1, 0), text("t"), uint32(1), uint64(1)<<50, f32, room), "more than 2^50 bytes"},
	"half a block":       {raw(start(1, 0), text("t"), uint32(1), uint64(33), q8, room), `byte 24: tensor "t": rows of 33 numbers do not divide into blocks of 32, as type Q8_0 has them`},
	"unknown type":       {raw(start(1, 0), text("t"), uint32(1), uint64(32), uint32(77), room), `tensor "t": type 77 is not known, and so its size is not`},
	"withdrawn type":     {raw(start(1, 0), text("t"), uint32(1), uint64(32), q42, room), `tensor "t": type 4 is not known`},
	"data elsewhere":     {raw(start(1, 0), text("t"), uint32(1), uint64(8), f32, uint64(1)<<63, room), `the data of tensor "t" is said to start at 9223372036854775808, but 0 is where it must`},
	"tensor twice":       {raw(start(2, 0), text("t"), uint32(1), uint64(8), f32, uint64(0), text("t"), uint32(1), uint64(8), f32, uint64(32), room), `tensor "t" comes twice`},
	"a key that draws":   {raw(start(0, 1), text("k\x1b[2J\x9b"), str, uint64(1)<<60, room), "byte 50: the file ends within its header: a text of k�[2J� takes 1152921504606846976 bytes and 200 are left"},
	"odd alignment":      {raw(start(0, 1), text("general.alignment"), u32, uint32(33), room), "byte 53: general.alignment must be a power of 2"},
}

// What a file says reaches people only as text that a terminal does not obey.
func TestTextIsPrintable(t *testing.T) {
	const arch, want = "ll\x1b[31mama\u202e\x9b", "ll�[31mama��"
	m := mustRead(t, write(t, "m\x1b[2J.gguf", tiny(arch), false))
	if m.Architecture.Name != want || m.Name != "m�[2J" {
		t.Errorf("%q of %q, want %q", m.Architecture.Name, m.Name, want)
	}
	fails(t, write(t, "m.gguf", tiny(arch, key(arch+".block_count", "two")), false), want+".block_count must be a whole number")
	m = mustRead(t, write(t, "m.gguf", tiny(arch, key(arch+".block_count", nil)), false))
	if s := want + " is no language model that is known here"; len(m.Assumed) == 0 || !strings.HasPrefix(m.Assumed[len(m.Assumed)-1], s) {
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

// Holes make a file as large as one likes at no cost; reading on through them
// must not cost more than a header may.
func TestHostileHoles(t *testing.T) {
	for name, test := range map[string]struct {
		file []byte
		said string
	}{
		"2^30 tensors": {start(1<<30, 0), "it says that it has 1073741824 tensors; more than 131072 are not read"},
		"2^30 keys":    {start(1, 1<<30), "it says that it has 1073741824 keys; more than 4096 are not read"},
		"zeros":        {start(1000, 10), "byte 24: a key is empty"},
		"2^32 texts":   {raw(start(0, 1), text("k"), list, str, uint64(1)<<32), "with which the header is larger than 64 MiB"},
		"2^35 bytes":   {raw(start(0, 1), text("k"), list, u8, uint64(1)<<35), "the array k takes 34359738368 bytes, with which the header is larger than 64 MiB"},
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

// A file that is cut anywhere in its header is refused, and says so; the padding
// that follows the header may be missing.
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

// cheaply checks that what is done takes little memory, all of it together.
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
