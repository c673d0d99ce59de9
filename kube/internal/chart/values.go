package chart

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

const valuesHead = `# Values of the Helm chart

<!-- Written by ` + "`make manifest`" + `; change charts/berth/values.yaml instead. -->

[install.md](../install.md) explains the installation. ` + "`values.schema.json`" + ` of the chart rejects other names and values of the wrong type.

| value | default | meaning |
|---|---|---|
`

// Value is a value of the chart.
type Value struct {
	Path    string // such as scheduler.replicas
	Default string // as YAML on one line
	Meaning string
}

// values returns the page of the values of the chart.
func values(source []byte) (string, error) {
	list, err := Values(source)
	if err != nil {
		return "", err
	}
	var page strings.Builder
	page.WriteString(valuesHead)
	for _, v := range list {
		fmt.Fprintf(&page, "| `%s` | `%s` | %s |\n", v.Path, v.Default, v.Meaning)
	}
	return page.String(), nil
}

// Values returns the values of values.yaml in its order. A key with a comment is a value; a key
// without one has values below it.
func Values(source []byte) ([]Value, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(source, &document); err != nil {
		return nil, err
	}
	if len(document.Content) != 1 {
		return nil, fmt.Errorf("%s: want one document", valuesFile)
	}
	return below(document.Content[0], "")
}

func below(node *yaml.Node, prefix string) ([]Value, error) {
	var out []Value
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		path := prefix + key.Value
		if key.HeadComment == "" {
			if value.Kind != yaml.MappingNode || len(value.Content) == 0 {
				return nil, fmt.Errorf("%s:%d: %s has no comment", valuesFile, key.Line, path)
			}
			more, err := below(value, path+".")
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
			continue
		}
		text, err := inline(value)
		if err != nil {
			return nil, err
		}
		out = append(out, Value{Path: path, Default: text, Meaning: sentence(key.HeadComment)})
	}
	return out, nil
}

// sentence returns a comment as one line.
func sentence(comment string) string {
	var words []string
	for line := range strings.Lines(comment) {
		words = append(words, strings.Fields(strings.TrimPrefix(line, "#"))...)
	}
	return strings.Join(words, " ")
}

// inline returns a value as YAML on one line.
func inline(node *yaml.Node) (string, error) {
	flow(node)
	text, err := yaml.Marshal(node)
	return strings.TrimSpace(string(text)), err
}

func flow(node *yaml.Node) {
	if node.Kind == yaml.MappingNode || node.Kind == yaml.SequenceNode {
		node.Style |= yaml.FlowStyle
	}
	for _, n := range node.Content {
		flow(n)
	}
}
