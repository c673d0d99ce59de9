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

// of returns the mask of the sequence for the amount.
func (m *masks) of(amount int64, sequence int) uint64 {
	if at := m.at(amount); at >= 0 {
		return m.rows[sequence][at]
	}
	return 0
}

// below returns the mask of the row for the limit before the one with the index.
func below(row []uint64, limit int32) uint64 {
	if limit == 0 {
		return 0
	}
	return row[limit-1]
}

// stepsOfKind are the steps of the sequences on a machine of which all devices are of one kind.
type stepsOfKind struct {
	steps  []step        // by request
	single masks         // of the steps with one device, by its price
	many   masks         // of the steps with several devices, by their number
	least  cluster.Milli // the lowest price of a device of those with several
	lowest cluster.Milli // the lowest price of all
}

// step is what a request takes of a machine.
type step struct {
	cpu, memory           int64
	cpuLimit, memoryLimit int32 // their indexes in workload.cpu and workload.memory
	devices               int32
	price                 cluster.Milli // of each device
}

// stepsOf returns the steps for the kind.
func (w *workload) stepsOf(kind int32) *stepsOfKind {
	for int(kind) >= len(w.byKind) {
		w.byKind = append(w.byKind, nil)
	}
	if w.byKind[kind] != nil {
		return w.byKind[kind]
	}
	k := &stepsOfKind{least: math.MaxInt32, lowest: math.MaxInt32}
	for i := range w.requests {
		q := &w.requests[i]
		k.steps = append(k.steps, step{
			cpu: q.cpu, memory: int64(q.memory), cpuLimit: int32(w.cpu.at(q.cpu)), memoryLimit: int32(w.memory.at(int64(q.memory))),
			devices: int32(q.devices), price: q.price[kind],
		})
		if q.devices > 1 && q.price[kind] > 0 {
			k.least = min(k.least, q.price[kind])
		}
		if q.devices > 0 && q.price[kind] > 0 {
			k.lowest = min(k.lowest, q.price[kind])
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

// pool is what is free of the devices of a node that are all of one kind. Rooms with the same pool
// differ in cores and memory.
type pool struct {
	kind  int32
	free  []cluster.Milli // of each device that is not full, the freest first
	milli int64           // the sum of free

	number   uint64           // of the workload that the outcomes are for
	sums     []outcome        // of all sequences together
	outcomes [sequences]int32 // by sequence: one plus the index in workload.outcomes of an outcome; 0: none is known
}

// outcome is how much of a pool is held when each request of a sequence took what fits. It holds for
// all amounts of cores and memory with which the same requests fit.
type outcome struct {
	cpuFrom, cpuTo       int64 // at least, and less than
	memoryFrom, memoryTo int64
	held                 int64
	early                int64 // the sum of what the requests hold, each multiplied by early of its step
	next                 int32 // as in pool.outcomes: another outcome of the pool and the sequence
}

// always is an outcome that holds for all amounts.
func always() outcome { return outcome{cpuTo: math.MaxInt64, memoryTo: math.MaxInt64} }

// holds reports whether the outcome holds for these amounts.
func (o *outcome) holds(cpu, memory int64) bool {
	return cpu >= o.cpuFrom && cpu < o.cpuTo && memory >= o.memoryFrom && memory < o.memoryTo
}

// add adds the outcome of another sequence.
func (o *outcome) add(a *outcome) {
	o.cpuFrom, o.cpuTo = max(o.cpuFrom, a.cpuFrom), min(o.cpuTo, a.cpuTo)
	o.memoryFrom, o.memoryTo = max(o.memoryFrom, a.memoryFrom), min(o.memoryTo, a.memoryTo)
	o.held += a.held
	o.early += a.early
}

// outcomes is a list that grows page by page, because to copy so much memory takes long.
type outcomes struct {
	pages  [][]outcome
	length int32
}

const outcomesOfPage = 4096

func (l *outcomes) at(i int32) *outcome { return &l.pages[i/outcomesOfPage][i%outcomesOfPage] }

func (l *outcomes) add(o *outcome) {
	if int(l.length) == len(l.pages)*outcomesOfPage {
		l.pages = append(l.pages, make([]outcome, outcomesOfPage))
	}
	l.length++
	*l.at(l.length - 1) = *o
}

// empty removes all outcomes and keeps the memory.
func (l *outcomes) empty() { l.length = 0 }

// maxOutcomes and maxSums bound the memory for outcomes, and the time to look for one. More are not
// kept.
const (
	maxOutcomes = 1 << 20
	maxSums     = 64 // of a pool
)

// fill returns the fill value of the room if no task ends.
func (w *workload) fill(r *room) int64 {
	if r.filledAt == w.number {
		return r.worth
	}
	r.filledAt, r.worth, r.early = w.number, 0, 0
	if r.milli == 0 || len(w.sequences) == 0 {
		return 0
	}
	var held, early int64
	if r.pool == nil {
		held, early = w.runMixed(r)
	} else {
		held, early = w.runAll(r.pool, r.cpu, r.memory)
	}
	r.worth, r.early = held*unit/sequences, early/sequences
	return r.worth
}

// runAll returns how much of the devices is held after each sequence, summed up: without weights, and
// weighted by early.
func (w *workload) runAll(p *pool, cpu, memory int64) (held, early int64) {
	if p.number != w.number {
		p.number, p.sums = w.number, p.sums[:0]
		clear(p.outcomes[:])
	}
	for i := range p.sums {
		if p.sums[i].holds(cpu, memory) {
			return p.sums[i].held, p.sums[i].early
		}
	}
	k := w.stepsOf(p.kind)
	sum := always()
	for s := range w.sequences {
		if o := w.known(p, s, cpu, memory); o != nil {
			sum.add(o)
			continue
		}
		o := w.run(p, k, s, cpu, memory)
		sum.add(&o)
		if o.next = p.outcomes[s]; w.outcomes.length < maxOutcomes {
			w.outcomes.add(&o)
			p.outcomes[s] = w.outcomes.length
		}
	}
	if len(p.sums) < maxSums {
		p.sums = append(p.sums, sum)
	}
	return sum.held, sum.early
}

// known returns the outcome of the sequence if it is known.
func (w *workload) known(p *pool, s int, cpu, memory int64) *outcome {
	for i := p.outcomes[s]; i > 0; i = w.outcomes.at(i - 1).next {
		if o := w.outcomes.at(i - 1); o.holds(cpu, memory) {
			return o
		}
	}
	return nil
}

// run computes the outcome of the sequence. It visits only steps that may fit: less is left after each
// step that fits, so when a step does not fit, later ones that request as much do not fit either.
func (w *workload) run(p *pool, k *stepsOfKind, s int, cpu, memory int64) outcome {
	sequence, cpuOnly, cpuRow, memoryRow := w.sequences[s], w.cpuOnly[s], w.cpu.rows[s], w.memory.rows[s]
	free := w.scratch[:0] // the devices that are free enough for some step
	for _, f := range p.free {
		if f >= k.lowest {
			free = append(free, f)
		}
	}
	w.scratch = free
	single, many := k.single.of(freest(free), s), k.many.of(countFree(free, k.least), s)
	o := always()
	for fit := single | many | cpuOnly; fit&^cpuOnly != 0; {
		at := bits.TrailingZeros64(fit)
		x := &k.steps[sequence[at]]
		fit &= fit - 1
		if x.cpu > cpu-o.cpuFrom {
			o.cpuTo = min(o.cpuTo, sum(o.cpuFrom, x.cpu))
			fit &= below(cpuRow, x.cpuLimit)
			continue
		}
		if x.memory > memory-o.memoryFrom {
			o.memoryTo = min(o.memoryTo, sum(o.memoryFrom, x.memory))
			fit &= below(memoryRow, x.memoryLimit)
			continue
		}
		switch {
		case x.devices == 1:
			i := tightest(free, x.price)
			if i < 0 {
				single = k.single.of(freest(free), s)
				fit &= single | many | cpuOnly
				continue
			}
			if free[i] -= x.price; free[i] < k.lowest {
				for ; i+1 < len(free); i++ { // there are few: append takes longer
					free[i] = free[i+1]
				}
				free = free[:i]
			}
		case x.devices > 1:
			if !x.takeFirst(free) {
				many = k.many.of(countFree(free, k.least), s)
				fit &= single | many | cpuOnly
				continue
			}
		}
		o.cpuFrom += x.cpu
		o.memoryFrom += x.memory
		taken := int64(x.devices) * int64(x.price)
		o.early += taken * early[at]
		if o.held += taken; o.held == p.milli {
			break
		}
	}
	return o
}

// sum returns a + b, or the highest number if that is more.
func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// tightest returns the index of the device that is the least free of those that are free enough, or -1.
func tightest(free []cluster.Milli, price cluster.Milli) int {
	best, least := -1, uint32(math.MaxInt32)
	for i, f := range free {
		if over := uint32(f - price); over < least { // that of a device that is not free enough is higher
			best, least = i, over
		}
	}
	return best
}

// freest returns how free the freest device is; 0 if there is none.
func freest(free []cluster.Milli) (most int64) {
	for _, f := range free {
		most = max(most, int64(f))
	}
	return most
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
func (w *workload) runMixed(r *room) (held, sooner int64) {
	for _, sequence := range w.sequences {
		cpu, memory, left := r.cpu, r.memory, r.milli
		free := append(w.scratch[:0], r.free...)
		w.scratch = free
		for at, i := range sequence {
			q := &w.requests[i]
			if q.cpu > cpu || int64(q.memory) > memory {
				continue
			}
			if q.devices > 0 {
				taken := q.take(free, r.machine.kinds)
				if taken == 0 {
					continue
				}
				sooner += taken * early[at]
				if left -= taken; left == 0 {
					break
				}
			}
			cpu -= q.cpu
			memory -= int64(q.memory)
		}
		held += r.milli - left
	}
	return held, sooner
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
