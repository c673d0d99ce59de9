package cluster

// Holds returns how much the task holds of the resource. Devices are in thousandths,
// under their resource name or the name of their product. Memory includes what the
// claims take of the node's own memory. It is 0 for a task that is on no node.
func (t *Task) Holds(name string) int64 {
	if t.Node == nil {
		return 0
	}
	v := t.Held().Resources.Of(name) + t.Node.hostMemory(t.Held(), t.Claims, name)
	for _, c := range t.Claims {
		if d := &t.Node.Devices[c.Device]; d.Resource == name || d.ProductResource == name {
			v += int64(c.Milli)
		}
	}
	return v
}
