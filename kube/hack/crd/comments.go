package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
)

// comments are the comments of the struct types of a package and of their fields. The key
// of a type is its name, and that of a field is TYPE.FIELD, with the names of Go.
type comments map[string]string

// readComments reads the comments from the Go files of a directory.
func readComments(dir string) (comments, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	out := comments{}
	for _, name := range names {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				out.add(g)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: there are no types with comments", dir)
	}
	return out, nil
}

func (c comments) add(g *ast.GenDecl) {
	for _, s := range g.Specs {
		t := s.(*ast.TypeSpec)
		doc := t.Doc
		if doc == nil {
			doc = g.Doc
		}
		c[t.Name.Name] = oneLine(doc.Text())
		st, ok := t.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, f := range st.Fields.List {
			for _, name := range f.Names {
				c[t.Name.Name+"."+name.Name] = oneLine(f.Doc.Text())
			}
		}
	}
}

// of returns the comment of a field. Types of Kubernetes carry the comments of their fields
// in a method.
func (c comments) of(t reflect.Type, f reflect.StructField) (string, error) {
	text := c[t.Name()+"."+f.Name]
	if t.PkgPath() != apiPackage {
		documented, ok := reflect.Zero(t).Interface().(interface{ SwaggerDoc() map[string]string })
		if !ok {
			return "", fmt.Errorf("%s: the type carries no comments", t)
		}
		text = oneLine(documented.SwaggerDoc()[jsonName(f)])
	}
	if text == "" {
		return "", fmt.Errorf("%s.%s: the field has no comment", t, f.Name)
	}
	return text, nil
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
