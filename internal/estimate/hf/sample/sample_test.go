package sample_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-project/berth/internal/estimate/hf/sample"
)

// folder returns the total size of the files of a directory.
func folder(t *testing.T, dir string) (sum int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		st, err := os.Stat(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		sum += st.Size()
	}
	return sum
}

// Samples are committed with the scenarios that need them, so they must stay small.
func TestSamplesAreSmall(t *testing.T) {
	for _, name := range sample.Names() {
		index := t.TempDir()
		if err := sample.WriteIndex(index, name); err != nil {
			t.Fatal(err)
		}
		if n := folder(t, index); n > 4<<10 {
			t.Errorf("%s with an index takes %d bytes", name, n)
		}
		if name == "deepseek-v3" || name == "gemma-3-27b" { // these have many tensors, and only their index is committed
			continue
		}
		whole := t.TempDir()
		if err := sample.Write(whole, name); err != nil {
			t.Fatal(err)
		}
		if n := folder(t, whole); n > 150_000 {
			t.Errorf("%s with headers takes %d bytes", name, n)
		}
	}
}

func TestUnknownSample(t *testing.T) {
	for name, write := range map[string]func(dir, name string) error{"Write": sample.Write, "WriteIndex": sample.WriteIndex} {
		if err := write(t.TempDir(), "phi"); err == nil || !strings.Contains(err.Error(), "phi-4-mini") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}
