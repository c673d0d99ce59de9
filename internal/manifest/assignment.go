package manifest

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"go.yaml.in/yaml/v3"
)

// Assignment is a value of the flag --set, such as job/train.spec.priority=10.
type Assignment struct {
	Object string // the name of the object, such as job/train
	steps  path
	value  any
}

// ParseAssignment parses a value of the flag --set. See Bundle.Set for its form.
func ParseAssignment(s string) (*Assignment, error) {
	target, value, ok := strings.Cut(s, "=")
	object, field := splitTarget(target)
	if !ok || field == "" {
		return nil, fmt.Errorf("write OBJECT.FIELD=VALUE, such as job/train.spec.priority=10; fields begin with metadata, spec or status")
	}
	steps, err := parsePath(field)
	if err != nil {
		return nil, err
	}
	a := &Assignment{Object: object, steps: steps}
	if err := yaml.Unmarshal([]byte(value), &a.value); err != nil {
		return nil, fmt.Errorf("the value is not YAML: %w", err)
	}
	return a, nil
}

// Apply sets the field of an object in its JSON form. It changes the tree.
func (a *Assignment) Apply(tree map[string]any) error {
	_, err := assign(tree, a.steps, a.value)
	return err
}

// PodNotes returns what berth does not read of the pods, and which of them are not scheduled,
// as sorted sentences.
func PodNotes(pods []*corev1.Pod) []string { return (&Bundle{Pods: pods}).notes() }
