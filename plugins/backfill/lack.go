package backfill

import "github.com/berth-project/berth/cluster"

// lack is what a node lacks for room that is earmarked.
type lack struct {
	devices   int
	resources cluster.Resources
	leases    []int32 // by device: how many tasks hold a part of it
}

func newLack(n *cluster.Node, r *cluster.EarmarkedRoom) *lack {
	l := &lack{devices: r.Devices, leases: make([]int32, len(n.Devices))}
	for i := range n.Devices {
		d := &n.Devices[i]
		if l.leases[i] = d.Use.Leases; d.Use.Leases == 0 && !d.Lost {
			l.devices--
		}
	}
	for _, a := range r.Resources {
		if held := n.Ledger(a.Name); held != nil {
			l.resources = append(l.resources, cluster.Amount{Name: a.Name, Value: a.Value - held.Free()})
		}
	}
	return l
}

// none reports whether the node lacks nothing.
func (l *lack) none() bool {
	for _, a := range l.resources {
		if a.Value > 0 {
			return false
		}
	}
	return l.devices <= 0
}

// release takes note that the task ends. It returns false, and changes nothing, if the task holds
// nothing that the node lacks.
func (l *lack) release(t *cluster.Task) bool {
	helps := l.devices > 0 && len(t.Claims) > 0
	held := t.Held().Resources
	for _, a := range l.resources {
		helps = helps || a.Value > 0 && held.Of(a.Name) > 0
	}
	if !helps {
		return false
	}
	for _, c := range t.Claims {
		if l.leases[c.Device]--; l.leases[c.Device] == 0 {
			l.devices--
		}
	}
	for i := range l.resources {
		l.resources[i].Value -= held.Of(l.resources[i].Name)
	}
	return true
}
