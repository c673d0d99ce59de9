package hf_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/hf"
	"github.com/berth-project/berth/internal/estimate/hf/sample"
	"github.com/berth-project/berth/internal/printable"
)

// For the text of a configuration and the size of the index, Parse returns what Read returns for
// a directory with an index and no shard, apart from the sentence about the weights.
func TestParseEqualsRead(t *testing.T) {
	for _, name := range sample.Names() {
		dir := t.TempDir()
		if err := sample.WriteIndex(dir, name); err != nil {
			t.Fatal(err)
		}
		want, err := hf.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		text, err := sample.Config(name)
		if err != nil {
			t.Fatal(err)
		}
		have, err := hf.Parse(want.Name, string(text), want.Weights.Total())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i, s := range want.Assumed {
			if strings.HasPrefix(s, "No shard is downloaded yet") {
				want.Assumed[i] = "The size of the weights is that of source.weights."
			}
		}
		if d := cmp.Diff(want, have); d != "" {
			t.Errorf("%s: (-read +parsed)\n%s", name, d)
		}
	}
}

func TestParseProblems(t *testing.T) {
	const good = `{"num_hidden_layers": 2, "num_attention_heads": 16, "hidden_size": 2048, "vocab_size": 100}`
	for name, tc := range map[string]struct {
		text    string
		weights cluster.Bytes
		want    string
	}{
		"empty":        {"", 1, "it is not JSON: unexpected end of JSON input"},
		"spaces":       {" \n\t", 1, "it is not JSON: unexpected end of JSON input"},
		"no JSON":      {"hidden_size: 1", 1, "it is not JSON: invalid character 'h' looking for beginning of value"},
		"null":         {"null", 1, "it is null; it must be an object"},
		"a list":       {"[]", 1, "it is a list; it must be an object"},
		"two objects":  {"{}{}", 1, "it is not JSON: invalid character '{' after top-level value"},
		"deep":         {strings.Repeat("[", 1<<20), 1, "it is not JSON: invalid character '[' exceeded max depth"},
		"deep objects": {strings.Repeat(`{"a":`, 1<<20), 1, "it is not JSON: invalid character '{' exceeded max depth"},
		"huge":         {strings.Repeat(" ", 17<<20), 1, "it has 17825792 bytes, which is too large for the configuration of a model"},
		"no number":    {`{"num_hidden_layers": "many"}`, 1, `num_hidden_layers is "many": it must be a whole number from 0 to 1073741824`},
		"no method":    {`{"quantization_config": {}}`, 1, "quantization_config does not have quant_method"},
		"no weights":   {good, 0, "weights of 0 bytes: want from 1 to 1125899906842624"},
		"much weights": {good, 1<<50 + 1, "weights of 1125899906842625 bytes: want from 1 to 1125899906842624"},
		"escapes":      {`{"num_hidden_layers": "\u001b[31m"}`, 1, `num_hidden_layers is "\u001b[31m": it must be a whole number from 0 to 1073741824`},
	} {
		if m, err := hf.Parse("m", tc.text, tc.weights); err == nil || err.Error() != tc.want {
			t.Errorf("%s: %+v, %v; want %s", name, m, err, tc.want)
		}
	}
	m, err := hf.Parse("m", `{}`, 1<<30)
	if err != nil || m.Architecture != nil || m.Weights.Total() != 1<<30 || !strings.Contains(strings.Join(m.Assumed, " "), "only the size of the weights is known") {
		t.Errorf("an empty configuration: %+v, %v", m, err)
	}
}

// Reduce keeps what the estimate depends on, for every published configuration.
func TestReduce(t *testing.T) {
	same := func(a, b *estimate.Model) bool {
		x, y := *a, *b
		x.Assumed, y.Assumed = nil, nil
		return reflect.DeepEqual(x, y)
	}
	for _, name := range sample.Names() {
		text, err := sample.Config(name)
		if err != nil {
			t.Fatal(err)
		}
		short, err := hf.Reduce(string(text), 8<<30, same)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(short) > len(text) {
			t.Errorf("%s: %d bytes became %d", name, len(text), len(short))
		}
		want, _ := hf.Parse("", string(text), 8<<30)
		have, err := hf.Parse("", short, 8<<30)
		if err != nil || !same(want, have) {
			t.Errorf("%s: %s means something else: %v", name, short, err)
		}
	}
	if _, err := hf.Reduce("{", 1, same); err == nil {
		t.Error("no error for a text that is not JSON")
	}
	many := `{"a": [` + strings.Repeat(`"x", `, 100_000) + `"x"], "quantization_config": {"quant_method": "gptq"}}`
	never := func(a, b *estimate.Model) bool { return false }
	if _, err := hf.Reduce(many, 1, never); err == nil || !strings.Contains(err.Error(), "too many fields") {
		t.Errorf("error %v for a text with many values, all of which are needed", err)
	}
}

// FuzzParse checks that no text makes Parse fail otherwise than with a message, or with a model
// that is smaller than its weights.
func FuzzParse(f *testing.F) {
	for _, name := range sample.Names() {
		text, err := sample.Config(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), int64(8<<30))
	}
	f.Add(`{"text_config": {"text_config": {"text_config": null}}}`, int64(1))
	f.Add("{\"architectures\":[\"\\u001b[31m\"]}", int64(-1))
	f.Fuzz(func(t *testing.T, text string, weights int64) {
		m, err := hf.Parse("m", text, cluster.Bytes(weights))
		if err != nil {
			if !printable.All(err.Error()) {
				t.Fatalf("%q", err)
			}
			return
		}
		if m.Weights.Total() != cluster.Bytes(weights) || !printable.All(strings.Join(m.Assumed, "")) {
			t.Fatalf("%+v", m)
		}
	})
}
