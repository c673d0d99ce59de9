package oracle

import (
	"math/bits"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// board records where tasks are placed and what queues use. Searches change it in place
// and undo their changes.
type board struct {
	*table
	rooms []room
	used  []vector   // by queue, including its children
	firm  []vector   // the part of used that is not preemptible
	at    []location // by task
	gone  uint64     // tasks that were evicted and must not be placed again
	steps int        // the steps that searches may still take

	placedNow  uint64          // tasks that were placed in this session
	moving     uint64          // tasks that moved in this session
	evictedFor map[string]bool // jobs for which tasks were evicted in this session
	// displaced maps a job to the jobs that had tasks evicted or moved for it in this
	// session.
	displaced map[string][]string

	// Used while the placement of a plan is searched:
	flow  []flow     // by node; nil if there is no plan
	most  int64      // how much the plan may free beyond what is needed
	spent int64      // how much the placement that was found frees beyond what is needed
	from  []location // by task: where a task that moves was before
}

// room is what is free on a node.
type room struct {
	free    vector // cpu and memory
	devices []slot
}

// slot is what is held of a device. company says which tasks may also hold it; see the
// function company.
type slot struct {
	milli   cluster.Milli
	memory  cluster.Bytes
	holders int
	company string
}

type location struct {
	node   int // -1: none
	claims []cluster.Claim
	bound  bool
}

func newBoard(w *table) *board {
	b := &board{table: w, rooms: make([]room, len(w.nodes)), used: make([]vector, len(w.queues)), firm: make([]vector, len(w.queues)), at: make([]location, len(w.tasks)),
		evictedFor: map[string]bool{}, displaced: map[string][]string{}, from: make([]location, len(w.tasks))}
	for i, n := range w.nodes {
		b.rooms[i].devices = make([]slot, len(n.Devices))
		for _, l := range n.Resources {
			for r := range names {
				if l.Name == names[r] {
					b.rooms[i].free[r] = l.Capacity
				}
			}
		}
	}
	for _, t := range w.tasks {
		b.at[t.index].node, b.from[t.index].node = -1, -1
		if t.Node != nil {
			for i, n := range w.nodes {
				if n == t.Node {
					b.place(t, location{node: i, claims: t.Claims, bound: t.Runs()})
				}
			}
		}
	}
	return b
}

// company returns which other tasks may hold a device together with the task: "none",
// those of a session, or "any". Tasks on one device must have the same company.
func company(t *task) string {
	switch iso := t.Shape.Isolation; {
	case iso.GPU == cluster.GPUDeviceExclusive, iso.GPU == cluster.GPUSessionExclusive && iso.Session == "":
		return "none"
	case iso.GPU == cluster.GPUSessionExclusive:
		return "session " + iso.Session
	}
	return "any"
}

func (b *board) isPlaced(t *task) bool { return b.at[t.index].node >= 0 }

// pending reports whether the task may be placed.
func (b *board) pending(t *task) bool { return !b.isPlaced(t) && b.gone&t.bit() == 0 }

// hasMinimum reports whether the placed tasks of the job, except those in without, make
// its minimum.
func (b *board) hasMinimum(j *job, without uint64) bool {
	return enough(j, func(t *task) bool { return b.isPlaced(t) && without&t.bit() == 0 })
}

// hasAnyMinimum reports whether the minimum of one of the job's forms is placed.
func (b *board) hasAnyMinimum(j *job) bool {
	return slices.ContainsFunc(j.forms, func(form *job) bool { return b.hasMinimum(form, 0) })
}

// enough reports whether the tasks that count make the job's minimum and the minima of
// its subgroups.
func enough(j *job, counts func(*task) bool) bool {
	total := 0
	parts := make([]int, len(j.alt.Subgroups)+1)
	for _, t := range j.tasks {
		if counts(t) {
			total++
			parts[t.Subgroup]++
		}
	}
	for i := range j.alt.Subgroups {
		if parts[i+1] < j.alt.Subgroups[i].Min {
			return false
		}
	}
	return total >= j.alt.Min
}

// holds returns what the task uses of its queue where it is placed.
func (b *board) holds(t *task) vector {
	v := vectorOf(t.Shape.Resources, 0)
	for _, c := range b.at[t.index].claims {
		v[gpu] += int64(c.Milli)
	}
	return v
}

func (b *board) place(t *task, s location) {
	b.at[t.index] = s
	b.book(t, +1)
}

// remove removes the task from its location and returns the location.
func (b *board) remove(t *task) location {
	s := b.at[t.index]
	b.book(t, -1)
	b.at[t.index] = location{node: -1}
	return s
}

// book adds what the task holds to its node and its queues, or subtracts it.
func (b *board) book(t *task, sign int64) {
	s := b.at[t.index]
	r := &b.rooms[s.node]
	v := b.holds(t)
	for _, q := range t.job.branch {
		b.used[q.index] = b.used[q.index].plus(v, sign)
		if !t.job.Preemptible {
			b.firm[q.index] = b.firm[q.index].plus(v, sign)
		}
	}
	v[gpu] = 0
	r.free = r.free.plus(v, -sign)
	for _, c := range s.claims {
		d := &r.devices[c.Device]
		d.milli += cluster.Milli(sign) * c.Milli
		d.memory += cluster.Bytes(sign) * c.Memory
		if d.holders += int(sign); d.holders == 0 {
			d.company = ""
		} else {
			d.company = company(t)
		}
	}
}

// queueViolation returns the rule that keeps the queues of the job from using more by
// the given amounts, or "".
func (b *board) queueViolation(j *job, more vector) string {
	for _, q := range j.branch {
		for r := range more {
			if more[r] == 0 {
				continue
			}
			if l := q.limit[r]; l >= 0 && b.used[q.index][r]+more[r] > l {
				return "its queue exceeds its limit"
			}
			if l := q.declared[r]; l >= 0 && !j.Preemptible && b.firm[q.index][r]+more[r] > l {
				return "jobs that are not preemptible exceed the quota"
			}
		}
	}
	return ""
}

// nodeViolation returns what keeps the task from being placed on these devices of the
// node, or "".
func (b *board) nodeViolation(t *task, n int, claims []cluster.Claim) string {
	node, r := b.nodes[n], &b.rooms[n]
	for i := range r.free {
		if t.asks[i] > r.free[i] && i != gpu {
			return "the node does not have enough cores or memory"
		}
	}
	if len(claims) != devicesOf(t, node) {
		return "another number of devices than it requests"
	}
	for i, c := range claims {
		if c.Device < 0 || c.Device >= len(node.Devices) || i > 0 && claims[i-1].Device >= c.Device {
			return "a device does not exist or is claimed twice"
		}
		if !b.canHold(t, n, c.Device) {
			return "a device is of another product, too small or held by other tasks"
		}
		if c != claimOn(t, c.Device, &node.Devices[c.Device]) {
			return "a claim differs from its request"
		}
	}
	return ""
}

// canHold reports whether the task can hold the device together with its holders.
func (b *board) canHold(t *task, n, device int) bool {
	d, held := &b.nodes[n].Devices[device], &b.rooms[n].devices[device]
	if !ofKind(t, d) || !supports(b.nodes[n], t) {
		return false
	}
	if held.holders > 0 && (held.company != company(t) || held.company == "none") {
		return false
	}
	c := claimOn(t, device, d)
	return held.milli+c.Milli <= cluster.Whole && held.memory+c.Memory <= d.Memory
}

// supports reports whether the node supports the isolation class of the task. Shared
// devices need no support.
func supports(n *cluster.Node, t *task) bool {
	switch class := t.Shape.Isolation.GPU; class {
	case cluster.GPUDeviceExclusive, cluster.GPUSessionExclusive:
		for _, c := range n.SupportedIsolation.GPU {
			if c == class {
				return true
			}
		}
		return false
	}
	return true
}

// members returns the tasks of a set.
func (w *table) members(set uint64) []*task {
	out := make([]*task, 0, bits.OnesCount64(set))
	for ; set != 0; set &= set - 1 {
		out = append(out, w.tasks[bits.TrailingZeros64(set)])
	}
	return out
}
