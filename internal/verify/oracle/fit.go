package oracle

import (
	"cmp"
	"errors"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// errTooLarge says that the limit of steps was reached before everything was tried.
var errTooLarge = errors.New("too large to try everything")

// fits reports whether all the tasks can be placed together, by trying every node and
// every choice of devices for every task. If keep is set and they can, they stay placed.
// Otherwise the board is not changed.
func (b *board) fits(tasks []*task, keep bool) (bool, error) {
	for _, t := range tasks {
		// The use of queues does not depend on the nodes, so that it is checked first.
		if b.queueViolation(t.job, b.together(tasks, t.job)) != "" {
			return false, nil
		}
	}
	if !asked(tasks).within(b.free()) {
		return false, nil
	}
	// The largest tasks are first, so that impossible requests are found early. Equal
	// tasks must be adjacent.
	order := slices.Clone(tasks)
	slices.SortStableFunc(order, func(a, c *task) int {
		return cmp.Or(cmp.Compare(c.asks[gpu], a.asks[gpu]), cmp.Compare(c.asks[cpu], a.asks[cpu]), cmp.Compare(a.job.index, c.job.index))
	})
	return b.placeAll(order, 0, keep)
}

// together returns what the tasks in the job's queue request together. Tasks in other
// queues are checked separately.
func (b *board) together(tasks []*task, j *job) vector {
	var sum vector
	for _, t := range tasks {
		if t.job.leaf() == j.leaf() {
			sum = sum.plus(t.asks, +1)
		}
	}
	return sum
}

// free returns the sum of what is free on all nodes.
func (b *board) free() (sum vector) {
	for i := range b.rooms {
		sum = sum.plus(b.rooms[i].free, +1)
		sum[gpu] += int64(b.left(i))
	}
	return sum
}

// placeAll tries to place the tasks from index i on. Of placements that differ only in the
// names of equal tasks, nodes or devices, it tries only one: equal tasks are placed on
// nodes in order, and of equal nodes and devices the first is used.
func (b *board) placeAll(tasks []*task, i int, keep bool) (bool, error) {
	if b.flow != nil && beyond(b.flow)-asked(tasks[i:])[gpu] > b.most {
		return false, nil
	}
	if i == len(tasks) {
		b.spent = beyond(b.flow)
		return true, nil
	}
	t := tasks[i]
	if b.queueViolation(t.job, t.asks) != "" {
		return false, nil
	}
	first := 0
	if i > 0 && t.isEqual(tasks[i-1]) {
		first = b.at[tasks[i-1].index].node
	}
	for n := first; n < len(b.nodes); n++ {
		if b.hasTwin(first, n) || !b.inDomain(t, n) {
			continue
		}
		found, err := false, error(nil)
		b.choices(t, n, func(claims []cluster.Claim) bool {
			if b.from[t.index].node == n && slices.Equal(b.from[t.index].claims, claims) {
				return true // a task must not move to its former location
			}
			if b.steps--; b.steps < 0 {
				err = errTooLarge
				return false
			}
			b.place(t, location{node: n, claims: claims})
			b.addFlow(n, t, +1)
			found, err = b.placeAll(tasks, i+1, keep)
			b.addFlow(n, t, -1)
			if !found || !keep {
				b.remove(t)
			}
			return !found && err == nil
		})
		if found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// hasTwin reports whether a node between first and n, without n, is equal to n and has
// the same free room.
func (b *board) hasTwin(first, n int) bool {
	for o := first; o < n; o++ {
		x, y := b.nodes[o], b.nodes[n]
		if b.rooms[o].free == b.rooms[n].free && slices.Equal(b.rooms[o].devices, b.rooms[n].devices) &&
			slices.EqualFunc(x.Devices, y.Devices, sameKind) && slices.Equal(x.SupportedIsolation.GPU, y.SupportedIsolation.GPU) &&
			x.Labels[rack] == y.Labels[rack] && (b.flow == nil || b.flow[o] == b.flow[n] && !b.flow[n].origin) {
			return true
		}
	}
	return false
}

// addFlow counts a task that the plan places on the node, or that is removed from it.
func (b *board) addFlow(n int, t *task, sign int64) {
	if b.flow != nil {
		b.flow[n].placed += sign * t.asks[gpu]
	}
}

// inDomain reports whether the topology of the task's form allows the node, given the nodes
// of the other tasks of the job. For whole nodes, it must be another node of the same group.
func (b *board) inDomain(t *task, n int) bool {
	node, alt := b.nodes[n], t.job.alt
	level := alt.Topology.Required
	if level != "" && node.Labels[level] == "" {
		return false
	}
	for _, o := range t.job.tasks {
		if o == t || !b.isPlaced(o) {
			continue
		}
		other := b.nodes[b.at[o.index].node]
		if level != "" && other.Labels[level] != node.Labels[level] {
			return false
		}
		if alt.Whole != nil && (other == node || other.Group() != node.Group()) {
			return false
		}
	}
	return true
}

func sameKind(a, b cluster.Device) bool { return a.Product == b.Product && a.Memory == b.Memory }

// choices calls visit for every choice of devices of the node for the task, until visit
// returns false.
func (b *board) choices(t *task, n int, visit func([]cluster.Claim) bool) {
	r := &b.rooms[n]
	if t.asks[cpu] > r.free[cpu] || t.asks[memory] > r.free[memory] {
		return
	}
	var chosen []cluster.Claim
	var from func(device int) bool
	from = func(device int) bool {
		if len(chosen) == devicesOf(t, b.nodes[n]) {
			return visit(slices.Clone(chosen))
		}
		for d := device; d < len(r.devices); d++ {
			if !b.canHold(t, n, d) || b.hasEqualDevice(t, n, device, d) {
				continue
			}
			chosen = append(chosen, claimOn(t, d, &b.nodes[n].Devices[d]))
			more := from(d + 1)
			chosen = chosen[:len(chosen)-1]
			if !more {
				return false
			}
		}
		return true
	}
	from(0)
}

// hasEqualDevice reports whether an equal device with the same use is between first and
// device. It was tried before.
func (b *board) hasEqualDevice(t *task, n, first, device int) bool {
	for d := first; d < device; d++ {
		if b.rooms[n].devices[d] == b.rooms[n].devices[device] && sameKind(b.nodes[n].Devices[d], b.nodes[n].Devices[device]) {
			return true
		}
	}
	return false
}

// minima returns the smallest sets of pending tasks that make the job's minimum. Of sets
// that differ only in the names of equal tasks, it returns one. If the minimum is already
// placed, each set is one surplus task.
func (b *board) minima(j *job) [][]*task {
	var out [][]*task
	if b.hasMinimum(j, 0) {
		for _, t := range j.tasks {
			if b.pending(t) {
				out = append(out, []*task{t})
			}
		}
		return out
	}
	var chosen []*task
	var from func(i int)
	from = func(i int) {
		if enough(j, func(t *task) bool { return b.isPlaced(t) || slices.Contains(chosen, t) }) {
			if !b.hasUnneeded(j, chosen) {
				out = append(out, slices.Clone(chosen))
			}
			return
		}
		for k := i; k < len(j.tasks); k++ {
			t := j.tasks[k]
			if !b.pending(t) || slices.ContainsFunc(j.tasks[i:k], func(o *task) bool { return b.pending(o) && o.isEqual(t) }) {
				continue
			}
			chosen = append(chosen, t)
			from(k + 1)
			chosen = chosen[:len(chosen)-1]
		}
	}
	from(0)
	return out
}

// hasUnneeded reports whether the minimum is made without one of the chosen tasks.
func (b *board) hasUnneeded(j *job, chosen []*task) bool {
	for _, out := range chosen {
		if enough(j, func(t *task) bool { return t != out && (b.isPlaced(t) || slices.Contains(chosen, t)) }) {
			return true
		}
	}
	return false
}

// asked returns the sum of the requests of the tasks.
func asked(tasks []*task) vector {
	var sum vector
	for _, t := range tasks {
		sum = sum.plus(t.asks, +1)
	}
	return sum
}

// allocates reports whether a minimum of some form of the job fits into the free room.
func (b *board) allocates(j *job) (bool, error) {
	for _, form := range j.forms {
		for _, minimum := range b.minima(form) {
			if found, err := b.fits(minimum, false); found || err != nil {
				return found, err
			}
		}
	}
	return false, nil
}

// needsSearch reports whether the job's minimum fits into the free room, but is not found
// by placing one task after the other.
func (b *board) needsSearch(j *job) (bool, error) {
	if b.greedy(j, false) || b.greedy(j, true) {
		return false, nil
	}
	return b.allocates(j)
}

// greedy reports whether placing the job's tasks one after the other, in order, makes the
// minimum. The board is not changed.
func (b *board) greedy(j *job, tightest bool) bool {
	var pending []*task
	for _, t := range j.tasks {
		if b.pending(t) {
			pending = append(pending, t)
		}
	}
	placed := b.placeEach(pending, tightest)
	found := b.hasMinimum(j, 0)
	b.removeAll(placed)
	return found
}

// placeEach places one task after the other on the first node with room or, if tightest is
// set, on the node with the least room. It returns the tasks that were placed.
func (b *board) placeEach(tasks []*task, tightest bool) (placed []*task) {
	for _, t := range tasks {
		if b.queueViolation(t.job, t.asks) != "" {
			continue
		}
		best := location{node: -1}
		for n := range b.nodes {
			if !b.inDomain(t, n) || best.node >= 0 && (!tightest || b.left(n) >= b.left(best.node)) {
				continue
			}
			b.choices(t, n, func(claims []cluster.Claim) bool {
				if best.node != n || b.fuller(n, claims, best.claims) {
					best = location{node: n, claims: claims}
				}
				return tightest
			})
		}
		if best.node >= 0 {
			b.place(t, best)
			placed = append(placed, t)
		}
	}
	return placed
}

func (b *board) removeAll(tasks []*task) {
	for _, t := range tasks {
		b.remove(t)
	}
}

// left returns what is free of the devices of the node.
func (b *board) left(n int) (sum cluster.Milli) {
	for _, d := range b.rooms[n].devices {
		sum += cluster.Whole - d.milli
	}
	return sum
}

// fuller reports whether more is held of the devices of choice x than of choice y.
func (b *board) fuller(n int, x, y []cluster.Claim) bool {
	sum := func(claims []cluster.Claim) (sum cluster.Milli) {
		for _, c := range claims {
			sum += b.rooms[n].devices[c.Device].milli
		}
		return sum
	}
	return sum(x) > sum(y)
}
