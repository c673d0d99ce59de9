package cluster

import "slices"

// applyReading takes in the free memory of each device as it was measured, by index; a
// value below 0 means that the device was not measured. If a device reports less free
// memory than State accounts for, the difference is foreign: it is used by a process
// that Berth did not place, and is not offered to tasks. Reservations are left out of
// the comparison, since nothing uses them yet.
//
// On a node with unified memory every reading is about the memory of the whole node. It
// therefore includes what tasks hold of the node's own memory, and foreign memory is
// subtracted from the node once.
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
		f.journal.recordUndo(func() {
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

// foreignMemory returns the foreign memory of each device according to the reading. A
// device that was not measured keeps its value, unless it is a replica. All replicas that
// share one memory get the largest of their values.
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

// FreeBeside returns the free memory that a reading of the node's devices would report if other processes used
// this much of each, by UUID. A NodeRead with it makes the memory foreign.
func FreeBeside(n *Node, foreign map[string]Bytes) map[string]Bytes {
	out := make(map[string]Bytes, len(foreign))
	for i, left := range unclaimedMemory(n) {
		d := &n.Devices[i]
		if used, given := foreign[d.UUID]; given && !d.Gone {
			out[d.UUID] = max(0, left-used)
		}
	}
	return out
}

// unclaimedMemory returns how much memory of each device should be free according to
// State: without what is reserved for the system and what tasks on the node hold.
func unclaimedMemory(n *Node) []Bytes {
	out := make([]Bytes, len(n.Devices))
	unified := MaxDeviceMemory
	if l := n.Ledger(Memory); n.Unified && l != nil {
		unified = Bytes(l.Capacity)
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
			siblings(n.Devices, &n.Devices[c.Device], func(o *Device) { out[o.Index] -= c.Memory }) // a reading of a replica is about the shared memory
		}
		if n.Unified {
			unified -= Bytes(t.held.Resources.Of(Memory) + supplyOf(t.held, n).hostMemory(t.Claims))
		}
	}
	for i := range out {
		out[i] = min(out[i], unified)
	}
	return out
}

// updateNodeForeign sets the foreign part of a node's unified memory. Every device
// measures the same memory, so the largest value counts, and not the sum.
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
