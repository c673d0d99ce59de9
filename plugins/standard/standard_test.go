package standard

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/engine"
)

func TestProfileBuilds(t *testing.T) {
	if _, err := engine.New(Registry(), Profile()); err != nil {
		t.Fatal(err)
	}
}

// TestEveryPluginIsInAProfile: a plugin that is not in the default profile belongs to a policy.
func TestEveryPluginIsInAProfile(t *testing.T) {
	got := names(Profile())
	for _, o := range others {
		if !isPacking(o.name) {
			t.Errorf("%s belongs to no policy", o.name)
		}
		got = append(got, o.name)
	}
	slices.Sort(got)
	if d := cmp.Diff(Registry().Names(), got); d != "" {
		t.Errorf("registered and in the profile (-registered +profile):\n%s", d)
	}
}

// A plugin that is not listed cannot be used.
func TestEveryFolderIsRegistered(t *testing.T) {
	var want []string
	for _, name := range Registry().Names() {
		want = append(want, strings.ToLower(strings.ReplaceAll(name, "-", "")))
	}
	slices.Sort(want)
	if d := cmp.Diff(want, folders(t)); d != "" {
		t.Errorf("plugins, each in the folder of its name (-registered +folders):\n%s", d)
	}
}

func TestRequiredPluginsAreInTheProfile(t *testing.T) {
	for _, p := range required {
		if indexOf(Profile(), p.name) < 0 {
			t.Errorf("%s is not in the profile: %s", p.name, p.why)
		}
	}
}

func TestReasonsAreUniqueAndDocumented(t *testing.T) {
	owner := map[engine.Reason]string{}
	for _, d := range Reasons() {
		if other, taken := owner[d.Reason]; taken {
			t.Errorf("reason %s is given by %s and by %s: want one plugin for each reason", d.Reason, other, d.Plugin)
		}
		owner[d.Reason] = d.Plugin
		if d.Reason == "" || !strings.HasSuffix(d.Meaning, ".") {
			t.Errorf("reason %q of %s means %q: want a sentence", d.Reason, d.Plugin, d.Meaning)
		}
	}
	for _, folder := range folders(t) {
		for _, r := range declared(t, folder) {
			if _, known := owner[r]; !known {
				t.Errorf("plugins/%s declares reason %s, which its Reasons do not document", folder, r)
			}
		}
	}
}

// folders lists the folders of the plugins.
func folders(t *testing.T) []string {
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() && e.Name() != "standard" && e.Name() != "internal" {
			out = append(out, e.Name())
		}
	}
	return out
}

// declared returns the constants of type engine.Reason in the source of a plugin.
func declared(t *testing.T, folder string) []engine.Reason {
	files, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var out []engine.Reason
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if kind, ok := spec.Type.(*ast.SelectorExpr); !ok || kind.Sel.Name != "Reason" {
				return true
			}
			for _, v := range spec.Values {
				if text, ok := v.(*ast.BasicLit); ok {
					r, err := strconv.Unquote(text.Value)
					if err != nil {
						t.Fatal(err)
					}
					out = append(out, engine.Reason(r))
				}
			}
			return true
		})
	}
	return out
}
