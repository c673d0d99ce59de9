package ctl

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/kube/internal/modelsource"
	"github.com/berth-project/berth/kube/internal/watch"
	"github.com/berth-project/berth/kube/internal/workload"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// isAboutModels reports whether Models could not be listed.
func isAboutModels(e *watch.ListError) bool {
	return e.Resource.Group == modelsource.Kind.Group && e.Resource.Resource == "models"
}

// strip is feed.Strip for the kinds of a list. Of a Model, it removes what no decision depends on
// and may be secret: the template of its pods, and the command of its server.
func strip(o any) any {
	u, isUntyped := o.(*unstructured.Unstructured)
	if !isUntyped || u.GroupVersionKind().GroupKind() != modelsource.Kind {
		return feed.Strip(o)
	}
	out := u.DeepCopy()
	out.SetManagedFields(nil)
	out.SetAnnotations(nil)
	for _, path := range [][]string{{"spec", "template"}, {"spec", "server", "command"}, {"spec", "server", "args"}} {
		unstructured.RemoveNestedField(out.Object, path...)
	}
	return out
}

// checkModels returns why there can be no Models, or why they are not known; nil if they are.
func (w *world) checkModels() error {
	if w.noModels != nil {
		return w.noModels
	}
	if slices.Contains(w.missing, modelsource.Kind) {
		return fmt.Errorf("the API server does not have the kind Model of %s; the CustomResourceDefinition of Model adds it", v1alpha1.Group)
	}
	return nil
}

// models returns the Models of the cluster, sorted by namespace and name, and errors about those
// that cannot be read.
func (w *world) models() ([]*v1alpha1.Model, []error) {
	var out []*v1alpha1.Model
	var errs []error
	for _, e := range w.objects {
		u, isUntyped := e.Object.(*unstructured.Unstructured)
		if !isUntyped || u.GroupVersionKind().GroupKind() != modelsource.Kind {
			continue
		}
		m, err := modelsource.Decode(u.Object)
		if err != nil {
			errs = append(errs, fmt.Errorf("model/%s/%s: it cannot be read: %w", u.GetNamespace(), u.GetName(), err))
			continue
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *v1alpha1.Model) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), explain.CompareNatural(a.Name, b.Name))
	})
	return out, errs
}

// anyReplica is the number of a reference to a model as a whole.
const anyReplica = -1

// findModel returns the Model that the reference names, and the number of the replica: NAME is the
// model, and NAME-2 its third replica. The error lists the nearest names.
func (w *world) findModel(r reference) (*v1alpha1.Model, int, error) {
	if err := w.checkModels(); err != nil {
		return nil, 0, err
	}
	list, errs := w.models()
	at := func(name string) *v1alpha1.Model {
		for _, m := range list {
			if m.Namespace == r.namespace && m.Name == name {
				return m
			}
		}
		return nil
	}
	if m := at(r.name); m != nil {
		return m, anyReplica, nil
	}
	if i := strings.LastIndexByte(r.name, '-'); i > 0 {
		number, err := strconv.Atoi(r.name[i+1:])
		if m := at(r.name[:i]); m != nil && err == nil && number >= 0 && strconv.Itoa(number) == r.name[i+1:] {
			return m, number, nil
		}
	}
	for _, err := range errs {
		if strings.HasPrefix(err.Error(), "model/"+r.namespace+"/"+r.name+": ") {
			return nil, 0, err
		}
	}
	return nil, 0, noModel(list, r)
}

// noModel returns the error about a name that no Model has.
func noModel(list []*v1alpha1.Model, r reference) error {
	var here, elsewhere []string
	for _, m := range list {
		if m.Namespace == r.namespace {
			here = append(here, m.Name)
		} else if m.Name == r.name {
			elsewhere = append(elsewhere, m.Namespace)
		}
	}
	message := fmt.Sprintf("namespace %s has no model %q", r.namespace, r.name)
	near := nearestNames(r.name, here)
	switch {
	case len(elsewhere) > 0:
		message += fmt.Sprintf("; namespace %s has one (see -n)", explain.List(elsewhere, 3))
	case len(near) > 0:
		message += "; the nearest names are " + explain.List(near, len(near))
	case len(here) == 0:
		message += "; it has no models"
	}
	return errors.New(message)
}

// ownerOf returns the Model whose pod it is; nil if there is none.
func ownerOf(list []*v1alpha1.Model, o *corev1.Pod) *v1alpha1.Model {
	name := o.Labels[feed.LabelModel]
	if name == "" {
		return nil
	}
	for _, m := range list {
		if m.Namespace == o.Namespace && m.Name == name {
			return m
		}
	}
	return nil
}

// withoutWaiting returns the world without the pods of the models that have no node.
func (w *world) withoutWaiting(list []*v1alpha1.Model) *world {
	out := *w
	out.objects = nil
	for _, e := range w.objects {
		if o, isPod := e.Object.(*corev1.Pod); isPod && o.Spec.NodeName == "" && ownerOf(list, o) != nil {
			continue
		}
		out.objects = append(out.objects, e)
	}
	return &out
}

// existing is a replica of which all pods have a node.
type existing struct {
	number int
	pods   []*corev1.Pod // sorted by name
}

// existing returns the replicas of the model that have nodes, sorted by number. A replica has the
// number that the status of the model has for one of its pods, or else the lowest that is free.
func (w *world) existing(m *v1alpha1.Model) []existing {
	groups := map[string][]*corev1.Pod{}
	var names []string
	for _, o := range w.pods() {
		if o.Namespace != m.Namespace || o.Labels[feed.LabelModel] != m.Name || o.DeletionTimestamp != nil || convert.Ended(o) {
			continue
		}
		name := cmp.Or(o.Labels[workload.LabelReplica], o.Name)
		if groups[name] == nil {
			names = append(names, name)
		}
		groups[name] = append(groups[name], o)
	}
	slices.Sort(names)
	numbers, taken := map[string]int{}, map[int]bool{}
	for _, r := range m.Status.Replicas {
		for _, pod := range r.Pods {
			numbers[pod] = r.Replica
		}
	}
	var out []existing
	for _, name := range names {
		pods := groups[name]
		onNode := func(o *corev1.Pod) bool { return o.Spec.NodeName != "" }
		if placed := slices.DeleteFunc(slices.Clone(pods), func(o *corev1.Pod) bool { return !onNode(o) }); len(placed) < max(len(pods), w.sizeOf(m.Namespace, name)) {
			continue
		}
		slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
		number, known := numbers[pods[0].Name]
		if !known || taken[number] || number < 0 {
			number = anyReplica
		}
		taken[number] = true
		out = append(out, existing{number, pods})
	}
	next := 0
	for i := range out {
		if out[i].number != anyReplica {
			continue
		}
		for taken[next] {
			next++
		}
		out[i].number, taken[next] = next, true
	}
	slices.SortFunc(out, func(a, b existing) int { return a.number - b.number })
	return out
}

// sizeOf returns how many pods a replica of the LeaderWorkerSet has; 1 if there is none.
func (w *world) sizeOf(namespace, name string) int {
	for _, e := range w.objects {
		u, isUntyped := e.Object.(*unstructured.Unstructured)
		if !isUntyped || u.GroupVersionKind().GroupKind() != workload.LWS.GroupKind() || u.GetNamespace() != namespace || u.GetName() != name {
			continue
		}
		if size, found, err := unstructured.NestedInt64(u.Object, "spec", "leaderWorkerTemplate", "size"); found && err == nil {
			return int(min(size, 1<<20))
		}
	}
	return 1
}
