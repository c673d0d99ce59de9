package anonymize

import (
	"slices"

	"github.com/berth-project/berth/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// berthObjects copies objects of Berth with the names.
type berthObjects struct{ *Names }

func berthKind(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: kind}
}

func (n berthObjects) queue(o *v1alpha1.Queue) *v1alpha1.Queue {
	s := &o.Spec
	out := &v1alpha1.Queue{TypeMeta: berthKind(v1alpha1.KindQueue), ObjectMeta: n.meta(n.queues.of(o.Name), "", nil)}
	out.CreationTimestamp = n.time(o.CreationTimestamp)
	out.Spec = v1alpha1.QueueSpec{
		Parent: n.queues.of(s.Parent), Tier: s.Tier, Priority: s.Priority,
		Quota: amountsOf(n.Names, s.Quota), Weight: s.Weight, OverQuotaWeight: amountsOf(n.Names, s.OverQuotaWeight),
		Limits: n.amounts(s.Limits), MinRunTime: s.MinRunTime,
	}
	out.Status.Usage = each(o.Status.Usage, func(u v1alpha1.QueueUsage) v1alpha1.QueueUsage {
		return v1alpha1.QueueUsage{From: n.time(u.From), To: n.time(u.To), Resources: n.amounts(u.Resources)}
	})
	return out
}

func (n berthObjects) node(o *v1alpha1.Node, first bool) *v1alpha1.Node {
	s := &o.Spec
	out := &v1alpha1.Node{TypeMeta: berthKind(v1alpha1.KindNode), ObjectMeta: n.nodeMeta(o.Name, o.Labels, first)}
	out.Spec = v1alpha1.NodeSpec{
		Cell: n.cells.of(s.Cell), Resources: n.amounts(s.Resources), Devices: each(s.Devices, n.devices),
		DeviceResource: n.resource(s.DeviceResource), Isolation: s.Isolation,
		Taints: each(s.Taints, func(t v1alpha1.Taint) v1alpha1.Taint {
			return v1alpha1.Taint{Key: n.key(t.Key), Value: n.value(t.Key, t.Value), Effect: t.Effect}
		}),
		Unschedulable: s.Unschedulable, UnifiedMemory: s.UnifiedMemory,
	}
	out.Status = v1alpha1.NodeStatus{State: stateWord(o.Status.State), FreeMemory: o.Status.FreeMemory}
	if o.Status.Files != nil {
		out.Status.Files = map[string]string{}
	}
	for name, state := range o.Status.Files {
		out.Status.Files[n.file(name)] = stateWord(state)
	}
	return out
}

// stateWord returns the state of a node or a file. Berth tells READY from all other words.
func stateWord(state string) string {
	if state == "" || slices.Contains([]string{"READY", "NOT_READY", "MAINTENANCE", "DOWNLOADING", "ERROR"}, state) {
		return state
	}
	return "OTHER"
}

func (n berthObjects) devices(d v1alpha1.DeviceSet) v1alpha1.DeviceSet {
	return v1alpha1.DeviceSet{
		Product: d.Product, Count: d.Count, Memory: d.Memory, Reserved: d.Reserved, Type: d.Type,
		UUIDs: each(d.UUIDs, n.uuids.of), NUMA: d.NUMA, PCIe: each(d.PCIe, n.links.of), Links: each(d.Links, n.links.of), Link: n.links.of(d.Link),
		Partitions: d.Partitions, Sharing: d.Sharing, Lost: d.Lost,
	}
}

func (n berthObjects) budget(o *v1alpha1.DisruptionBudget) *v1alpha1.DisruptionBudget {
	return &v1alpha1.DisruptionBudget{
		TypeMeta: berthKind(v1alpha1.KindDisruptionBudget), ObjectMeta: n.meta(n.budgets.of(o.Name), o.Namespace, nil),
		Spec: v1alpha1.DisruptionBudgetSpec{
			Selector: n.jobSelector(o.Spec.Selector), MinAvailable: o.Spec.MinAvailable, MaxUnavailable: o.Spec.MaxUnavailable,
		},
	}
}

func (n berthObjects) jobSelector(s v1alpha1.JobSelector) v1alpha1.JobSelector {
	return v1alpha1.JobSelector{MatchLabels: n.labels(s.MatchLabels), MatchExpressions: each(s.MatchExpressions, n.requirement)}
}

func (n berthObjects) requirement(q v1alpha1.Requirement) v1alpha1.Requirement {
	return v1alpha1.Requirement{Key: n.key(q.Key), Operator: q.Operator, Values: n.valuesOf(q.Key, q.Values)}
}
