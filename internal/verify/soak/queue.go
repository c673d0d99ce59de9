package soak

import (
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// leaves are the queues that jobs may be in.
var leaves = []string{"default", "research", "scraps", "night"}

// queues returns a tree of two levels: lab with two queues, and annex with one.
func queues() []*cluster.Queue {
	const gpu = cluster.DefaultDeviceResource
	return []*cluster.Queue{
		{Name: cluster.DefaultQueue},
		{Name: "lab", Quota: cluster.Resources{{Name: gpu, Value: 6000}}, Limits: cluster.Resources{{Name: gpu, Value: 10_000}}},
		{Name: "annex", Tier: cluster.TierScavenger, Limits: cluster.Resources{{Name: cluster.CPU, Value: 60_000}}},
		{Name: "research", Parent: "lab", Tier: cluster.TierGuaranteed, Quota: cluster.Resources{{Name: gpu, Value: 4000}}, Limits: cluster.Resources{{Name: gpu, Value: 6000}}},
		{Name: "scraps", Parent: "lab", Tier: cluster.TierScavenger, Limits: cluster.Resources{{Name: cluster.CPU, Value: 40_000}, {Name: gpu, Value: 9500}}},
		{Name: "night", Parent: "annex", Weight: 3},
	}
}

// termResources lists the resources that queues get quotas, limits and weights for: all
// devices, those of one product, or MIG slices.
var termResources = []string{
	cluster.DefaultDeviceResource, cluster.DefaultDeviceResource,
	cluster.DefaultDeviceResource + ":A100", cluster.DefaultDeviceResource + ":L4", cluster.PartitionResource + "1g.10gb:A100",
	cluster.PartitionResource + "1g.10gb",
}

// ChangeQueue gives a queue another limit, quota, weight, tier or run time, or
// another place in the tree.
func (w *World) ChangeQueue() error {
	q := *w.site.queues[pick(w, sorted(w.site.queues))]
	amount := int64(w.dice.Roll(12)) * 1000
	switch w.dice.Roll(8) {
	case 0:
		q.Limits = q.Limits.With(pick(w, termResources), amount)
	case 1:
		q.Quota = q.Quota.With(pick(w, termResources), amount)
	case 2:
		q.OverQuotaWeight = q.OverQuotaWeight.With(pick(w, termResources), amount/1000)
	case 3: // remove the terms for products and slices
		plain := func(list cluster.Resources) cluster.Resources {
			return slices.DeleteFunc(slices.Clone(list), func(a cluster.Amount) bool {
				return strings.Contains(a.Name, ":") || strings.HasPrefix(a.Name, cluster.PartitionResource)
			})
		}
		q.Limits, q.Quota, q.OverQuotaWeight = plain(q.Limits), plain(q.Quota), plain(q.OverQuotaWeight)
	case 4:
		q.Tier = pick(w, []cluster.Tier{cluster.TierGuaranteed, cluster.TierStandard, cluster.TierScavenger})
	case 5:
		q.Weight, q.Weightless, q.Priority = int64(w.dice.Roll(5)), w.chance(20), int32(w.dice.Roll(3))
	case 6:
		q.MinRunBeforePreempt, q.MinRunBeforeReclaim = pick(w, runTimes), pick(w, runTimes)
	default:
		if q.Name == "lab" || q.Name == "annex" || q.Name == cluster.DefaultQueue { // these queues stay roots, even if they have no children
			return nil
		}
		q.Parent = pick(w, []string{"", "lab", "annex"})
	}
	w.site.queues[q.Name] = &q
	return w.apply(cluster.QueuePut{Queue: q})
}

// runTimes lists values for how long queues protect tasks after their start.
var runTimes = []int64{0, 30 * second, 300 * second}

// ChangeBudget adds a disruption budget or changes one.
func (w *World) ChangeBudget() error {
	app := pick(w, []string{"web", "db"})
	b := cluster.Budget{
		Name: app, Selector: cluster.Term{{Key: "app", Operator: cluster.In, Values: []string{app}}},
		Bound: w.dice.Roll(4), Unavailable: w.chance(50),
	}
	if b.Percent = w.chance(30); b.Percent {
		b.Bound *= 25
	}
	w.site.budgets[app] = &b
	return w.apply(cluster.BudgetPut{Budget: b})
}
