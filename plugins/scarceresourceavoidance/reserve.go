package scarceresourceavoidance

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// ReservedForDevices is given for room that is free, or would be on the empty node, but is
// reserved for unused devices.
const ReservedForDevices engine.Reason = "ReservedForDevices"

// reasons documents the reasons that the plugin gives.
var reasons = []engine.ReasonDoc{
	{Reason: ReservedForDevices, Cure: engine.Wait | engine.Evict, Phrase: "free {subject} is reserved for tasks that use its devices", Meaning: "The task needs no device, and what is free of the node is reserved for tasks that will use its devices. The subject is the resource; have is what is left beside the reservation. If even the empty node would reserve too much, only other nodes help."},
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
		return fmt.Errorf("reserve: perDevice reserves nothing; give cpu or memory, or leave reserve out")
	}
	return nil
}

func needsNoDevice(s *cluster.Shape) bool { return s.Need.None() }

// admit rejects tasks without devices that would take what is reserved for the unused
// devices of the node. A device that is partly used reserves a proportional part. A task
// that does not fit even without the reservation is rejected by NodeResourcesFit instead.
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
		// On the empty node no device is used, so its reservation is the largest.
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
