package cluster

import "slices"

// observe sets what a reading says is free of the node's devices, by index; below 0:
// it was not read. If a device reports less free memory than State accounts for,
// the difference is foreign: a process uses it that Berth did not place, and it is
// offered to no task. Reservations are not there yet.
//
// On unified memory a reading is of the pot, so that what tasks hold of it beside
// devices is known too, and what is foreign is taken from the pot once.
func (f *fleet) applyReading(n *Node, free []Bytes) {
	to, was := foreignMemory(n, free), make([]Bytes, len(n.Devices))
	fell := false
	for i := range was {
		was[i] = n.Devices[i].Foreign
		fell = fell || to[i] < was[i]
	}
	if slices.Equal(was, to) {
		return
	}
	freed := n.freed
	f.setForeign(n, to)
	if fell {
		n.freed = n.version
	}
	if f.journal.recording() {
		f.journal.cold(func() {
			f.setForeign(n, was)
			n.freed = freed
		})
	}
}

func (f *fleet) setForeign(n *Node, foreign []Bytes) {
	for i := range foreign {
		n.Devices[i].Foreign = foreign[i]
	}
	updateNodeForeign(n)
	f.touch(n)
}

// foreignMemory is what the reading leaves unexplained, by device. Devices that were not
// read keep what they have, and those that share memory have it together.
func foreignMemory(n *Node, free []Bytes) []Bytes {
	left := unclaimedMemory(n)
	out := make([]Bytes, len(n.Devices))
	for i := range out {
		if out[i] = n.Devices[i].Foreign; i < len(free) && free[i] >= 0 {
			out[i] = max(0, left[i]-free[i])
		}
	}
	for i := range free {
		siblings(n.Devices, &n.Devices[i], func(o *Device) { out[o.Index] = max(out[o.Index], out[i]) })
	}
	return out
}

// unheld is the memory of each device that the tasks on the node leave.
func unclaimedMemory(n *Node) []Bytes {
	out := make([]Bytes, len(n.Devices))
	pot := MaxDeviceMemory
	if l := n.Ledger(Memory); n.Unified && l != nil {
		pot = Bytes(l.Capacity)
	}
	for i := range out {
		out[i] = n.Devices[i].Memory - n.Devices[i].Reserved
	}
	for _, t := range n.Tasks {
		if t.Status == Nominated {
			continue
		}
		for _, c := range t.Claims {
			out[c.Device] -= c.Memory
			siblings(n.Devices, &n.Devices[c.Device], func(o *Device) { out[o.Index] -= c.Memory }) // a reading is of the memory that they share
		}
		if n.Unified {
			pot -= Bytes(t.held.Resources.Of(Memory) + supplyOf(t.held, n).host(t.Claims))
		}
	}
	for i := range out {
		out[i] = min(out[i], pot)
	}
	return out
}

// pour takes what is foreign out of unified memory. Every device sees all of the
// pot, so what the one that sees most has seen is in it once.
func updateNodeForeign(n *Node) {
	for i := range n.Resources {
		n.Resources[i].Foreign = 0
	}
	l := n.Ledger(Memory)
	if !n.Unified || l == nil {
		return
	}
	for i := range n.Devices {
		if d := &n.Devices[i]; !d.Gone {
			l.Foreign = max(l.Foreign, int64(d.Foreign))
		}
	}
}
