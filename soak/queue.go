package soak

import (
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// leaves are the queues that jobs may be in.
var leaves = []string{"default", "research", "scraps", "night"}

// queues are a tree of two levels: a lab with two queues, and an annex that may take some in.
func queues() []*cluster.Queue {
	const gpu = cluster.DefaultDeviceResource
	return []*cluster.Queue{
		{Name: "lab", Quota: cluster.Resources{{Name: gpu, Value: 6000}}, Limits: cluster.Resources{{Name: gpu, Value: 10_000}}},
		{Name: "annex", Tier: cluster.TierScavenger, Limits: cluster.Resources{{Name: cluster.CPU, Value: 60_000}}},
		{Name: "research", Parent: "lab", Tier: cluster.TierGuaranteed, Quota: cluster.Resources{{Name: gpu, Value: 4000}}, Limits: cluster.Resources{{Name: gpu, Value: 6000}}},
		{Name: "scraps", Parent: "lab", Tier: cluster.TierScavenger, Limits: cluster.Resources{{Name: cluster.CPU, Value: 40_000}, {Name: gpu, Value: 9500}}},
		{Name: "night", Parent: "annex", Weight: 3},
	}
}

// terms are the resources that queues get terms for: mostly all devices, sometimes those of one product.
var terms = []string{
	cluster.DefaultDeviceResource, cluster.DefaultDeviceResource,
	cluster.DefaultDeviceResource + ":A100", cluster.DefaultDeviceResource + ":L4", cluster.PartitionResource + "1g.10gb:A100",
}

// ChangeQueue gives a queue another limit, quota or weight, or another place in the tree.
func (w *World) ChangeQueue() error {
	q := *pick(w, w.State.Queues())
	amount := int64(w.dice.Roll(12)) * 1000
	switch w.dice.Roll(5) {
	case 0:
		q.Limits = q.Limits.With(pick(w, terms), amount)
	case 1:
		q.Quota = q.Quota.With(pick(w, terms), amount)
	case 2:
		q.OverQuotaWeight = q.OverQuotaWeight.With(pick(w, terms), 1+amount/1000)
	case 3: // products are named no more
		plain := func(list cluster.Resources) cluster.Resources {
			return slices.DeleteFunc(slices.Clone(list), func(a cluster.Amount) bool { return strings.Contains(a.Name, ":") })
		}
		q.Limits, q.Quota, q.OverQuotaWeight = plain(q.Limits), plain(q.Quota), plain(q.OverQuotaWeight)
	default:
		if q.Name == "lab" || q.Name == "annex" { // they stay above, even while nothing is below them
			return nil
		}
		q.Parent = pick(w, []string{"", "lab", "annex"})
	}
	return w.State.SetQueue(&q)
}
