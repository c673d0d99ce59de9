package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/manifest"
)

// inJSON describes the JSON form of types of package cluster for which it differs from
// the form in Go.
var inJSON = map[string]string{
	"Bytes": "bytes", "Milli": "thousandths", "Resources": "map of resource to amount", "Term": "list of [Requirement](#requirement)",
	"Change": "decision, with its `kind`", "Status": "text", "Phase": "text", "Health": "text", "Tier": "text", "Strategy": "text",
	"ArtifactState": "text", "CPUClass": "text", "GPUClass": "text", "ShareMode": "text", "Effect": "text", "Operator": "text",
}

// family is a group of changes that are declared together, under one comment.
type family struct {
	comment string
	kinds   []string
}

// changes documents the JSON form of changes and snapshots.
func changes(root string) (string, error) {
	dir := filepath.Join(root, "cluster")
	families, rules, err := changeFamilies(dir)
	if err != nil {
		return "", err
	}
	roots := []string{"SessionOpened", "Learn"}
	for _, f := range families {
		roots = append(roots, f.kinds...)
	}
	for _, kind := range cluster.Kinds() {
		if !slices.Contains(roots, kind) {
			return "", fmt.Errorf("cluster/change.go: %s is not in a group of types with a comment that describes them", kind)
		}
	}
	tables, err := tables(dir, inJSON, append(roots, "Snapshot")...)
	if err != nil {
		return "", err
	}
	texts := map[string]string{}
	for _, t := range tables {
		texts[t.name] = t.text
	}
	examples, file, err := examples()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Changes and snapshots\n\n%s%s\n\n", generated, rules)
	fmt.Fprintf(&b, "In JSON a change is one object on one line; `kind` names its type. Names, UIDs and UUIDs are text; times are in nanoseconds since 1970. Empty fields are left out. An unknown kind or field is an error, and so is a value that no State can have. [designs/0006](../designs/0006-live-state.md) explains why.\n\n")
	fmt.Fprintf(&b, "The version of the format is %d. It is increased when a field changes its meaning or is removed. A reader of version *n* also reads version *n* − 1, and refuses all other versions.\n\n", cluster.WireVersion)
	section := func(kinds []string) {
		for _, kind := range kinds {
			b.WriteString(texts[kind])
			if example := examples[kind]; example != "" {
				fmt.Fprintf(&b, "```json\n%s\n```\n\n", example)
			}
		}
	}
	for _, f := range families {
		fmt.Fprintf(&b, "## %s\n\n", strings.TrimSuffix(f.comment, "."))
		section(f.kinds)
	}
	b.WriteString("## Sessions\n\n")
	section(roots[:2])
	if err := snapshots(&b, root, file); err != nil {
		return "", err
	}
	section([]string{"Snapshot"})
	b.WriteString("## Types of their fields\n\n")
	for _, t := range tables {
		if t.name != "Snapshot" && !slices.Contains(roots, t.name) {
			b.WriteString(t.text)
		}
	}
	return b.String(), nil
}

// snapshots documents snapshot files.
func snapshots(b *strings.Builder, root, file string) error {
	b.WriteString("## Snapshot files\n\n`berth simulate --snapshot-out FILE` writes a snapshot file; [snapshots.md](../snapshots.md) describes what it contains.\n\n")
	text, err := types(filepath.Join(root, "internal", "manifest"), "Snapshot")
	if err != nil {
		return err
	}
	requests, err := types(filepath.Join(root, "internal", "model"), "NodeRequest")
	if err != nil {
		return err
	}
	text = strings.Replace(text, "### Snapshot\n", "### The file\n", 1)
	for from, to := range map[string]string{
		"| SchedulerConfiguration |": "| [SchedulerConfiguration](manifests.md#schedulerconfiguration) |",
		"| list of NodeRequest |":    "| list of [NodeRequest](#noderequest) |",
		"| Snapshot |":               "| [Snapshot](#snapshot) |",
	} {
		text = strings.Replace(text, from, to, 1)
	}
	fmt.Fprintf(b, "%s```json\n%s\n```\n\n%s", text, file, requests)
	return nil
}

// changeFamilies returns the groups of changes, and the comment of the type Change.
func changeFamilies(dir string) (families []family, rules string, err error) {
	_, files, err := parse(dir)
	if err != nil {
		return nil, "", err
	}
	kinds := cluster.Kinds()
	for _, f := range files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			var names []string
			for _, s := range g.Specs {
				names = append(names, s.(*ast.TypeSpec).Name.Name)
			}
			switch {
			case slices.Equal(names, []string{"Change"}):
				rules = paragraphs(g.Doc.Text())
			case g.Lparen.IsValid() && slices.Contains(kinds, names[0]):
				families = append(families, family{paragraphs(g.Doc.Text()), names})
			}
		}
	}
	rules = strings.Replace(rules, "; docs/reference/changes.md has the JSON form of each.", ".", 1)
	return families, rules, nil
}

// examples returns an example of some kinds of changes, and a snapshot file of the State
// that results from them.
func examples() (byKind map[string]string, file string, err error) {
	shape := &cluster.Shape{Resources: cluster.Resources{{Name: cluster.CPU, Value: 4000}, {Name: cluster.Memory, Value: 16 << 30}}, Need: cluster.Need{Devices: 1}}
	worker := func(name string, index int) *cluster.Task {
		return &cluster.Task{Name: name, Index: index, Shape: shape}
	}
	list := []cluster.Change{
		cluster.NodePut{Revision: 41, Node: cluster.Node{
			Name:      "gpu-1",
			Resources: []cluster.Ledger{{Name: cluster.CPU, Capacity: 32000}, {Name: cluster.Memory, Capacity: 128 << 30}},
			Devices:   []cluster.Device{{DeviceSpec: &cluster.DeviceSpec{Product: "NVIDIA-L4", Memory: 24 << 30, Type: "cuda"}, UUID: "GPU-a"}, {DeviceSpec: &cluster.DeviceSpec{Product: "NVIDIA-L4", Memory: 24 << 30, Type: "cuda"}, UUID: "GPU-b"}},
		}},
		cluster.JobPut{Revision: 42, Job: cluster.Job{ID: "job/train", Priority: 5, Alternatives: []cluster.Alternative{{Min: 1, Tasks: []*cluster.Task{worker("worker-0", 0), worker("worker-1", 1)}}}}},
		cluster.TaskSeen{Task: cluster.TaskRef{Job: "job/train", Name: "worker-0"}, Node: "gpu-1", Devices: []cluster.Holding{{Device: "GPU-a", Milli: cluster.Whole, Memory: 24 << 30}}, Started: 1767225600000000000},
		cluster.Decided{Changes: []cluster.Change{
			cluster.Assign{Task: cluster.TaskRef{Job: "job/train", Name: "worker-1"}, Node: "gpu-1", Devices: []cluster.Holding{{Device: "GPU-b", Milli: cluster.Whole, Memory: 24 << 30}}, At: 1767225660000000000, Attempt: 1},
		}},
	}
	state, byKind := cluster.NewState(), map[string]string{}
	for _, c := range list {
		line, err := cluster.Encode(c)
		if err != nil {
			return nil, "", err
		}
		byKind[c.Kind()] = string(line)
		if err := state.Apply(c); err != nil {
			return nil, "", fmt.Errorf("the example of %s cannot be applied: %w", c.Kind(), err)
		}
	}
	var out bytes.Buffer
	err = (&manifest.Bundle{}).Snapshot(state, 1767225660000000000, nil).Write(&out)
	return byKind, strings.TrimSpace(out.String()), err
}
