package manifest

import (
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// makeQueue turns a queue as people write it into one for the books. Quotas and
// limits of devices are kept in thousandths, as the books count them.
func makeQueue(o *v1alpha1.Queue, s *surroundings, r reporter) *cluster.Queue {
	spec := path{"spec"}
	checkName(o.Name, "queue", r)
	q := &cluster.Queue{Name: o.Name, Parent: o.Spec.Parent, Tier: cluster.Tier(o.Spec.Tier), Priority: o.Spec.Priority, Created: created(&o.ObjectMeta), Weight: 1}
	if o.Spec.Tier == "BestEffort" {
		r.errorf(spec.add("tier"), "BestEffort is a CPU class and no tier; write %s", cluster.TierStandard)
	} else {
		checkEnum(o.Spec.Tier, cluster.Tiers, spec.add("tier"), r)
	}
	if w := o.Spec.Weight; w != nil {
		if q.Weight = *w; *w < 1 || *w > maxWeight {
			r.errorf(spec.add("weight"), "want a weight from 1 to %d, have %d", maxWeight, *w)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Spec.OverQuotaWeight)) {
		w := o.Spec.OverQuotaWeight[name]
		if w < 1 || w > maxWeight {
			r.errorf(spec.add("overQuotaWeight", name), "want a weight from 1 to %d, have %d", maxWeight, w)
		}
		q.OverQuotaWeight = append(q.OverQuotaWeight, cluster.Amount{Name: name, Value: w})
	}
	q.Limits = s.queueAmounts(o.Spec.Limits, spec.add("limits"), r)
	q.Quota = s.queueAmounts(o.Spec.Quota, spec.add("quota"), r)
	for _, limit := range q.Limits {
		if quota := q.Quota.Of(limit.Name); quota > limit.Value {
			name := corev1.ResourceName(limit.Name)
			want, most := o.Spec.Quota[name], o.Spec.Limits[name]
			r.errorf(spec.add("quota", limit.Name), "the queue deserves %s and may have no more than %s; raise the limit or lower the quota", want.String(), most.String())
		}
	}
	if t := o.Spec.MinRunTime; t != nil {
		q.MinRunBeforePreempt = runTime(t.BeforePreempt, spec.add("minRunTime", "beforePreempt"), r)
		q.MinRunBeforeReclaim = runTime(t.BeforeReclaim, spec.add("minRunTime", "beforeReclaim"), r)
	}
	return q
}

// runTime converts a minimum run time. None at all and one of 0 would look the
// same in the books, where the queue above is asked, so the latter is refused.
func runTime(d *metav1.Duration, at path, r reporter) int64 {
	if d == nil {
		return 0
	}
	if d.Duration <= 0 {
		r.errorf(at, "want a time above 0, such as 10m, have %s; where it is left out, the queue above decides", d.Duration)
		return 0
	}
	return d.Nanoseconds()
}

// queueAmounts converts what a queue says about resources; devices are counted in thousandths.
func (s *surroundings) queueAmounts(list corev1.ResourceList, at path, r reporter) cluster.Resources {
	var out cluster.Resources
	for _, name := range slices.Sorted(maps.Keys(list)) {
		amount, at := list[name], at.add(string(name))
		var v int64
		switch {
		case isDevice(string(name)) || s.deviceNames[string(name)]:
			v = milliOf(amount, at, r)
		case s.deviceNames == nil && strings.Contains(string(name), "/"):
			v = bytesOf(amount, at, r) // some node may count devices under it; State knows
		default:
			v = amountOf(string(name), amount, at, r)
		}
		out = append(out, cluster.Amount{Name: string(name), Value: v})
	}
	return out
}
