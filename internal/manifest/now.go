package manifest

import (
	"github.com/berth-project/berth/internal/convert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Now returns the time that the objects describe, in nanoseconds: the time of the snapshot
// or of the scenario, or else the latest time in any object, such as the last heartbeat of
// a node in a dump. The clock is not used, so that equal input gives equal output.
func (b *Bundle) Now() int64 {
	if f := b.snapshot(); f != nil {
		return f.Now
	}
	if s := b.Scenario(); s != nil && s.Now != nil {
		return convert.Nanoseconds(s.Now)
	}
	latest := int64(0)
	see := func(t *metav1.Time) { latest = max(latest, convert.Nanoseconds(t)) }
	for _, o := range b.Nodes {
		see(&o.CreationTimestamp)
	}
	for _, o := range b.CoreNodes {
		see(&o.CreationTimestamp)
		for i := range o.Status.Conditions {
			see(&o.Status.Conditions[i].LastHeartbeatTime)
		}
	}
	for _, o := range b.Jobs {
		see(&o.CreationTimestamp)
		for i := range o.Status.Placements {
			see(o.Status.Placements[i].Started)
		}
		see(o.Status.TornSince)
		see(o.Status.Evicted)
	}
	for _, o := range b.Models {
		see(&o.CreationTimestamp)
		for _, r := range o.Status.Replicas {
			see(r.Created)
			for i := range r.Placements {
				see(r.Placements[i].Started)
			}
			see(r.TornSince)
			see(r.Evicted)
		}
	}
	for _, o := range b.Pods {
		see(&o.CreationTimestamp)
		see(o.Status.StartTime)
	}
	for _, o := range b.BatchJobs {
		see(&o.CreationTimestamp)
	}
	for _, o := range b.PodGroups {
		see(&o.CreationTimestamp)
	}
	for _, o := range b.Groups {
		created := o.GetCreationTimestamp()
		see(&created)
	}
	for _, o := range b.Queues {
		see(&o.CreationTimestamp)
		for i := range o.Status.Usage {
			see(&o.Status.Usage[i].To)
		}
	}
	return latest
}
