package migration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// hostileValues are values that a field may have instead of the right one.
var hostileValues = []string{
	"null", "''", "-1", "-9223372036854775808", "9223372036854775807", "99999999999999999999", "1e300", "1e-30", "0.3", ".inf", ".nan", "0",
	"true", "[]", "[[1]]", "{}", "{a: {b: c}}", "x", "A B", "2026-01-01", "10m", "default", "root", "search", "company",
	"'" + strings.Repeat("long", 200) + "'", `"\u202e"`, "'a: [1'", "'#'", "'---'", "'$(x)'",
}

// TestHostileValues replaces each value of each example by hostile ones. The result is an error, or
// manifests that Berth accepts.
func TestHostileValues(t *testing.T) {
	accepted, refused := 0, 0
	for _, file := range []string{"kaito.yaml", "gpustack.json", "kai.yaml", "volcano.yaml", "kueue.yaml"} {
		data, err := os.ReadFile(filepath.Join(examples, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range strings.Split(string(data), "---\n") {
			var doc yaml.Node
			if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
				t.Fatal(err)
			}
			eachValue(&doc, func(n *yaml.Node) {
				before := *n
				defer func() { *n = before }()
				for _, value := range hostileValues {
					var other yaml.Node
					if err := yaml.Unmarshal([]byte(value), &other); err != nil {
						t.Fatal(value, err)
					}
					*n = *other.Content[0]
					changed, err := yaml.Marshal(&doc)
					if err != nil {
						t.Fatal(err)
					}
					out, _, err := convert(t, string(changed))
					if err != nil {
						refused++
						continue
					}
					accepted++
					accept(t, out)
				}
			})
		}
	}
	if accepted < 1000 || refused < 1000 {
		t.Errorf("%d inputs were accepted, and %d were refused", accepted, refused)
	}
}

// eachValue calls visit with all values of the document, except for keys.
func eachValue(n *yaml.Node, visit func(*yaml.Node)) {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			continue
		}
		eachValue(c, visit)
		visit(c)
	}
}
