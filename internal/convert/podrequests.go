package convert

import (
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// effectiveRequests returns the requests of the pod as the Kubernetes scheduler counts
// them: the sum over its containers and sidecars, or an init container with the
// sidecars before it if that is more, plus the overhead.
//
// The API server sets missing requests to the limits before the scheduler sees a pod. A dump
// contains these requests. A manifest that was never applied may lack them, so they are set
// here. If defaults is not nil, each container counts with the default amount of every resource
// in defaults that it does not request. The pod itself does not change.
func effectiveRequests(o *corev1.Pod, defaults corev1.ResourceList) corev1.ResourceList {
	options := resourcehelper.PodResourcesOptions{UseStatusResources: true}
	pod := *o
	pod.Spec.Containers = withDefaultRequests(o.Spec.Containers)
	pod.Spec.InitContainers = withDefaultRequests(o.Spec.InitContainers)
	if r := o.Spec.Resources; r != nil {
		pod.Spec.Resources = &corev1.ResourceRequirements{Requests: podLevelRequests(r, resourcehelper.AggregateContainerRequests(&pod, options))}
	}
	options.NonMissingContainerRequests = defaults
	return resourcehelper.PodRequests(&pod, options)
}

// leftOut returns what scores count for the pod in addition to its requests: the
// defaults of the containers that request no cpu or no memory.
func leftOut(o *corev1.Pod, requests corev1.ResourceList) corev1.ResourceList {
	defaults := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(cluster.DefaultCPU), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(cluster.DefaultMemory), resource.BinarySI),
	}
	counted := effectiveRequests(o, defaults)
	out := corev1.ResourceList{}
	for name := range defaults {
		more := counted[name]
		more.Sub(requests[name])
		if more.Sign() > 0 {
			out[name] = more
		}
	}
	return out
}

// withDefaultRequests returns the containers with a request for each limit.
func withDefaultRequests(containers []corev1.Container) []corev1.Container {
	out := slices.Clone(containers)
	for i := range out {
		r := &out[i].Resources
		r.Requests = requestsOrLimits(r.Requests, r.Limits)
	}
	return out
}

// podLevelRequests returns the requests of the pod as a whole. A limit of the pod
// becomes a request only if no container requests the resource. Huge pages cannot be
// overcommitted, so that their limit always becomes a request.
func podLevelRequests(r *corev1.ResourceRequirements, containers corev1.ResourceList) corev1.ResourceList {
	limits := maps.Clone(r.Limits)
	maps.DeleteFunc(limits, func(name corev1.ResourceName, _ resource.Quantity) bool {
		_, requested := containers[name]
		return requested && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
	})
	return requestsOrLimits(r.Requests, limits)
}

// requestsOrLimits returns the requests, and the limits of resources that are not
// requested.
func requestsOrLimits(requests, limits corev1.ResourceList) corev1.ResourceList {
	if len(limits) == 0 {
		return requests
	}
	out := maps.Clone(limits)
	maps.Copy(out, requests)
	return out
}
