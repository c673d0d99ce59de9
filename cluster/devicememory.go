package cluster

// A task that takes a whole node has what its devices can give together: not what
// is reserved, the memory that replicas share once, and on unified memory no more
// than the pot has beside what the task asks for of it.

// DeviceMemory is what the node's devices give such a task with no other task and
// no foreign process on the node.
func (n *Node) DeviceMemory(s *Shape) Bytes {
	sum := n.sumDevices(func(d *Device) Bytes { return max(0, d.Memory-d.Reserved) })
	if !n.Unified {
		return sum
	}
	return min(sum, max(0, Bytes(n.Capacity(Memory)-s.Resources.Of(Memory))))
}

// FreeDeviceMemory is what they give it now.
func (n *Node) FreeDeviceMemory(s *Shape) Bytes {
	sum := n.sumDevices(func(d *Device) Bytes { return max(0, d.Free()) })
	if !n.Unified {
		return sum
	}
	return min(sum, n.pot(s))
}

func (n *Node) sumDevices(of func(*Device) Bytes) Bytes {
	var sum Bytes
	for i := range n.Devices {
		d := &n.Devices[i]
		if !d.Lost && !repeated(n.Devices[:i], d) {
			sum += of(d)
		}
	}
	return sum
}

// repeated reports whether a device before it has the memory that the device shares.
func repeated(before []Device, d *Device) bool {
	if d.Shares == "" {
		return false
	}
	for i := range before {
		if o := &before[i]; !o.Lost && o.Shares == d.Shares {
			return true
		}
	}
	return false
}
