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

// rules lists which packages each package may import, beside the standard library. The
// first rule with a pattern that matches a package applies. Test files may import anything.
var rules = []struct {
	packages string   // a package, or a directory and all below it ("plugins/...")
	own      []string // packages of this module that it may import
	others   []string // prefixes of packages of other modules that it may import
	why      string   // completes "not allowed, because"
}{
	{"internal/nearest", nil, nil, "it is used everywhere and must not add dependencies"},
	{"internal/printable", nil, nil, "it is used everywhere and must not add dependencies"},
	{"internal/english", nil, nil, "it is used everywhere and must not add dependencies"},
	{"internal/phrase", []string{"internal/nearest"}, nil, "it words parts of messages and knows no subject"},
	{"internal/field", []string{"internal/phrase"}, nil, "it names fields of any object"},
	{"internal/strict", []string{"internal/field", "internal/nearest", "internal/phrase", "internal/printable"}, []string{"k8s.io/apimachinery/", "go.yaml.in/yaml/v3"}, "it decodes YAML into any Go value and knows no kind of object; of Kubernetes it knows quantities and times alone"},
	{"internal/heap", nil, nil, "it works with items of any type"},
	{"internal/paged", nil, nil, "its tables hold pointers of any type"},
	{"internal/recency", nil, nil, "it lists numbers, whatever they stand for"},
	{"cluster", []string{"internal/heap", "internal/paged", "internal/recency"}, nil, "it defines State and its objects, without policy, input, output or dependencies"},
	{"engine", []string{"cluster", "internal/heap", "internal/nearest", "internal/paged", "internal/recency"}, nil, "the engine is a pure function of its input and needs only the standard library"},
	{"enginetest", []string{"cluster", "engine"}, nil, "authors of external plugins import it, so it must not add dependencies"},
	{"internal/fairshare", []string{"cluster"}, nil, "it computes shares from the State; what is decided by them is for the plugin"},
	{"plugins/internal/...", []string{"cluster", "engine"}, nil, "code that plugins share has the same restrictions as plugins"},
	{"plugins/standard", []string{"engine", "internal/nearest", "plugins/..."}, nil, "it lists the plugins and makes no decisions"},
	{"plugins/fairshare", []string{"cluster", "engine", "internal/fairshare", "plugins/internal/..."}, nil, "it decides by the shares that internal/fairshare computes"},
	{"internal/fragmentation", []string{"cluster"}, nil, "it computes one figure from the State; what is decided by it is for the plugin"},
	{"plugins/fgd", []string{"cluster", "engine", "internal/fragmentation"}, nil, "it decides by the fragmentation that internal/fragmentation computes"},
	{"internal/defrag", []string{"cluster", "engine", "internal/fragmentation", "internal/heap", "internal/sim"}, nil, "it chooses tasks and measures; the engine finds the room, and the command says with which plugins"},
	{"internal/replay", []string{"cluster", "engine", "internal/fragmentation", "internal/heap", "internal/sim", "plugins/fgd"}, nil, "it reads traces and runs the engine on them; the command says with which plugins"},
	{"plugins/...", []string{"cluster", "engine", "internal/nearest", "plugins/internal/..."}, nil, "a plugin imports neither another plugin nor a package that uses the engine"},
	{"api/...", nil, []string{"k8s.io/api/", "k8s.io/apimachinery/"}, "manifests are data, and their types are shared by cluster objects and YAML"},
	{"internal/model", []string{"cluster", "internal/estimate/...", "internal/english"}, nil, "it turns a model into jobs by what the model needs; the engine decides whether they fit"},
	{"internal/convert", []string{"api/...", "cluster", "internal/estimate", "internal/estimate/backend", "internal/estimate/library", "internal/field", "internal/model", "internal/nearest", "internal/phrase", "internal/printable", "internal/strict"}, []string{"k8s.io/api/", "k8s.io/apimachinery/", "k8s.io/component-helpers/resource"}, "it turns single API objects into cluster objects, for files and for informers: it knows no file, no YAML and no position"},
	{"internal/dra", []string{"cluster"}, []string{"k8s.io/api/", "k8s.io/apimachinery/"}, "it reads devices and selects some, and allocates none; others evaluate selectors"},
	{"internal/dra/dratest", []string{"internal/dra"}, []string{"k8s.io/api/", "k8s.io/apimachinery/"}, "it is for tests"},
	{"internal/feed", []string{"api/...", "cluster", "internal/convert", "internal/dra", "internal/field", "internal/phrase", "internal/podkind", "internal/recent"}, []string{"k8s.io/api/", "k8s.io/apimachinery/"}, "it turns objects into facts, for files and for informers, and has no client, no clock and no policy"},
	{"internal/podkind", nil, []string{"k8s.io/api/", "k8s.io/apimachinery/"}, "it reads single pods and knows nothing of Berth"},
	{"internal/recent", nil, nil, "it is a set of a size, and knows nothing of Berth or Kubernetes"},
	{"internal/manifest", []string{"api/...", "cluster", "internal/convert", "internal/estimate/...", "internal/feed", "internal/field", "internal/model", "internal/nearest", "internal/english", "internal/phrase", "internal/strict"}, []string{"k8s.io/api/", "k8s.io/apimachinery/", "go.yaml.in/yaml/v3"}, "it turns files into State and knows no policy"},
	{"internal/estimate", []string{"cluster"}, nil, "it computes estimates from the properties of a model; its subpackages read files"},
	{"internal/estimate/internal/table", []string{"cluster"}, []string{"go.yaml.in/yaml/v3"}, "it reads the embedded data files and does not interpret them"},
	{"internal/estimate/internal/doctable", nil, nil, "it is for tests: it compares tables of a page with computed ones"},
	{"internal/estimate/preset", []string{"cluster", "internal/estimate", "internal/estimate/internal/table", "internal/nearest"}, nil, "it looks up names in an embedded data file and opens no files of users"},
	{"internal/estimate/nodes", []string{"cluster"}, nil, "it is one formula over the types of cluster"},
	{"internal/estimate/instance", []string{"cluster", "internal/estimate/internal/table", "internal/nearest"}, nil, "it looks up names in an embedded data file and does not use models"},
	{"internal/estimate/backend", []string{"cluster", "internal/estimate", "internal/estimate/internal/table", "internal/nearest", "internal/phrase"}, nil, "it has data about backends; other packages decide which node can run one"},
	{"internal/estimate/fit", []string{"cluster", "internal/estimate", "internal/estimate/backend"}, nil, "it tries a model on devices as if they were free; the engine knows which ones are"},
	{"internal/estimate/library", []string{"internal/estimate", "internal/estimate/backend", "internal/estimate/gguf", "internal/estimate/hf", "internal/estimate/preset"}, nil, "it selects the package that reads a model, and reads nothing itself"},
	{"internal/quantity", []string{"cluster", "engine", "internal/english"}, nil, "it writes amounts, for JSON and for people alike, and knows nothing of either"},
	{"internal/wire", []string{"cluster", "engine", "internal/quantity"}, nil, "results in JSON are data: they run nothing, and sentences are written above them"},
	{"internal/sim", []string{"cluster", "engine"}, nil, "it runs the engine and carries out what was decided; others say what that means"},
	{"internal/explain", []string{"cluster", "engine", "internal/english", "internal/quantity", "internal/wire"}, nil, "it writes sentences about what was decided; it runs no session, so that words never change a decision"},
	{"internal/explain/explaintest", []string{"cluster", "engine", "enginetest", "internal/sim", "plugins/standard"}, nil, "tests of explain import it, so it must not import explain"},
	{"internal/whatif", []string{"cluster", "engine", "internal/explain", "internal/nearest", "internal/quantity", "internal/english", "internal/sim", "internal/wire"}, nil, "it tries changes by running the engine, and leaves the sentences of a report to explain"},
	{"internal/modelset", []string{"cluster", "engine", "internal/explain", "internal/model", "internal/sim", "internal/wire"}, nil, "it asks the engine about models, and leaves the State as it was"},
	{"internal/launch", []string{"api/...", "cluster", "internal/estimate", "internal/estimate/backend", "internal/estimate/preset", "internal/field", "internal/model"}, nil, "it writes commands, and knows neither files nor Kubernetes"},
	{"internal/estimate/gguf/...", []string{"cluster", "internal/estimate", "internal/estimate/gguf/sample", "internal/printable"}, []string{"github.com/gpustack/gguf-parser-go"}, "it turns files into models, and the parser library knows what llama.cpp needs"},
	{"internal/live", []string{"cluster", "engine", "internal/explain", "internal/sim", "internal/whatif", "internal/wire"}, nil, "it keeps a scheduler running and serves its readers; its callers report facts and store the log"},
	{"internal/sim/timeline", []string{"cluster", "engine", "internal/explain", "internal/fairshare", "internal/english", "internal/sim"}, nil, "it runs sessions over time, records what happens, and shows the use and fair share of queues"},
	{"internal/edit", []string{"api/...", "cluster", "internal/convert", "internal/feed", "internal/manifest", "internal/quantity"}, []string{"go.yaml.in/yaml/v3", "k8s.io/api/", "k8s.io/apimachinery/"}, "it knows the fields of manifests, and decides nothing"},
	{"internal/anonymize", []string{"api/...", "cluster", "engine", "internal/convert", "internal/estimate", "internal/estimate/backend", "internal/estimate/hf", "internal/feed", "internal/manifest"}, []string{"go.yaml.in/yaml/v3", "k8s.io/api/", "k8s.io/apimachinery/"}, "it copies manifests and compares results; others run the engine"},
	{"internal/migration", []string{"api/...", "cluster", "internal/english", "internal/estimate/backend", "internal/estimate/preset", "internal/field", "internal/manifest", "internal/phrase", "internal/strict"}, []string{"go.yaml.in/yaml/v3", "k8s.io/api/", "k8s.io/apimachinery/"}, "it turns objects of other schedulers into manifests, and runs nothing"},
	{"internal/sim/scenario", []string{"api/...", "cluster", "engine", "internal/explain", "internal/manifest", "internal/model", "internal/nearest", "internal/sim", "plugins/standard", "internal/sim/timeline"}, nil, "it runs scenario files with the standard plugins"},
	{"internal/estimate/hf/sample", nil, nil, "it writes test files and shares no code with their reader"},
	{"internal/estimate/hf", []string{"cluster", "internal/estimate", "internal/printable"}, nil, "it reads files and leaves the computation to package estimate"},
	{"internal/verify/soak", []string{"cluster", "engine", "plugins/standard"}, nil, "it runs the engine with the standard plugins, and nothing else"},
	{"internal/verify/oracle", []string{"cluster", "engine", "internal/fairshare", "plugins/standard"}, nil, "it judges the engine with the standard plugins, and shares no code with plugins except fair shares"},
	{"internal/verify/cures", []string{"command", "internal/wire", "plugins/standard"}, []string{"go.yaml.in/yaml/v3"}, "it runs berth as a user would, and shares no code that reads or changes manifests"},
	{"internal/verify/bench", []string{"cluster", "engine", "plugins/standard"}, nil, "it measures the engine with the standard plugins, and nothing else"},
	{"command", []string{"..."}, []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "go.yaml.in/yaml/v3", "sigs.k8s.io/yaml"}, "the berth binary must not contain a Kubernetes client"},
	{"cmd/berth", []string{"command", "plugins/standard"}, nil, "the berth binary is the command with the standard plugins"},
	{"hack/...", []string{"..."}, nil, "generators import the packages that they document"},
	{"kube/cmd/berth-scheduler", []string{"kube/command", "plugins/standard"}, nil, "it only calls Main"},
	{"kube/cmd/berth-controller", []string{"kube/command", "plugins/standard"}, nil, "it only calls Controller"},
	{"kube/cmd/kubectl-berth", []string{"kube/command", "plugins/standard"}, nil, "it only calls Kubectl"},
	{"kube/command", []string{"engine", "internal/feed", "internal/manifest", "internal/sim/scenario", "kube/internal/...", "plugins/..."}, []string{"k8s.io/", "github.com/spf13/"}, "it is the command line of berth-scheduler"},
	{"kube/e2e/...", nil, nil, "it has tests only"},
	{"kube/internal/admission", []string{"api/...", "kube/internal/controller"}, []string{"k8s.io/api/", "k8s.io/apimachinery/"}, "it answers requests, and asks the controller"},
	{"kube/internal/certificate", nil, []string{"k8s.io/"}, "it knows only certificates"},
	{"kube/internal/controller", []string{"api/...", "cluster", "engine", "internal/convert", "internal/estimate", "internal/estimate/hf", "internal/estimate/library", "internal/feed", "internal/field", "internal/launch", "internal/model", "internal/modelset", "internal/quantity", "internal/wire", "kube/internal/facts", "kube/internal/modelsource", "kube/internal/watch", "kube/internal/workload"}, []string{"k8s.io/"}, "it is the loop of models, which connects the others"},
	{"kube/internal/facts", []string{"api/...", "cluster", "internal/convert", "internal/feed", "internal/field", "kube/internal/watch"}, []string{"k8s.io/api/", "k8s.io/apimachinery/"}, "it gives objects to the feed, and decides nothing"},
	{"kube/internal/modelsource", []string{"api/...", "internal/convert", "internal/estimate", "internal/estimate/hf", "internal/estimate/library", "internal/feed", "internal/field", "internal/model"}, []string{"k8s.io/apimachinery/"}, "it reads models, and places none"},
	{"kube/internal/workload", []string{"api/...", "cluster", "internal/feed", "internal/field", "internal/launch", "internal/model"}, []string{"k8s.io/api/", "k8s.io/apimachinery/"}, "it makes objects, and sends none"},
	{"kube/internal/controlplane", nil, []string{"k8s.io/", "sigs.k8s.io/yaml"}, "it starts processes for tests and knows nothing of Berth"},
	{"kube/internal/bind", []string{"cluster", "kube/internal/lease"}, []string{"k8s.io/"}, "it carries out decisions and makes none"},
	{"kube/config/crd", nil, nil, "it is a file, for programs that install it"},
	{"kube/hack/chart", []string{"kube/internal/chart"}, nil, "it only writes files"},
	{"kube/internal/chart", []string{"kube/internal/controlplane"}, []string{"go.yaml.in/yaml/v3"}, "it derives files from the chart by running helm"},
	{"kube/hack/cluster", []string{"kube/internal/controlplane"}, []string{"k8s.io/api/", "k8s.io/apimachinery/"}, "it only starts a control plane"},
	{"kube/hack/crd", []string{"api/...", "cluster"}, []string{"k8s.io/apiextensions-apiserver/", "k8s.io/apimachinery/", "sigs.k8s.io/yaml"}, "it derives a file from the types of manifests"},
	{"kube/hack/reference", []string{"kube/command", "kube/internal/...", "plugins/standard"}, []string{"github.com/prometheus/client_golang/"}, "generators import the packages that they document"},
	{"kube/internal/modeltest", []string{"api/...", "internal/estimate/preset"}, []string{"k8s.io/api/", "k8s.io/apimachinery/"}, "it makes models for tests"},
	{"kube/internal/crdtest", []string{"api/...", "kube/config/crd"}, []string{"k8s.io/", "sigs.k8s.io/yaml"}, "it prepares an API server for tests"},
	{"kube/internal/ctl", []string{"api/...", "cluster", "command", "engine", "internal/...", "kube/internal/..."}, []string{"k8s.io/", "github.com/spf13/"}, "it lists objects and asks the engine, and sends no change"},
	{"kube/internal/history", []string{"cluster", "engine", "kube/internal/intree"}, nil, "it keeps what sessions decided about, and decides nothing"},
	{"kube/internal/selector", []string{"internal/dra"}, []string{"k8s.io/dynamic-resource-allocation/cel"}, "it evaluates single expressions"},
	{"kube/internal/intree", []string{"cluster", "engine", "internal/podkind", "internal/recent"}, []string{"k8s.io/"}, "it is a plugin of the engine, made of the filters of kube-scheduler"},
	{"kube/internal/lease", nil, []string{"k8s.io/"}, "it knows only leases"},
	{"kube/internal/metrics", nil, []string{"github.com/prometheus/client_golang/"}, "it knows only figures"},
	{"kube/internal/objectfile", []string{"kube/internal/watch"}, []string{"k8s.io/"}, "it writes and reads objects, and interprets none"},
	{"kube/internal/queuestatus", []string{"api/...", "cluster", "internal/convert", "internal/live", "internal/feed"}, []string{"k8s.io/api/", "k8s.io/apimachinery/", "k8s.io/client-go/dynamic", "k8s.io/utils/clock"}, "it writes what State says about queues, and nothing depends on it"},
	{"kube/internal/report", nil, []string{"k8s.io/"}, "it writes what it is told into the status of pods"},
	{"kube/internal/testcluster", []string{"kube/internal/controlplane"}, []string{"k8s.io/"}, "it prepares clusters for tests and knows of Berth only names"},
	{"kube/internal/trace", []string{"engine"}, []string{"go.opentelemetry.io/otel/", "k8s.io/component-base/tracing"}, "it describes sessions, and nothing depends on it"},
	{"kube/internal/scheduler", []string{"api/...", "cluster", "engine", "internal/convert", "internal/explain", "internal/feed", "internal/field", "internal/live", "internal/manifest", "internal/recent", "kube/internal/...", "plugins/doublebooking"}, []string{"k8s.io/"}, "it is the loop, which connects the others"},
	{"kube/internal/secure", nil, []string{"k8s.io/"}, "it lets users of the cluster through, and knows nothing of what they read"},
	{"kube/internal/watch", nil, []string{"k8s.io/"}, "it delivers objects and interprets none"},
}

// TestImports checks the imports of all packages against the rules.
func TestImports(t *testing.T) {
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
	t.Errorf("%s: no rule covers the package; add a rule for %s to imports_test.go", file, dir)
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
