package manifest

import (
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
)

// makeQueue turns a queue as people write it into one for the books. Limits on
// devices are kept in thousandths, as the books count them.
func makeQueue(o *v1alpha1.Queue, s *surroundings, r reporter) *cluster.Queue {
	spec := path{"spec"}
	checkName(o.Name, "queue", r)
	q := &cluster.Queue{Name: o.Name, Tier: cluster.Tier(o.Spec.Tier), Priority: o.Spec.Priority, Created: created(&o.ObjectMeta), Weight: 1}
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
	for _, name := range slices.Sorted(maps.Keys(o.Spec.Limits)) {
		limit, at := o.Spec.Limits[name], spec.add("limits", string(name))
		var v int64
		switch {
		case isDevice(string(name)) || s.deviceNames[string(name)]:
			v = milliOf(limit, at, r)
		case s.deviceNames == nil && strings.Contains(string(name), "/"):
			v = bytesOf(limit, at, r) // some node may count devices under it; State knows
		default:
			v = amountOf(string(name), limit, at, r)
		}
		q.Limits = append(q.Limits, cluster.Amount{Name: string(name), Value: v})
	}
	return q
}
