package main

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
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

// packageComment returns the comment of the package, without the words that name the
// package: "Package labelfilter rejects…" becomes "Rejects…".
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
// of, each as a table of fields. Names that the package does not have are left out; it
// is an error if it has none of them.
func types(dir string, roots ...string) (string, error) {
	tables, err := tables(dir, nil, roots...)
	var b strings.Builder
	for _, t := range tables {
		b.WriteString(t.text)
	}
	if err == nil && len(tables) == 0 {
		err = fmt.Errorf("%s: has none of the types %s", dir, strings.Join(roots, ", "))
	}
	return b.String(), err
}

// table is the documentation of one type: a heading and a table of its fields.
type table struct{ name, text string }

var linked = regexp.MustCompile(`\[(\w+)\]\(#`)

// tables returns the tables of the types, first those of the roots, in order. spelled
// describes types with a JSON form that differs from their form in Go.
func tables(dir string, spelled map[string]string, roots ...string) ([]table, error) {
	known, err := declared(dir)
	if err != nil {
		return nil, err
	}
	var out []table
	var queue []string
	seen := map[string]bool{}
	want := func(name string) {
		if known.structs[name] != nil && !seen[name] {
			seen[name] = true
			queue = append(queue, name)
		}
	}
	for _, r := range roots {
		want(r)
	}
	for len(queue) > 0 {
		var b strings.Builder
		name := queue[0]
		queue = queue[1:]
		fmt.Fprintf(&b, "### %s\n\n%s\n\n| field | type | |\n|---|---|---|\n", strings.ToUpper(name[:1])+name[1:], known.comments[name])
		for _, f := range known.fields(name) {
			field, ok := jsonName(f)
			if !ok {
				continue
			}
			text := known.spell(f.Type, spelled)
			for _, m := range linked.FindAllStringSubmatch(text, -1) {
				want(m[1])
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", field, text, comment(f))
		}
		b.WriteString("\n")
		out = append(out, table{name, b.String()})
	}
	return out, nil
}

// declarations has the types of a package.
type declarations struct {
	structs  map[string]*ast.StructType
	lists    map[string]string // named list types, and the types of their elements
	texts    map[string]bool   // named text types
	comments map[string]string
}

func declared(dir string) (declarations, error) {
	out := declarations{map[string]*ast.StructType{}, map[string]string{}, map[string]bool{}, map[string]string{}}
	_, files, err := parse(dir)
	for _, f := range files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, s := range g.Specs {
				t := s.(*ast.TypeSpec)
				if of, ok := t.Type.(*ast.Ident); ok && of.Name == "string" {
					out.texts[t.Name.Name] = true
				}
				if st, ok := t.Type.(*ast.StructType); ok {
					out.structs[t.Name.Name] = st
					if out.comments[t.Name.Name] = oneLine(t.Doc.Text()); t.Doc == nil {
						out.comments[t.Name.Name] = oneLine(g.Doc.Text())
					}
				}
				if a, ok := t.Type.(*ast.ArrayType); ok {
					if of, ok := a.Elt.(*ast.Ident); ok {
						out.lists[t.Name.Name] = of.Name
					}
				}
			}
		}
	}
	return out, err
}

// fields returns the fields of the type, and those of embedded types of the package.
func (k *declarations) fields(name string) []*ast.Field {
	var out []*ast.Field
	for _, f := range k.structs[name].Fields.List {
		embedded := f.Type
		if pointer, ok := embedded.(*ast.StarExpr); ok {
			embedded = pointer.X
		}
		if name, ok := embedded.(*ast.Ident); ok && len(f.Names) == 0 && f.Tag == nil && k.structs[name.Name] != nil {
			out = append(out, k.fields(name.Name)...)
			continue
		}
		out = append(out, f)
	}
	return out
}

// spell returns a description of the type of a field.
func (k *declarations) spell(e ast.Expr, spelled map[string]string) string {
	text, inner := spell(e)
	for _, i := range inner {
		link := fmt.Sprintf("[%s](#%s)", i, strings.ToLower(i))
		if form := spelled[i]; form != "" {
			text = strings.ReplaceAll(text, link, form)
		} else if k.texts[i] {
			text = strings.ReplaceAll(text, link, "text")
		} else if of, ok := k.lists[i]; ok {
			text = fmt.Sprintf("[%s](#%s), or a list of them", of, strings.ToLower(of))
		}
	}
	return text
}

func oneLine(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", "\\|")
}

// jsonName returns the name of the field in JSON. Inline and hidden fields have none.
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

// spell returns a description of a type, and the names of the types in it.
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
		case "ResourceName":
			return "resource", nil
		case "RawExtension":
			return "object", nil
		case "IntOrString":
			return "whole number or percentage", nil
		case "Duration":
			return "duration", nil
		case "Time":
			return "time", nil
		}
		return t.Sel.Name, nil
	case *ast.Ident:
		plain := map[string]string{"string": "text", "bool": "true or false", "int": "whole number", "int32": "whole number", "int64": "whole number", "uint64": "whole number", "float64": "number", "any": "anything", "QuotaAmount": "quantity or unlimited"}
		if p, ok := plain[t.Name]; ok {
			return p, nil
		}
		return fmt.Sprintf("[%s](#%s)", t.Name, strings.ToLower(t.Name)), []string{t.Name}
	}
	return "anything", nil
}
