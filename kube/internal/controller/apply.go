package controller

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

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
	done    map[string]applied // by resource, namespace and name
}

// applied is an object that was written.
type applied struct {
	uid        types.UID
	generation int64 // after the write; a later generation means that something else has changed it
	hash       [sha256.Size]byte
}

var (
	deployments = appsv1.SchemeGroupVersion.WithResource("deployments")
	sets        = workload.LWS.GroupVersion().WithResource("leaderworkersets")
)

// errNoLWS is the error if the API server has no LeaderWorkerSets.
var errNoLWS = errors.New("the replica is on several nodes, and the cluster has no LeaderWorkerSet controller; install it (https://lws.sigs.k8s.io), or set placement.distributed to false")

// apply makes the objects of the plan.
func (a *applier) apply(ctx context.Context, p *plan, x *objects) error {
	var errs []error
	errs = append(errs, a.setCosts(ctx, p, x))
	if len(errs) > 0 && errs[0] != nil {
		return errs[0] // without costs, a ReplicaSet would remove other pods
	}
	for _, d := range p.deployments {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
		if err != nil {
			return err
		}
		errs = append(errs, a.write(ctx, deployments, &unstructured.Unstructured{Object: object}, liveOf(x.deployments[d.Name], x.deployments[d.Name] != nil)))
	}
	for _, name := range slices.Sorted(maps.Keys(p.scaled)) {
		errs = append(errs, a.scale(ctx, x.deployments[name], p.scaled[name]))
	}
	for _, s := range p.sets {
		err := a.write(ctx, sets, s, liveOf(x.sets[s.GetName()], x.sets[s.GetName()] != nil))
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

// liveOf returns the object as it is; nil if there is none.
func liveOf(o metav1.Object, exists bool) metav1.Object {
	if !exists {
		return nil
	}
	return o
}

// write applies the object, unless it was applied before and has not changed since.
func (a *applier) write(ctx context.Context, resource schema.GroupVersionResource, o *unstructured.Unstructured, live metav1.Object) error {
	unstructured.RemoveNestedField(o.Object, "status")
	unstructured.RemoveNestedField(o.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(o.Object, "spec", "template", "metadata", "creationTimestamp")
	text, err := json.Marshal(o.Object)
	if err != nil {
		return err
	}
	key, hash := keyOf(resource, o), sha256.Sum256(text)
	if was, done := a.done[key]; done && live != nil && was.uid == live.GetUID() && was.hash == hash && was.generation == live.GetGeneration() && hasLabels(live, o.GetLabels()) {
		return nil
	}
	if live != nil && !isOwned(live, o) {
		return fmt.Errorf("%s %s/%s exists and does not belong to the model; rename or remove one of them", resource.Resource, o.GetNamespace(), o.GetName())
	}
	result, err := a.dynamic.Resource(resource).Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.ApplyPatchType, text, metav1.PatchOptions{FieldManager: workload.Manager, Force: new(true)})
	if err != nil {
		return err
	}
	a.done[key] = applied{result.GetUID(), result.GetGeneration(), hash}
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
	}
	return nil
}

// forget removes what is remembered about objects of models that are gone.
func (a *applier) forget(exists func(key string) bool) {
	for key := range a.done {
		if !exists(key) {
			delete(a.done, key)
		}
	}
}

func keyOf(resource schema.GroupVersionResource, o metav1.Object) string {
	return resource.Resource + "/" + o.GetNamespace() + "/" + o.GetName()
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
