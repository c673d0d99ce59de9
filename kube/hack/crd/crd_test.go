package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "../.." // the directory of the module kube/

// TestUpToDate fails if a definition was not generated again after a change.
func TestUpToDate(t *testing.T) {
	for _, k := range kinds {
		want, err := k.generate(filepath.Join(module, source))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(module, output, k.file()))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("run `make crd` (-want +got):\n%s", diff)
		}
	}
}

// TestGenerateFails checks that a missing comment and a limit of a field that does not exist
// are errors.
func TestGenerateFails(t *testing.T) {
	for name, tc := range map[string]struct {
		source, want string
	}{
		"no files":    {"", "there are no types with comments"},
		"no comments": {"package v1alpha1\n\ntype Queue struct{}\n", "v1alpha1.QueueSpec.Parent: the field has no comment"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if tc.source != "" {
				if err := os.WriteFile(filepath.Join(dir, "queue.go"), []byte(tc.source), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := kinds[0].generate(dir); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want an error with %q, have %v", tc.want, err)
			}
		})
	}
}
