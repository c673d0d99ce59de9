package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// readTypes lists types of a package that hooks read, in the order of the page.
type readTypes struct {
	dir   string
	types []string
}

var hooksRead = []readTypes{
	{"cluster", []string{"View", "Sets", "Classes", "Recent", "Since", "Job", "Alternative", "Task", "Shape", "Need", "Claim", "Node", "Device", "Queue"}},
	{"engine", []string{"Session", "Statement", "Victim", "Verdict", "Rejection", "Quantity", "ReasonDoc", "Event", "Options", "Outcome", "Decision", "Refusal", "Attempt"}},
}

// testsUse lists the builders of package enginetest.
var testsUse = []readTypes{{"enginetest", []string{"NodeBuilder", "JobBuilder", "QueueBuilder", "BudgetBuilder"}}}

// functions returns the table of the exported functions of a package.
func functions(dir string) (string, error) {
	fset, files, err := parse(dir)
	if err != nil {
		return "", err
	}
	var rows []string
	for _, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !fn.Name.IsExported() {
				continue
			}
			if fn.Doc == nil {
				return "", fmt.Errorf("%s: the function %s has no comment", fset.Position(fn.Pos()), fn.Name.Name)
			}
			signature, err := code(fset, &ast.FuncDecl{Name: fn.Name, Type: fn.Type})
			if err != nil {
				return "", err
			}
			rows = append(rows, fmt.Sprintf("| `%s` | %s |\n", oneLine(strings.TrimPrefix(signature, "func ")), oneLine(fn.Doc.Text())))
		}
	}
	slices.Sort(rows)
	return "| function | |\n|---|---|\n" + strings.Join(rows, "") + "\n", nil
}

// fields documents what hooks read: the exported fields and methods of the types.
func fields(root string, read []readTypes) (string, error) {
	var listed []string
	for _, p := range read {
		listed = append(listed, p.types...)
	}
	var b strings.Builder
	for _, p := range read {
		fset, files, err := parse(filepath.Join(root, p.dir))
		if err != nil {
			return "", err
		}
		known, err := declared(filepath.Join(root, p.dir))
		if err != nil {
			return "", err
		}
		page := page{fset: fset, files: files, known: known, listed: listed}
		for _, name := range p.types {
			if known.structs[name] == nil {
				return "", fmt.Errorf("%s: there is no type %s", p.dir, name)
			}
			fmt.Fprintf(&b, "## %s\n\n%s\n\n", name, known.comments[name])
			for _, part := range []func(*strings.Builder, string) error{page.fields, page.methods} {
				if err := part(&b, name); err != nil {
					return "", err
				}
			}
		}
	}
	return b.String(), nil
}

// page is the source of one package and the types that are on the page.
type page struct {
	fset   *token.FileSet
	files  []*ast.File
	known  declarations
	listed []string
}

// fields writes the table of the exported fields of a type, including those of embedded
// types.
func (p *page) fields(b *strings.Builder, of string) error {
	head := "| field | type | |\n|---|---|---|\n"
	for _, f := range p.known.fields(of) {
		kind, err := code(p.fset, f.Type)
		if err != nil {
			return err
		}
		for _, name := range f.Names {
			if !name.IsExported() {
				continue
			}
			text := comment(f)
			if text == "" {
				return fmt.Errorf("%s: the field %s of %s has no comment, and hooks read it", p.fset.Position(f.Pos()), name.Name, of)
			}
			fmt.Fprintf(b, "%s| `%s` | %s | %s |\n", head, name.Name, p.link(kind), text)
			head = ""
		}
	}
	if head == "" {
		b.WriteString("\n")
	}
	return nil
}

// methods writes the table of the exported methods of a type, sorted by name.
func (p *page) methods(b *strings.Builder, of string) error {
	var rows []string
	for _, f := range p.files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || !fn.Name.IsExported() || receiver(fn) != of {
				continue
			}
			if fn.Doc == nil {
				return fmt.Errorf("%s: the method %s of %s has no comment, and hooks call it", p.fset.Position(fn.Pos()), fn.Name.Name, of)
			}
			signature, err := code(p.fset, &ast.FuncDecl{Name: fn.Name, Type: fn.Type})
			if err != nil {
				return err
			}
			rows = append(rows, fmt.Sprintf("| `%s` | %s |\n", oneLine(strings.TrimPrefix(signature, "func ")), oneLine(fn.Doc.Text())))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	slices.Sort(rows)
	fmt.Fprintf(b, "| method | |\n|---|---|\n%s\n", strings.Join(rows, ""))
	return nil
}

// receiver returns the name of the type of a method's receiver.
func receiver(fn *ast.FuncDecl) string {
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	name, _ := t.(*ast.Ident)
	if name == nil {
		return ""
	}
	return name.Name
}

var identifier = regexp.MustCompile(`\w+$`)

// link returns the name of a type, with links to the types that are on the page.
func (p *page) link(kind string) string {
	if name := identifier.FindString(kind); slices.Contains(p.listed, name) {
		return fmt.Sprintf("[`%s`](#%s)", kind, strings.ToLower(name))
	}
	return "`" + oneLine(kind) + "`"
}
