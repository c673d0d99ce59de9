package edit

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/quantity"
)

// jobEdit finds the fields of a Job that make a change.
type jobEdit struct {
	*assignments
	object *v1alpha1.Job
}

func (e *jobEdit) edit(was, is *cluster.Job) {
	if was.Priority != is.Priority {
		e.set("spec.priority", is.Priority)
	}
	if was.Preemptible != is.Preemptible {
		e.set("spec.preemptible", is.Preemptible)
	}
	if was.PreemptionDelay != is.PreemptionDelay {
		e.remove("spec.preemptionDelay")
	}
	for _, i := range slices.Backward(removedTerms(was.Affinity, is.Affinity)) {
		e.remove(fmt.Sprintf("spec.affinity.jobs[%d]", i))
	}
	// An alternative of the spec has been made once for each cell.
	cells := max(1, len(e.object.Spec.Cells))
	for i := range min(len(was.Alternatives), len(is.Alternatives)) {
		spec, at := v1alpha1.Alternative{Tasks: e.object.Spec.Tasks}, "spec"
		if k := i / cells; k < len(e.object.Spec.Alternatives) {
			spec, at = e.object.Spec.Alternatives[k], fmt.Sprintf("spec.alternatives[%d]", k)
		}
		before, after := &was.Alternatives[i], &is.Alternatives[i]
		e.minimum(&spec, at, before, after)
		e.topologies(&spec, at, before, after)
		for k := range spec.Tasks {
			e.task(&spec, at, k, before, after)
		}
	}
}

// minimum changes the minimum of an alternative and of its subgroups, or its replicas if it
// takes whole nodes.
func (e *jobEdit) minimum(spec *v1alpha1.Alternative, at string, was, is *cluster.Alternative) {
	given := e.object.Spec.MinMember != nil || spec.MinMember != nil
	if was.Whole != nil && is.Whole != nil {
		if was.Whole.Replicas != is.Whole.Replicas {
			e.set(at+".tasks[0].replicas", is.Whole.Replicas)
			if given { // it is the number of all tasks
				e.set(at+".minMember", is.Min)
			}
		}
		return
	}
	inSubgroup := false
	for i := range min(len(was.Subgroups), len(is.Subgroups)) {
		if was.Subgroups[i].Min != is.Subgroups[i].Min {
			e.set(fmt.Sprintf("%s.subgroups[%d].minMember", e.subgroupsAt(spec, at), i), is.Subgroups[i].Min)
			inSubgroup = true
		}
	}
	if was.Min != is.Min && (given || !inSubgroup) { // an alternative may have its own, and other alternatives fewer tasks
		e.set(at+".minMember", is.Min)
	}
}

// subgroupsAt returns where the subgroups of the alternative are written.
func (e *jobEdit) subgroupsAt(spec *v1alpha1.Alternative, at string) string {
	if len(spec.Subgroups) == 0 {
		return "spec"
	}
	return at
}

// topologies removes required levels.
func (e *jobEdit) topologies(spec *v1alpha1.Alternative, at string, was, is *cluster.Alternative) {
	topologyAt := at
	if spec.Topology == nil {
		topologyAt = "spec"
	}
	e.topology(topologyAt, was.Topology, is.Topology)
	if o := e.object.Spec.Topology; o != nil && topologyAt != "spec" { // an alternative without a topology has that of the job
		e.topology("spec", cluster.Topology{Required: o.Required, Preferred: was.Topology.Preferred}, cluster.Topology{Required: keptLevel(o.Required, was.Topology, is.Topology), Preferred: o.Preferred})
	}
	for i := range min(len(was.Subgroups), len(is.Subgroups)) {
		e.topology(fmt.Sprintf("%s.subgroups[%d]", e.subgroupsAt(spec, at), i), was.Subgroups[i].Topology, is.Subgroups[i].Topology)
	}
}

// keptLevel returns the required level of the job, or "" if that of the alternative is removed.
func keptLevel(level string, was, is cluster.Topology) string {
	if was.Required != is.Required {
		return is.Required
	}
	return level
}

func (e *jobEdit) topology(at string, was, is cluster.Topology) {
	switch {
	case was.Required == is.Required:
	case is.Required == "" && len(is.Preferred) == 0:
		e.remove(at + ".topology")
	case is.Required == "":
		e.remove(at + ".topology.required")
	default:
		e.set(at+".topology.required", is.Required)
	}
}

// task changes what the tasks of entry k of the alternative request.
func (e *jobEdit) task(spec *v1alpha1.Alternative, at string, k int, was, is *cluster.Alternative) {
	entry, job := &spec.Tasks[k], &e.object.Spec
	// Tasks that have a node keep their shape, so that not all tasks of the entry may differ.
	var before, after *cluster.Shape
	for i := range min(len(was.Tasks), len(is.Tasks)) {
		if x, y := was.Tasks[i], is.Tasks[i]; x.Role == entry.Name && y.Role == entry.Name && !sameRequest(x.Shape, y.Shape) {
			before, after = x.Shape, y.Shape
			break
		}
	}
	if before == nil {
		return
	}
	taskAt := fmt.Sprintf("%s.tasks[%d]", at, k)
	e.labels("spec.nodeSelector", job.NodeSelector, before.Selector, after.Selector)
	e.labels(taskAt+".nodeSelector", entry.NodeSelector, before.Selector, after.Selector)
	if p := spec.Placement; p != nil && p.InstanceType != "" {
		e.instanceType(at+".placement", before.Selector, after.Selector)
	} else if p := job.Placement; spec.Placement == nil && p != nil && p.InstanceType != "" {
		e.instanceType("spec.placement", before.Selector, after.Selector)
	}
	if len(before.Required) > 0 && len(after.Required) == 0 {
		if job.Affinity != nil && len(job.Affinity.Required) > 0 {
			e.remove("spec.affinity.required")
		}
		if entry.Affinity != nil && len(entry.Affinity.Required) > 0 {
			e.remove(taskAt + ".affinity.required")
		}
	}
	e.tolerations(len(job.Tolerations), before.Tolerations, after.Tolerations)
	e.isolation(before.Isolation, after.Isolation, isolationAt{"spec.isolation", job.Isolation}, isolationAt{taskAt + ".isolation", entry.Isolation})
	e.cells("spec.cells", before.Cell, after.Cell)
	e.need(taskAt+".devices", &before.Need, &after.Need)
	for _, a := range after.Resources {
		if before.Resources.Of(a.Name) != a.Value {
			e.set(taskAt+".resources."+a.Name, quantity.Amount(a.Name, a.Value, false, true))
		}
	}
}

// sameRequest reports whether no change of a request differs in the two shapes.
func sameRequest(a, b *cluster.Shape) bool {
	return slices.Equal(a.Resources, b.Resources) && slices.Equal(a.Selector, b.Selector) && len(a.Required) == len(b.Required) &&
		slices.Equal(a.Tolerations, b.Tolerations) && a.Isolation == b.Isolation && a.Cell == b.Cell && reflect.DeepEqual(a.Need, b.Need)
}

// need changes what a task requests of devices.
func (e *jobEdit) need(at string, was, is *cluster.Need) {
	if was.Devices != is.Devices {
		e.set(at+".count", is.Devices)
	}
	if was.Memory != is.Memory {
		e.set(at+".memory", quantity.Exact(is.Memory))
	}
	if was.Share != is.Share {
		e.set(at+".share", quantity.Fraction(int64(is.Share)))
	}
	if was.SumAtLeast != is.SumAtLeast {
		e.set(at+".totalMemory", quantity.Exact(is.SumAtLeast))
	}
	if was.SameProduct && !is.SameProduct {
		e.remove(at + ".sameProduct")
	}
	if was.SameLink && !is.SameLink {
		e.remove(at + ".sameLink")
	}
	if len(was.Products) > 0 && len(is.Products) == 0 {
		e.remove(at + ".products")
	}
	switch {
	case was.Partition == is.Partition:
	case is.Partition == "":
		e.remove(at + ".partition")
	default:
		e.set(at+".partition", is.Partition)
	}
}
