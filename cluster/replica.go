package cluster

import "slices"

// Replicas that time-slicing makes of a device share one memory: what is claimed
// of it through one cannot be had through another. Who takes a replica whole takes
// a place in the queue for the device and says nothing of memory, so that it is
// counted and no more.

// counted reports whether the shape takes devices by count alone.
func (s *Shape) counted() bool { return s.Isolation.Exclusive() || s.Need.whole() }

// SharesMemory reports whether the shape takes memory of which devices of the node
// have one together.
func (n *Node) SharesMemory(s *Shape) bool { return n.sliced && !s.counted() }

// TimeSliced reports whether some of the node's devices share one memory.
func (n *Node) TimeSliced() bool { return n.sliced }

// siblings visits the other replicas that share the device's memory.
func (n *Node) siblings(d *Device, visit func(*Device)) {
	if d.Shares == "" {
		return
	}
	for i := range n.Devices {
		if o := &n.Devices[i]; o != d && o.Shares == d.Shares {
			visit(o)
		}
	}
}

// shareable reports whether the claims leave each other their part of memory
// that they share.
func (n *Node) shareable(s *Shape, claims []Claim) bool {
	if !n.SharesMemory(s) {
		return true
	}
	for _, c := range claims {
		d := &n.Devices[c.Device]
		if c.Memory+n.claimed(d, claims) > d.Free() {
			return false
		}
	}
	return true
}

// claimed is what the claims take of the device's memory through its siblings.
func (n *Node) claimed(d *Device, claims []Claim) Bytes {
	var sum Bytes
	for _, c := range claims {
		if o := &n.Devices[c.Device]; o != d && d.Shares != "" && o.Shares == d.Shares {
			sum += c.Memory
		}
	}
	return sum
}

// together is the memory that the claims come to. Replicas that are taken whole
// have the memory that they share, and have it once.
func (n *Node) together(s *Shape, claims []Claim) Bytes {
	var sum Bytes
	for i, c := range claims {
		if n.sliced && s.counted() && n.shared(&n.Devices[c.Device], claims[:i]) {
			continue
		}
		sum += c.Memory
	}
	return sum
}

// shared reports whether one of the claims is of the memory that the device shares.
func (n *Node) shared(d *Device, claims []Claim) bool {
	return d.Shares != "" && slices.ContainsFunc(claims, func(c Claim) bool { return n.Devices[c.Device].Shares == d.Shares })
}

// apart leaves out replicas that share memory with one before them: they have
// nothing to add to it.
func (n *Node) apart(devices []int) []int {
	var out []int
	for _, i := range devices {
		shares := n.Devices[i].Shares
		if shares == "" || !slices.ContainsFunc(out, func(o int) bool { return n.Devices[o].Shares == shares }) {
			out = append(out, i)
		}
	}
	return out
}
