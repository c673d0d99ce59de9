package oracle

import (
	"fmt"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

const device = int64(cluster.Whole)

func node(name string, devices int) *enginetest.NodeBuilder {
	return enginetest.Node(name).CPU(64, "256Gi").GPUs(devices, "A100", "80Gi")
}

// dividedObjects returns the objects of State, with the fair shares of its queues.
func dividedObjects(s *cluster.State) *objects {
	o := newObjects(s.View(), 1000*minute)
	o.divide(s.View())
	return o
}

// TestVictimRules checks the rules for one victim. The cluster has 8 devices, job/w requests
// room, and job/v is the victim.
func TestVictimRules(t *testing.T) {
	victim := func(queue string, devices int) *enginetest.JobBuilder {
		return enginetest.Job("v").Queue(queue).Devices(devices).Preemptible().On("n")
	}
	other := func(queue string, devices int) *enginetest.JobBuilder {
		return enginetest.Job("o").Queue(queue).Devices(devices).Preemptible().On("n")
	}
	want := func(queue string, devices int) *enginetest.JobBuilder {
		return enginetest.Job("w").Queue(queue).Devices(devices).Preemptible()
	}
	gpus := resourceNames[gpu]
	for name, c := range map[string]struct {
		kind  Kind
		parts []enginetest.Part
		rule  string
	}{
		"any preemptible task moves": {Consolidate, []enginetest.Part{victim("", 1), want("", 1)}, ""},
		"a firm task does not move":  {Consolidate, []enginetest.Part{enginetest.Job("v").Devices(1).On("n"), want("", 1)}, "it is not preemptible"},

		"lower priority":              {Preempt, []enginetest.Part{victim("", 1), want("", 1).Priority(1)}, ""},
		"equal priority":              {Preempt, []enginetest.Part{victim("", 1).Priority(1), want("", 1).Priority(1)}, "preempt: its priority is not lower, and its queue is the same"},
		"a weaker tier":               {Preempt, []enginetest.Part{enginetest.Queue("a"), enginetest.Queue("b").Tier(cluster.TierScavenger), victim("b", 1), want("a", 1)}, ""},
		"priority in another queue":   {Preempt, []enginetest.Part{enginetest.Queue("a"), enginetest.Queue("b"), victim("b", 1), want("a", 1).Priority(9)}, "preempt: the tier of its queue is not weaker"},
		"Guaranteed inside its quota": {Preempt, []enginetest.Part{enginetest.Queue("a").Tier(cluster.TierGuaranteed).Quota(gpus, 2*device), enginetest.Queue("b"), victim("b", 1), want("a", 2)}, ""},
		"Guaranteed beyond its quota": {Preempt, []enginetest.Part{enginetest.Queue("a").Tier(cluster.TierGuaranteed).Quota(gpus, 1*device), enginetest.Queue("b"), victim("b", 1), want("a", 2)}, "preempt: the tier of its queue is not weaker"},
		"a Guaranteed victim without quotas": {Preempt, []enginetest.Part{enginetest.Queue("a").Tier(cluster.TierGuaranteed), enginetest.Queue("b").Tier(cluster.TierGuaranteed), victim("b", 1), want("a", 1)},
			"preempt: the tier of its queue is not weaker"},
		"a Guaranteed victim beyond its quota": {Preempt, []enginetest.Part{enginetest.Queue("a").Tier(cluster.TierGuaranteed), enginetest.Queue("b").Tier(cluster.TierGuaranteed).Quota(gpus, 2*device), victim("b", 1), other("b", 2), want("a", 1)}, ""},
		"a Guaranteed victim inside its quota": {Preempt, []enginetest.Part{enginetest.Queue("a").Tier(cluster.TierGuaranteed), enginetest.Queue("b").Tier(cluster.TierGuaranteed).Quota(gpus, 2*device), victim("b", 2), other("b", 1), want("a", 1)},
			"preempt: its Guaranteed queue would hold less than its quota"},

		// Both queues request more than half, so that the shares are 4 and 4.
		"down to the share":                       {Reclaim, []enginetest.Part{enginetest.Queue("a"), enginetest.Queue("b"), victim("b", 4), other("b", 4), want("a", 4)}, ""},
		"below the share":                         {Reclaim, []enginetest.Part{enginetest.Queue("a"), enginetest.Queue("b"), victim("b", 5), other("b", 3), want("a", 4)}, "reclaim 3: its queue would be below its share"},
		"above its own share":                     {Reclaim, []enginetest.Part{enginetest.Queue("a"), enginetest.Queue("b"), victim("b", 4), other("b", 4), want("a", 5)}, "reclaim 2: the job's queue would be above its share"},
		"in the same queue":                       {Reclaim, []enginetest.Part{victim("", 4), other("", 4), want("", 4)}, "reclaim: it is in the same queue"},
		"from a stronger tier":                    {Reclaim, []enginetest.Part{enginetest.Queue("a"), enginetest.Queue("b").Tier(cluster.TierGuaranteed), victim("b", 4), other("b", 4), want("a", 4)}, "reclaim 1: the tier of its queue is stronger"},
		"a victim beyond what the queue may lose": {Reclaim, []enginetest.Part{enginetest.Queue("a").Quota(gpus, 4*device), enginetest.Queue("b"), victim("b", 8), want("a", 4)}, "reclaim 3: its queue would be below its share"},
		"within the quotas of both": {Reclaim, []enginetest.Part{enginetest.Queue("a").Tier(cluster.TierGuaranteed).Quota(gpus, 2*device), enginetest.Queue("b").Quota(gpus, 8*device), victim("b", 8), want("a", 2)},
			"reclaim 3: its queue would be below its share"},
	} {
		s := enginetest.State(append([]enginetest.Part{node("n", 8)}, c.parts...)...)
		o := dividedObjects(s)
		rules := &planRules{objects: o, placement: newPlacement(o), history: newHistory()}
		f := o.find("job/w")
		v := o.find("job/v").set()
		p := &plan{request: newRequest(c.kind, f, f.tasks, false), evicted: v}
		if c.kind == Consolidate {
			p.evicted, p.moved = 0, v
		}
		if rule := rules.violation(p, nil); rule != c.rule {
			t.Errorf("%s: %q, want %q", name, rule, c.rule)
		}
	}
}

// TestLastResort checks victims that the other rules protect. The cluster has 8 devices, and
// queue b holds all of them.
func TestLastResort(t *testing.T) {
	gpus := resourceNames[gpu]
	for name, c := range map[string]struct {
		a, b *enginetest.QueueBuilder
		held []int // by the jobs of b, the victim's first
		asks int
		may  bool
	}{
		"within the quota, from beyond it": {enginetest.Queue("a").Quota(gpus, 4*device), enginetest.Queue("b"), []int{8}, 4, true},
		"within the quotas of both":        {enginetest.Queue("a").Quota(gpus, 4*device), enginetest.Queue("b").Quota(gpus, 8*device), []int{8}, 8, false},
		"more even":                        {enginetest.Queue("a"), enginetest.Queue("b"), []int{5, 3}, 5, true},
		"as uneven as before":              {enginetest.Queue("a"), enginetest.Queue("b"), []int{8}, 8, false},
		"beyond its quota, of a quota":     {enginetest.Queue("a"), enginetest.Queue("b").Quota(gpus, 4*device), []int{5, 3}, 2, false},
	} {
		parts := []enginetest.Part{node("n", 8), c.a, c.b, enginetest.Job("w").Queue("a").Devices(c.asks).Preemptible()}
		for i, devices := range c.held {
			parts = append(parts, enginetest.Job(fmt.Sprint("v", i)).Queue("b").Devices(devices).Preemptible().On("n"))
		}
		s := enginetest.State(parts...)
		o := dividedObjects(s)
		rules := &planRules{objects: o, placement: newPlacement(o), history: newHistory()}
		f := o.find("job/w")
		p := &plan{request: newRequest(Reclaim, f, f.tasks, false), evicted: o.find("job/v0").set()}
		if rules.violation(p, nil) == "" {
			t.Errorf("%s: the other rules allow the victim", name)
		}
		p.request.lastResort = true
		if rule := rules.violation(p, nil); (rule == "") != c.may {
			t.Errorf("%s: %q", name, rule)
		}
	}
}

// TestCheapest checks the cheapest plan and its cost.
func TestCheapest(t *testing.T) {
	gang := func(name, queue string, tasks, least int) *enginetest.JobBuilder {
		on := make([]string, tasks)
		for i := range on {
			on[i] = "n"
		}
		return enginetest.Job(name).Queue(queue).Gang(tasks).Min(least).Devices(1).Preemptible().On(on...)
	}
	high := func(devices int) *enginetest.JobBuilder {
		return enginetest.Job("w").Queue("a").Devices(devices).Preemptible().Priority(5)
	}
	a, weak := enginetest.Queue("a"), enginetest.Queue("z").Tier(cluster.TierScavenger)
	for name, c := range map[string]struct {
		parts   []enginetest.Part
		victims string
		cost    cost
	}{
		"a spare task before a gang": {[]enginetest.Part{a, gang("g", "a", 4, 4), gang("s", "a", 4, 1), high(2)}, "job/s/worker-0, job/s/worker-1", cost{tier: 2, tasks: 2}},
		"a whole gang if necessary": {[]enginetest.Part{a, gang("g", "a", 4, 4), gang("f", "a", 4, 4).Priority(5), high(1)}, "job/g/worker-0, job/g/worker-1, job/g/worker-2, job/g/worker-3",
			cost{tier: 2, beyond: 3 * device, tasks: 4, jobs: 1}},
		"many Scavengers before one": {[]enginetest.Part{a, weak, gang("g", "z", 4, 4), gang("s", "a", 4, 1), high(1)}, "job/g/worker-0, job/g/worker-1, job/g/worker-2, job/g/worker-3",
			cost{tier: 1, beyond: 3 * device, tasks: 4, jobs: 1}},
		"priority before what is freed": {[]enginetest.Part{a, gang("g", "a", 4, 4), gang("s", "a", 4, 1).Priority(1), high(1)}, "job/g/worker-0, job/g/worker-1, job/g/worker-2, job/g/worker-3",
			cost{tier: 2, beyond: 3 * device, tasks: 4, jobs: 1}},
		"what is freed before how many": {[]enginetest.Part{a, enginetest.Job("l").Queue("a").Devices(4).Preemptible().On("n"), gang("s", "a", 4, 1), high(2)}, "job/s/worker-0, job/s/worker-1", cost{tier: 2, tasks: 2}},
		"cost before what is freed": {[]enginetest.Part{a, gang("g", "a", 4, 4).Label(costLabel, "1"), gang("s", "a", 4, 1).Label(costLabel, "5"), high(1)}, "job/g/worker-0, job/g/worker-1, job/g/worker-2, job/g/worker-3",
			cost{tier: 2, victims: 4, beyond: 3 * device, tasks: 4, jobs: 1}},
		"a gang costs more than surplus": {[]enginetest.Part{a, gang("g", "a", 4, 4).Label(costLabel, "1"), gang("s", "a", 4, 1).Label(costLabel, "3"), high(1)}, "job/s/worker-0", cost{tier: 2, victims: 3, tasks: 1}},
		"no plan":                        {[]enginetest.Part{a, gang("g", "a", 4, 4).Priority(5), gang("s", "a", 4, 1), high(5)}, "", cost{}},
	} {
		s := enginetest.State(append([]enginetest.Part{node("n", 8)}, c.parts...)...)
		o := dividedObjects(s)
		p, found, err := newPlanner(o, newPlacement(o), newHistory()).cheapest(Preempt, o.find("job/w"), nil, false)
		if err != nil || found != (c.victims != "") || list(o.members(p.evicted)) != c.victims || p.cost != c.cost {
			t.Errorf("%s: %v %v %v %s", name, err, found, p.cost, list(o.members(p.evicted)))
		}
	}
}
