package oracle

import (
	"fmt"
	"math/rand/v2"

	"github.com/berth-project/berth/cluster"
)

// Case is a small cluster with running jobs and one or two pending jobs. It is determined
// by its kind and number.
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
	*Case
	*rand.Rand
	leaves  []string
	devices int  // in the cluster
	largest int  // devices of one node
	tight   bool // nodes have few cores
	uniform bool // all devices are of one product
	tasks   int  // number of running tasks
}

// mixed reports whether cases of the kind use all plugins that make room. They have fewer
// running tasks, because the search tries to keep, to evict and to move each of them.
func (k Kind) mixed() bool { return k.has(Consolidate) && k.has(Preempt) }

// Draw returns the case of the kind and number.
func Draw(k Kind, number int) (*Case, error) {
	d := &drawing{
		Case: &Case{Kind: k, Number: number, Now: 600 * minute, State: cluster.NewState()},
		Rand: rand.New(rand.NewPCG(uint64(number), uint64(k[0])<<8|uint64(k[1]))),
	}
	if err := d.nodes(); err != nil {
		return nil, err
	}
	if err := d.queues(); err != nil {
		return nil, err
	}
	return d.Case, d.jobs()
}

func (d *drawing) chance(percent int) bool { return d.IntN(100) < percent }

// between returns a random number from least to most, both included.
func (d *drawing) between(least, most int) int { return least + d.IntN(most-least+1) }

func pick[T any](d *drawing, list ...T) T { return list[d.IntN(len(list))] }

func (d *drawing) nodes() error {
	d.tight, d.uniform = d.chance(20), d.chance(75)
	usual := pick(d, 1, 2, 4, 4, 8)
	most, odd := 6, 25
	if d.Kind == Whole { // all nodes have the same number of devices, so that requests for whole nodes are equal
		d.uniform, usual, odd = false, pick(d, 1, 2, 2, 4), 0
	}
	racks := d.between(2, 3)
	if d.Kind == Allocate && d.chance(80) {
		most = 3 // a gang of four tasks does not fill more
	}
	for i := range d.between(1, most) {
		count := usual
		if d.chance(odd) {
			count = d.between(1, 8)
		}
		n := cluster.Node{Name: fmt.Sprintf("n%d", i+1)}
		if d.Kind == Topology && !d.chance(5) {
			n.Labels = map[string]string{rack: fmt.Sprintf("r%d", 1+d.IntN(racks))}
		}
		each := cluster.Device{Product: product, Memory: 80 * gib}
		if !d.uniform && d.chance(40) {
			each = cluster.Device{Product: another, Memory: 48 * gib}
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
		if err := d.State.Apply(cluster.NodePut{Node: n}); err != nil {
			return err
		}
	}
	return nil
}

// queues draws the queues: only the default queue, or a tree of one or two levels.
func (d *drawing) queues() error {
	d.leaves = []string{cluster.DefaultQueue}
	across := d.Kind == Reclaim || d.Kind.mixed() && d.chance(85) || d.Kind == Preempt && d.chance(60) || d.chance(30)
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
		Priority: int32(d.IntN(2)), Weight: int64(d.between(1, 3)), Created: int64(d.IntN(3))}
	whole := int64(cluster.Whole)
	if d.chance(60) {
		q.Quota = q.Quota.With(names[gpu], int64(d.IntN(d.devices+1))*whole)
		if d.chance(15) {
			q.Quota = q.Quota.With(cluster.CPU, int64(d.IntN(4*d.devices+1))*whole)
		}
	}
	if d.chance(12) {
		q.Limits = q.Limits.With(names[gpu], max(q.Quota.Of(names[gpu]), int64(d.between(1, d.devices))*whole))
	}
	if d.chance(15) {
		q.MinRunBeforePreempt = int64(d.between(1, 60)) * minute
	}
	if d.chance(15) {
		q.MinRunBeforeReclaim = int64(d.between(1, 60)) * minute
	}
	return d.State.Apply(cluster.QueuePut{Queue: q})
}
