package fillvalue

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// slot is room for a request of several whole devices of one node; several parts of devices are found
// more easily. Requests of as many devices of the same products that differ in cores share slots.
type slot struct {
	request int   // its index in workload.requests
	weight  int64 // of the requests that need such a slot: that are at least as large
}

// Requests of one number of devices and one list of products have at most slotSizes slots, which
// differ in cores and memory, and maxSlots are kept in all.
const (
	slotSizes = 8
	maxSlots  = 40
)

// makeSlots chooses the slots: for each number of devices and list of products, the requests that
// an eighth of the tasks does not exceed in cores, two eighths, and so on.
func (w *workload) makeSlots() {
	var large []int
	for i := range w.requests {
		if q := &w.requests[i]; q.devices > 1 && q.milli >= int64(q.devices)*int64(cluster.Whole) {
			large = append(large, i)
		}
	}
	kind := func(a, b int) int {
		x, y := &w.requests[a], &w.requests[b]
		return cmp.Or(cmp.Compare(x.devices, y.devices), slices.Compare(x.shape.Need.Products, y.shape.Need.Products))
	}
	slices.SortStableFunc(large, func(a, b int) int {
		x, y := &w.requests[a], &w.requests[b]
		return cmp.Or(kind(a, b), cmp.Compare(x.cpu, y.cpu), cmp.Compare(x.memory, y.memory))
	})
	for from := 0; from < len(large); {
		to := from
		var total, sum int64
		for to < len(large) && kind(large[from], large[to]) == 0 {
			total += w.requests[large[to]].weight
			to++
		}
		size := int64(1)
		for _, i := range large[from:to] {
			if sum += w.requests[i].weight; sum*slotSizes >= total*size {
				w.slots = append(w.slots, slot{request: i})
				size = sum*slotSizes/total + 1
			}
		}
		from = to
	}
	for i := range w.slots {
		s := &w.slots[i]
		for j := range w.requests {
			if w.requests[j].needs(&w.requests[s.request]) {
				s.weight += w.requests[j].weight
			}
		}
	}
	slices.SortStableFunc(w.slots, func(a, b slot) int {
		return cmp.Compare(b.weight*int64(w.requests[b.request].devices), a.weight*int64(w.requests[a.request].devices))
	})
	w.slots = w.slots[:min(len(w.slots), maxSlots)]
}

// needs reports whether a task with the request q needs a slot for the request s: it is at least as
// large, and may use the same products.
func (q *request) needs(s *request) bool {
	return q.devices >= s.devices && q.cpu >= s.cpu && compatible(q.shape.Need.Products, s.shape.Need.Products)
}

// compatible reports whether a device may satisfy both lists of products; an empty list allows all.
func compatible(a, b []string) bool {
	return len(a) == 0 || len(b) == 0 || slices.ContainsFunc(a, func(p string) bool { return slices.Contains(b, p) })
}

// slotsOf returns how many tasks of each slot the room takes.
func (w *workload) slotsOf(r *room) []int64 {
	return r.slots.of(w, func(q *request) int64 { return q.timesIn(r.machine.kinds, r.free, r.cpu) })
}

// slotsOfMachine returns how many tasks of each slot the machine takes if nothing else is on it.
func (w *workload) slotsOfMachine(m *machine) []int64 {
	return m.slots.of(w, func(q *request) int64 { return q.timesIn(m.kinds, nil, m.cpu) })
}

// slotCounts remembers numbers for the slots of a workload.
type slotCounts struct {
	counts []int64
	number uint64 // of the workload
}

func (c *slotCounts) of(w *workload, count func(*request) int64) []int64 {
	if c.number != w.number {
		c.number = w.number
		c.counts = slices.Grow(c.counts[:0], len(w.slots))[:len(w.slots)]
		for i := range w.slots {
			c.counts[i] = count(&w.requests[w.slots[i].request])
		}
	}
	return c.counts
}

// timesIn returns how many tasks with the request fit into the cores and devices. If free is nil, all
// devices are free.
func (q *request) timesIn(kinds []int32, free []cluster.Milli, cpu int64) int64 {
	var n int64
	for i, k := range kinds {
		if p := q.price[k]; p > 0 && (free == nil || free[i] >= p) {
			n++
		}
	}
	return min(n/int64(q.devices), times(cpu, q.cpu))
}

// certain is the probability 1.
const certain = 1 << 20

// drained returns the probability that all tasks on a node with the room end, if each of them ends
// with the probability release. Both are in parts of certain. It is 0 if there are no tasks.
func (r *room) drained(release int64) int64 {
	if r.tasks == 0 {
		return 0
	}
	all := int64(certain)
	for range r.tasks {
		all = all * release / certain
	}
	return all
}

// times returns how often want is in have.
func times(have, want int64) int64 {
	if want <= 0 {
		return int64(cluster.Whole)
	}
	return have / want
}
