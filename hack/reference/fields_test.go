package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFields(t *testing.T) {
	tests := map[string]struct{ source, want, err string }{
		"all there": {
			source: "// Node is a machine.\ntype Node struct {\n\t// Name is its name.\n\tName string\n\tTasks []*Node // a | b\n\tslot int\n}\n\n" +
				"// Zero is last.\nfunc (n Node) Zero() {}\n\n// Free is what\n// is free.\nfunc (n *Node) Free(of string) int { return 0 }\n\nfunc (n *Node) hidden() {}\n",
			want: "## Node\n\nNode is a machine.\n\n| field | type | |\n|---|---|---|\n| `Name` | `string` | Name is its name. |\n| `Tasks` | [`[]*Node`](#node) | a \\| b |\n\n" +
				"| method | |\n|---|---|\n| `Free(of string) int` | Free is what is free. |\n| `Zero()` | Zero is last. |\n\n",
		},
		"no fields":                {source: "// Node is a machine.\ntype Node struct{ slot int }\n", want: "## Node\n\nNode is a machine.\n\n"},
		"a field without comment":  {source: "type Node struct {\n\tName string\n}\n", err: "the field Name of Node has no comment, and hooks read it"},
		"a method without comment": {source: "type Node struct{}\n\nfunc (n *Node) Free() {}\n", err: "the method Free of Node has no comment, and hooks call it"},
		"a type that is gone":      {source: "type Machine struct{}\n", err: "cluster: there is no type Node"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if err := os.Mkdir(filepath.Join(root, "cluster"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, "cluster", "node.go"), []byte("package cluster\n\n"+tt.source), 0o644); err != nil {
				t.Fatal(err)
			}
			got, err := fields(root, []readTypes{{"cluster", []string{"Node"}}})
			said := ""
			if err != nil {
				said = err.Error()
			}
			if d := cmp.Diff(tt.want, got); d != "" || !strings.HasSuffix(said, tt.err) || (err != nil) != (tt.err != "") {
				t.Errorf("error %q, want %q; page (-want +got):\n%s", said, tt.err, d)
			}
		})
	}
}
