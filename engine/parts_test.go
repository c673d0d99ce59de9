package engine_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
	"testing"
)

// parts lists the components of a session as docs/architecture.md does, from the top down, with
// the types that belong to each.
var parts = []struct {
	name  string
	types string
}{
	{"session", "Engine Session Mover Earmarks"},
	{"turns", "backlog lane laneOrder rankedLanes bucket parkedHeap turns contender order"},
	{"making room", "room want nodewise nodeHeap nodeHeaps everyPlan trial staying evictor evictionWays hosts"},
	{"victims", "victims"},
	{"placing", "placer gang demand search whole"},
	{"keeping", "reservations retirement sweeping learning"},
	{"explaining", "explainer"},
	{"finding", "finder index ranking tree"},
	{"deciding", "Statement clerk"},
	{"asking", "shortage accounts"},
	{"hooks", "Hooks reservers hints Timings timer"},
}

// TestCallsGoDown checks that methods of a component call only methods of the same component and of
// those below it. Types that belong to no component are values and must not call any component.
func TestCallsGoDown(t *testing.T) {
	level := map[string]int{}
	for i, p := range parts {
		for _, name := range strings.Fields(p.types) {
			level[name] = i
		}
	}
	fset := token.NewFileSet()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(fset, "source", nil)}
	if _, err := config.Check("engine", fset, files, info); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	calls := 0
	for _, f := range files {
		for _, d := range f.Decls {
			method, ok := d.(*ast.FuncDecl)
			if !ok || method.Recv == nil {
				continue
			}
			from := receiver(info.Defs[method.Name])
			found[from] = true
			ast.Inspect(method, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				selector, ok := call.Fun.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				to := receiver(info.Uses[selector.Sel])
				below, isPart := level[to]
				if !isPart || from == to {
					return true
				}
				calls++
				if at, isPart := level[from]; !isPart {
					t.Errorf("%s: %s, which belongs to no component, calls %s.%s of a component", fset.Position(call.Pos()), from, to, selector.Sel.Name)
				} else if at > below {
					t.Errorf("%s: %s (%s) calls %s.%s (%s), which is above it", fset.Position(call.Pos()), from, parts[at].name, to, selector.Sel.Name, parts[below].name)
				}
				return true
			})
		}
	}
	for name := range level {
		if !found[name] {
			t.Errorf("there is no type %s with methods", name)
		}
	}
	if calls < 100 {
		t.Errorf("only %d calls between types were found", calls)
	}
}

// receiver returns the name of the receiver type of a method of this package; "" for anything else.
func receiver(o types.Object) string {
	fn, ok := o.(*types.Func)
	if !ok || fn.Pkg() == nil || fn.Pkg().Path() != "engine" || fn.Signature().Recv() == nil {
		return ""
	}
	of := fn.Signature().Recv().Type()
	if p, ok := of.(*types.Pointer); ok {
		of = p.Elem()
	}
	if n, ok := of.(*types.Named); ok {
		return n.Obj().Name()
	}
	return ""
}
