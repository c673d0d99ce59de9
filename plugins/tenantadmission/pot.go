package tenantadmission

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// pots reports whether some node has unified memory, where claims of devices are
// memory of the queue too.
func (p *plugin) pots() bool { return p.view.Unified() > 0 }

// pot bounds what the shape's claims take of the node's unified memory. Which
// devices they are of is not known yet, so they are of the smallest that would
// do, and of the largest that can be had.
func pot(s *cluster.Shape, n *cluster.Node, layers []cluster.Claim) (least, most int64) {
	switch {
	case s.Need.None() || !n.Unified:
		return 0, 0
	case layers != nil:
		for i := range layers {
			most += int64(layers[i].Memory)
		}
		return 0, most
	}
	free := int64(s.Pot(n)) // all that there is left to be had
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
