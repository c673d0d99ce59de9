package doublebooking

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// Conflict is a device that several tasks hold, of which at least one cannot use it together with
// the others; or a node that has fewer devices than its tasks hold.
type Conflict struct {
	Node   *cluster.Node
	Device string          // the UUID of the device; "" if the node has too few devices
	Tasks  []*cluster.Task // the tasks that hold the device or need devices, the oldest first
}

// Youngest returns the task that started last; of equal times, the last by ID. A task of which the
// start is not known counts as the oldest.
func (c *Conflict) Youngest() *cluster.Task { return c.Tasks[len(c.Tasks)-1] }

// Conflicts returns the conflicts on the node. Tasks that are releasing their room, and tasks for
// which room is only reserved, are in no conflict.
func (f *Finder) Conflicts(n *cluster.Node) []Conflict {
	var out []Conflict
	if !f.overbooked(n) {
		return nil
	}
	for i := range n.Devices {
		if f.Exact && bookedTwice(&n.Devices[i]) {
			if tasks := holders(n, func(t *cluster.Task) bool { return holds(t, i) }); len(tasks) > 1 {
				out = append(out, Conflict{n, n.Devices[i].UUID, tasks})
			}
		}
	}
	if !f.Exact || slices.ContainsFunc(n.Tasks, func(t *cluster.Task) bool { return lacksDevices(n, t) }) {
		tasks := holders(n, func(t *cluster.Task) bool { return !t.Held().Need.None() })
		if len(tasks) > 1 && needed(tasks) > len(n.Devices) {
			out = append(out, Conflict{n, "", tasks})
		}
	}
	return out
}

// needed returns how many devices the tasks need together.
func needed(tasks []*cluster.Task) int {
	sum := 0
	for _, t := range tasks {
		sum += max(1, t.Held().Need.Devices, len(t.Claims))
	}
	return sum
}

// overbooked is a quick test: it returns true if the node may have a conflict.
func (f *Finder) overbooked(n *cluster.Node) bool {
	for i := range n.Devices {
		if bookedTwice(&n.Devices[i]) {
			return true
		}
	}
	return slices.ContainsFunc(n.Tasks, func(t *cluster.Task) bool { return lacksDevices(n, t) })
}

// bookedTwice reports whether tasks hold more of the device than there is, or hold it although one
// of them tolerates no other.
func bookedTwice(d *cluster.Device) bool {
	u := &d.Use
	return u.Leases > 1 && (u.Milli > cluster.Whole || u.Exclusive > 0 || d.Memory > 0 && u.Memory > d.Memory)
}

// lacksDevices reports whether the task was seen on the node, and State has found no devices for
// it. A node that reports no device at all is not taken for one with too few: its device plugin
// may be restarting.
func lacksDevices(n *cluster.Node, t *cluster.Task) bool {
	return t.Status == cluster.Bound && len(t.Claims) == 0 && !t.Held().Need.None() &&
		slices.ContainsFunc(n.Devices, func(d cluster.Device) bool { return !d.Gone })
}

func holds(t *cluster.Task, device int) bool {
	return slices.ContainsFunc(t.Claims, func(c cluster.Claim) bool { return c.Device == device })
}

// holders returns the tasks that run on the node and of which the function returns true, the
// oldest first.
func holders(n *cluster.Node, is func(*cluster.Task) bool) []*cluster.Task {
	var out []*cluster.Task
	for _, t := range n.Tasks {
		if t.Runs() && is(t) {
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b *cluster.Task) int {
		return cmp.Or(cmp.Compare(a.Started, b.Started), cmp.Compare(a.ID, b.ID))
	})
	return out
}
