package soak

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// parts lists the parts of a simulation as doc.go does, from the top down.
var parts = []string{
	"simulation",
	"jobEvents modelEvents taskEvents nodeEvents queueEvents sessions statements comparisons",
	"stateCheck sessionCheck evictionCheck siteCheck nodeSums queueSums",
	"controller recovery workload",
	"executor",
	"jobMaker modelMaker nodeMaker",
	"scheduler log",
	"history",
	"site",
	"dice Counts",
}

// maxMethods is the number of methods that a type may have.
const maxMethods = 40

// TestParts checks that the fields and parameters of a part, and the values that its
// methods make, are parts of the same line or of a lower one, so that calls point
// downwards. It also checks that no struct embeds another, and that no type has too
// many methods.
func TestParts(t *testing.T) {
	line := map[string]int{}
	for i, names := range parts {
		for _, name := range strings.Fields(names) {
			line[name] = i
		}
	}
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	methods := map[string]int{}
	checkType := func(from string, e ast.Expr) {
		ast.Inspect(e, func(n ast.Node) bool {
			if _, isQualified := n.(*ast.SelectorExpr); isQualified {
				return false // a type of another package
			}
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			to, isPart := line[id.Name]
			if at, known := line[from]; known && isPart && to < at {
				t.Errorf("%s: %s uses %s, which is above it", fset.Position(id.Pos()), from, id.Name)
			}
			return true
		})
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				s, ok := n.Type.(*ast.StructType)
				if !ok {
					break
				}
				for _, f := range s.Fields.List {
					if len(f.Names) == 0 {
						t.Errorf("%s: %s embeds another type", fset.Position(f.Pos()), n.Name.Name)
					}
					checkType(n.Name.Name, f.Type)
				}
			case *ast.FuncDecl:
				if n.Recv == nil {
					break
				}
				from := receiver(n)
				methods[from]++
				checkType(from, n.Type)
				ast.Inspect(n.Body, func(n ast.Node) bool {
					if value, ok := n.(*ast.CompositeLit); ok && value.Type != nil {
						checkType(from, value.Type)
					}
					return true
				})
			}
			return true
		})
	}
	for name := range line {
		if methods[name] == 0 {
			t.Errorf("there is no type %s with methods", name)
		}
	}
	for name, n := range methods {
		if n > maxMethods {
			t.Errorf("%s has %d methods, and at most %d are allowed", name, n, maxMethods)
		}
	}
}

// receiver returns the name of the type of a method.
func receiver(f *ast.FuncDecl) string {
	of := f.Recv.List[0].Type
	if p, ok := of.(*ast.StarExpr); ok {
		of = p.X
	}
	return of.(*ast.Ident).Name
}
