package oracle

import (
	"fmt"
	"math/rand/v2"

	"github.com/berth-project/berth/cluster"
)

// Case is a small cluster with running jobs and one or two pending jobs. Its kind and number
// determine it.
type Case struct {
	Kind   Kind
	Number int
	Now    int64
	State  *cluster.State
}

const (
	minute  = int64(60_000_000_000)
	gib     = cluster.Bytes(1) << 30
	product = "A100"
	another = "L40"
	rack    = "rack"
)

// drawing is a case while it is drawn.
type drawing struct {
	kind    Kind
	now     int64
	state   *cluster.State
	rand    *rand.Rand
	leaves  []string // the queues that have jobs
	devices int      // how many the cluster has
	largest int      // how many devices the largest node has
	tight   bool     // whether nodes have few cores
	uniform bool     // whether all devices are of one product
	tasks   int      // how many tasks run
}

// usesAll reports whether cases of the kind use all plugins that make room. They have fewer
// running tasks, because the search tries to keep, to evict and to move each of them.
func (k Kind) usesAll() bool { return k.has(Consolidate) && k.has(Preempt) }

// Draw returns the case of the kind and number.
func Draw(k Kind, number int) (*Case, error) {
	d := &drawing{kind: k, now: 600 * minute, state: cluster.NewState(), rand: rand.New(rand.NewPCG(uint64(number), uint64(k[0])<<8|uint64(k[1])))}
	if err := d.nodes(); err != nil {
		return nil, err
	}
	if err := d.queues(); err != nil {
		return nil, err
	}
	return &Case{Kind: k, Number: number, Now: d.now, State: d.state}, d.jobs()
}

// chance returns true with the given probability.
func (d *drawing) chance(percent int) bool { return d.rand.IntN(100) < percent }

// between returns a random number from least to most, both included.
func (d *drawing) between(least, most int) int { return least + d.rand.IntN(most-least+1) }

// pick returns a random element of the list.
func pick[T any](d *drawing, list ...T) T { return list[d.rand.IntN(len(list))] }

func (d *drawing) nodes() error {
	d.tight, d.uniform = d.chance(20), d.chance(75)
	usual := pick(d, 1, 2, 4, 4, 8)
	most, odd := 6, 25
	if d.kind == Whole { // all nodes have the same number of devices, so that requests for whole nodes are equal
		d.uniform, usual, odd = false, pick(d, 1, 2, 2, 4), 0
	}
	racks := d.between(2, 3)
	if d.kind == Allocate && d.chance(80) {
		most = 3 // a gang of four tasks does not fill more nodes
	}
	for i := range d.between(1, most) {
		count := usual
		if d.chance(odd) {
			count = d.between(1, 8)
		}
		n := cluster.Node{Name: fmt.Sprintf("n%d", i+1)}
		if d.kind == Topology && !d.chance(5) {
			n.Labels = map[string]string{rack: fmt.Sprintf("r%d", 1+d.rand.IntN(racks))}
		}
		each := cluster.Device{DeviceSpec: &cluster.DeviceSpec{Product: product, Memory: 80 * gib}}
		if !d.uniform && d.chance(40) {
			each = cluster.Device{DeviceSpec: &cluster.DeviceSpec{Product: another, Memory: 48 * gib}}
		}
		for range count {
			n.Devices = append(n.Devices, each)
		}
		cores := 16 * count
		if d.tight {
			cores = 2*count + 2
		}
		n.Resources = []cluster.Ledger{{Name: cluster.CPU, Capacity: int64(cores) * 1000}, {Name: cluster.Memory, Capacity: int64(1024 * gib)}}
		if d.chance(80) {
			n.SupportedIsolation.GPU = []cluster.GPUClass{cluster.GPUDeviceExclusive, cluster.GPUSessionExclusive}
		}
		d.devices += count
		d.largest = max(d.largest, count)
		if err := d.state.Apply(cluster.NodePut{Node: n}); err != nil {
			return err
		}
	}
	return nil
}

// queues draws the queues: only the default queue, or a tree of one or two levels.
func (d *drawing) queues() error {
	d.leaves = []string{cluster.DefaultQueue}
	across := d.kind == Reclaim || d.kind.usesAll() && d.chance(85) || d.kind == Preempt && d.chance(60) || d.chance(30)
	if !across {
		return nil
	}
	d.leaves = nil
	for i := range d.between(2, 3) {
		name := string(rune('a' + i))
		if err := d.queue(name, ""); err != nil {
			return err
		}
		if !d.chance(35) {
			d.leaves = append(d.leaves, name)
			continue
		}
		for k := range d.between(1, 2) {
			below := fmt.Sprintf("%s%d", name, k+1)
			if err := d.queue(below, name); err != nil {
				return err
			}
			d.leaves = append(d.leaves, below)
		}
	}
	return nil
}

func (d *drawing) queue(name, parent string) error {
	q := cluster.Queue{Name: name, Parent: parent, Tier: pick(d, cluster.TierStandard, cluster.TierStandard, cluster.TierGuaranteed, cluster.TierScavenger),
		Priority: int32(d.rand.IntN(2)), Weight: int64(d.between(1, 3)), Created: int64(d.rand.IntN(3))}
	whole := int64(cluster.Whole)
	if d.chance(60) {
		q.Quota = q.Quota.With(resourceNames[gpu], int64(d.rand.IntN(d.devices+1))*whole)
		if d.chance(15) {
			q.Quota = q.Quota.With(cluster.CPU, int64(d.rand.IntN(4*d.devices+1))*whole)
		}
	}
	if d.chance(12) {
		q.Limits = q.Limits.With(resourceNames[gpu], max(q.Quota.Of(resourceNames[gpu]), int64(d.between(1, d.devices))*whole))
	}
	if d.chance(15) {
		q.MinRunBeforePreempt = int64(d.between(1, 60)) * minute
	}
	if d.chance(15) {
		q.MinRunBeforeReclaim = int64(d.between(1, 60)) * minute
	}
	return d.state.Apply(cluster.QueuePut{Queue: q})
}
