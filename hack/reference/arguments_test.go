package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/berth-project/berth/engine"
)

func TestMeaning(t *testing.T) {
	tests := map[string]struct {
		of               reflect.Type
		field, want, err string
	}{
		"a comment":   {reflect.TypeFor[hook](), "rule", "its comment, and the rule that the comment ends with", ""},
		"no comment":  {reflect.TypeFor[hook](), "signature", "", "the field signature of hook has no comment that says what it means"},
		"no source":   {reflect.TypeFor[strings.Builder](), "addr", "", "strings.Builder is not in this module, so the comment of its field addr cannot be read"},
		"not a field": {reflect.TypeFor[hook](), "none", "", "the field none of hook has no comment that says what it means"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := meaning("../..", tt.of, tt.field)
			if said := ""; err != nil {
				if said = err.Error(); tt.err == "" || !strings.HasSuffix(said, tt.err) {
					t.Errorf("error %q, want %q", said, tt.err)
				}
			}
			if got != tt.want || (err != nil) != (tt.err != "") {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

type bare struct{ Most int }

// TestArgumentsNeedComments checks that arguments without comments are an error.
func TestArgumentsNeedComments(t *testing.T) {
	r := engine.NewRegistry()
	if err := r.RegisterPluginBuilder("Bare", engine.WithArguments(nil, func(bare) (engine.Plugin, error) { return nil, nil })); err != nil {
		t.Fatal(err)
	}
	if text, err := arguments("../..", r, "Bare"); err == nil {
		t.Errorf("a field without a comment was documented:\n%s", text)
	}
}
