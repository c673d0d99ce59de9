// Package facts gives the objects that a watch delivers to a feed, which returns facts about a
// State.
package facts

import (
	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/internal/field"
	"github.com/berth-project/berth/kube/internal/watch"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const groupScheduling = "scheduling.k8s.io"

// podGroup is the PodGroup of Kubernetes.
var podGroup = schema.GroupKind{Group: groupScheduling, Kind: "PodGroup"}

// Of returns the facts that the event makes true, and notes about how the object was read. An
// object that no fact depends on makes none.
func Of(f *feed.Feed, e watch.Event) ([]cluster.Change, []feed.Note) {
	if e.Deleted {
		return ofDeleted(f, e.Object)
	}
	switch o := e.Object.(type) {
	case *corev1.Pod:
		return f.PutPod(o)
	case *corev1.Node:
		return f.PutNode(o)
	case *corev1.Namespace:
		return f.PutNamespace(o), nil
	case *schedulingv1.PriorityClass:
		return f.PutPriorityClass(o), nil
	case *policyv1.PodDisruptionBudget:
		return f.PutPodDisruptionBudget(o)
	case *batchv1.Job:
		return f.PutJob(o)
	case *resourcev1.ResourceSlice:
		return f.PutResourceSlice(o)
	case *resourcev1.DeviceClass:
		return f.PutDeviceClass(o)
	case *resourcev1.ResourceClaim:
		return f.PutResourceClaim(o)
	case *unstructured.Unstructured:
		switch kind := o.GroupVersionKind(); {
		case IsQueue(o):
			return typed(o, f.PutQueue)
		case kind.Group == groupScheduling:
			return typed(o, f.PutPodGroup)
		case feed.Source(kind.GroupKind()) != "":
			return f.PutGroup(o)
		}
	}
	return nil, nil
}

// typed decodes the object and puts it.
func typed[T any](o *unstructured.Unstructured, put func(*T) ([]cluster.Change, []feed.Note)) ([]cluster.Change, []feed.Note) {
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, out); err != nil {
		return nil, []feed.Note{undecodable(o, err)}
	}
	return put(out)
}

// ofDeleted returns the facts that a deletion makes true.
func ofDeleted(f *feed.Feed, o any) ([]cluster.Change, []feed.Note) {
	switch o := o.(type) {
	case *corev1.Pod:
		return f.DeletePod(nameOf(o), o.UID), nil
	case *corev1.Node:
		return f.DeleteNode(o.Name, o.UID), nil
	case *corev1.Namespace:
		return f.DeleteNamespace(o.Name, o.UID), nil
	case *schedulingv1.PriorityClass:
		return f.DeletePriorityClass(o.Name, o.UID), nil
	case *policyv1.PodDisruptionBudget:
		return f.DeletePodDisruptionBudget(nameOf(o), o.UID), nil
	case *batchv1.Job:
		return f.DeleteJob(nameOf(o), o.UID), nil
	case *resourcev1.ResourceSlice:
		return f.DeleteResourceSlice(o.Name, o.UID)
	case *resourcev1.DeviceClass:
		return f.DeleteDeviceClass(o.Name, o.UID)
	case *resourcev1.ResourceClaim:
		return f.DeleteResourceClaim(nameOf(o), o.UID)
	case *unstructured.Unstructured:
		switch kind := o.GroupVersionKind().GroupKind(); {
		case IsQueue(o):
			return f.DeleteQueue(o.GetName(), o.GetUID()), nil
		case kind.Group == groupScheduling:
			return f.DeletePodGroup(nameOf(o), o.GetUID()), nil
		case feed.Source(kind) != "":
			return f.DeleteGroup(kind, nameOf(o), o.GetUID()), nil
		}
	}
	return nil, nil
}

// Kinds returns the kinds that not every API server has and that facts depend on.
func Kinds() []schema.GroupKind {
	return append(feed.GroupKinds(),
		schema.GroupKind{Group: v1alpha1.Group, Kind: v1alpha1.KindQueue},
		podGroup)
}

// Versions returns the versions in which kinds are read; others are read in any version.
func Versions() map[schema.GroupKind]string { return map[schema.GroupKind]string{podGroup: "v1alpha2"} }

// IsQueue reports whether the object is a Queue of Berth.
func IsQueue(o *unstructured.Unstructured) bool {
	kind := o.GroupVersionKind()
	return kind.Group == v1alpha1.Group && kind.Kind == v1alpha1.KindQueue
}

// undecodable returns the note about an object that has not the fields of its kind.
func undecodable(o *unstructured.Unstructured, err error) feed.Note {
	return feed.Note{
		Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(),
		Note: convert.Note{Severity: convert.Invalid, Path: field.Path{"spec"}, Message: err.Error()},
	}
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
