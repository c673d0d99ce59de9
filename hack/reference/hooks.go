package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"strings"
)

// combining begins the paragraph that says how the answers of several plugins are combined.
const combining = "Combining: "

// hook is one Add method of Hooks.
type hook struct {
	name, signature string
	text, rule      string // its comment, and the rule that the comment ends with
	takes           string // the name of the type of function that it registers
}

// hooks documents the hooks that a plugin can register, from the comments of the engine.
func hooks(dir string) (string, error) {
	fset, files, err := parse(dir)
	if err != nil {
		return "", err
	}
	return describe(fset, files)
}

func describe(fset *token.FileSet, files []*ast.File) (string, error) {
	list, err := registrations(fset, files)
	if err != nil {
		return "", err
	}
	types, err := namedTypes(fset, files)
	if err != nil {
		return "", err
	}
	var table, b strings.Builder
	table.WriteString("| hook | combining |\n|---|---|\n")
	for _, h := range list {
		fmt.Fprintf(&table, "| [`%s`](#%s) | %s |\n", h.name, strings.ToLower(h.name), oneLine(h.rule))
		fmt.Fprintf(&b, "## %s\n\n%s\n\n**Combining:** %s\n\n```go\n%s\n```\n\n", h.name, h.text, h.rule, h.signature)
		if t := types[h.takes]; t.code != "" {
			fmt.Fprintf(&b, "%s\n\n```go\n%s\n```\n\n", t.text, t.code)
		}
	}
	return table.String() + "\n" + otherNames(files) + b.String(), nil
}

// ofHooks reports whether the function is a method of Hooks, or has Hooks as its first parameter.
func ofHooks(fn *ast.FuncDecl) bool {
	first := fn.Recv
	if first == nil {
		first = fn.Type.Params
	}
	return len(first.List) > 0 && isA(first.List[0].Type, "Hooks")
}

// registrations returns the Add methods of Hooks, and Add functions with a Hooks, as written and without former names. One that
// does not say how answers combine is an error: its users would have to guess.
func registrations(fset *token.FileSet, files []*ast.File) ([]hook, error) {
	var out []hook
	for _, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(fn.Name.Name, "Add") || !ofHooks(fn) || isDeprecated(fn) {
				continue
			}
			text, rule, _ := strings.Cut(paragraphs(fn.Doc.Text()), "\n\n"+combining)
			if rule == "" || strings.Contains(rule, "\n") {
				return nil, fmt.Errorf("%s: the comment of %s does not end with a paragraph that begins %q and says how the answers of several plugins are combined", fset.Position(fn.Pos()), fn.Name.Name, strings.TrimSpace(combining))
			}
			signature, err := code(fset, &ast.FuncDecl{Recv: fn.Recv, Name: fn.Name, Type: fn.Type})
			if err != nil {
				return nil, err
			}
			h := hook{name: fn.Name.Name, signature: signature, text: text, rule: rule}
			for _, p := range fn.Type.Params.List {
				if name, ok := p.Type.(*ast.Ident); ok {
					h.takes = name.Name
				}
			}
			out = append(out, h)
		}
	}
	return out, nil
}

// isA reports whether the receiver is a pointer to the type.
func isA(receiver ast.Expr, name string) bool {
	star, ok := receiver.(*ast.StarExpr)
	if !ok {
		return false
	}
	id, ok := star.X.(*ast.Ident)
	return ok && id.Name == name
}

// isDeprecated reports whether the comment of the method says that it is deprecated.
func isDeprecated(fn *ast.FuncDecl) bool {
	return strings.Contains(fn.Doc.Text(), "\nDeprecated: ")
}

// otherNames returns a table of the methods of Session, and of the deprecated methods of Hooks,
// that only call a method of Hooks. It returns "" if there are none.
func otherNames(files []*ast.File) string {
	var b strings.Builder
	for _, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || !strings.HasPrefix(fn.Name.Name, "Add") || len(fn.Body.List) != 1 {
				continue
			}
			receiver := "Session"
			if isDeprecated(fn) {
				receiver = "Hooks"
			}
			if !isA(fn.Recv.List[0].Type, receiver) {
				continue
			}
			if of := called(fn.Body.List[0]); of != "" {
				fmt.Fprintf(&b, "| `%s.%s` | [`%s`](#%s) |\n", receiver, fn.Name.Name, of, strings.ToLower(of))
			}
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "Other names of the same hooks, which plugins may use as well:\n\n| name | hook |\n|---|---|\n" + b.String() + "\n"
}

// called returns the name of the method that the statement calls, or "".
func called(s ast.Stmt) string {
	x, ok := s.(*ast.ExprStmt)
	if !ok {
		return ""
	}
	call, ok := x.X.(*ast.CallExpr)
	if !ok {
		return ""
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	return sel.Sel.Name
}

type namedType struct{ text, code string }

// namedTypes returns the types of the files with their comments. Types that are declared
// in one group share its comment.
func namedTypes(fset *token.FileSet, files []*ast.File) (map[string]namedType, error) {
	out := map[string]namedType{}
	for _, f := range files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			shared := ""
			if !g.Lparen.IsValid() {
				shared = paragraphs(g.Doc.Text())
			}
			for _, s := range g.Specs {
				t := s.(*ast.TypeSpec)
				if text := paragraphs(t.Doc.Text()); text != "" {
					shared = text
				}
				text, err := code(fset, &ast.TypeSpec{Name: t.Name, Type: t.Type})
				if err != nil {
					return nil, err
				}
				out[t.Name.Name] = namedType{shared, "type " + text}
			}
		}
	}
	return out, nil
}

// paragraphs joins the lines of each paragraph.
func paragraphs(text string) string {
	parts := strings.Split(strings.TrimSpace(text), "\n\n")
	for i := range parts {
		parts[i] = strings.Join(strings.Fields(parts[i]), " ")
	}
	return strings.Join(parts, "\n\n")
}

func code(fset *token.FileSet, node any) (string, error) {
	var b bytes.Buffer
	err := format.Node(&b, fset, node)
	return b.String(), err
}
