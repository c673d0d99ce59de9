package oracle

import (
	"cmp"
	"errors"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// errTooLarge says that the steps ran out before everything was tried.
var errTooLarge = errors.New("too large to try everything")

// fits reports whether all the tasks find a seat at once, by trying every node
// and every choice of devices for every task. Where they do it leaves them there
// if keep says so, and nobody moves otherwise.
func (b *board) fits(tasks []*task, keep bool) (bool, error) {
	for _, t := range tasks {
		// Their queues are charged with all of them, wherever they go.
		if b.allows(t.job, b.together(tasks, t.job)) != "" {
			return false, nil
		}
	}
	if !asked(tasks).within(b.free()) {
		return false, nil
	}
	// The largest first: what cannot be had is found early. Equals stand together.
	order := slices.Clone(tasks)
	slices.SortStableFunc(order, func(a, c *task) int {
		return cmp.Or(cmp.Compare(c.asks[gpu], a.asks[gpu]), cmp.Compare(c.asks[cpu], a.asks[cpu]), cmp.Compare(a.job.index, c.job.index))
	})
	return b.seatAll(order, 0, keep)
}

// together is what all the tasks ask of the queues of the job's branch that they share.
// Queues of other jobs are judged when it is their turn.
func (b *board) together(tasks []*task, j *job) vector {
	var sum vector
	for _, t := range tasks {
		if t.job.leaf() == j.leaf() {
			sum = sum.plus(t.asks, +1)
		}
	}
	return sum
}

// free is what all nodes have left together.
func (b *board) free() (sum vector) {
	for i := range b.rooms {
		sum = sum.plus(b.rooms[i].free, +1)
		sum[gpu] += int64(b.left(i))
	}
	return sum
}

// seatAll tries the tasks from the i-th on. Of solutions that differ in the names
// of equals only the first is looked for: equal tasks go to nodes in order, and
// of nodes and devices that stand alike the first is taken.
func (b *board) seatAll(tasks []*task, i int, keep bool) (bool, error) {
	if b.flow != nil && beyond(b.flow)-asked(tasks[i:])[gpu] > b.most {
		return false, nil
	}
	if i == len(tasks) {
		b.spent = beyond(b.flow)
		return true, nil
	}
	t := tasks[i]
	if b.allows(t.job, t.asks) != "" {
		return false, nil
	}
	first := 0
	if i > 0 && t.like(tasks[i-1]) {
		first = b.at[tasks[i-1].index].node
	}
	for n := first; n < len(b.nodes); n++ {
		if b.twin(first, n) || !b.near(t, n) {
			continue
		}
		found, err := false, error(nil)
		b.choices(t, n, func(claims []cluster.Claim) bool {
			if b.from[t.index].node == n && slices.Equal(b.from[t.index].claims, claims) {
				return true // it would stay where it is
			}
			if b.steps--; b.steps < 0 {
				err = errTooLarge
				return false
			}
			b.sit(t, seat{node: n, claims: claims})
			b.pour(n, t, +1)
			found, err = b.seatAll(tasks, i+1, keep)
			b.pour(n, t, -1)
			if !found || !keep {
				b.rise(t)
			}
			return !found && err == nil
		})
		if found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// twin reports whether a node from the first on, before this one, is and stands
// just like it.
func (b *board) twin(first, n int) bool {
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

// pour accounts for a task that a plan places on the node, or takes off it.
func (b *board) pour(n int, t *task, sign int64) {
	if b.flow != nil {
		b.flow[n].placed += sign * t.asks[gpu]
	}
}

// near reports whether the node is where the task's form lets it be beside the others
// of its job: in the same rack, in the same group, or anywhere.
func (b *board) near(t *task, n int) bool {
	node, alt := b.nodes[n], t.job.alt
	level := alt.Topology.Required
	if level != "" && node.Labels[level] == "" {
		return false
	}
	for _, o := range t.job.tasks {
		if o == t || !b.sits(o) {
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

// choices visits every choice of devices of the node for the task, until visit says stop.
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
			if !b.joins(t, n, d) || b.passedOver(t, n, device, d) {
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

// passedOver reports whether a device that stands just like this one was there to
// be chosen before it.
func (b *board) passedOver(t *task, n, first, device int) bool {
	for d := first; d < device; d++ {
		if b.rooms[n].devices[d] == b.rooms[n].devices[device] && sameKind(b.nodes[n].Devices[d], b.nodes[n].Devices[device]) {
			return true
		}
	}
	return false
}

// minima are the sets of the job's pending tasks that would just make its
// minimum; of sets that differ in the names of equals, one.
func (b *board) minima(j *job) [][]*task {
	var out [][]*task
	if b.stands(j, 0) {
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
		if enough(j, func(t *task) bool { return b.sits(t) || slices.Contains(chosen, t) }) {
			if !b.spare(j, chosen) {
				out = append(out, slices.Clone(chosen))
			}
			return
		}
		for k := i; k < len(j.tasks); k++ {
			t := j.tasks[k]
			if !b.pending(t) || slices.ContainsFunc(j.tasks[i:k], func(o *task) bool { return b.pending(o) && o.like(t) }) {
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

// spare reports whether one of the chosen is not needed.
func (b *board) spare(j *job, chosen []*task) bool {
	for _, out := range chosen {
		if enough(j, func(t *task) bool { return t != out && (b.sits(t) || slices.Contains(chosen, t)) }) {
			return true
		}
	}
	return false
}

// asked is what the tasks ask for together.
func asked(tasks []*task) vector {
	var sum vector
	for _, t := range tasks {
		sum = sum.plus(t.asks, +1)
	}
	return sum
}

// allocates reports whether a minimum of some form of the job fits as things are.
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

// needsThought reports whether the job's minimum fits as things are, but is not
// found by seating one task after the other.
func (b *board) needsThought(j *job) (bool, error) {
	if b.greedy(j, false) || b.greedy(j, true) {
		return false, nil
	}
	return b.allocates(j)
}

// greedy reports whether seating the job's tasks one by one, as they are written,
// makes the minimum. Nobody moves.
func (b *board) greedy(j *job, tightest bool) bool {
	var pending []*task
	for _, t := range j.tasks {
		if b.pending(t) {
			pending = append(pending, t)
		}
	}
	placed := b.seatEach(pending, tightest)
	stands := b.stands(j, 0)
	b.riseAll(placed)
	return stands
}

// seatEach seats task after task on the first node that takes it, or on the one
// with least room, and returns those that found a seat.
func (b *board) seatEach(tasks []*task, tightest bool) (placed []*task) {
	for _, t := range tasks {
		if b.allows(t.job, t.asks) != "" {
			continue
		}
		best := seat{node: -1}
		for n := range b.nodes {
			if !b.near(t, n) || best.node >= 0 && (!tightest || b.left(n) >= b.left(best.node)) {
				continue
			}
			b.choices(t, n, func(claims []cluster.Claim) bool {
				if best.node != n || b.fuller(n, claims, best.claims) {
					best = seat{node: n, claims: claims}
				}
				return tightest
			})
		}
		if best.node >= 0 {
			b.sit(t, best)
			placed = append(placed, t)
		}
	}
	return placed
}

func (b *board) riseAll(tasks []*task) {
	for _, t := range tasks {
		b.rise(t)
	}
}

// left is what the node has left of its devices.
func (b *board) left(n int) (sum cluster.Milli) {
	for _, d := range b.rooms[n].devices {
		sum += cluster.Whole - d.milli
	}
	return sum
}

// fuller reports whether more is held of the devices of the first choice.
func (b *board) fuller(n int, x, y []cluster.Claim) bool {
	sum := func(claims []cluster.Claim) (sum cluster.Milli) {
		for _, c := range claims {
			sum += b.rooms[n].devices[c.Device].milli
		}
		return sum
	}
	return sum(x) > sum(y)
}
