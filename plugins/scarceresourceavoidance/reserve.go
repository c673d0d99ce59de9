package scarceresourceavoidance

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// ReservedForDevices is room that is free, or could be, but kept for devices that nobody uses yet.
const ReservedForDevices engine.Reason = "ReservedForDevices"

// reasons documents what the plugin gives as reasons.
var reasons = []engine.ReasonDoc{
	{Reason: ReservedForDevices, Cure: engine.Wait | engine.Evict, Phrase: "free {subject} is kept for those who use its devices", Meaning: "The task needs no device, and what is free of the node is kept for those who will use its devices. The subject is the resource; have is what is left beside the reservation. Where even the empty node would keep too much, only other nodes cure it."},
}

func (p *plugin) setReserve(per PerDevice) error {
	cpu, err := per.CPU.cores()
	if err != nil {
		return fmt.Errorf("reserve: perDevice: cpu: %w", err)
	}
	memory, err := per.Memory.bytes()
	if err != nil {
		return fmt.Errorf("reserve: perDevice: memory: %w", err)
	}
	for _, a := range []cluster.Amount{{Name: cluster.CPU, Value: cpu}, {Name: cluster.Memory, Value: memory}} {
		if a.Value > 0 {
			p.reserve = append(p.reserve, a)
		}
	}
	if len(p.reserve) == 0 {
		return fmt.Errorf("reserve: perDevice keeps nothing; give cpu or memory, or leave reserve out")
	}
	return nil
}

func needsNone(s *cluster.Shape) bool { return s.Need.None() }

// admit turns down tasks without devices that would take what the node's unused
// devices will need. A device that is used in part keeps the rest of its share.
// A task that finds too little free even without the reservation is
// NodeResourcesFit's to turn down.
func (p *plugin) admit(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	var devices, unused int64 // in thousandths
	last, scarce := "", false
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.Resource != last {
			last, scarce = d.Resource, p.deviceWeight(d.Resource) > 0
		}
		if scarce && !d.Lost {
			devices += int64(cluster.Whole)
			unused += int64(max(0, d.FreeMilli()))
		}
	}
	if devices == 0 {
		return nil
	}
	var waiting *engine.Rejection
	for i := range p.reserve {
		name, each := p.reserve[i].Name, p.reserve[i].Value
		want := s.Resources.Of(name)
		l := n.Ledger(name)
		if want <= 0 || l == nil || l.Capacity < want {
			continue
		}
		left := l.Free() - cluster.MulDivUp(unused, each, int64(cluster.Whole))
		if left >= want {
			continue
		}
		// With everybody gone no device is used, so the reservation is at its largest.
		if empty := l.Capacity - cluster.MulDivUp(devices, each, int64(cluster.Whole)); empty < want {
			return reserved(engine.Grow, name, want, empty)
		}
		if l.Free() >= want && waiting == nil {
			waiting = reserved(engine.Wait|engine.Evict, name, want, left)
		}
	}
	return waiting
}

func reserved(cure engine.Cure, name string, want, have int64) *engine.Rejection {
	return &engine.Rejection{Reason: ReservedForDevices, Cure: cure, Subject: name,
		Want: engine.AmountOf(name, want), Have: engine.AmountOf(name, max(0, have))}
}
