package ctl

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	root "github.com/berth-project/berth/command"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/nearest"
	"github.com/berth-project/berth/kube/internal/modelsource"
	"github.com/berth-project/berth/kube/internal/watch"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// changes are the flags of whatif.
type changes struct{ add, remove, set []string }

func (p *program) whatif() *cobra.Command {
	var o changes
	var output string
	c := &cobra.Command{
		Use:   "whatif [--add-nodes GROUP=N] [--remove NODE] [--set OBJECT.FIELD=VALUE]",
		Short: "Show what a change of the cluster or of a workload would cause",
		Long: `Simulates the cluster without the change and with it, and lists the tasks that
would be placed, moved, evicted, pending or no longer requested because of the
change. Nothing in the cluster changes.

A GROUP is a product (NVIDIA-L4), a product and a count of devices per node
("NVIDIA-L4 x 8"), or the name of a node, to add empty copies of it. An OBJECT is
KIND/NAME or KIND/NAMESPACE/NAME, and has the fields of Kubernetes.

Replicas of Models that have no node are simulated in all forms that they may
take, and not in the form of the pods that wait for them.`,
		Example: `  kubectl berth whatif --add-nodes NVIDIA-L4=2
  kubectl berth whatif --remove gpu-17 --set queue/research.spec.weight=2
  kubectl berth whatif --set 'pod/train-0.spec.nodeSelector={}'
  kubectl berth whatif --set model/chat.spec.context=8192`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if len(o.add)+len(o.remove)+len(o.set) == 0 {
				return errors.New("whatif needs a change: --add-nodes, --remove or --set")
			}
			w, err := p.read()
			if err != nil {
				return err
			}
			build, fill := p.build, func(w *world) (*inputs, error) { return p.fill(w, p.flags.feed) }
			withModels := o.needsModels(w)
			if withModels {
				build, fill = p.buildModels, p.fillModels
			}
			before, err := build(w)
			if err != nil {
				return err
			}
			if withModels {
				p.noteProblems(before, w)
			}
			after, err := p.change(w, o, fill)
			if err != nil {
				return err
			}
			return p.answers.WhatIf(before.cluster(), after.cluster(), output)
		},
	}
	f := c.Flags()
	f.StringArrayVar(&o.add, "add-nodes", nil, "GROUP=N: add N empty nodes to a group (may be repeated)")
	f.StringArrayVar(&o.remove, "remove", nil, "NODE: remove a node (may be repeated)")
	f.StringArrayVar(&o.set, "set", nil, "OBJECT.FIELD=VALUE: set a field of an object (may be repeated)")
	root.OutputFlag(c, &output, "text", "json")
	return c
}

// models returns the names of the Models of which fields are set, as references.
func (o *changes) models(w *world) []reference {
	var out []reference
	for _, s := range o.set {
		if a, err := manifest.ParseAssignment(s); err == nil {
			if r := parseReference(a.Object, w.namespace); r.kind == kindModel {
				out = append(out, r)
			}
		}
	}
	return out
}

// needsModels reports whether a field of a Model is set, or there are Models, of which replicas
// without a node may take other forms after the change.
func (o *changes) needsModels(w *world) bool {
	list, _ := w.models()
	return len(list)+len(o.models(w)) > 0
}

// change makes inputs of the objects after the changes. fill makes the inputs.
func (p *program) change(w *world, o changes, fill func(*world) (*inputs, error)) (*inputs, error) {
	changed := *w
	changed.objects = slices.Clone(w.objects)
	for _, s := range o.set {
		if err := changed.set(s); err != nil {
			return nil, fmt.Errorf("--set %s: %w", s, err)
		}
	}
	in, err := fill(&changed)
	if err != nil {
		return nil, err
	}
	for _, r := range o.models(w) {
		for _, m := range in.models.list {
			if m.object.Namespace == r.namespace && m.object.Name == r.name && m.problem != nil {
				return nil, fmt.Errorf("with the change, %s cannot be served: %s", m.id(), modelsource.ProblemText(m.problem))
			}
		}
	}
	for _, name := range o.remove {
		if err := root.RemoveNode(in.State, name); err != nil {
			return nil, err
		}
		in.store.DeleteNode(name)
	}
	return in, root.AddNodes(in.State, o.add)
}

// set sets a field of an object, which is replaced in the world.
func (w *world) set(text string) error {
	a, err := manifest.ParseAssignment(text)
	if err != nil {
		return err
	}
	r := parseReference(a.Object, w.namespace)
	var names []string
	for i, e := range w.objects {
		kind, object, err := identify(e)
		if err != nil {
			return err
		}
		name := kind + "/" + object.GetName()
		names = append(names, name)
		if r.kind != kind || r.name != object.GetName() || object.GetNamespace() != "" && object.GetNamespace() != r.namespace {
			continue
		}
		w.objects[i].Object, err = assigned(e.Object.(runtime.Object), a)
		return err
	}
	slices.Sort(names)
	hint := nearest.Hint(a.Object, slices.Compact(names))
	return fmt.Errorf("the cluster has no %s%s", a.Object, hint)
}

// identify returns the kind of the object, in lower case, and its name.
func identify(e watch.Event) (string, interface {
	GetName() string
	GetNamespace() string
}, error) {
	o, isObject := e.Object.(runtime.Object)
	if !isObject {
		return "", nil, fmt.Errorf("%T is no object", e.Object)
	}
	m, err := meta.Accessor(o)
	if err != nil {
		return "", nil, err
	}
	if u, isUntyped := o.(*unstructured.Unstructured); isUntyped {
		return strings.ToLower(u.GetKind()), m, nil
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil {
		return "", nil, err
	}
	return strings.ToLower(kinds[0].Kind), m, nil
}

// assigned returns a copy of the object with the assignment. A field that the kind does not have
// is an error.
func assigned(o runtime.Object, a *manifest.Assignment) (any, error) {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o.DeepCopyObject())
	if err != nil {
		return nil, err
	}
	if err := a.Apply(tree); err != nil {
		return nil, err
	}
	tree, ok := normal(tree).(map[string]any)
	if !ok {
		return nil, errors.New("the value makes it no object")
	}
	var into any
	u, isUntyped := o.(*unstructured.Unstructured)
	switch {
	case isUntyped && u.GroupVersionKind().Group == v1alpha1.Group && u.GetKind() == v1alpha1.KindQueue:
		into = &v1alpha1.Queue{}
	case isUntyped && u.GroupVersionKind().GroupKind() == modelsource.Kind:
		into = &v1alpha1.Model{}
	case isUntyped:
		return &unstructured.Unstructured{Object: tree}, nil
	default:
		into = reflect.New(reflect.TypeOf(o).Elem()).Interface()
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(tree, into, true); err != nil {
		return nil, err
	}
	if isUntyped {
		return &unstructured.Unstructured{Object: tree}, nil
	}
	return into, nil
}

// normal returns the value with the types that JSON of Kubernetes has: int64 instead of int.
func normal(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = normal(value)
		}
	case []any:
		for i := range v {
			v[i] = normal(v[i])
		}
	case int:
		return int64(v)
	}
	return v
}
