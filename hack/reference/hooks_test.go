package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHooks(t *testing.T) {
	const types = `package engine

type (
	// LeftFn and RightFn score.
	LeftFn  func(*Job) float64
	RightFn func(*Node) float64
)

// Remember is no hook.
func (s *Session) Remember(fn LeftFn) {}

// AddTo is not the session's.
func (o *Other) AddTo(fn LeftFn) {}

`
	const missing = `engine.go:15:1: the comment of AddRightFn does not end with a paragraph that begins "Combining:" and says how the answers of several plugins are combined`
	tests := map[string]struct{ method, want, err string }{
		"a rule": {
			method: `// AddRightFn registers
// a score.
//
// Combining: added; a | b.
func (h *Hooks) AddRightFn(matters func(*Job) bool, fn RightFn) { add(h, fn) }`,
			want: "| hook | combining |\n|---|---|\n| [`AddRightFn`](#addrightfn) | added; a \\| b. |\n\n" +
				"## AddRightFn\n\nAddRightFn registers a score.\n\n**Combining:** added; a | b.\n\n" +
				"```go\nfunc (h *Hooks) AddRightFn(matters func(*Job) bool, fn RightFn)\n```\n\n" +
				"LeftFn and RightFn score.\n\n```go\ntype RightFn func(*Node) float64\n```\n\n",
		},
		"another name": {
			method: "// AddRight registers.\n//\n// Combining: added.\nfunc (h *Hooks) AddRight(fn RightFn) {}\n\n// AddRightFn is Hooks.AddRight.\nfunc (s *Session) AddRightFn(fn RightFn) { s.Hooks.AddRight(fn) }",
			want: "| hook | combining |\n|---|---|\n| [`AddRight`](#addright) | added. |\n\n" +
				"Other names of the same hooks, which plugins may use as well:\n\n| name | hook |\n|---|---|\n| `Session.AddRightFn` | [`AddRight`](#addright) |\n\n" +
				"## AddRight\n\nAddRight registers.\n\n**Combining:** added.\n\n" +
				"```go\nfunc (h *Hooks) AddRight(fn RightFn)\n```\n\n" +
				"LeftFn and RightFn score.\n\n```go\ntype RightFn func(*Node) float64\n```\n\n",
		},
		"a former name": {
			method: "// AddRight registers.\n//\n// Combining: added.\nfunc (h *Hooks) AddRight(fn RightFn) {}\n\n// AddOld calls AddRight.\n//\n// Deprecated: call AddRight.\nfunc (h *Hooks) AddOld(fn RightFn) { h.AddRight(fn) }",
			want: "| hook | combining |\n|---|---|\n| [`AddRight`](#addright) | added. |\n\n" +
				"Other names of the same hooks, which plugins may use as well:\n\n| name | hook |\n|---|---|\n| `Hooks.AddOld` | [`AddRight`](#addright) |\n\n" +
				"## AddRight\n\nAddRight registers.\n\n**Combining:** added.\n\n" +
				"```go\nfunc (h *Hooks) AddRight(fn RightFn)\n```\n\n" +
				"LeftFn and RightFn score.\n\n```go\ntype RightFn func(*Node) float64\n```\n\n",
		},
		"no rule":          {method: "// AddRightFn registers.\nfunc (h *Hooks) AddRightFn(fn RightFn) {}", err: strings.Replace(missing, "15", "16", 1)},
		"no comment":       {method: "func (h *Hooks) AddRightFn(fn RightFn) {}", err: missing},
		"an empty rule":    {method: "// AddRightFn registers.\n//\n// Combining:\nfunc (h *Hooks) AddRightFn(fn RightFn) {}", err: strings.Replace(missing, "15", "18", 1)},
		"not its own part": {method: "// AddRightFn registers.\n// Combining: added.\nfunc (h *Hooks) AddRightFn(fn RightFn) {}", err: strings.Replace(missing, "15", "17", 1)},
		"not the last":     {method: "// AddRightFn registers.\n//\n// Combining: added.\n//\n// More.\nfunc (h *Hooks) AddRightFn(fn RightFn) {}", err: strings.Replace(missing, "15", "20", 1)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, "engine.go", types+tt.method, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			got, err := describe(fset, []*ast.File{f})
			said := ""
			if err != nil {
				said = err.Error()
			}
			if d := cmp.Diff([]string{tt.want, tt.err}, []string{got, said}); d != "" {
				t.Errorf("page and error (-want +got):\n%s", d)
			}
		})
	}
}

// TestEveryHookHasCombiningRule checks that the comment of every Add method says how
// answers are combined.
func TestEveryHookHasCombiningRule(t *testing.T) {
	fset, files, err := parse("../../engine")
	if err != nil {
		t.Fatal(err)
	}
	list, err := registrations(fset, files)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 18 {
		t.Errorf("only %d hooks were found", len(list))
	}
}
