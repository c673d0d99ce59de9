package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-project/berth/command"
	"github.com/berth-project/berth/plugins/standard"
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

// TestExampleIsDecidedAsItSays checks that the example of manifests is valid, has one object of
// each kind, and that its scenario passes.
func TestExampleIsDecidedAsItSays(t *testing.T) {
	path := filepath.Join("../..", filepath.FromSlash(manifestExample))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"Node", "Queue", "Job", "Model", "DisruptionBudget", "SchedulerConfiguration", "Scenario"} {
		if !strings.Contains(string(text), "\nkind: "+kind+"\n") {
			t.Errorf("the example has no %s", kind)
		}
	}
	var out bytes.Buffer
	if code := command.Main(standard.Registry(), []string{"verify", path}, strings.NewReader(""), &out, &out); code != 0 {
		t.Errorf("exit code %d: %s", code, out.String())
	}
}
