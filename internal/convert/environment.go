package convert

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	schedulingv1 "k8s.io/api/scheduling/v1"
)

// Environment is what the conversion of one object depends on in the other objects of the
// cluster. The zero value is for a cluster of which nothing is known.
type Environment struct {
	// DeviceResources are the names of resources under which nodes of the cluster offer
	// devices. Names that always mean devices, such as nvidia.com/gpu, may be missing.
	//
	// Nil means that the nodes are not known. A name with a domain, such as example.com/npu,
	// may then mean devices or not. Queue accepts fractions and products of such a resource
	// and only checks: its result must not be used, because State counts devices in
	// thousandths and other resources in units. Job, Model and Pod take the name for a
	// resource that is no device.
	DeviceResources map[string]bool
	// PodsCounted is set if every node says how many pods it takes. Each pod then requests
	// one unit of the resource "pods".
	PodsCounted bool
	// UniqueHostnames is set if every node has a hostname label that no other node has,
	// so that a topology domain of that label is one node.
	UniqueHostnames bool
	// Namespaces are the namespaces of pods, jobs and models, sorted.
	Namespaces []string
	// Scavengers are the queues in which jobs are preemptible by default: the queues of the
	// Scavenger tier and the queues below these. The value is the nearest queue of the
	// tier, which may be the queue itself.
	Scavengers map[string]string
	// PriorityClasses are the classes that pods may name.
	PriorityClasses []*schedulingv1.PriorityClass
	// Parts is set if resources for parts of devices, such as those of HAMi, are read as such.
	Parts bool
	// AlibabaUnit is how many bytes a unit of aliyun.com/gpu-mem is; 0 if no node offers it.
	AlibabaUnit cluster.Bytes
	// Profiles are the names of the profiles, the first of which is the default; nil if
	// schedulerName selects no profile.
	Profiles []string
}

// profile returns the profile that a workload with the scheduler name has; "" for the default.
func (env *Environment) profile(schedulerName string) string {
	if slices.Contains(env.Profiles, schedulerName) {
		return schedulerName
	}
	return ""
}

// preemptible reports whether a workload is preemptible. If its spec does not say so or
// otherwise, the workload is preemptible if its queue is one of Scavengers, and only then is
// there a remark, which names the queue of the Scavenger tier.
func (env *Environment) preemptible(spec *bool, queue string) (bool, []string) {
	if spec != nil {
		return *spec, nil
	}
	if queue == "" {
		queue = cluster.DefaultQueue
	}
	if scavenger := env.Scavengers[queue]; scavenger != "" {
		return true, []string{fmt.Sprintf("Preemptible: queue %s is of the %s tier, and the workload does not say otherwise.", scavenger, cluster.TierScavenger)}
	}
	return false, nil
}
