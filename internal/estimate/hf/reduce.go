package hf

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
)

// maxTried is how many bytes of configurations Reduce parses at most.
const maxTried = 128 << 20

// Reduce returns the text of a config.json without fields, names of fields and texts that are not
// needed: for the result, Parse returns the same model. Same compares two models.
//
// It tries each change by itself and keeps those that make no difference, so that nothing is
// needed here that the reader of configurations already knows.
func Reduce(text string, weights cluster.Bytes, same func(a, b *estimate.Model) bool) (string, error) {
	want, err := Parse("", text, weights)
	if err != nil {
		return "", err
	}
	d := json.NewDecoder(bytes.NewReader(finite([]byte(text))))
	d.UseNumber()
	r := reducer{}
	if err := d.Decode(&r.top); err != nil {
		return "", err
	}
	r.same = func(text []byte) bool {
		have, err := Parse("", string(text), weights)
		return err == nil && same(want, have)
	}
	r.object(r.top)
	out, err := json.Marshal(r.top)
	switch {
	case err != nil:
		return "", err
	case r.tried > maxTried:
		return "", fmt.Errorf("a text of %d bytes has too many fields to find out which of them are needed", len(text))
	}
	return string(out), nil
}

// reducer changes a configuration as long as it means the same.
type reducer struct {
	top     map[string]any
	same    func(text []byte) bool
	tried   int // bytes
	renamed int // fields
}

// try reports whether the configuration means the same after the change. If not, it is undone.
func (r *reducer) try(change, undo func()) bool {
	if r.tried > maxTried {
		return false
	}
	change()
	text, err := json.Marshal(r.top)
	if r.tried += len(text); err == nil && r.same(text) {
		return true
	}
	undo()
	return false
}

func (r *reducer) object(o map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		value := o[name]
		if !r.try(func() { delete(o, name) }, func() { o[name] = value }) {
			r.value(value, func(v any) { o[name] = v })
			r.rename(o, name)
		}
	}
}

// rename replaces the name of a field. Some fields only matter because their name has a word such
// as attention.
func (r *reducer) rename(o map[string]any, name string) {
	value := o[name]
	for _, stem := range []string{"field", "attention"} {
		alias := fmt.Sprintf("%s_%d", stem, r.renamed+1)
		if _, taken := o[alias]; taken {
			continue
		}
		if r.try(func() { delete(o, name); o[alias] = value }, func() { delete(o, alias); o[name] = value }) {
			r.renamed++
			return
		}
	}
}

// value reduces a value that is needed. Set replaces it.
func (r *reducer) value(v any, set func(any)) {
	switch v := v.(type) {
	case map[string]any:
		r.object(v)
	case []any:
		if r.try(func() { set([]any{}) }, func() { set(v) }) {
			return
		}
		for i := range v {
			r.value(v[i], func(x any) { v[i] = x })
		}
	case string:
		r.try(func() { set("x") }, func() { set(v) })
	}
}
