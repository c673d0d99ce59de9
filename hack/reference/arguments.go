package main

import (
	"fmt"
	"go/ast"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/berth-project/berth/engine"
)

const module = "github.com/berth-project/berth/"

// arguments is the table of a plugin's arguments: types and defaults as the builder
// has them, and the comments of the fields.
func arguments(root string, r *engine.Registry, plugin string) (string, error) {
	list, err := r.Arguments(plugin)
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		return "It has no arguments.\n\n", nil
	}
	var b strings.Builder
	b.WriteString("### Arguments\n\n| name | type | default | meaning |\n|---|---|---|---|\n")
	for _, a := range list {
		meaning, err := meaning(root, a.Struct, a.Field)
		if err != nil {
			return "", err
		}
		value := a.Default
		if value != "" {
			value = "`" + value + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", a.Name, a.Type, oneLine(value), meaning)
	}
	return b.String() + "\n", nil
}

// meaning is the comment of a field. One without a comment is an error: its users
// would have to read the code.
func meaning(root string, t reflect.Type, field string) (string, error) {
	own, ok := strings.CutPrefix(t.PkgPath(), module)
	if !ok {
		return "", fmt.Errorf("%s is not of this module, so that the comment of its field %s cannot be read", t, field)
	}
	known, err := declared(filepath.Join(root, filepath.FromSlash(own)))
	if err != nil {
		return "", err
	}
	if st := known.structs[t.Name()]; st != nil {
		for _, f := range st.Fields.List {
			for _, name := range f.Names {
				if text := comment(f); name.Name == field && text != "" {
					return text, nil
				}
			}
		}
	}
	return "", fmt.Errorf("%s: the field %s of %s has no comment that says what it means", own, field, t.Name())
}

// comment is what stands above a field and behind it.
func comment(f *ast.Field) string {
	return strings.TrimSpace(oneLine(f.Doc.Text()) + " " + oneLine(f.Comment.Text()))
}
