package placementscorer

import "github.com/berth-project/berth/cluster"

// utilisation returns the fraction, from 0 to 1, that the task takes of what would be free
// without it: the weighted mean of the fraction of the node's memory, with weight 1, and the
// largest fraction of a device, with weight 2.
func utilisation(t *cluster.Task) float64 {
	ram := t.Holds(cluster.Memory)
	free := int64(0)
	if l := t.Node.Ledger(cluster.Memory); l != nil {
		free = l.Free()
	}
	if inUse(t) {
		free += ram
	}
	pressure := ratio(ram, free)
	if len(t.Claims) == 0 {
		return pressure
	}
	most := 0.0
	for i := range t.Claims {
		most = max(most, takenFraction(t, &t.Claims[i], free))
	}
	return (pressure + 2*most) / 3
}

// takenFraction returns the fraction that a claim takes of what would be free of its device
// without the task. freeRAM is what would be free of the node's memory without the task.
func takenFraction(t *cluster.Task, c *cluster.Claim, freeRAM int64) float64 {
	d := &t.Node.Devices[c.Device]
	claim, free := int64(c.Memory), int64(d.Free())
	if d.Memory <= 0 { // the memory of the device is not known
		claim, free = int64(c.Milli), int64(d.FreeMilli())
	}
	if inUse(t) {
		free += claim
	}
	if t.Node.Unified && d.Memory > 0 {
		free = min(free, freeRAM)
	}
	return ratio(claim, free)
}

func ratio(claim, free int64) float64 {
	switch {
	case claim <= 0:
		return 0
	case claim >= free:
		return 1
	}
	return float64(claim) / float64(free)
}
