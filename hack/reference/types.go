package main

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

func parse(dir string) (*token.FileSet, []*ast.File, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, nil, err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, f)
	}
	return fset, files, nil
}

// packageComment is what the package says about itself, in prose for people who
// do not read Go: "Package labelfilter turns down…" becomes "Turns down…".
func packageComment(dir string) (string, error) {
	fset, files, err := parse(dir)
	if err != nil {
		return "", err
	}
	p, err := doc.NewFromFiles(fset, files, dir)
	if err != nil {
		return "", err
	}
	text := p.Doc
	words := strings.SplitN(text, " ", 3)
	if len(words) == 3 && words[0] == "Package" {
		text = strings.ToUpper(words[2][:1]) + words[2][1:]
	}
	return text, nil
}

// types documents the named struct types of a package and those they are made
// of, each as a table of fields. Names that are not there are passed over.
func types(dir string, roots ...string) (string, error) {
	_, files, err := parse(dir)
	if err != nil {
		return "", err
	}
	structs := map[string]*ast.StructType{}
	lists := map[string]string{} // named list types, and what they are lists of
	comments := map[string]string{}
	for _, f := range files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, s := range g.Specs {
				t := s.(*ast.TypeSpec)
				if st, ok := t.Type.(*ast.StructType); ok {
					structs[t.Name.Name] = st
					comments[t.Name.Name] = oneLine(g.Doc.Text() + t.Doc.Text())
				}
				if a, ok := t.Type.(*ast.ArrayType); ok {
					if of, ok := a.Elt.(*ast.Ident); ok {
						lists[t.Name.Name] = of.Name
					}
				}
			}
		}
	}
	var b strings.Builder
	var queue []string
	seen := map[string]bool{}
	want := func(name string) {
		if structs[name] != nil && !seen[name] {
			seen[name] = true
			queue = append(queue, name)
		}
	}
	for _, r := range roots {
		want(r)
	}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		fmt.Fprintf(&b, "### %s\n\n%s\n\n| field | type | |\n|---|---|---|\n", strings.ToUpper(name[:1])+name[1:], comments[name])
		for _, f := range structs[name].Fields.List {
			field, ok := jsonName(f)
			if !ok {
				continue
			}
			text, inner := spell(f.Type)
			for _, i := range inner {
				if of, ok := lists[i]; ok {
					text, i = fmt.Sprintf("[%s](#%s), or a list of them", of, strings.ToLower(of)), of
				}
				want(i)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", field, text, strings.TrimSpace(oneLine(f.Doc.Text())+" "+oneLine(f.Comment.Text())))
		}
		b.WriteString("\n")
	}
	return b.String(), nil
}

func oneLine(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", "\\|")
}

// jsonName is what the field is called in files; inline and hidden fields have no name.
func jsonName(f *ast.Field) (string, bool) {
	if f.Tag == nil {
		return "", false
	}
	tag, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		return "", false
	}
	name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	return name, name != "" && name != "-" && name != "metadata"
}

// spell writes a type for people, and names the types it is made of.
func spell(e ast.Expr) (string, []string) {
	switch t := e.(type) {
	case *ast.StarExpr:
		return spell(t.X)
	case *ast.ArrayType:
		s, in := spell(t.Elt)
		return "list of " + s, in
	case *ast.MapType:
		k, _ := spell(t.Key)
		s, in := spell(t.Value)
		return fmt.Sprintf("map of %s to %s", k, s), in
	case *ast.SelectorExpr:
		switch t.Sel.Name {
		case "ResourceList":
			return "map of resource to quantity", nil
		case "Quantity":
			return "quantity", nil
		case "IntOrString":
			return "whole number or percentage", nil
		case "Duration":
			return "duration", nil
		case "Time":
			return "time", nil
		}
		return t.Sel.Name, nil
	case *ast.Ident:
		plain := map[string]string{"string": "text", "bool": "true or false", "int": "whole number", "int32": "whole number", "int64": "whole number", "float64": "number", "any": "anything"}
		if p, ok := plain[t.Name]; ok {
			return p, nil
		}
		return fmt.Sprintf("[%s](#%s)", t.Name, strings.ToLower(t.Name)), []string{t.Name}
	}
	return "anything", nil
}
