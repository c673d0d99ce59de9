package fillvalue

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// masks tell which steps of the sequences an amount allows. Bit i of a mask is step i of a sequence.
// Each amount that some request has is a limit, with a mask for each sequence: the steps that
// request at most as much.
type masks struct {
	limits []int64 // increasing
	rows   [sequences][]uint64
}

// newMasks makes masks of what the requests request. Those with a negative amount are left out.
func newMasks(w *workload, amount func(*request) int64) masks {
	var m masks
	for i := range w.requests {
		if a := amount(&w.requests[i]); a >= 0 {
			m.limits = append(m.limits, a)
		}
	}
	slices.Sort(m.limits)
	m.limits = slices.Compact(m.limits)
	limitOf := make([]int, len(w.requests))
	for i := range w.requests {
		limitOf[i] = m.at(amount(&w.requests[i]))
	}
	for s, sequence := range w.sequences {
		row := make([]uint64, len(m.limits))
		for i, q := range sequence {
			if r := limitOf[q]; r >= 0 {
				row[r] |= 1 << i
			}
		}
		for r := 1; r < len(row); r++ {
			row[r] |= row[r-1]
		}
		m.rows[s] = row
	}
	return m
}

// at returns the index of the highest limit that is not above the amount, or -1.
func (m *masks) at(amount int64) int {
	i, exact := slices.BinarySearch(m.limits, amount)
	if !exact {
		i--
	}
	return i
}

// of returns the mask of the sequence for the limit.
func (m *masks) of(at, sequence int) uint64 {
	if at < 0 {
		return 0
	}
	return m.rows[sequence][at]
}

// stepsOfKind are the steps of the sequences on a machine of which all devices are of one kind.
type stepsOfKind struct {
	steps  []step        // by request
	single masks         // of the steps with one device, by its price
	many   masks         // of the steps with several devices, by their number
	least  cluster.Milli // the lowest price of a device of those with several
}

// step is what a request takes of a machine.
type step struct {
	cpu, memory int64
	devices     int32
	price       cluster.Milli // of each device
}

// stepsOf returns the steps for the kind.
func (w *workload) stepsOf(kind int32) *stepsOfKind {
	for int(kind) >= len(w.byKind) {
		w.byKind = append(w.byKind, nil)
	}
	if w.byKind[kind] != nil {
		return w.byKind[kind]
	}
	k := &stepsOfKind{least: math.MaxInt32}
	for i := range w.requests {
		q := &w.requests[i]
		k.steps = append(k.steps, step{cpu: q.cpu, memory: int64(q.memory), devices: int32(q.devices), price: q.price[kind]})
		if q.devices > 1 && q.price[kind] > 0 {
			k.least = min(k.least, q.price[kind])
		}
	}
	k.single = newMasks(w, func(q *request) int64 {
		if q.devices != 1 || q.price[kind] == 0 {
			return -1
		}
		return int64(q.price[kind])
	})
	k.many = newMasks(w, func(q *request) int64 {
		if q.devices < 2 || q.price[kind] == 0 {
			return -1
		}
		return int64(q.devices)
	})
	w.byKind[kind] = k
	return k
}

// fill returns the fill value of the room.
func (w *workload) fill(r *room) int64 {
	if r.filledAt == w.number {
		return r.worth
	}
	r.filledAt, r.worth = w.number, 0
	if r.milli == 0 || len(w.sequences) == 0 {
		return 0
	}
	held := w.runMixed
	if kinds := r.machine.kinds; kinds[0] == kinds[len(kinds)-1] {
		held = w.run
	}
	r.worth = held(r) * unit / sequences
	return r.worth
}

// run returns how much of the devices is held after each request of a sequence took what fits,
// summed up over the sequences. All devices are of one kind. The masks leave out steps that do not
// fit. They are looked up again when a step is met that fits no longer.
func (w *workload) run(r *room) int64 {
	k := w.stepsOf(r.machine.kinds[0])
	allMemory := r.memory * int64(r.machine.memory) / parts
	cpuAt, memoryAt, singleAt, manyAt := w.cpu.at(r.cpu), w.memory.at(allMemory), k.single.at(int64(slices.Max(r.free))), k.many.at(countFree(r.free, k.least))
	var sum int64
	for s, sequence := range w.sequences {
		cpuOnly := w.cpuOnly[s]
		fit := w.cpu.of(cpuAt, s) & w.memory.of(memoryAt, s) & (k.single.of(singleAt, s) | k.many.of(manyAt, s) | cpuOnly)
		if fit&^cpuOnly == 0 {
			continue
		}
		free := append(w.scratch[:0], r.free...)
		w.scratch = free
		cpu, memory, left := r.cpu, allMemory, r.milli
		for fit&^cpuOnly != 0 {
			x := &k.steps[sequence[bits.TrailingZeros64(fit)]]
			fit &= fit - 1
			switch {
			case x.cpu > cpu:
				fit &= w.cpu.of(w.cpu.at(cpu), s)
				continue
			case x.memory > memory:
				fit &= w.memory.of(w.memory.at(memory), s)
				continue
			case x.devices == 1:
				if !takeTightest(free, x.price) {
					fit &= k.single.of(k.single.at(int64(slices.Max(free))), s) | k.many.of(manyAt, s) | cpuOnly
					continue
				}
			case x.devices > 1:
				if !x.takeFirst(free) {
					fit &= k.single.of(singleAt, s) | k.many.of(k.many.at(countFree(free, k.least)), s) | cpuOnly
					continue
				}
			}
			cpu -= x.cpu
			memory -= x.memory
			if left -= int64(x.devices) * int64(x.price); left == 0 {
				break
			}
		}
		sum += r.milli - left
	}
	return sum
}

// takeTightest takes the price from the device that is the least free of those that are free
// enough, and reports whether there is one.
func takeTightest(free []cluster.Milli, price cluster.Milli) bool {
	best, least := -1, cluster.Milli(math.MaxInt32)
	for i, f := range free {
		if f >= price && f < least {
			best, least = i, f
		}
	}
	if best >= 0 {
		free[best] -= price
	}
	return best >= 0
}

// takeFirst takes several devices, the first that are free enough, and reports whether they fit.
func (x *step) takeFirst(free []cluster.Milli) bool {
	left := int64(x.devices)
	if countFree(free, x.price) < left {
		return false
	}
	for i := range free {
		if free[i] >= x.price && left > 0 {
			free[i] -= x.price
			left--
		}
	}
	return true
}

// countFree returns how many devices are at least as free as the price.
func countFree(free []cluster.Milli, price cluster.Milli) int64 {
	var n int64
	for _, f := range free {
		if f >= price {
			n++
		}
	}
	return n
}

// runMixed is run for a machine with several kinds of devices.
func (w *workload) runMixed(r *room) int64 {
	var sum int64
	for _, sequence := range w.sequences {
		cpu, memory, left := r.cpu, r.memory*int64(r.machine.memory)/parts, r.milli
		free := append(w.scratch[:0], r.free...)
		w.scratch = free
		for _, i := range sequence {
			q := &w.requests[i]
			if q.cpu > cpu || int64(q.memory) > memory {
				continue
			}
			if q.devices > 0 {
				taken := q.take(free, r.machine.kinds)
				if taken == 0 {
					continue
				}
				if left -= taken; left == 0 {
					break
				}
			}
			cpu -= q.cpu
			memory -= int64(q.memory)
		}
		sum += r.milli - left
	}
	return sum
}

// take takes the devices of the request from those of a machine with several kinds. It returns how
// much it took; 0 if the request does not fit. One device is
// the tightest, and several are the first.
func (q *request) take(free []cluster.Milli, kinds []int32) int64 {
	var order []int
	for i, f := range free {
		if p := q.price[kinds[i]]; p > 0 && f >= p {
			order = append(order, i)
		}
	}
	if len(order) < q.devices {
		return 0
	}
	if q.devices == 1 {
		order[0] = slices.MinFunc(order, func(a, b int) int { return cmp.Compare(free[a], free[b]) })
	}
	var taken int64
	for _, i := range order[:q.devices] {
		p := q.price[kinds[i]]
		free[i] -= p
		taken += int64(p)
	}
	return taken
}
