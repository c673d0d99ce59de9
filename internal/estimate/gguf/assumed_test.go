package gguf

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-project/berth/internal/estimate/gguf/sample"
)

// Assumptions about llama.cpp are not reported if another backend serves the file.
func TestAssumptionsOfLlamaCppAreItsOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	f, err := sample.Named("llama-3.1-8b-q8_0")
	if err == nil {
		err = f.Write(path, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	m, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	for layered, want := range map[bool]bool{true: true, false: false} {
		if got := strings.Contains(strings.Join(m.Assumptions(layered), " "), "llama.cpp"); got != want {
			t.Errorf("layer by layer %t: %q", layered, m.Assumptions(layered))
		}
	}
}
