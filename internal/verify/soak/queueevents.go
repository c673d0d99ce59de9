package soak

import (
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// leaves lists the queues that jobs are in.
var leaves = []string{"default", "research", "scraps", "night"}

// firstQueues returns the queues that a site begins with. They form a tree of two
// levels: lab with two queues, and annex with one.
func firstQueues() []*cluster.Queue {
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

// queueResources lists the resources that queues get quotas, limits and weights for: all
// devices, those of one product, or MIG slices.
var queueResources = []string{
	cluster.DefaultDeviceResource, cluster.DefaultDeviceResource,
	cluster.DefaultDeviceResource + ":A100", cluster.DefaultDeviceResource + ":L4", cluster.PartitionResource + "1g.10gb:A100",
	cluster.PartitionResource + "1g.10gb",
}

// queueEvents has the steps that happen to queues and budgets.
type queueEvents struct {
	dice      *dice
	site      *site
	scheduler *scheduler
}

// change gives a queue another limit, quota, weight, tier, minimum run time or parent.
func (e *queueEvents) change() error {
	q := *e.site.queues[pick(e.dice, sorted(e.site.queues))]
	amount := int64(e.dice.roll(12)) * 1000
	switch e.dice.roll(8) {
	case 0:
		q.Limits = q.Limits.With(pick(e.dice, queueResources), amount)
	case 1:
		q.Quota = q.Quota.With(pick(e.dice, queueResources), amount)
	case 2:
		q.OverQuotaWeight = q.OverQuotaWeight.With(pick(e.dice, queueResources), amount/1000)
	case 3: // remove the amounts of products and slices
		plain := func(list cluster.Resources) cluster.Resources {
			return slices.DeleteFunc(slices.Clone(list), func(a cluster.Amount) bool {
				return strings.Contains(a.Name, ":") || strings.HasPrefix(a.Name, cluster.PartitionResource)
			})
		}
		q.Limits, q.Quota, q.OverQuotaWeight = plain(q.Limits), plain(q.Quota), plain(q.OverQuotaWeight)
	case 4:
		q.Tier = pick(e.dice, []cluster.Tier{cluster.TierGuaranteed, cluster.TierStandard, cluster.TierScavenger})
	case 5:
		q.Weight, q.Weightless, q.Priority = int64(e.dice.roll(5)), e.dice.chance(20), int32(e.dice.roll(3))
	case 6:
		q.MinRunBeforePreempt, q.MinRunBeforeReclaim = pick(e.dice, minRunTimes), pick(e.dice, minRunTimes)
	default:
		if q.Name == "lab" || q.Name == "annex" || q.Name == cluster.DefaultQueue { // these queues never get a parent
			return nil
		}
		q.Parent = pick(e.dice, []string{"", "lab", "annex"})
	}
	e.site.queues[q.Name] = &q
	return e.scheduler.apply(cluster.QueuePut{Queue: q})
}

// minRunTimes lists how long queues protect tasks after their start.
var minRunTimes = []int64{0, 30 * second, 300 * second}

// changeBudget adds a disruption budget or changes one.
func (e *queueEvents) changeBudget() error {
	app := pick(e.dice, apps)
	b := cluster.Budget{
		Name: app, Selector: cluster.Term{{Key: "app", Operator: cluster.In, Values: []string{app}}},
		Bound: e.dice.roll(4), Unavailable: e.dice.chance(50),
	}
	if b.Percent = e.dice.chance(30); b.Percent {
		b.Bound *= 25
	}
	e.site.budgets[app] = &b
	return e.scheduler.apply(cluster.BudgetPut{Budget: b})
}
