package cluster

// Ask is what the shape takes of the node's devices that have the device's name,
// in thousandths, if they are all like it.
func (s *Shape) Ask(n *Node, d *Device) int64 {
	need := &s.Need
	count := int64(need.Devices)
	if need.WholeNode {
		count = 0
		for i := range n.Devices {
			if n.Devices[i].Resource == d.Resource {
				count++
			}
		}
	}
	count = max(1, count) // layers take as many as they must: at least one
	switch {
	case s.Isolation.Exclusive() || need.whole() || need.WholeNode:
		return count * int64(Whole)
	case need.Share > 0 || need.Layers != nil || need.Memory == 0:
		return count * int64(need.Milli())
	}
	return count * int64(d.Part(need.Memory))
}
