package convert

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
)

// Environment is what other objects say about how to read one object.
type Environment struct {
	// DeviceResources are the resources that nodes count devices under, beside those
	// that everybody knows; nil where not known yet.
	DeviceResources map[string]bool
	// PodsCounted: all nodes say how many pods they take, so that pods count.
	PodsCounted bool
	// UniqueHostnames: every node has a hostname label of its own, so that a domain of
	// hostname is the node.
	UniqueHostnames bool
	// Namespaces that pods are in, sorted.
	Namespaces []string
	// Scavengers are the queues whose jobs are preemptible unless they say otherwise:
	// the queue of the Scavenger tier that each is, or is below.
	Scavengers map[string]string
}

// preemptible is what a workload says of itself, or what its queue makes of it. A
// remark says so where it is the queue.
func (s *Environment) preemptible(said *bool, queue string) (bool, []string) {
	if said != nil {
		return *said, nil
	}
	if queue == "" {
		queue = cluster.DefaultQueue
	}
	if scavenger := s.Scavengers[queue]; scavenger != "" {
		return true, []string{fmt.Sprintf("Preemptible: queue %s is of the %s tier, and the workload does not say otherwise.", scavenger, cluster.TierScavenger)}
	}
	return false, nil
}
