package cluster

// Holds is what the task holds of the resource: cores and memory, with
// what its claims take of it, and devices in thousandths.
func (t *Task) Holds(name string) int64 {
	if t.Node == nil {
		return 0
	}
	v := t.Held().Resources.Of(name) + t.Node.host(t.Held(), t.Claims, name)
	for _, c := range t.Claims {
		if d := &t.Node.Devices[c.Device]; d.Resource == name || d.ProductResource == name {
			v += int64(c.Milli)
		}
	}
	return v
}
