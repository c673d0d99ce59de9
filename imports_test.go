package berth_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/berth-project/berth/"

// rules say who may import whom. A rule covers the packages its pattern
// matches; the first that matches counts. Test files are free.
var rules = []struct {
	packages string   // a package, or a folder and all below it ("plugins/...")
	own      []string // packages of this module that it may import
	others   []string // modules of others that it may import, by prefix
	why      string
}{
	{"internal/nearest", nil, nil, "it is used everywhere and must not pull anything in"},
	{"internal/printable", nil, nil, "it is used everywhere and must not pull anything in"},
	{"internal/numeral", nil, nil, "it is used everywhere and must not pull anything in"},
	{"internal/phrase", []string{"internal/nearest"}, nil, "it words parts of messages and knows no subject"},
	{"internal/field", []string{"internal/phrase"}, nil, "it names fields of any object"},
	{"internal/strict", []string{"internal/field", "internal/nearest", "internal/phrase", "internal/printable"}, []string{"k8s.io/apimachinery/", "go.yaml.in/yaml/v3"}, "it decodes YAML into any Go value and knows no kind of object; of Kubernetes it knows quantities and times alone"},
	{"internal/heap", nil, nil, "it knows no item"},
	{"cluster", []string{"internal/heap"}, nil, "the nouns stand at the bottom: no policy, no input or output, no dependency"},
	{"engine", []string{"cluster", "internal/heap", "internal/nearest"}, nil, "the engine is a pure function of its input; the standard library is all it needs"},
	{"enginetest", []string{"cluster", "engine"}, nil, "plugin authors elsewhere import it: it must stay light"},
	{"internal/fairshare", []string{"cluster"}, nil, "it computes shares from the State; what is decided by them is for the plugin"},
	{"plugins/internal/...", []string{"cluster", "engine"}, nil, "what plugins share knows as little as they do"},
	{"plugins/standard", []string{"engine", "internal/nearest", "plugins/..."}, nil, "it lists the plugins and decides nothing"},
	{"plugins/fairshare", []string{"cluster", "engine", "internal/fairshare", "plugins/internal/..."}, nil, "it decides by the shares that internal/fairshare computes"},
	{"plugins/...", []string{"cluster", "engine", "internal/nearest", "plugins/internal/..."}, nil, "a plugin never imports another plugin, nor anything above the engine"},
	{"api/...", nil, []string{"k8s.io/api/", "k8s.io/apimachinery/"}, "manifests are data: cluster objects and YAML share these types"},
	{"internal/model", []string{"cluster", "internal/estimate/...", "internal/numeral"}, nil, "it turns a model into jobs by what it needs; whether they fit is for the engine"},
	{"internal/convert", []string{"api/...", "cluster", "internal/estimate", "internal/estimate/backend", "internal/estimate/library", "internal/field", "internal/model", "internal/nearest", "internal/phrase", "internal/printable"}, []string{"k8s.io/api/", "k8s.io/apimachinery/", "k8s.io/component-helpers/resource"}, "it turns single API objects into cluster objects, for files and for informers: it knows no file, no YAML and no position"},
	{"internal/manifest", []string{"api/...", "cluster", "internal/convert", "internal/estimate/...", "internal/field", "internal/model", "internal/nearest", "internal/numeral", "internal/phrase", "internal/strict"}, []string{"k8s.io/api/", "k8s.io/apimachinery/", "go.yaml.in/yaml/v3"}, "it turns files into State and knows no policy"},
	{"internal/estimate", []string{"cluster"}, nil, "it is arithmetic on what is known of a model; files are read below it"},
	{"internal/estimate/internal/table", []string{"cluster"}, []string{"go.yaml.in/yaml/v3"}, "it reads the data files that ship, and knows no meaning of theirs"},
	{"internal/estimate/preset", []string{"cluster", "internal/estimate", "internal/estimate/internal/table", "internal/nearest"}, nil, "a data file with names; it opens no file of the user's"},
	{"internal/estimate/nodes", []string{"cluster"}, nil, "one formula, over nouns"},
	{"internal/estimate/instance", []string{"cluster", "internal/estimate/internal/table", "internal/nearest"}, nil, "a data file with names, and nothing of models"},
	{"internal/estimate/backend", []string{"cluster", "internal/estimate", "internal/estimate/internal/table", "internal/nearest"}, nil, "data on what serves models; which node has it is decided elsewhere"},
	{"internal/estimate/fit", []string{"cluster", "internal/estimate", "internal/estimate/backend"}, nil, "it tries shapes on devices that are free; the engine knows which are"},
	{"internal/estimate/library", []string{"internal/estimate", "internal/estimate/backend", "internal/estimate/gguf", "internal/estimate/hf", "internal/estimate/preset"}, nil, "it finds out what reads a model, and reads nothing itself"},
	{"internal/quantity", []string{"cluster", "engine", "internal/numeral"}, nil, "it writes amounts, for JSON and for people alike, and knows nothing of either"},
	{"internal/wire", []string{"cluster", "engine", "internal/quantity"}, nil, "results in JSON are data: they run nothing, and sentences are written above them"},
	{"internal/sim", []string{"cluster", "engine"}, nil, "it runs the engine and carries out what was decided; others say what that means"},
	{"internal/explain", []string{"cluster", "engine", "internal/numeral", "internal/quantity", "internal/wire"}, nil, "it writes sentences about what was decided; it runs no session, so that words never change a decision"},
	{"internal/whatif", []string{"cluster", "engine", "internal/explain", "internal/nearest", "internal/quantity", "internal/numeral", "internal/sim", "internal/wire"}, nil, "it tries changes by running the engine, and leaves the sentences of a report to explain"},
	{"internal/estimate/gguf/...", []string{"cluster", "internal/estimate", "internal/estimate/gguf/sample", "internal/printable"}, []string{"github.com/gpustack/gguf-parser-go"}, "it turns files into models; what llama.cpp needs for one is the parser's to know"},
	{"internal/live", []string{"cluster", "engine", "internal/explain", "internal/sim", "internal/whatif", "internal/wire"}, nil, "it keeps a scheduler running and serves its readers; what is reported and where the log lies is for the front doors"},
	{"internal/timeline", []string{"cluster", "engine", "internal/explain", "internal/fairshare", "internal/numeral", "internal/sim"}, nil, "it runs the engine over and over, tells what happened, and sets what queues use beside their fair share"},
	{"internal/scenario", []string{"api/...", "cluster", "engine", "internal/explain", "internal/manifest", "internal/model", "internal/nearest", "internal/sim", "plugins/standard", "internal/timeline"}, nil, "it runs what a file says through the engine that ships"},
	{"internal/estimate/hf/sample", nil, nil, "it writes files and shares nothing with their reader"},
	{"internal/estimate/hf", []string{"cluster", "internal/estimate", "internal/printable"}, nil, "it reads files and leaves the arithmetic to estimate"},
	{"internal/verify/soak", []string{"cluster", "engine", "plugins/standard"}, nil, "it runs the engine that ships, and nothing else"},
	{"internal/verify/oracle", []string{"cluster", "engine", "internal/fairshare", "plugins/standard"}, nil, "it judges the engine that ships, and shares nothing with its plugins but the fair shares"},
	{"internal/verify/bench", []string{"cluster", "engine", "plugins/standard"}, nil, "it measures the engine that ships, and nothing else"},
	{"command", []string{"..."}, []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "go.yaml.in/yaml/v3", "sigs.k8s.io/yaml"}, "the user's binary never links a Kubernetes client"},
	{"cmd/berth", []string{"command", "plugins/standard"}, nil, "the binary that ships is the command with the plugins that ship"},
	{"hack/...", []string{"..."}, nil, "generators use what they document"},
}

func TestWhoMayImportWhom(t *testing.T) {
	checked := 0
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || p == "examples" || p == "bin" || (strings.HasPrefix(d.Name(), ".") && p != ".")) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		checked++
		checkFile(t, filepath.ToSlash(p))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 50 {
		t.Errorf("only %d files were found", checked)
	}
}

func checkFile(t *testing.T, file string) {
	dir := path.Dir(file)
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		if !matches(r.packages, dir) {
			continue
		}
		for _, spec := range f.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			own, isOwn := strings.CutPrefix(imported, module)
			switch {
			case isOwn && !matchesAny(r.own, own):
				t.Errorf("%s imports %s: not allowed, because %s", file, own, r.why)
			case !isOwn && strings.Contains(strings.Split(imported, "/")[0], ".") && !hasPrefix(r.others, imported):
				t.Errorf("%s imports %s: not allowed, because %s", file, imported, r.why)
			}
		}
		return
	}
	t.Errorf("%s is in no rule: say in imports_test.go what package %s may import, and why", file, dir)
}

func matches(pattern, pkg string) bool {
	if pattern == "..." {
		return true
	}
	if folder, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == folder || strings.HasPrefix(pkg, folder+"/")
	}
	return pattern == pkg
}

func matchesAny(patterns []string, pkg string) bool {
	for _, p := range patterns {
		if matches(p, pkg) {
			return true
		}
	}
	return false
}

func hasPrefix(prefixes []string, s string) bool {
	for _, p := range prefixes {
		if s == p || strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}
