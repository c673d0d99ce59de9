package manifest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-project/berth/internal/strict"
	"go.yaml.in/yaml/v3"
)

// compareYAML fails if a file in YAML gives other objects, errors, notes or positions than the
// same file read as trees. It returns how many objects were decoded without a tree.
func compareYAML(t *testing.T, data []byte) int {
	t.Helper()
	if isSnapshot(data) {
		return 0
	}
	b, errs, ok := parseBlocks("f", data, ignore)
	if !ok {
		return 0
	}
	compareWithTrees(t, data, b, errs)
	out := 0
	for _, src := range b.sources {
		if src.text != nil {
			out++
		}
	}
	return out
}

// TestYAMLIsLikeTrees compares the two ways to read YAML for all scenarios and examples, as they
// are written and as kubectl would print them.
func TestYAMLIsLikeTrees(t *testing.T) {
	decoded, printed := 0, 0
	for name, data := range yamlFiles(t) {
		t.Run(name, func(t *testing.T) {
			decoded += compareYAML(t, data)
			var list any
			if err := yaml.Unmarshal(asJSON(t, data, ""), &list); err != nil || list == nil {
				return
			}
			for _, indent := range []int{2, 4} {
				var w bytes.Buffer
				e := yaml.NewEncoder(&w)
				e.SetIndent(indent)
				if err := e.Encode(list); err != nil {
					t.Fatal(err)
				}
				printed += compareYAML(t, w.Bytes())
			}
		})
	}
	if decoded < 3500 || printed < 8000 {
		t.Errorf("only %d objects as they are written, and %d as they are printed, were decoded without a tree", decoded, printed)
	}
}

// FuzzYAML compares the two ways to read YAML for any text.
func FuzzYAML(f *testing.F) {
	files, err := filepath.Glob("../../scenarios/*/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for i, name := range files {
		if i%10 != 0 {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, text := range []string{
		"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata:\n    name: n\n    annotations:\n      a: |\n        x\n  status:\n    allocatable:\n      cpu: 8\n- 5\n",
		"apiVersion: v1\nkind: PodList\nitems:\n  - metadata: {name: p}\n    spec:\n      priority: 0x1F\n  - metadata:\n      name: 5\n",
		"apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata:\n  name: b\nspec:\n  maxUnavailable: 2026-01-02\n",
		"apiVersion: v1\nkind: List\nitems: []\n---\nkind: 5\n---\n%TAG\n---\n",
		"{}00\n--- 0\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 1<<14 {
			compareYAML(t, data)
		}
	})
}

// TestYAMLInOnePass checks that the reader of YAML does not make trees of a large file, of which
// each would take many allocations.
func TestYAMLInOnePass(t *testing.T) {
	_, data := largeInput(t, 100)
	fast := testing.AllocsPerRun(5, func() {
		if b, errs, ok := parseBlocks("f", data, ignore); !ok || len(errs) > 0 || b.count() != 100 {
			t.Fatal(errs)
		}
	})
	slow := testing.AllocsPerRun(5, func() { parseTrees("f", data, ignore) })
	if fast > slow/2 {
		t.Errorf("%.0f allocations, and %.0f with trees", fast, slow)
	}
	if ok := strict.Blocks(data, func(*strict.JSON) {}); !ok {
		t.Error("the file is not rewritten")
	}
}
