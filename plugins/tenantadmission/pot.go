package tenantadmission

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// pots reports whether some node has unified memory, where claims of devices are
// memory of the queue too.
func (p *plugin) pots() bool { return p.state.Unified() > 0 }

// pot bounds what the shape's claims take of the node's unified memory. Which
// devices they are of is not known yet, so they are of the smallest that would
// do, and of the largest that can be had.
func pot(s *cluster.Shape, n *cluster.Node, layers []cluster.Claim) (least, most int64) {
	need := &s.Need
	switch {
	case need.None() || !n.Unified:
		return 0, 0
	case layers != nil:
		for i := range layers {
			most += int64(layers[i].Memory)
		}
		return 0, most
	}
	free := int64(0) // all that there is left to be had
	if l := n.Ledger(cluster.Memory); l != nil {
		free = max(0, l.Free()-s.Resources.Of(cluster.Memory))
	}
	var low, high []int64
	for i := range n.Devices {
		d := &n.Devices[i]
		if !need.Usable(d) {
			continue
		}
		from, to := memoryOf(s, d)
		low = append(low, from)
		if s.Takes(d) {
			high = append(high, min(to, free))
		}
	}
	slices.Sort(low)
	slices.Sort(high)
	count := max(1, need.Devices)
	if need.WholeNode {
		count = len(n.Devices)
	}
	for _, v := range low[:min(count, len(low))] {
		least += v
	}
	for _, v := range high[max(0, len(high)-count):] {
		most += v
	}
	return least, min(most, free)
}

// memoryOf bounds what the shape takes of the device's memory. A whole device is
// as much as is left in the pot.
func memoryOf(s *cluster.Shape, d *cluster.Device) (least, most int64) {
	need := &s.Need
	switch {
	case s.Isolation.Exclusive() || need.Milli() >= cluster.Whole && need.Memory == 0 && need.Layers == nil:
		return 0, int64(d.Room())
	case need.Layers != nil:
		return int64(need.Layers.Fixed + need.Layers.Bytes), int64(d.Room())
	case need.Share > 0:
		v := cluster.MulDiv(int64(d.Memory), int64(need.Share), int64(cluster.Whole))
		return v, v
	}
	return int64(need.Memory), int64(need.Memory)
}
