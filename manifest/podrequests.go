package manifest

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// effectiveRequests are the requests of the pod as the Kubernetes scheduler counts
// them: the sum of its containers and sidecars, or an init container with the
// sidecars before it where that is more, and the overhead.
//
// The API server fills requests in from limits before the scheduler sees a pod. A
// dump has them, a manifest that was never applied need not. The pod itself is left
// as it was read: edits may follow.
func effectiveRequests(o *corev1.Pod) corev1.ResourceList {
	options := resourcehelper.PodResourcesOptions{UseStatusResources: true}
	pod := *o
	pod.Spec.Containers = withDefaultRequests(o.Spec.Containers)
	pod.Spec.InitContainers = withDefaultRequests(o.Spec.InitContainers)
	if r := o.Spec.Resources; r != nil {
		pod.Spec.Resources = &corev1.ResourceRequirements{Requests: podLevelRequests(r, resourcehelper.AggregateContainerRequests(&pod, options))}
	}
	return resourcehelper.PodRequests(&pod, options)
}

// withDefaultRequests are the containers, each with requests for all that it limits.
func withDefaultRequests(containers []corev1.Container) []corev1.Container {
	out := slices.Clone(containers)
	for i := range out {
		r := &out[i].Resources
		r.Requests = requestsOrLimits(r.Requests, r.Limits)
	}
	return out
}

// podLevelRequests are the requests of the pod as a whole. A limit of the pod counts
// only for a resource that no container requests; huge pages cannot be overcommitted,
// so that a limit of them always counts.
func podLevelRequests(r *corev1.ResourceRequirements, containers corev1.ResourceList) corev1.ResourceList {
	limits := maps.Clone(r.Limits)
	maps.DeleteFunc(limits, func(name corev1.ResourceName, _ resource.Quantity) bool {
		_, requested := containers[name]
		return requested && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
	})
	return requestsOrLimits(r.Requests, limits)
}

// requestsOrLimits are the requests, and the limit of each resource that has none.
func requestsOrLimits(requests, limits corev1.ResourceList) corev1.ResourceList {
	if len(limits) == 0 {
		return requests
	}
	out := maps.Clone(limits)
	maps.Copy(out, requests)
	return out
}
