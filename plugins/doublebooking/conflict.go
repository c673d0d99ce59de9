package doublebooking

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// Conflict is a device that several tasks hold, of which at least one cannot use it together with
// the others; or a node that has fewer devices of one sort than its tasks hold.
type Conflict struct {
	Node   *cluster.Node
	Device string          // the UUID of the device; "" if the node has too few devices
	Sort   Sort            // the sort of the device, or of the devices of which the node has too few
	Tasks  []*cluster.Task // the tasks that hold the device or need devices of the sort, the oldest first
}

// Youngest returns the task that started last; of equal times, the last by ID. A task of which the
// start is not known counts as the oldest.
func (c *Conflict) Youngest() *cluster.Task { return c.Tasks[len(c.Tasks)-1] }

// Conflicts returns the conflicts on the node. Tasks that are releasing their room, and tasks for
// which room is only reserved, are in no conflict.
func (f *Finder) Conflicts(n *cluster.Node) []Conflict {
	if !f.overbooked(n) {
		return nil
	}
	var out []Conflict
	for i := range n.Devices {
		if d := &n.Devices[i]; f.isExact(d) && bookedTwice(d) {
			if tasks := holders(n, func(t *cluster.Task) bool { return holds(t, i) }); len(tasks) > 1 {
				out = append(out, Conflict{n, d.UUID, Sort{d.Resource, d.Profile}, tasks})
			}
		}
	}
	for _, s := range sortsOf(n) {
		if tasks := holders(n, func(t *cluster.Task) bool { return s.amount(n, t) > 0 }); len(tasks) > 1 && f.isCounted(n, s, tasks) && s.isExceeded(n, tasks) {
			out = append(out, Conflict{n, "", s, tasks})
		}
	}
	return out
}

// isExact reports whether a task that holds the device really has it.
func (f *Finder) isExact(d *cluster.Device) bool { return f.Exact || !d.ByCount }

// isCounted reports whether devices of the sort must be counted: it is not known which of them the
// tasks have.
func (f *Finder) isCounted(n *cluster.Node, s Sort, tasks []*cluster.Task) bool {
	return slices.ContainsFunc(n.Devices, func(d cluster.Device) bool { return s.has(&d) && !f.isExact(&d) }) ||
		slices.ContainsFunc(tasks, func(t *cluster.Task) bool { return lacksDevices(n, t) })
}

// Sort is what devices have in common that can replace each other if they are only counted.
type Sort struct{ Resource, Profile string }

func (s Sort) has(d *cluster.Device) bool { return s == Sort{d.Resource, d.Profile} }

// count returns how many devices of the sort the node has.
func (s Sort) count(n *cluster.Node) int {
	out := 0
	for i := range n.Devices {
		if s.has(&n.Devices[i]) {
			out++
		}
	}
	return out
}

// sortsOf returns the sorts of the devices of the node.
func sortsOf(n *cluster.Node) []Sort {
	var out []Sort
	for i := range n.Devices {
		if s := (Sort{n.Devices[i].Resource, n.Devices[i].Profile}); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// amount returns how much the task holds of devices of the sort, in thousandths of a device. If
// State has found no devices for it, that is what it needs.
func (s Sort) amount(n *cluster.Node, t *cluster.Task) cluster.Milli {
	var sum cluster.Milli
	for _, c := range t.Claims {
		if s.has(&n.Devices[c.Device]) {
			sum += c.Milli
		}
	}
	need := t.Held().Need
	if len(t.Claims) > 0 || need.None() || need.Partition != s.Profile || need.Resource != "" && need.Resource != s.Resource {
		return sum
	}
	devices := cluster.Milli(max(1, need.Devices))
	switch {
	case need.WholeNode:
		return cluster.Whole * cluster.Milli(s.count(n))
	case need.Share > 0:
		return need.Share * devices
	case need.Memory > 0:
		return 0 // how much of a device that is depends on the device
	}
	return cluster.Whole * devices
}

// isExceeded reports whether the tasks hold more devices of the sort than the node has.
func (s Sort) isExceeded(n *cluster.Node, tasks []*cluster.Task) bool {
	var held cluster.Milli
	for _, t := range tasks {
		held += s.amount(n, t)
	}
	return held > cluster.Whole*cluster.Milli(s.count(n))
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
