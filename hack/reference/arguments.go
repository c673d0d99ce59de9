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

// arguments returns the table of a plugin's arguments, with the types and defaults of
// the builder and the comments of the fields.
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

// meaning returns the comment of a field. A field without a comment is an error, so that
// every argument is documented.
func meaning(root string, t reflect.Type, field string) (string, error) {
	own, ok := strings.CutPrefix(t.PkgPath(), module)
	if !ok {
		return "", fmt.Errorf("%s is not in this module, so the comment of its field %s cannot be read", t, field)
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

// comment returns the comments above a field and at the end of its line.
func comment(f *ast.Field) string {
	return strings.TrimSpace(oneLine(f.Doc.Text()) + " " + oneLine(f.Comment.Text()))
}
