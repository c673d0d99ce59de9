// Command reference writes docs/reference. Manifests and results are documented from
// the types of the code, plugins and reasons from the registry, hooks from the comments
// of the engine, changes and snapshots from those of State, and commands from their help.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-project/berth/command"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

const generated = "<!-- Written by `make docs`; change the code's comments instead. -->\n\n"

// manifestExample is the file that the page about manifests shows.
const manifestExample = "examples/manifests/cluster.yaml"

func main() {
	pages, err := pages(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join("docs", "reference", name), []byte(text), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// pages returns all pages of the reference, by file name.
func pages(root string) (map[string]string, error) {
	manifests, err := types(filepath.Join(root, "api", "v1alpha1"), "Node", "Queue", "Job", "Model", "DisruptionBudget", "SchedulerConfiguration", "Scenario")
	if err != nil {
		return nil, err
	}
	example, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(manifestExample)))
	if err != nil {
		return nil, err
	}
	results, err := types(filepath.Join(root, "internal/wire"), "Result")
	if err != nil {
		return nil, err
	}
	provisions, err := types(filepath.Join(root, "internal", "model"), "Provision")
	if err != nil {
		return nil, err
	}
	reports, err := types(filepath.Join(root, "internal/wire"), "Report")
	if err != nil {
		return nil, err
	}
	courses, err := types(filepath.Join(root, "internal", "sim", "timeline"), "Result")
	if err != nil {
		return nil, err
	}
	event, err := types(filepath.Join(root, "command"), "event")
	if err != nil {
		return nil, err
	}
	plugins, err := plugins(root)
	if err != nil {
		return nil, err
	}
	hooks, err := hooks(filepath.Join(root, "engine"))
	if err != nil {
		return nil, err
	}
	builders, err := fields(root, testsUse)
	if err != nil {
		return nil, err
	}
	fields, err := fields(root, hooksRead)
	if err != nil {
		return nil, err
	}
	made, err := functions(filepath.Join(root, "enginetest"))
	if err != nil {
		return nil, err
	}
	changes, err := changes(root)
	if err != nil {
		return nil, err
	}
	return map[string]string{
		"changes.md": changes,
		"manifests.md": "# Manifests\n\n" + generated + "Every object has `apiVersion: berth.dev/v1alpha1`, a `kind` and `metadata` with a `name`, as in Kubernetes. Quantities are written as there: `500m`, `64Gi`.\n\n" +
			"## Example\n\nThis is the file [" + manifestExample + "](../../" + manifestExample + "). `berth simulate examples/manifests` shows what is decided about it.\n\n```yaml\n" + string(example) + "```\n\n## Fields\n\n" + manifests,
		"results.md": "# What `simulate -o json` prints\n\n" + generated + results +
			"If models have an instance type, there is also a field `provisions`, a list of [Provision](#provision).\n\n" + provisions,
		"why.md": "# What `why -o json` prints\n\n" + generated + reports +
			"For a model with an instance type there is also a field `provision`, a [Provision](results.md#provision).\n",
		"timeline.md":   "# What `simulate --cycles N -o json` prints\n\n" + generated + courses,
		"events.md":     "# What `simulate --events FILE` writes\n\n" + generated + events() + event,
		"plugins.md":    "# Plugins\n\n" + generated + plugins,
		"reasons.md":    "# Reasons\n\n" + generated + reasons(),
		"hooks.md":      "# Hooks\n\n" + generated + "The hooks that a plugin can register in `OnSessionOpen`, and how the answers of several plugins are combined. [The guide](../plugins.md) explains when to use which hook.\n\n" + hooks,
		"enginetest.md": "# Package enginetest\n\n" + generated + "Builders of clusters for tests. A Part is a builder of a node, a job, a queue or a budget, from which State is made. The ID of a job is `job/NAME`, whatever its namespace is.\n\n" + made + builders,
		"fields.md":     "# What hooks read\n\n" + generated + "The exported fields and methods of the arguments of hooks, and of `Session.View`. All of them belong to State: hooks must not change them. A Rejection is what a filter returns. Options, Outcome and the types of its fields are for tests and for programs that run sessions. [The guide](../plugins.md) explains the arguments of each hook, and [hooks.md](hooks.md) lists the hooks.\n\n" + fields,
		"commands.md":   "# Commands\n\n" + generated + commands(),
	}, nil
}

func events() string {
	var b strings.Builder
	b.WriteString("One JSON object per line, in the order of the events. With `--cycles` they are the events of the whole simulated period.\n\n")
	b.WriteString("| kind | meaning |\n|---|---|\n")
	for _, k := range command.EventKinds {
		fmt.Fprintf(&b, "| `%s` | %s |\n", k.Kind, k.Meaning)
	}
	return b.String() + "\n"
}

func reasons() string {
	var b strings.Builder
	b.WriteString("A reason is API: it is never renamed. A refusal is permanent, so that waiting does not help, if none of its reasons is cured by Wait or Evict.\n\n")
	b.WriteString("| reason | given by | cured by | meaning |\n|---|---|---|---|\n")
	for _, r := range standard.Reasons() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.Reason, r.Plugin, strings.ReplaceAll(r.Cure.String(), "|", ", "), r.Meaning)
	}
	return b.String()
}

func plugins(root string) (string, error) {
	var b strings.Builder
	registry := standard.Registry()
	b.WriteString("The plugins are in the order of the default profile, in which filters are called. The weight multiplies the scores of a plugin. In the name of an argument, `*` stands for any key of a map. `berth plugins NAME` lists the arguments of any plugin, including external ones.\n\n")
	list := standard.Profile()
	inProfile := len(list)
	for _, name := range registry.Names() {
		if !slices.ContainsFunc(list, func(c engine.PluginConfig) bool { return c.Name == name }) {
			list = append(list, engine.PluginConfig{Name: name})
		}
	}
	for i, p := range list {
		dir := filepath.Join(root, "plugins", strings.ReplaceAll(strings.ToLower(p.Name), "-", ""))
		text, err := packageComment(dir)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "## %s\n\n", p.Name)
		if p.Weight > 0 {
			fmt.Fprintf(&b, "Weight %d.\n\n", p.Weight)
		}
		if i >= inProfile {
			b.WriteString("Not in the default profile. The field `packing` of a SchedulerConfiguration selects it.\n\n")
		}
		b.WriteString(text + "\n")
		args, err := arguments(root, registry, p.Name)
		if err != nil {
			return "", err
		}
		b.WriteString(args)
		var given []string
		for _, r := range standard.Reasons() {
			if r.Plugin == p.Name {
				given = append(given, fmt.Sprintf("[`%s`](reasons.md)", r.Reason))
			}
		}
		if slices.Sort(given); len(given) > 0 {
			fmt.Fprintf(&b, "Reasons: %s.\n\n", strings.Join(given, ", "))
		}
	}
	return b.String(), nil
}

func commands() string {
	var b strings.Builder
	for _, args := range [][]string{{}, {"simulate"}, {"why"}, {"whatif"}, {"defrag"}, {"verify"}, {"queues"}, {"estimate"}, {"migrate"}, {"anonymize"}, {"replay"}, {"replay", "openb"}, {"replay", "trace"}, {"replay", "synth"}, {"replay", "log"}, {"plugins"}, {"version"}, {"completion"}} {
		var out bytes.Buffer
		command.Main(standard.Registry(), append(args, "--help"), strings.NewReader(""), &out, &out)
		fmt.Fprintf(&b, "## berth %s\n\n```\n%s```\n\n", strings.Join(args, " "), out.String())
	}
	return b.String()
}
