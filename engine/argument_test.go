package engine_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-project/berth/engine"
)

type (
	knobs struct {
		common
		Label   string            `json:"label"`
		Most    int               `json:"most"`
		Part    *float64          `json:"part,omitempty"`
		Roles   []string          `json:"roles"`
		Weights map[string]int64  `json:"weights"`
		Levels  map[string]*level `json:"levels"`
		Rules   []rule            `json:"rules"`
		Inner   level             `json:"inner"`
		Until   time.Time         `json:"until"`
		Any     any               `json:"any"`
		Hidden  string            `json:"-"`
		Untold  bool
	}
	common struct {
		Strict bool `json:"strict"`
	}
	level struct {
		Depth uint8  `json:"depth"`
		Below *level `json:"below"` // a recursive type
	}
	rule struct {
		Name string `json:"name"`
	}
)

func TestArgumentsOfAPlugin(t *testing.T) {
	r := engine.NewRegistry()
	half := 0.5
	for name, b := range map[string]engine.PluginBuilder{
		"Knobs": engine.WithArguments(func() knobs {
			return knobs{common: common{true}, Label: "rack", Part: &half, Roles: []string{"a", "b"}, Inner: level{Depth: 3}}
		}, func(k knobs) (engine.Plugin, error) { return nil, errors.New("it cannot be built without most") }),
		"Plain": engine.WithoutArguments(func() engine.Plugin { return fit() }),
	} {
		if err := r.RegisterPluginBuilder(name, b); err != nil {
			t.Fatal(err)
		}
	}
	type list = []engine.Argument
	of := reflect.TypeFor[knobs]()
	tests := map[string]struct {
		want list
		err  string
	}{
		"Plain": {},
		"Plane": {err: `no plugin "Plane"; did you mean "Plain"?`},
		"Knobs": {want: list{
			{Name: "strict", Type: "true or false", Default: "true", Struct: reflect.TypeFor[common](), Field: "Strict"},
			{Name: "label", Type: "text", Default: "rack", Struct: of, Field: "Label"},
			{Name: "most", Type: "whole number", Default: "0", Struct: of, Field: "Most"},
			{Name: "part", Type: "number", Default: "0.5", Struct: of, Field: "Part"},
			{Name: "roles", Type: "list of text", Default: `["a","b"]`, Struct: of, Field: "Roles"},
			{Name: "weights", Type: "map of text to whole number", Struct: of, Field: "Weights"},
			{Name: "levels", Type: "map of text to object", Struct: of, Field: "Levels"},
			{Name: "levels.*.depth", Type: "whole number", Struct: reflect.TypeFor[level](), Field: "Depth"},
			{Name: "levels.*.below", Type: "object", Struct: reflect.TypeFor[level](), Field: "Below"},
			{Name: "rules", Type: "list of object", Struct: of, Field: "Rules"},
			{Name: "rules[].name", Type: "text", Struct: reflect.TypeFor[rule](), Field: "Name"},
			{Name: "inner", Type: "object", Struct: of, Field: "Inner"},
			{Name: "inner.depth", Type: "whole number", Default: "3", Struct: reflect.TypeFor[level](), Field: "Depth"},
			{Name: "inner.below", Type: "object", Struct: reflect.TypeFor[level](), Field: "Below"},
			{Name: "until", Type: "time", Struct: of, Field: "Until"},
			{Name: "any", Type: "anything", Struct: of, Field: "Any"},
			{Name: "Untold", Type: "true or false", Default: "false", Struct: of, Field: "Untold"},
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := r.Arguments(name)
			message := ""
			if err != nil {
				message = err.Error()
			}
			sameType := cmp.Comparer(func(a, b reflect.Type) bool { return a == b })
			if d := cmp.Diff(tt.want, got, sameType, cmpopts.EquateEmpty()); d != "" || message != tt.err {
				t.Errorf("error %q, want %q; arguments (-want +got):\n%s", message, tt.err, d)
			}
		})
	}
}
