package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReferenceIsFresh checks that docs/reference is up to date.
func TestReferenceIsFresh(t *testing.T) {
	pages, err := pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range pages {
		got, err := os.ReadFile(filepath.Join("../../docs/reference", name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("docs/reference/%s is stale: run make docs\n%s", name, diff)
		}
	}
}
