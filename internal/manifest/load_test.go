package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/strict"
	"github.com/google/go-cmp/cmp"
)

// write makes a directory with files.
func write(t *testing.T, content map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLoad(t *testing.T) {
	dir := write(t, map[string]string{
		"b.yaml":          object("Node", "b", ""),
		"a/x.yml":         object("Node", "x", ""),
		"a/y.json":        `{"apiVersion": "berth.dev/v1alpha1", "kind": "Node", "metadata": {"name": "y"}}`,
		"a/README.md":     "not read",
		".git/broken.yml": "a: b: c",
		".hidden.yaml":    "a: b: c",
		// A .json file beside weights belongs to the model.
		"m/config.json": `{"model_type": "llama"}`, "m/model.safetensors.index.json": `{}`, "m/node.yaml": object("Node", "m", ""),
		"m/lora/adapter_config.json": `{"r": 8}`, "m/lora/adapter_model.safetensors": "",
		"z/config.json": `{"apiVersion": "berth.dev/v1alpha1", "kind": "Node", "metadata": {"name": "z"}}`,
	})
	if err := os.Symlink(filepath.Join(dir, "b.yaml"), filepath.Join(dir, "a", "link.txt")); err != nil {
		t.Fatal(err)
	}
	// The file is named a second time and read once.
	b, err := LoadFrom(strings.NewReader(object("Node", "in", "")), []string{dir, "-", filepath.Join(dir, "a/../b.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range b.Nodes {
		got = append(got, strings.TrimPrefix(b.Where(n), dir+"/"))
	}
	if diff := cmp.Diff([]string{"a/x.yml:1", "a/y.json:1", "b.yaml:1", "m/node.yaml:1", "z/config.json:1", "<stdin>:1"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestLoadErrors(t *testing.T) {
	dir := write(t, map[string]string{
		"empty/x.txt":   "",
		"m/config.json": "{}", "m/model.safetensors": "",
		"refs.yaml": job("{queue: nope, tasks: [{name: w, replicas: 0}]}"),
		"lost.yaml": object("Queue", "q", "spec: {bogus: 1}") + "\n---\n" + job("{queue: q, tasks: [{name: w}]}"),
		"none.yaml": "# nothing\n",
	})
	tests := map[string]struct {
		paths []string
		want  string
	}{
		"missing":                    {[]string{"nope.yaml"}, "nope.yaml: cannot be read: no such file or directory"},
		"a model":                    {[]string{"m"}, "m: the directory holds a model, not manifests; name it in a Model, under source"},
		"no manifests":               {[]string{"empty"}, "empty: the directory has no .yaml, .yml or .json file"},
		"nothing in it":              {[]string{"none.yaml"}, "none.yaml: " + emptyRemedy},
		"object and references both": {[]string{"refs.yaml"}, "refs.yaml:4:15: spec.queue: there is no queue \"nope\"; declare it (kind: Queue, name: nope) or use default\nrefs.yaml:4:49: spec.tasks[0].replicas: want from 1 to 100000, have 0"},
		"no follow-up mistakes":      {[]string{"lost.yaml"}, `lost.yaml:4:8: spec: unknown field "bogus"; known: limits, minRunTime, overQuotaWeight, parent, priority, quota, tier, weight`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var paths []string
			for _, p := range tc.paths {
				paths = append(paths, filepath.Join(dir, p))
			}
			_, err := Load(paths)
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tc.want, strings.ReplaceAll(err.Error(), dir+"/", "")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestHostileFiles checks that hostile files give an error with a position.
func TestHostileFiles(t *testing.T) {
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i <= 9; i++ {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10))
	}
	chain := "a0: &a0 {x: 1}\n"
	for i := 1; i <= 200; i++ {
		chain += fmt.Sprintf("a%d: &a%d {x: *a%d}\n", i, i, i-1)
	}
	tests := map[string]struct{ text, want string }{
		"alias bomb":      {bomb, "aliases repeat more than 1000000 values; write them out or split the file"},
		"alias chain":     {chain, "nested more than 100 levels deep"},
		"alias of itself": {"a: &a [*a]", "f:1:8: alias *a contains itself"},
		"alias of a text": {"a: &a " + strings.Repeat("x", 1<<16) + "\nb: [" + strings.Repeat("*a, ", 5000) + "]", "f:2:1029: aliases repeat more than 16 MiB of text; write it out or split the file"},
		"deep lists":      {strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), "nested more than 100 levels deep"},
		"deep and open":   {strings.Repeat("{a: ", 10_000), "this is not YAML"},
		"deep blocks":     {deepBlocks(5_000), "nested more than 100 levels deep"},
		"NUL":             {"a: b\nc: \x00", "f:2:4: a NUL byte: is this a text file?"},
		"not UTF-8":       {"a: b\nc: é\xff", "f:2:6: a byte that is not UTF-8: save the file as UTF-8"},
		"broken":          {"a: b: c", "f:1: this is not YAML: mapping values are not allowed in this context"},
		"control byte":    {"a: \x01", "f:1:4: a control character: is this a text file?"},
		"unknown anchor":  {"a: *b", "f: this is not YAML: unknown anchor 'b' referenced"},
		"a binary":        {"\x7fELF\x02\x01\x01\x00", "f:1:1: a control character: is this a text file?"},
		"huge exponent":   {node("{resources: {cpu: 1e400}}"), "f:4:25: spec.resources.cpu: 1e400 is out of range"},
		"huge replicas":   {job("{tasks: [{name: w, replicas: 99999999999999999999}]}"), "f:4:36: spec.tasks[0].replicas: 99999999999999999999 is too large to count"},
		"second document": {node("{}") + "\n---\na: b: c", "f:6: this is not YAML"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("f", []byte(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want %q, have %v", tc.want, err)
			}
		})
	}
}

func deepBlocks(n int) string {
	var w strings.Builder
	for i := range n {
		w.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return w.String()
}

func TestTooLarge(t *testing.T) {
	if _, err := Parse("f", make([]byte, strict.MaxSize+1)); err == nil || err.Error() != "f: larger than 256 MiB; split it" {
		t.Error(err)
	}
}

// TestUTF16 checks that UTF-16, which PowerShell writes when it redirects output, is
// read.
func TestUTF16(t *testing.T) {
	data := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(node("{}"))) {
		data = append(data, byte(u), byte(u>>8))
	}
	b, err := Parse("f", data)
	if err != nil || len(b.Nodes) != 1 {
		t.Errorf("%+v, %v", b, err)
	}
}

// TestAliasesAcrossObjects checks that an alias in one item finds its anchor in another.
func TestAliasesAcrossObjects(t *testing.T) {
	b, err := Parse("f", []byte("apiVersion: v1\nkind: List\nitems:\n"+
		"- {apiVersion: berth.dev/v1alpha1, kind: Node, metadata: {name: a}, spec: &s {cell: west}}\n"+
		"- {apiVersion: berth.dev/v1alpha1, kind: Node, metadata: {name: b}, spec: *s}\n"))
	if err != nil || b.Nodes[1].Spec.Cell != "west" {
		t.Errorf("%+v, %v", b, err)
	}
}

// TestTooManyDevices checks the limit of devices: a few lines can describe more devices
// than fit into memory.
func TestTooManyDevices(t *testing.T) {
	defer func(most int) { maxDevicesInAll = most }(maxDevicesInAll)
	maxDevicesInAll = 4000
	var w strings.Builder
	for i := range maxDevicesInAll/cluster.MaxDevices + 1 {
		w.WriteString(object("Node", fmt.Sprintf("n%d", i), fmt.Sprintf("spec: {devices: {product: x, count: %d, memory: 1Gi}}\n---\n", cluster.MaxDevices)))
	}
	b, err := Parse("f", []byte(w.String()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.State(); err == nil || !strings.Contains(err.Error(), "with this node there are more than 4000 devices; split the input") {
		t.Error(err)
	}
}

// TestLoadProgress checks what is reported while files are read.
func TestLoadProgress(t *testing.T) {
	asJSON, asYAML := largeInput(t, 2500)
	dir := write(t, map[string]string{
		"a.json": string(asJSON), "b.yaml": strings.ReplaceAll(string(asYAML), "name: n", "name: m"), "c.yaml": "{apiVersion: apps/v1,\n kind: ReplicaSet}",
	})
	var got []string
	l := Loader{Stdin: strings.NewReader(node("{}")), Progress: func(file string, n int) {
		got = append(got, fmt.Sprintf("%s %d", strings.TrimPrefix(file, dir+"/"), n))
	}}
	if _, err := l.Load([]string{dir, "-"}); err != nil {
		t.Fatal(err)
	}
	want := []string{"a.json 0", "a.json 1000", "a.json 2000", "b.yaml 0", "b.yaml 1000", "b.yaml 2000", "c.yaml 0", "<stdin> 0", " 5002"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
