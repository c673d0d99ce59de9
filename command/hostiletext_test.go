package command

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-project/berth/internal/estimate/gguf/sample"
	"github.com/berth-project/berth/internal/printable"
	"github.com/berth-project/berth/plugins/standard"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// hostile has an escape sequence, C1 as a character and as a byte, a bidirectional override, a
// carriage return and a zero-width space. Escaped is the same as JSON and YAML write it.
const (
	hostile = "a\x1b[2J\u009b2J\x9b\u202e\r\u200bz"
	escaped = `a\u001b[2J\u009b2J\u202e\r\u200bz`
)

// checkPrintable fails if a terminal would obey any character of the text.
func checkPrintable(t *testing.T, text string) {
	t.Helper()
	for _, line := range strings.Split(text, "\n") {
		if clean := strings.ReplaceAll(line, "\t", " "); !printable.All(clean) {
			t.Fatalf("a terminal would obey %q", line)
		}
	}
}

// TestNothingControlsTheTerminal passes characters that a terminal would obey through each source
// of text: arguments, flags, names of files, and the content of each kind of file. Either they
// are refused or they are replaced.
func TestNothingControlsTheTerminal(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const head = "apiVersion: berth.dev/v1alpha1\nkind: "
	node := head + "Node\nmetadata: {name: n}\nspec: {devices: {product: L4, count: 1, memory: 24Gi}}\n---\n"
	job := func(fields string) string {
		return node + head + "Job\nmetadata: {name: j" + fields + "}\nspec: {tasks: [{name: w, devices: {count: 2}}]}\n"
	}
	good := file("good.yaml", job(""))
	// A description is the text of a user, in which such characters are replaced.
	annotated := file("annotated.yaml", job(`, annotations: {x: "`+escaped+`"}`))
	gguf := file("m.gguf", string(sample.File{Keys: []sample.Key{
		{Name: "general.architecture", Value: "llama" + hostile}, {Name: "general.name", Value: hostile}, {Name: hostile, Value: hostile},
	}}.Header()))
	config := file("hf/config.json", `{"model_type": "`+escaped+`", "architectures": ["`+escaped+`"], "num_hidden_layers": "`+escaped+`"}`)
	file("hf/model.safetensors", "")
	snapshot := filepath.Join(dir, "s.json")
	run := func(args ...string) (int, string) {
		t.Helper()
		var out, errs bytes.Buffer
		code := Main(standard.Registry(), args, strings.NewReader(""), &out, &errs)
		if code == exitBug {
			t.Errorf("%q: %s", args, errs.String())
		}
		checkPrintable(t, out.String())
		checkPrintable(t, errs.String())
		return code, out.String() + errs.String()
	}
	if code, text := run("simulate", good, "--snapshot-out", snapshot); code != exitOK {
		t.Fatal(text)
	}
	data, err := os.ReadFile(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	tampered := file("tampered.json", strings.ReplaceAll(string(data), `"L4"`, `"L4`+escaped+`"`))
	raw := file("raw.json", strings.ReplaceAll(string(data), `"L4"`, `"L4\u202e"`))

	for _, args := range [][]string{
		{hostile}, {"simulate", hostile}, {"simulate", file(hostile+".yaml", "a: b: c")}, {"simulate", good, "--" + hostile},
		{"simulate", good, "-o", hostile}, {"simulate", good, "--now", hostile}, {"simulate", good, "--config", hostile},
		{"simulate", good, "--events", filepath.Join(dir, hostile, "x")}, {"simulate", good, "--cycles", hostile},
		{"simulate", good, "--snapshot-out", filepath.Join(dir, hostile, "x")},
		{"why", hostile, good}, {"why", "job/j", hostile}, {"help", hostile}, {"verify", hostile}, {"verify", good}, {"queues", hostile},
		{"whatif", good, "--set", hostile}, {"whatif", good, "--set", "job/j.metadata.annotations.x=" + hostile}, {"whatif", good, "--add-nodes", hostile + "=2"},
		{"whatif", good, "--remove", hostile}, {"estimate", hostile}, {"estimate", "phi-4", "--gpu", hostile + "=24Gi"}, {"estimate", "phi-4", "--gpu", "x=" + hostile},
		{"estimate", "phi-4", "--backend", hostile}, {"estimate", "phi-4", "--cluster", hostile},
		{"simulate", annotated}, {"simulate", annotated, "-o", "yaml"},
		{"simulate", file("name.yaml", job(`, labels: {x: "`+escaped+`"}`))}, {"simulate", file("key.yaml", job(`, "`+escaped+`": 1`))},
		{"simulate", file("raw.yaml", job(", x: "+hostile))}, {"simulate", file("kind.yaml", head+`"`+escaped+`"`)},
		{"simulate", file("tag.yaml", "a: !<"+"!%1B%C2%9B"+"> b")}, {"simulate", file("anchor.yaml", "a: *\u202e")},
		{"simulate", file("plugin.yaml", job("")+"---\n"+head+"SchedulerConfiguration\nprofiles: [{schedulerName: \""+escaped+"\", plugins: [{name: \""+escaped+"\"}]}]\n")},
		{"simulate", tampered}, {"simulate", tampered, "-o", "json"}, {"why", "job/j", tampered}, {"simulate", raw, "-o", "json"}, {"simulate", raw, "-o", "yaml"},
		{"estimate", gguf}, {"estimate", gguf, "-o", "json"}, {"estimate", filepath.Dir(config)},
		{"simulate", file("model.yaml", node+head+"Model\nmetadata: {name: m}\nspec: {source: {gguf: m.gguf}}\n")},
		{"simulate", file("hf.yaml", node+head+"Model\nmetadata: {name: m}\nspec: {source: {huggingFace: hf}}\n")},
		{"simulate", file("preset.yaml", node+head+"Model\nmetadata: {name: m}\nspec: {source: {preset: \""+escaped+"\"}}\n")},
	} {
		t.Run(fmt.Sprintf("%q", args), func(*testing.T) { run(args...) })
	}
}

// TestArgumentsKeepToTheirLine passes a line break in each argument and each flag of each command.
// What follows it must not look like a line of Berth.
func TestArgumentsKeepToTheirLine(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir) // files are written
	good := filepath.Join(dir, "good.yaml")
	text := "apiVersion: berth.dev/v1alpha1\nkind: Node\nmetadata: {name: n}\nspec: {devices: {product: L4, count: 1, memory: 24Gi}}\n---\n" +
		"apiVersion: berth.dev/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec: {tasks: [{name: w, devices: {count: 1}}]}\n"
	if err := os.WriteFile(good, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	nodes, jobs, log := filepath.Join(dir, "nodes.csv"), filepath.Join(dir, "jobs.csv"), filepath.Join(dir, "log.jsonl")
	for name, text := range map[string]string{
		nodes: "name,sn,cpu,cpu_milli,memory_mib,gpu,model,devices\na,a,1,1000,1024,1,T4,1\n", jobs: "name,arrival_s,cpu,cpu_milli,memory_mib,num_gpu,gpu_milli,devices\nj,0,1,1,1,1,500,1\n",
		log: `{"kind":"SessionOpened","now":1}` + "\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The arguments with which each command runs, after which the hostile ones follow.
	valid := map[string][]string{
		"simulate": {good}, "why": {"job/j", good}, "whatif": {good, "--remove", "n"}, "defrag": {good}, "verify": {good}, "queues": {good},
		"estimate": {"phi-4"}, "migrate": {good}, "anonymize": {good}, "plugins": {}, "version": {}, "replay": {},
		"replay openb": {"--nodes=" + nodes, "--tasks=" + jobs, "--seeds=1"}, "replay trace": {"--nodes=" + nodes, "--tasks=" + jobs}, "replay synth": {"--machines=1", "--days=0.1", "--seeds=1"}, "replay log": {log},
	}
	breaks := []string{"\n", "\r\n", "\r", "\n\n", "\x1b[2J\n", "é\n", "\u2028"}
	run := func(args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		if code := Main(standard.Registry(), args, strings.NewReader(""), &out, &errs); code == exitBug {
			t.Errorf("%q: %s", args, errs.String())
		}
		checkPrintable(t, out.String()+errs.String())
		for _, line := range strings.Split(errs.String(), "\n") {
			if strings.HasPrefix(line, "FORGED") {
				t.Errorf("%q: standard error has the line %q", args, line)
			}
		}
	}
	flags := 0
	var commands []*cobra.Command
	for _, c := range (&program{registry: standard.Registry()}).root().Commands() {
		commands = append(append(commands, c), c.Commands()...)
	}
	for _, c := range commands {
		name := strings.TrimPrefix(c.CommandPath(), "berth ")
		args, known := valid[name]
		if !known {
			t.Errorf("%s is not tested", name)
			continue
		}
		run := func(args ...string) { t.Helper(); run(append(strings.Fields(name), args[1:]...)...) }
		for _, b := range breaks {
			forged := "x" + b + "FORGED: y"
			run(c.Name(), forged)
			for i := range args {
				run(append(append([]string{c.Name()}, args[:i]...), append([]string{forged}, args[i+1:]...)...)...)
			}
			run(append([]string{c.Name(), forged}, args...)...)
			run(append(append([]string{c.Name()}, args...), "--"+forged)...)
			run(append(append([]string{c.Name()}, args...), "-"+forged)...)
			c.Flags().VisitAll(func(f *pflag.Flag) {
				flags++
				for _, value := range []string{forged, forged + "=2", forged + "=24Gi", "L4=" + forged, "job/" + forged, "job/j.spec.priority=" + forged, "job/j." + forged + "=2", filepath.Join(dir, forged, "z"), dir + b + "FORGED"} {
					run(append(append([]string{c.Name()}, args...), "--"+f.Name+"="+value)...)
				}
			})
		}
	}
	if flags < 25*len(breaks) {
		t.Errorf("only %d flags are tested", flags/len(breaks))
	}
	for _, b := range breaks {
		run("x"+b+"FORGED: y", good)
		run("--x" + b + "FORGED: y")
		run("help", "x"+b+"FORGED: y")
	}
}

// TestEventsOnDevice checks that events and snapshots that are written to a device or a pipe,
// which may be a terminal, have no characters that a terminal would obey.
func TestEventsOnDevice(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("/dev/fd/%d", w.Fd())
	if _, err := os.Stat(name); err != nil {
		t.Skip("there is no /dev/fd")
	}
	err = writeFile("--events", name, nil, func(w io.Writer) error {
		_, err := io.WriteString(w, "a"+hostile+"\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil || len(data) == 0 {
		t.Fatal(data, err)
	}
	checkPrintable(t, string(data))
}

// TestManyLabels checks that only some labels of a node selector are tried one by one.
func TestManyLabels(t *testing.T) {
	var labels strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&labels, "    l%d: v\n", i)
	}
	const head = "apiVersion: berth.dev/v1alpha1\nkind: "
	text := head + "Node\nmetadata: {name: n}\nspec: {devices: {product: L4, count: 1, memory: 24Gi}}\n---\n" +
		head + "Job\nmetadata: {name: j}\nspec:\n  nodeSelector:\n" + labels.String() + "  tasks: [{name: w, devices: {count: 1}}]\n"
	var out, errs bytes.Buffer
	if code := Main(standard.Registry(), []string{"why", "job/j", "-", "-o", "json"}, strings.NewReader(text), &out, &errs); code != exitOK {
		t.Fatal(errs.String())
	}
	if n := strings.Count(out.String(), `"without the node selector `); n > 16 || !strings.Contains(out.String(), `"without any node selector"`) {
		t.Errorf("%d labels are dropped one by one, in %d bytes", n, out.Len())
	}
}

// TestCompletionArguments checks the arguments of a completion, which the library prints.
func TestCompletionArguments(t *testing.T) {
	for _, a := range safeArgs([]string{"__complete", "simulate", hostile}) {
		checkPrintable(t, a)
	}
	if got := safeArgs([]string{"simulate", hostile}); got[1] != hostile {
		t.Errorf("%q is not an argument of a completion", got)
	}
}
