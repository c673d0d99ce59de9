package oracle

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
)

// maxSessions is the number of sessions after which no more decisions may be made.
const maxSessions = 100

// counts has the totals of TestRest. tried counts the clusters in which Entitled tried every
// set of victims.
type counts struct{ clusters, sessions, longest, evicted, tried int }

// TestRest runs sessions on random clusters in which nothing else changes, and checks that
// the cluster comes to rest: after some sessions no more decisions are made. If all jobs of a
// queue have one priority, and only root queues have tiers, the rules ensure that also without
// Job.Displaced. At rest, no job may then be pending that the quota of its queue entitles to
// room. Otherwise Preempt may undo what Reclaim has done, and Job.Displaced is needed; see
// docs/oracle.md.
func TestRest(t *testing.T) {
	small := size{nodes: 3, devices: 4, running: 10, waiting: 7, gang: 3}
	large := size{nodes: 5, devices: 4, running: 16, waiting: 10, gang: 4}
	for name, c := range map[string]struct {
		size           size
		patient, ranks bool
	}{
		"small":                      {size: small},
		"small, patient":             {size: small, patient: true},
		"small, with ranks":          {size: small, ranks: true},
		"large":                      {size: large},
		"large, patient":             {size: large, patient: true},
		"large, patient, with ranks": {size: large, patient: true, ranks: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen counts
			rapid.Check(t, func(t *rapid.T) {
				drawn := &site{t: t, size: c.size, ranks: c.ranks, state: cluster.NewState()}
				drawn.rest(c.patient, &seen)
			})
			t.Logf("%+v", seen)
		})
	}
}

// rest draws the cluster, runs sessions until it is at rest, and checks it then.
func (c *site) rest(patient bool, seen *counts) {
	c.draw()
	before := c.String()
	loop, err := NewSessionLoop(c.state, patient, c.ranks)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := loop.Run(maxSessions); err != nil {
		c.t.Fatalf("%v\n%s\n%s", err, before, loop)
	}
	seen.clusters++
	seen.sessions += loop.Sessions
	seen.longest = max(seen.longest, loop.Sessions)
	seen.evicted += loop.Evicted
	if c.ranks {
		return
	}
	found, tried := Entitled(loop.State)
	if len(found) > 0 {
		c.t.Fatalf("at rest, %s\n%s\n%s", strings.Join(found, "; "), before, loop)
	}
	if tried {
		seen.tried++
	}
}

// size has the maximum sizes of a random cluster.
type size struct{ nodes, devices, running, waiting, gang int }

// site draws a cluster.
type site struct {
	t       *rapid.T
	size    size
	state   *cluster.State
	leaves  []string // the queues that have jobs
	devices int64    // how many devices the cluster has, without MIG slices
	slices  bool     // whether some node has MIG slices
	// ranks says that the jobs of a queue have different priorities, and that queues with
	// parents have tiers.
	ranks    bool
	priority map[string]int32 // by queue: the priority of its latest job; without ranks, that of all its jobs
}

const profile = "1g.10gb"

// roll draws a number from 0 to n-1. Small numbers are more frequent.
func (c *site) roll(what string, n int) int { return rapid.IntRange(0, n-1).Draw(c.t, what) }

// even is roll with equal probabilities. With the small numbers that rapid prefers, most
// clusters would be nearly empty. A failing case still shrinks to 0.
func (c *site) even(what string, n int) int {
	const prime = 10007
	return rapid.IntRange(0, prime-1).Draw(c.t, what) * 7919 % prime * n / prime
}

func (c *site) chance(what string, percent int) bool { return c.even(what, 100) >= 100-percent }

func (c *site) apply(change cluster.Change) {
	if err := c.state.Apply(change); err != nil {
		c.t.Fatalf("%s: %v", change.Kind(), err)
	}
}

// draw draws the nodes, queues and jobs of the cluster.
func (c *site) draw() {
	c.priority = map[string]int32{}
	c.nodes()
	for i := range 1 + c.even("roots", 3) {
		c.queue(string(rune('a'+i)), "", 3)
	}
	first := c.leaves[c.even("first queue", len(c.leaves))] // this queue gets most of the running jobs
	for i := range c.even("running", c.size.running+1) {
		j := c.job(fmt.Sprintf("job/r%d", i+1))
		if c.chance("first queue", 50) {
			j.Queue = first
			j.Priority = c.prioritize(first)
		}
		c.run(j)
	}
	for i := range 1 + c.even("waiting", c.size.waiting) {
		c.apply(cluster.JobPut{Job: *c.job(fmt.Sprintf("job/w%d", i+1))})
	}
}

// nodes draws the nodes. Some have MIG slices in addition to devices.
func (c *site) nodes() {
	usual := 1 + c.even("devices", c.size.devices)
	for i := range 1 + c.even("nodes", c.size.nodes) {
		n := cluster.Node{Name: fmt.Sprintf("n%d", i+1)}
		count := usual
		if c.chance("other", 25) {
			count = 1 + c.roll("devices", c.size.devices)
		}
		for range count {
			n.Devices = append(n.Devices, cluster.Device{DeviceSpec: &cluster.DeviceSpec{Product: product, Memory: 80 * gib}})
		}
		if c.chance("slices", 20) {
			c.slices = true
			for k := range 1 + c.roll("slices", 3) {
				n.Devices = append(n.Devices, cluster.Device{DeviceSpec: &cluster.DeviceSpec{Product: product, Memory: 10 * gib, Profile: profile, Resource: cluster.PartitionResource + profile}, UUID: fmt.Sprintf("MIG-%d-%d", i, k)})
			}
		}
		n.Resources = []cluster.Ledger{{Name: cluster.CPU, Capacity: int64(4*count) * 1000}}
		c.devices += int64(count)
		c.apply(cluster.NodePut{Node: n})
	}
}

// queue draws a queue and its children, with at most the given number of levels.
func (c *site) queue(name, parent string, levels int) {
	tiers := []cluster.Tier{cluster.TierStandard, cluster.TierGuaranteed, cluster.TierScavenger}
	q := cluster.Queue{Name: name, Parent: parent, Tier: cluster.TierStandard, Weight: 1, Priority: int32(max(0, c.roll("queue priority", 6)-4))}
	if (parent == "" || c.ranks) && c.chance("tier", 30) {
		q.Tier = tiers[1+c.roll("tier", 2)]
	}
	if c.chance("weight", 30) {
		q.Weight = int64(c.roll("weight", 4))
		q.Weightless = q.Weight == 0
	}
	whole := int64(cluster.Whole)
	if c.chance("quota", 60) {
		q.Quota = q.Quota.With(cluster.DefaultDeviceResource, int64(c.even("quota", int(c.devices)+2))*whole)
	}
	if c.chance("quota of cores", 10) {
		q.Quota = q.Quota.With(cluster.CPU, int64(c.roll("cores", int(4*c.devices)+1))*whole)
	}
	if c.slices && c.chance("quota of slices", 30) {
		q.Quota = q.Quota.With(cluster.PartitionResource+profile, int64(c.roll("slices", 4))*whole)
	}
	if c.chance("limit", 12) {
		q.Limits = q.Limits.With(cluster.DefaultDeviceResource, max(q.Quota.Of(cluster.DefaultDeviceResource), int64(1+c.roll("limit", int(c.devices)))*whole))
	}
	c.apply(cluster.QueuePut{Queue: q})
	if levels == 1 || !c.chance("children", 30) {
		c.leaves = append(c.leaves, name)
		return
	}
	for i := range 1 + c.roll("children", 3) {
		c.queue(fmt.Sprintf("%s%d", name, i+1), name, levels-1)
	}
}

// job draws a job: a single task, a gang, or a gang with surplus.
func (c *site) job(id string) *cluster.Job {
	j := &cluster.Job{ID: id, Queue: c.leaves[c.even("queue", len(c.leaves))], Preemptible: !c.chance("firm", 12), Created: int64(c.roll("created", 3))}
	j.Priority = c.prioritize(j.Queue)
	alt := cluster.Alternative{Min: 1}
	count := 1
	if c.chance("gang", 50) {
		count = 1 + c.even("gang", c.size.gang)
		alt.Min = count - c.roll("surplus", count)
	}
	shape := c.shape()
	for i := range count {
		if i > 0 && c.chance("mixed", 10) {
			shape = c.shape()
		}
		own := shape
		own.Preemptible = j.Preemptible
		alt.Tasks = append(alt.Tasks, &cluster.Task{Name: fmt.Sprint(i), Index: i, Shape: &own})
	}
	j.Alternatives = []cluster.Alternative{alt}
	return j
}

// prioritize draws the priority of a job of the queue.
func (c *site) prioritize(queue string) int32 {
	if _, known := c.priority[queue]; c.ranks || !known {
		c.priority[queue] = int32(max(0, c.even("priority", 6)-3))
	}
	return c.priority[queue]
}

func (c *site) shape() cluster.Shape {
	s := cluster.Shape{Resources: cluster.Resources{{Name: cluster.CPU, Value: int64(1+c.roll("cores", 4)) * 1000}}}
	switch kind := c.even("kind", 20); {
	case kind < 13:
		s.Need.Devices = 1 + c.even("devices", min(4, c.size.devices))
	case kind < 17:
		s.Need = cluster.Need{Devices: 1, Share: []cluster.Milli{500, 250, 400, 700}[c.roll("share", 4)]}
	case kind < 19 && c.slices:
		s.Need = cluster.Need{Devices: 1, Partition: profile}
	case kind < 19:
		s.Need.Devices = 1
	}
	return s
}

// run adds the job with its tasks running at random locations. If there is no room for its
// minimum, the job is not added.
func (c *site) run(j *cluster.Job) {
	c.apply(cluster.JobPut{Job: *j})
	placed := 0
	for _, t := range c.state.Job(j.ID).Tasks() {
		if placed >= j.Alternatives[0].Min && c.chance("pending", 30) {
			continue
		}
		nodes := c.state.Nodes()
		first := c.even("node", len(nodes))
		for i := range nodes {
			n := nodes[(first+i)%len(nodes)]
			if n.Ledger(cluster.CPU).Free() < t.Shape.Resources.Of(cluster.CPU) {
				continue
			}
			if claims, ok := n.Choose(t.Shape, nil); ok {
				c.apply(cluster.SeenOn(t, n, claims, int64(c.roll("started", 5))*minute))
				placed++
				break
			}
		}
	}
	if placed < j.Alternatives[0].Min {
		c.apply(cluster.JobGone{Job: j.ID})
	}
}

// String returns the cluster as text.
func (c *site) String() string { return (&Case{State: c.state}).String() }
