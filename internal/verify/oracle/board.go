package oracle

import (
	"math/bits"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// board is what holds or was promised what. It is changed in place and back.
type board struct {
	*table
	rooms []room
	used  []vector // by queue, with all below it
	firm  []vector // of this, what is not preemptible
	at    []seat   // by task
	gone  uint64   // tasks that were evicted and may not be placed again
	steps int      // of searches, left

	fresh  uint64          // tasks that were placed in this session
	flying uint64          // tasks that moved in this session
	served map[string]bool // jobs that others were evicted for in this session
	// displaced are the jobs that were evicted for a job in this session, or moved.
	displaced map[string][]string

	// While the seats of a plan are searched:
	flow  []flow // by node; nil: of no plan
	most  int64  // that may be freed beyond what is needed
	spent int64  // that was, by the seats that were found
	from  []seat // by task: where a task comes from that moves
}

// room is what a node has left.
type room struct {
	free    vector // cpu and memory
	devices []slot
}

// slot is what is held of a device, and by whom: company says who may join them.
type slot struct {
	milli   cluster.Milli
	memory  cluster.Bytes
	holders int
	company string
}

type seat struct {
	node   int // -1: none
	claims []cluster.Claim
	bound  bool
}

func newBoard(w *table) *board {
	b := &board{table: w, rooms: make([]room, len(w.nodes)), used: make([]vector, len(w.queues)), firm: make([]vector, len(w.queues)), at: make([]seat, len(w.tasks)),
		served: map[string]bool{}, displaced: map[string][]string{}, from: make([]seat, len(w.tasks))}
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
					b.sit(t, seat{node: i, claims: t.Claims, bound: t.Runs()})
				}
			}
		}
	}
	return b
}

// company is whom the task tolerates beside it on a device.
func company(t *task) string {
	switch iso := t.Shape.Isolation; {
	case iso.GPU == cluster.GPUDeviceExclusive, iso.GPU == cluster.GPUSessionExclusive && iso.Session == "":
		return "nobody"
	case iso.GPU == cluster.GPUSessionExclusive:
		return "session " + iso.Session
	}
	return "anybody"
}

func (b *board) sits(t *task) bool { return b.at[t.index].node >= 0 }

// pending reports whether the task may be placed.
func (b *board) pending(t *task) bool { return !b.sits(t) && b.gone&t.bit() == 0 }

// stands reports whether the tasks that sit make the job's minimum, some of them left out.
func (b *board) stands(j *job, without uint64) bool {
	return enough(j, func(t *task) bool { return b.sits(t) && without&t.bit() == 0 })
}

// standsIn reports whether the job stands in one of its forms.
func (b *board) standsIn(j *job) bool {
	return slices.ContainsFunc(j.forms, func(form *job) bool { return b.stands(form, 0) })
}

// enough reports whether the tasks that count make the job's minimum and those of its subgroups.
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

// holds is what the task takes of its queue where it sits.
func (b *board) holds(t *task) vector {
	v := vectorOf(t.Shape.Resources, 0)
	for _, c := range b.at[t.index].claims {
		v[gpu] += int64(c.Milli)
	}
	return v
}

func (b *board) sit(t *task, s seat) {
	b.at[t.index] = s
	b.book(t, +1)
}

// rise takes the task off its seat and returns it.
func (b *board) rise(t *task) seat {
	s := b.at[t.index]
	b.book(t, -1)
	b.at[t.index] = seat{node: -1}
	return s
}

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

// allows says what keeps the job's queues from having so much more; "" if nothing does.
func (b *board) allows(j *job, more vector) string {
	for _, q := range j.branch {
		for r := range more {
			if more[r] == 0 {
				continue
			}
			if l := q.limit[r]; l >= 0 && b.used[q.index][r]+more[r] > l {
				return "its queue goes beyond its limit"
			}
			if l := q.declared[r]; l >= 0 && !j.Preemptible && b.firm[q.index][r]+more[r] > l {
				return "what is not preemptible goes beyond the quota"
			}
		}
	}
	return ""
}

// takes says what keeps the task from having these devices of the node; "" if nothing does.
func (b *board) takes(t *task, n int, claims []cluster.Claim) string {
	node, r := b.nodes[n], &b.rooms[n]
	for i := range r.free {
		if t.asks[i] > r.free[i] && i != gpu {
			return "the node has not enough cores or memory"
		}
	}
	if len(claims) != devicesOf(t, node) {
		return "not as many devices as it asks for"
	}
	for i, c := range claims {
		if c.Device < 0 || c.Device >= len(node.Devices) || i > 0 && claims[i-1].Device >= c.Device {
			return "a device is not there or claimed twice"
		}
		if !b.joins(t, n, c.Device) {
			return "a device is of another kind, too small or held by others"
		}
		if c != claimOn(t, c.Device, &node.Devices[c.Device]) {
			return "a claim is not what it asks for"
		}
	}
	return ""
}

// joins reports whether the task can have the device beside those who hold it.
func (b *board) joins(t *task, n, device int) bool {
	d, held := &b.nodes[n].Devices[device], &b.rooms[n].devices[device]
	if !ofKind(t, d) || !supports(b.nodes[n], t) {
		return false
	}
	if held.holders > 0 && (held.company != company(t) || held.company == "nobody") {
		return false
	}
	c := claimOn(t, device, d)
	return held.milli+c.Milli <= cluster.Whole && held.memory+c.Memory <= d.Memory
}

// supports reports whether the node honours the task's class. A part of a device
// is sharing unless it says otherwise.
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

// members are the tasks of a set.
func (w *table) members(set uint64) []*task {
	out := make([]*task, 0, bits.OnesCount64(set))
	for ; set != 0; set &= set - 1 {
		out = append(out, w.tasks[bits.TrailingZeros64(set)])
	}
	return out
}
