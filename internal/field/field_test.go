package field_test

import (
	"strings"
	"testing"

	"github.com/berth-project/berth/internal/field"
)

func TestString(t *testing.T) {
	tests := map[string]struct {
		path field.Path
		want string
	}{
		"the root":           {nil, ""},
		"names":              {field.Path{"spec", "tasks"}, "spec.tasks"},
		"an index":           {field.Path{"spec", "tasks", 3, "name"}, "spec.tasks[3].name"},
		"an index first":     {field.Path{2, "name"}, "[2].name"},
		"a key with a dot":   {field.Path{"labels", "a.b/c"}, `labels["a.b/c"]`},
		"an empty key":       {field.Path{"labels", ""}, `labels[""]`},
		"a key that is long": {field.Path{strings.Repeat("/", 100)}, `["` + strings.Repeat("/", 60) + `"…]`},
	}
	for name, tt := range tests {
		if got := tt.path.String(); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestAddLeavesThePathAsItIs(t *testing.T) {
	spec := make(field.Path, 1, 8)
	spec[0] = "spec"
	a, b := spec.Add("a"), spec.Add("b", 0)
	if a.String() != "spec.a" || b.String() != "spec.b[0]" || spec.String() != "spec" {
		t.Errorf("%s, %s, %s", a, b, spec)
	}
}
