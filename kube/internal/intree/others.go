package intree

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// LooksAtOthers reports whether more than the node and the free room decides whether a node takes
// the pod: what it claims, the ports of other pods, or where other pods are.
func (s *Store) LooksAtOthers(pod *v1.Pod) bool {
	return s.HasClaims(pod) || hasHostPorts(pod) || hasPodAffinity(pod) ||
		slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, func(c v1.TopologySpreadConstraint) bool { return c.WhenUnsatisfiable == v1.DoNotSchedule })
}

func hasHostPorts(pod *v1.Pod) bool {
	has := func(c v1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p v1.ContainerPort) bool { return p.HostPort != 0 })
	}
	return slices.ContainsFunc(pod.Spec.Containers, has) || slices.ContainsFunc(pod.Spec.InitContainers, has)
}

func hasPodAffinity(pod *v1.Pod) bool {
	a := pod.Spec.Affinity
	return a != nil && (a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 ||
		a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0)
}
