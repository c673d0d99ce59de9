package tenantadmission

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// hasUnified reports whether some node has unified memory, on which claims of devices also count
// as memory of the queue.
func (p *plugin) hasUnified() bool { return p.view.Unified() > 0 }

// unifiedCost returns bounds on what the shape's claims take of the node's unified memory. The
// devices are not chosen yet: the lower bound assumes the smallest devices that fit, and
// the upper bound the largest that are free.
func unifiedCost(s *cluster.Shape, n *cluster.Node, layers []cluster.Claim) (least, most int64) {
	switch {
	case s.Need.None() || !n.Unified:
		return 0, 0
	case layers != nil:
		for i := range layers {
			most += int64(layers[i].Memory)
		}
		return 0, most
	}
	free := int64(s.FreeUnifiedMemory(n)) // all that is free
	var low, high []int64
	for i := range n.Devices {
		d := &n.Devices[i]
		if !s.Usable(d) {
			continue
		}
		from, to := s.MemoryOf(d)
		low = append(low, int64(from))
		if s.Takes(d) {
			high = append(high, min(int64(to), free))
		}
	}
	slices.Sort(low)
	slices.Sort(high)
	count := s.Wanted(len(n.Devices))
	for _, v := range low[:min(count, len(low))] {
		least += v
	}
	for _, v := range high[max(0, len(high)-count):] {
		most += v
	}
	return least, min(most, free)
}
