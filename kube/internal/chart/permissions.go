package chart

import (
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

const permissionsHead = `# Permissions of the Helm chart

<!-- Written by ` + "`make manifest`" + `; change charts/berth/templates instead. -->

The rules of each ClusterRole and Role that the chart creates with its default values. [install.md](../install.md#security) explains them. No rule has a wildcard for a verb, a resource or an API group.
`

// role is what the page of permissions shows of a ClusterRole or a Role.
type role struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Rules    []yaml.Node
}

// rule is a rule of a role.
type rule struct {
	APIGroups       []string `yaml:"apiGroups"`
	Resources       []string
	ResourceNames   []string `yaml:"resourceNames"`
	NonResourceURLs []string `yaml:"nonResourceURLs"`
	Verbs           []string
}

// permissions returns the page of the roles in a manifest. The comment above a rule says what it
// is for, and holds for the rules below it that have none, up to the next comment.
func permissions(manifest string) (string, error) {
	var page strings.Builder
	page.WriteString(permissionsHead)
	decoder := yaml.NewDecoder(strings.NewReader(manifest))
	for {
		var r role
		if err := decoder.Decode(&r); err == io.EOF {
			return page.String(), nil
		} else if err != nil {
			return "", err
		}
		if len(r.Rules) == 0 {
			continue
		}
		where := "in all namespaces"
		if r.Metadata.Namespace != "" {
			where = "in namespace `" + r.Metadata.Namespace + "`"
		}
		fmt.Fprintf(&page, "\n## %s %s\n\nHolds %s.\n\n| for | API groups | resources | verbs |\n|---|---|---|---|\n", r.Kind, r.Metadata.Name, where)
		if err := rules(&page, r.Rules); err != nil {
			return "", err
		}
	}
}

func rules(page io.Writer, nodes []yaml.Node) error {
	purpose := ""
	for _, n := range nodes {
		var r rule
		if err := n.Decode(&r); err != nil {
			return err
		}
		if n.HeadComment != "" {
			purpose = sentence(n.HeadComment)
		}
		for i, g := range r.APIGroups {
			if g == "" {
				r.APIGroups[i] = "core"
			}
		}
		resources := strings.Join(append(r.Resources, r.NonResourceURLs...), ", ")
		if len(r.ResourceNames) > 0 {
			resources += ", only " + strings.Join(r.ResourceNames, ", ")
		}
		fmt.Fprintf(page, "| %s | %s | %s | %s |\n", purpose, strings.Join(r.APIGroups, ", "), strings.ReplaceAll(resources, "*", `\*`), strings.Join(r.Verbs, ", "))
		purpose = ""
	}
	return nil
}
