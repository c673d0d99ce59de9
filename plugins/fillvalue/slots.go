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

// slotsOf returns how many tasks of each slot the room takes, multiplied by unit: expected after
// each device that is held is released with the probability q, in parts of certain.
func (w *workload) slotsOf(r *room, q int64) []int64 {
	if r.slotsFor == w.number && r.slotsAt == q {
		return r.slots
	}
	r.slotsFor, r.slotsAt = w.number, q
	r.slots = slices.Grow(r.slots[:0], len(w.slots))[:len(w.slots)]
	for i := range w.slots {
		r.slots[i] = w.requests[w.slots[i].request].expected(r, w.chances(q))
	}
	return r.slots
}

// certain is the probability 1.
const certain = 1 << 20

// chances are the probabilities that some of several devices are released.
type chances struct {
	release int64     // the probability for one device, in parts of certain
	of      [][]int64 // see binomial, by the number of devices; nil if not known yet
}

// chances returns the probabilities for the release probability q.
func (w *workload) chances(q int64) *chances {
	if w.released.release != q {
		w.released = chances{release: q}
	}
	return &w.released
}

// among returns the probabilities that 0, 1, … of n devices are released.
func (c *chances) among(n int64) []int64 {
	for int64(len(c.of)) <= n {
		c.of = append(c.of, nil)
	}
	if c.of[n] == nil {
		c.of[n] = binomial(n, c.release)
	}
	return c.of[n]
}

// expected returns how many tasks with the request the room is expected to take, multiplied by unit.
func (q *request) expected(r *room, c *chances) int64 {
	idle, busy := int64(0), int64(0)
	for i, f := range r.free {
		switch p := q.price[r.machine.kinds[i]]; {
		case p == 0:
		case f >= p:
			idle++
		default:
			busy++
		}
	}
	if c.release == 0 || busy == 0 {
		return unit * min(idle/int64(q.devices), times(r.cpu, q.cpu))
	}
	var sum int64
	held := max(0, r.machine.cpu-r.cpu)
	for b, p := range c.among(busy) {
		cpu := r.cpu + held*int64(b)/busy
		sum += p * min((idle+int64(b))/int64(q.devices), times(cpu, q.cpu))
	}
	return sum * unit / certain
}

// times returns how often want is in have.
func times(have, want int64) int64 {
	if want <= 0 {
		return int64(cluster.Whole)
	}
	return have / want
}

// binomial returns the probabilities that 0, 1, … of n devices are released, each with the
// probability q. They are in parts of certain.
func binomial(n, q int64) []int64 {
	out := make([]int64, n+1)
	out[0] = certain
	for i := range n {
		for k := i + 1; k > 0; k-- {
			out[k] = (out[k]*(certain-q) + out[k-1]*q) / certain
		}
		out[0] = out[0] * (certain - q) / certain
	}
	return out
}
