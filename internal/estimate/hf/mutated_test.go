package hf

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-project/berth/internal/estimate"
)

// deleted stands for a field that is removed.
const deleted = "deleted"

// mutations are the values that replace the value of a field.
var mutations = []string{deleted, "null", "0", "7", "-1", "1073741824", `"x"`, "true", "[]", "[0]", `{"x":1}`}

// result is the estimate for one configuration.
type result struct {
	need    estimate.Breakdown
	assumed []string
	bound   bool
	err     error
}

// estimated returns the estimate for a configuration with weights of 8 GiB.
func estimated(text []byte) (result, *estimate.Model) {
	c, err := decodeConfig(text)
	if err != nil {
		return result{err: err}, nil
	}
	said := c.setDefaults()
	a, assumed, err := c.architecture()
	if err != nil {
		return result{err: err}, nil
	}
	how, err := c.quantised()
	if err != nil {
		return result{err: err}, nil
	}
	m := &estimate.Model{Name: "mutated", Architecture: a, Weights: divideTotal(8<<30, how, a)}
	s := estimate.Serving{Context: 4096, BatchTokens: 2048, WindowSteps: 1, Groups: 150, Page: 16}
	need, err := m.PerDevice(s)
	return result{need, append(said, assumed...), a.Bound != nil, err}, m
}

// If one field of a published configuration has another value or is missing, there is an error or
// an estimate: at least the weights, and a cache unless a sentence says that the model has
// none. Without a field the cache is not smaller, unless a sentence says what is assumed.
func TestMutatedConfigurations(t *testing.T) {
	files, err := filepath.Glob("testdata/architectures/*.json")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			tryMutations(t, text)
		})
	}
}

func tryMutations(t *testing.T, text []byte) {
	before, _ := estimated(text)
	if before.err != nil || before.bound {
		t.Fatalf("%+v", before)
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(finite(text), &top); err != nil {
		t.Fatal(err)
	}
	mutate(top, func(path, value string, changed []byte) {
		got, m := estimated(changed)
		if got.err != nil {
			return
		}
		at, said := fmt.Sprintf("%s is %s", path, value), strings.Join(got.assumed, " ")
		if total := m.Weights.Total(); got.need.Weights < total || got.need.Total() < total {
			t.Errorf("%s: %+v, and the weights take %d", at, got.need, total)
		}
		if got.need.KVCache == 0 && !strings.Contains(said, "keeps no cache") {
			t.Errorf("%s: there is no cache, and nothing is said: %q", at, said)
		}
		// A layer without a window needs up to two pages less than one whose window has the
		// whole context.
		least := before.need.KVCache - before.need.KVCache/100
		if value == deleted && got.need.KVCache < least && !saysMore(got.assumed, before.assumed) {
			t.Errorf("%s: the cache takes %d instead of %d bytes, and nothing is said: %q", at, got.need.KVCache, before.need.KVCache, said)
		}
		if got.bound {
			boundHolds(t, at, got, m)
		}
	})
}

// boundHolds checks that an upper bound is at least 1.2 × the weights and 2 GiB, and that it is
// said.
func boundHolds(t *testing.T, at string, got result, m *estimate.Model) {
	crude, err := m.CrudeTotal()
	if err != nil || got.need.Total() < crude {
		t.Errorf("%s: %d, and the crude figure is %d (%v)", at, got.need.Total(), crude, err)
	}
	plain := *m.Architecture
	plain.Bound, plain.Caches, plain.Latent = nil, nil, nil
	p := &estimate.Model{Name: "plain", Architecture: &plain, Weights: m.Weights}
	cache, err := p.KVAt(estimate.Serving{Page: 16}, 4096)
	if err != nil || got.need.KVCache < cache && !plain.Encoder {
		t.Errorf("%s: a cache of %d, and with plain attention of %d (%v)", at, got.need.KVCache, cache, err)
	}
	if !strings.Contains(strings.Join(got.assumed, " "), "So the need is an upper bound") {
		t.Errorf("%s: the bound is not said: %q", at, got.assumed)
	}
}

func saysMore(now, before []string) bool {
	return slices.ContainsFunc(now, func(s string) bool { return !slices.Contains(before, s) })
}

// mutate calls try for each field of the configuration, and of objects within it, and for each
// value that replaces the value of that field.
func mutate(top map[string]json.RawMessage, try func(path, value string, changed []byte)) {
	for _, name := range slices.Sorted(maps.Keys(top)) {
		original := top[name]
		replace := func(path, value string, raw json.RawMessage) {
			if top[name] = raw; raw == nil {
				delete(top, name)
			}
			changed, _ := json.Marshal(top)
			top[name] = original
			try(path, value, changed)
		}
		for _, value := range mutations {
			if value == deleted {
				replace(name, value, nil)
			} else {
				replace(name, value, json.RawMessage(value))
			}
		}
		var inner map[string]json.RawMessage
		if json.Unmarshal(original, &inner) == nil && inner != nil {
			mutate(inner, func(path, value string, changed []byte) { replace(name+"."+path, value, changed) })
		}
	}
}

// With a field that is not understood, the need is never less than without it.
func TestBoundIsNeverLess(t *testing.T) {
	files, err := filepath.Glob("testdata/architectures/*.json")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, known := estimated(text)
		if known.Architecture.Encoder {
			continue
		}
		_, bound := estimated([]byte(strings.Replace(string(text), "{", `{"unknown_cache":1,`, 1)))
		if bound.Architecture.Bound == nil {
			t.Errorf("%s: unknown_cache is understood", file)
		}
		for _, tensor := range []int{1, 2, 4, 8, 16, 32} {
			for _, context := range []int{1, 4096, 131072} {
				for _, sequences := range []int{1, 256} {
					s := estimate.Serving{Tensor: tensor, Context: context, Sequences: sequences, WindowSteps: 2, Groups: 150, Page: 16, States: 2, LatentTokens: 65536}
					before, err := known.PerDevice(s)
					if err != nil {
						continue // the model cannot be divided so
					}
					if after, err := bound.PerDevice(s); err != nil || after.Total() < before.Total() {
						t.Errorf("%s, %d devices, %d × %d tokens: %d, %v, and without the field %d", filepath.Base(file), tensor, sequences, context, after.Total(), err, before.Total())
					}
				}
			}
		}
	}
}
