package berth_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// retired are words that docs/glossary.md replaced, and what to write instead. They do not
// come back in comments, messages and docs.
var retired = []struct {
	word    string // a regular expression; words are matched whole and in any case
	instead string
	people  bool // people may be called so in pages, but nothing in Go code is a person
}{
	{"who|whom", "which or that: tasks, jobs, nodes and plugins are things", true},
	{"nobody|somebody|everybody|anybody|someone|everyone", "name the thing: no job, some task, every plugin", true},
	{"the books", "State", false},
	{"in vain", "without effect", false},
	{"for the sake of", "for", false},
	{"made to go|makes? way|may go|has to go", "evict, is evicted", false},
	{"goes", "is evicted, is removed, continues", true},
	{"have their say|has its say|(has|have) a say", "is called, decides", false},
}

// TestGlossary fails where a retired word is used.
func TestGlossary(t *testing.T) {
	patterns := make([]*regexp.Regexp, len(retired))
	for i, r := range retired {
		patterns[i] = regexp.MustCompile(`(?i)\b(` + r.word + `)\b`)
	}
	check := func(where, text string, code bool) {
		for i, r := range retired {
			if r.people && !code {
				continue
			}
			if found := patterns[i].FindString(text); found != "" {
				t.Errorf("%s: %q: write %s (docs/glossary.md)", where, found, r.instead)
			}
		}
	}
	read := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || path == "bin" || path == "dist" || strings.HasPrefix(d.Name(), ".") && path != "."):
			return fs.SkipDir
		case path == filepath.Join("docs", "glossary.md") || path == "glossary_test.go":
		case strings.HasSuffix(path, ".go"):
			read++
			return words(path, func(where token.Position, text string) { check(where.String(), text, true) })
		case strings.HasSuffix(path, ".md"):
			read++
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, line := range strings.Split(string(data), "\n") {
				check(path, line, false)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if read < 300 {
		t.Errorf("only %d files were read", read)
	}
}

// words visits the comments and the strings of a Go file.
func words(path string, visit func(where token.Position, text string)) error {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			visit(fset.Position(c.Pos()), c.Text)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			visit(fset.Position(lit.Pos()), lit.Value)
		}
		return true
	})
	return nil
}
