package controller

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/berth-project/berth/kube/internal/workload"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// applier writes objects, and only those that differ from what should be.
type applier struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
	isOther func(schema.GroupVersionResource, metav1.Object) bool
	done    map[string]applied                 // by resource, namespace and name
	costed  map[types.NamespacedName]time.Time // by model: when costs of the pods of a model were written last
}

// settle is how long the ReplicaSet controller may take to know the costs of pods. Until then a
// Deployment is not made smaller.
const settle = time.Second

// applied is an object that was written.
type applied struct {
	model    types.NamespacedName
	uid      types.UID
	version  uint64 // after the write; a later one means that something else has changed it
	revision uint64 // its resourceVersion after the write
	hash     [sha256.Size]byte
}

// versionOf returns a number that grows when the spec of the object changes. Objects of some kinds
// have no generation.
func versionOf(o metav1.Object) uint64 {
	if g := o.GetGeneration(); g > 0 {
		return uint64(g)
	}
	return revisionOf(o)
}

// revisionOf returns the resourceVersion as a number; 0 if it is none.
func revisionOf(o metav1.Object) uint64 {
	n, _ := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	return n
}

var (
	deployments = appsv1.SchemeGroupVersion.WithResource("deployments")
	pods        = corev1.SchemeGroupVersion.WithResource("pods")
	services    = corev1.SchemeGroupVersion.WithResource("services")
	sets        = workload.LWS.GroupVersion().WithResource("leaderworkersets")
)

// errNoLWS is the error if the API server has no LeaderWorkerSets.
var errNoLWS = errors.New("the replica is on several nodes, and the cluster has no LeaderWorkerSet controller; install it (https://lws.sigs.k8s.io), or set placement.distributed to false")

// apply makes the objects of the plan.
func (a *applier) apply(ctx context.Context, p *plan, x *objects) error {
	service, err := runtime.DefaultUnstructuredConverter.ToUnstructured(workload.Service(p.model))
	if err != nil {
		return err
	}
	p.unserved = a.write(ctx, services, clean(&unstructured.Unstructured{Object: service}), live(x.services[p.model.Name]))
	if err := a.setCosts(ctx, p, x); err != nil {
		return err // without costs, a ReplicaSet would remove other pods
	}
	settled := a.costed[p.key].Add(settle)
	var errs []error
	for _, d := range p.deployments {
		is := x.deployments[d.GetName()]
		if is != nil && is.Spec.Replicas != nil && int64(*is.Spec.Replicas) > replicasOf(d) && time.Now().Before(settled) {
			p.later = settled
			continue
		}
		errs = append(errs, a.write(ctx, deployments, d, live(is)))
	}
	for _, name := range slices.Sorted(maps.Keys(p.scaled)) {
		if time.Now().Before(settled) {
			p.later = settled
			continue
		}
		errs = append(errs, a.scale(ctx, x.deployments[name], p.scaled[name]))
	}
	for _, s := range p.sets {
		err := a.write(ctx, sets, s, live(x.sets[s.GetName()]))
		if apierrors.IsNotFound(err) {
			err = errNoLWS
		}
		errs = append(errs, err)
	}
	for _, name := range p.removeDeployments {
		errs = append(errs, a.remove(ctx, deployments, x.deployments[name]))
	}
	for _, name := range p.removeSets {
		errs = append(errs, a.remove(ctx, sets, x.sets[name]))
	}
	return errors.Join(errs...)
}

// live returns the object as an interface; nil if there is none.
func live[T any, O interface {
	*T
	metav1.Object
}](o O) metav1.Object {
	if o == nil {
		return nil
	}
	return o
}

// replicasOf returns how many replicas the object has.
func replicasOf(o *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
	return n
}

// write applies the object, unless it was applied before and has not changed since.
func (a *applier) write(ctx context.Context, resource schema.GroupVersionResource, o *unstructured.Unstructured, live metav1.Object) error {
	text, err := json.Marshal(o.Object)
	if err != nil {
		return err
	}
	key, hash := keyOf(resource, o), sha256.Sum256(text)
	if was, done := a.done[key]; done && live != nil && was.uid == live.GetUID() {
		if revisionOf(live) < was.revision {
			return nil // the watch has not delivered what was written; what should be depends on it
		}
		if was.hash == hash && was.version >= versionOf(live) && hasLabels(live, o.GetLabels()) && live.GetAnnotations()[annotationApplied] == o.GetAnnotations()[annotationApplied] {
			return nil
		}
	}
	if live != nil && !isOwned(live, o) || live == nil && a.isOther(resource, o) {
		return fmt.Errorf("%s %s/%s exists and does not belong to the model; rename or remove one of them", resource.Resource, o.GetNamespace(), o.GetName())
	}
	if live != nil { // an object of the same name that was created since is not changed
		o.SetUID(live.GetUID())
		if text, err = json.Marshal(o.Object); err != nil {
			return err
		}
	}
	result, err := a.dynamic.Resource(resource).Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.ApplyPatchType, text, metav1.PatchOptions{FieldManager: workload.Manager, Force: new(true)})
	if err != nil {
		return err
	}
	a.done[key] = applied{ownerKey(o), result.GetUID(), versionOf(result), revisionOf(result), hash}
	return nil
}

// hasLabels reports whether the object has all of the labels.
func hasLabels(o metav1.Object, labels map[string]string) bool {
	for k, v := range labels {
		if o.GetLabels()[k] != v {
			return false
		}
	}
	return true
}

// ownerKey returns the name of the model that the object belongs to.
func ownerKey(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: ownerOf(o)}
}

// isOwned reports whether the object that exists has the same owner.
func isOwned(live, o metav1.Object) bool {
	owner := metav1.GetControllerOf(o)
	is := metav1.GetControllerOf(live)
	return is != nil && owner != nil && is.UID == owner.UID
}

// scale sets the number of replicas of a Deployment whose template is not changed.
func (a *applier) scale(ctx context.Context, d *appsv1.Deployment, n int32) error {
	if d == nil || d.Spec.Replicas != nil && *d.Spec.Replicas == n {
		return nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"replicas":%d}}`, d.UID, n)
	_, err := a.client.AppsV1().Deployments(d.Namespace).Patch(ctx, d.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: workload.Manager})
	return ignoreNotFound(err)
}

// remove deletes the object, and with it its pods.
func (a *applier) remove(ctx context.Context, resource schema.GroupVersionResource, o metav1.Object) error {
	uid := o.GetUID()
	delete(a.done, keyOf(resource, o))
	err := a.dynamic.Resource(resource).Namespace(o.GetNamespace()).Delete(ctx, o.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: new(metav1.DeletePropagationBackground),
	})
	if apierrors.IsConflict(err) {
		return nil // another object has the name now
	}
	return ignoreNotFound(err)
}

// setCosts writes the pod-deletion-cost of pods that have another.
func (a *applier) setCosts(ctx context.Context, p *plan, x *objects) error {
	for _, name := range slices.Sorted(maps.Keys(p.costs)) {
		pod := x.pods[name]
		if pod == nil || pod.Annotations[corev1.PodDeletionCost] == p.costs[name] {
			continue
		}
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, pod.UID, corev1.PodDeletionCost, p.costs[name])
		_, err := a.client.CoreV1().Pods(pod.Namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: workload.Manager})
		if err := ignoreNotFound(err); err != nil {
			return err
		}
		a.costed[p.key] = time.Now()
	}
	return nil
}

// keyOf returns a text that identifies the object.
func keyOf(resource schema.GroupVersionResource, o metav1.Object) string {
	return resourceKey(resource, o.GetNamespace(), o.GetName())
}

func resourceKey(resource schema.GroupVersionResource, namespace, name string) string {
	return resource.Resource + "/" + namespace + "/" + name
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
