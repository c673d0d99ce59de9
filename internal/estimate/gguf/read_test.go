package gguf_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/gguf"
	"github.com/berth-project/berth/internal/estimate/gguf/sample"
	"github.com/google/go-cmp/cmp"
	parser "github.com/gpustack/gguf-parser-go"
)

const cutOff = "The file ends before its tensors; sizes are those of its header."

// The sizes of Llama 3.1 8B: a matrix has 34 bytes for 32 numbers, and a norm 4 bytes for one.
const (
	llamaLayer = (2*4096*4096+2*4096*1024+3*4096*14336)/32*34 + 2*4096*4
	llamaEmbed = 4096 * 128256 / 32 * 34
	llamaRest  = 4096*4 + 64*4 // the last norm and the rotary factors
)

func TestSamples(t *testing.T) {
	type read struct {
		Weights      estimate.Weights
		Architecture estimate.Architecture
	}
	tests := map[string]read{
		"llama-3.1-8b-q8_0": {
			estimate.Weights{Layers: 32 * llamaLayer, Embedding: llamaEmbed, Head: llamaEmbed, Replicated: llamaRest, Bits: 850, Quantised: "Q8_0", Parameters: 8_030_261_312},
			estimate.Architecture{Name: "llama", Layers: 32, Hidden: 4096, Intermediate: 14336, Heads: 32, KVHeads: 8, HeadDim: 128, Vocab: 128256, MaxContext: 131072},
		},
		// The published file has 42.52 GB, with a tokenizer of 7.8 MB.
		"llama-3.3-70b-q4_k_m": {
			estimate.Weights{Layers: 41_059_614_720, Embedding: 8192 * 128256 / 256 * 144, Head: 8192 * 128256 / 256 * 210, Replicated: 8192*4 + 64*4, Bits: 482, Quantised: "Q4_K_M", Parameters: 70_553_706_560},
			estimate.Architecture{Name: "llama", Layers: 80, Hidden: 8192, Intermediate: 28672, Heads: 64, KVHeads: 8, HeadDim: 128, Vocab: 128256, MaxContext: 131072},
		},
		"deepseek-v3-q4_k_m": {
			estimate.Weights{Layers: 377_290_889_216, Embedding: 7168 * 129280 / 256 * 144, Head: 7168 * 129280 / 256 * 210, Replicated: 7168 * 4, Bits: 451, Quantised: "Q4_K_M", Parameters: 671_026_419_200},
			estimate.Architecture{Name: "deepseek2", Layers: 61, Hidden: 7168, Intermediate: 18432, Heads: 128, KVHeads: 128, HeadDim: 192, ValueDim: 128,
				Latent: &estimate.Latent{Rank: 512, Rope: 64}, Vocab: 129280, MaxContext: 163840, Experts: 256, Active: 8},
		},
	}
	for name := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := sample.Named(name)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(f.Header()); n > 100_000 {
				t.Errorf("its header has %d bytes: too many to keep beside scenarios", n)
			}
			for _, whole := range []bool{false, true} {
				m := mustRead(t, write(t, name+".gguf", f, whole))
				if diff := cmp.Diff(tests[name], read{m.Weights, *m.Architecture}); diff != "" {
					t.Error(diff)
				}
				if m.Name != name || m.Format != "gguf" || m.Layered == nil {
					t.Errorf("name %q, format %q, layered %v", m.Name, m.Format, m.Layered)
				}
				if said := slices.Contains(m.Assumed, cutOff); said == whole {
					t.Errorf("with all data %v, assumed: %q", whole, m.Assumed)
				}
			}
		})
	}
}

// The parser finds the same weights in a file of the true size that llama.cpp can load.
func TestWeightsAreTheParsers(t *testing.T) {
	for _, name := range sample.Names {
		f, _ := sample.Named(name)
		f = f.Loadable()
		path := write(t, name+".gguf", f, true)
		theirs, err := parser.ParseGGUFFile(path)
		if err != nil {
			t.Fatal(err)
		}
		ours := mustRead(t, path).Weights
		if uint64(ours.Total()) != theirs.TensorInfos.Bytes() || uint64(ours.Parameters) != theirs.TensorInfos.Elements() {
			t.Errorf("%s: %d bytes of %d parameters; the parser has %d of %d", name, ours.Total(), ours.Parameters, theirs.TensorInfos.Bytes(), theirs.TensorInfos.Elements())
		}
	}
}

func TestOneMissingByteIsReported(t *testing.T) {
	f := tiny("llama")
	path := write(t, "m.gguf", f, true)
	if m := mustRead(t, path); slices.Contains(m.Assumed, cutOff) {
		t.Errorf("assumed %q of a whole file", m.Assumed)
	}
	if err := os.Truncate(path, f.Size()-1-16); err != nil { // the last tensor has 16 bytes of padding
		t.Fatal(err)
	}
	if m := mustRead(t, path); !slices.Contains(m.Assumed, cutOff) {
		t.Errorf("assumed %q of a file that lacks a byte", m.Assumed)
	}
}

func TestVersionsAndByteOrders(t *testing.T) {
	want := mustRead(t, write(t, "m.gguf", tiny("llama"), false))
	for _, version := range []uint32{2, 3} {
		for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
			f := tiny("llama")
			f.Version, f.Order = version, order
			got := mustRead(t, write(t, "m.gguf", f, false))
			if diff := cmp.Diff(want, got, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Need" }, cmp.Ignore())); diff != "" {
				t.Errorf("version %d, %v: %s", version, order, diff)
			}
		}
	}
}

func TestParts(t *testing.T) {
	dir := t.TempDir()
	whole := tiny("llama")
	want := mustRead(t, write(t, "m.gguf", whole, false))
	name := func(i int) string { return filepath.Join(dir, fmt.Sprintf("m-%05d-of-00003.gguf", i)) }
	part := func(i, no, count, all int) sample.File {
		n := len(whole.Tensors)
		f := sample.File{Tensors: whole.Tensors[n*(i-1)/3 : n*i/3], Keys: []sample.Key{
			{Name: "split.no", Value: uint16(no)}, {Name: "split.count", Value: uint16(count)}, {Name: "split.tensors.count", Value: uint32(all)}}}
		if i == 1 {
			f.Keys = append(f.Keys, whole.Keys...)
		}
		return f
	}
	put := func(i int, f sample.File) {
		if err := f.Write(name(i), false); err != nil {
			t.Fatal(err)
		}
	}
	all := len(whole.Tensors)
	put(1, part(1, 0, 3, all))
	put(3, part(3, 2, 3, all))
	fails(t, name(1), "part 2 of 3 is missing", "m-00002-of-00003.gguf")
	put(2, part(2, 1, 3, all))
	for i := 1; i <= 3; i++ {
		m := mustRead(t, name(i))
		if diff := cmp.Diff(want.Weights, m.Weights); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(want.Architecture, m.Architecture); diff != "" || m.Name != "m" {
			t.Error(m.Name, diff)
		}
	}
	put(2, part(2, 2, 3, all))
	fails(t, name(1), "m-00002-of-00003.gguf: it is part 3, but its name says 2")
	put(2, part(2, 1, 4, all))
	fails(t, name(1), "it is one of 4 parts, but its name says 3")
	put(2, part(1, 1, 3, all))
	fails(t, name(3), "tensor", "is also in", "m-00001-of-00003.gguf")
	put(2, part(2, 1, 3, all))
	put(1, part(1, 0, 3, all+1))
	fails(t, name(2), fmt.Sprintf("have %d tensors together, but the first says %d", all, all+1))
	if err := os.Rename(name(2), filepath.Join(dir, "other.gguf")); err != nil {
		t.Fatal(err)
	}
	fails(t, filepath.Join(dir, "other.gguf"), "it is one of 3 parts", "NAME-00001-of-00003.gguf")
	fails(t, filepath.Join(dir, "m-00004-of-00003.gguf"), "there is no part 4 of 3")
}

func TestNoFile(t *testing.T) {
	fails(t, filepath.Join(t.TempDir(), "m.gguf"), "no such file")
	fails(t, t.TempDir(), "it is a folder, not a file")
}

// tiny returns a small model of two layers. Keys are added, or replaced if the name
// exists.
func tiny(arch string, keys ...sample.Key) sample.File {
	f := sample.File{Keys: []sample.Key{
		{Name: "general.architecture", Value: arch},
		{Name: arch + ".block_count", Value: uint32(2)},
		{Name: arch + ".context_length", Value: uint32(4096)},
		{Name: arch + ".embedding_length", Value: uint32(64)},
		{Name: arch + ".feed_forward_length", Value: uint32(128)},
		{Name: arch + ".attention.head_count", Value: uint32(4)},
		{Name: arch + ".attention.head_count_kv", Value: uint32(2)},
		{Name: "tokenizer.ggml.tokens", Value: []string{"a", "b", "c"}},
	}}
	for _, k := range keys {
		f.Keys = slices.DeleteFunc(f.Keys, func(old sample.Key) bool { return old.Name == k.Name })
		if k.Value != nil {
			f.Keys = append(f.Keys, k)
		}
	}
	add := func(name string, kind parser.GGMLType, dims ...uint64) {
		f.Tensors = append(f.Tensors, sample.Tensor{Name: name, Type: kind, Dims: dims})
	}
	add("token_embd.weight", parser.GGMLTypeF16, 64, 100)
	for i := range 2 {
		add(fmt.Sprintf("blk.%d.attn_norm.weight", i), parser.GGMLTypeF32, 64)
		add(fmt.Sprintf("blk.%d.attn_q.weight", i), parser.GGMLTypeF16, 64, 64)
		add(fmt.Sprintf("blk.%d.ffn_up.weight", i), parser.GGMLTypeF16, 64, 128)
	}
	add("output.weight", parser.GGMLTypeF16, 64, 100)
	add("output_norm.weight", parser.GGMLTypeF32, 4)
	return f
}

func key(name string, value any) sample.Key { return sample.Key{Name: name, Value: value} }

func write(t testing.TB, name string, f sample.File, whole bool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := f.Write(path, whole); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustRead(t testing.TB, path string) *estimate.Model {
	t.Helper()
	m, err := gguf.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// fails checks that a file is refused with an error that contains its name and all parts.
func fails(t testing.TB, path string, parts ...string) {
	t.Helper()
	m, err := gguf.Read(path)
	if err == nil {
		t.Errorf("it was read as %+v", m)
		return
	}
	for _, part := range append(parts, filepath.Dir(path)) {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}
