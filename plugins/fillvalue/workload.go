package fillvalue

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// workload is what tasks are expected to request.
type workload struct {
	requests  []request
	sequences [][]int32 // of indexes in requests
	slots     []slot
	sets      [][]string // the sets of products to which some requests are confined
	weight    int64      // of all requests
	mean      int64      // weight × thousandths of devices, summed up over requests
	square    float64    // weight × thousandths of devices squared, summed up over requests
	scratch   []cluster.Milli
	kinds     int // for how many kinds of devices the prices of requests are known
}

// request is something that tasks request.
type request struct {
	shape   cluster.Shape // only Resources and Need
	weight  int64
	cpu     int64
	memory  cluster.Bytes
	devices int
	price   []cluster.Milli // by kind: what it takes of each device; 0 if it cannot use the kind
	milli   int64           // of all its devices, as far as this does not depend on the kind
	set     int             // the index of its products in workload.sets; -1 if it is not confined
}

// How many sequences there are and how long they are. Longer ones do not pack better; with fewer,
// the fill values of similar rooms differ by chance.
const (
	sequences      = 60
	sequenceLength = 60
)

// cpuOnlyPart is the part of the requests without devices that sequences have, as 1 ÷ cpuOnlyPart.
// They fill cores that tasks with devices need.
const cpuOnlyPart = 5

// maxDevices is more than a node has. A request for more fits nowhere.
const maxDevices = 1 << 20

// newWorkload makes a workload of the requests that State has learnt.
func newWorkload(learnt []cluster.Requested) workload {
	var w workload
	for i := range learnt {
		l := &learnt[i]
		r := request{
			shape: cluster.Shape{Resources: l.Resources, Need: l.Need}, weight: l.Weight,
			cpu: l.Resources.Of(cluster.CPU), memory: cluster.Bytes(l.Resources.Of(cluster.Memory)), devices: l.Need.Devices, set: -1,
		}
		if l.Need.None() {
			r.devices = 0
		}
		r.devices = min(r.devices, maxDevices)
		r.milli = int64(r.devices) * int64(l.Need.Milli())
		if r.devices > 0 && len(l.Need.Products) > 0 {
			r.set = w.setOf(l.Need.Products)
		}
		w.requests = append(w.requests, r)
		w.weight += r.weight
		w.mean += r.weight * r.milli
		w.square += float64(r.weight) * float64(r.milli) * float64(r.milli)
	}
	w.draw()
	w.makeSlots()
	return w
}

// setOf returns the index of the products in sets.
func (w *workload) setOf(products []string) int {
	for i := range w.sets {
		if slices.Equal(w.sets[i], products) {
			return i
		}
	}
	w.sets = append(w.sets, products)
	return len(w.sets) - 1
}

// draw makes the sequences. Each request occurs in them in proportion to its weight. The order is
// random, but always the same for the same requests.
func (w *workload) draw() {
	var total int64
	share := func(r *request) int64 {
		if r.devices == 0 {
			return r.weight
		}
		return r.weight * cpuOnlyPart
	}
	for i := range w.requests {
		total += share(&w.requests[i])
	}
	if total == 0 {
		return
	}
	const count = sequences * sequenceLength
	flat := make([]int32, 0, count)
	at, sum := 0, share(&w.requests[0])
	for k := range int64(count) {
		for sum*2*count <= (2*k+1)*total {
			at++
			sum += share(&w.requests[at])
		}
		flat = append(flat, int32(at))
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(count, func(i, j int) { flat[i], flat[j] = flat[j], flat[i] })
	for i := range sequences {
		w.sequences = append(w.sequences, flat[i*sequenceLength:(i+1)*sequenceLength])
	}
}

// learnKinds computes what requests take of kinds of devices that are new.
func (w *workload) learnKinds(kinds []cluster.Device) {
	for ; w.kinds < len(kinds); w.kinds++ {
		d := &kinds[w.kinds]
		for i := range w.requests {
			r := &w.requests[i]
			var price cluster.Milli
			if r.devices > 0 && r.shape.Need.Kind(d) && r.shape.Usable(d) {
				price = max(1, r.shape.Price(d))
			}
			r.price = append(r.price, price)
		}
	}
}

// step is a request of a sequence that a machine can satisfy when it is idle.
type step struct {
	cpu, memory int64
	devices     int
	price       cluster.Milli // of each device, if all devices of the machine are of one kind
	request     *request
}

// stepsFor returns the sequences without the requests that the machine can never satisfy.
func (w *workload) stepsFor(m *machine) [][]step {
	if m.steps != nil {
		return m.steps
	}
	m.uniform = m.kinds[0] == m.kinds[len(m.kinds)-1]
	for _, s := range w.sequences {
		steps := make([]step, 0, len(s))
		for _, i := range s {
			q := &w.requests[i]
			x := step{cpu: q.cpu, memory: int64(q.memory), devices: q.devices, price: q.price[m.kinds[0]], request: q}
			usable := 0
			for _, k := range m.kinds {
				if q.price[k] > 0 {
					usable++
				}
			}
			if x.cpu <= m.cpu && x.memory <= int64(m.memory) && usable >= q.devices {
				steps = append(steps, x)
			}
		}
		m.steps = append(m.steps, steps)
	}
	return m.steps
}

// fill returns the fill value of the room.
func (w *workload) fill(r *room) int64 {
	if r.filled {
		return r.worth
	}
	r.filled = true
	if r.milli == 0 {
		return 0
	}
	var sum int64
	for _, s := range w.stepsFor(r.machine) {
		sum += w.run(r, s)
	}
	r.worth = sum * unit / sequences
	return r.worth
}

// run returns how much of the devices is held after each request of the sequence took what fits.
func (w *workload) run(r *room, sequence []step) int64 {
	cpu, memory, left := r.cpu, r.memory*int64(r.machine.memory)/parts, r.milli
	free := append(w.scratch[:0], r.free...)
	w.scratch = free
	for i := range sequence {
		s := &sequence[i]
		if s.cpu > cpu || s.memory > memory {
			continue
		}
		if s.devices > 0 {
			var taken int64
			if r.machine.uniform {
				if taken = int64(s.devices) * int64(s.price); taken > left || !s.take(free) {
					continue
				}
			} else if taken = s.request.take(free, r.machine.kinds); taken == 0 {
				continue
			}
			if left -= taken; left == 0 {
				break
			}
		}
		cpu -= s.cpu
		memory -= s.memory
	}
	return r.milli - left
}

// take takes devices from those of a machine with one kind of devices, and reports whether they
// fit. One device is the tightest that fits, and several are the first.
func (s *step) take(free []cluster.Milli) bool {
	if s.devices == 1 {
		best, least := -1, cluster.Milli(math.MaxInt32)
		for i, f := range free {
			if f >= s.price && f < least {
				best, least = i, f
			}
		}
		if best >= 0 {
			free[best] -= s.price
		}
		return best >= 0
	}
	fit := 0
	for _, f := range free {
		if f >= s.price {
			fit++
		}
	}
	if fit < s.devices {
		return false
	}
	left := s.devices
	for i := range free {
		if free[i] >= s.price && left > 0 {
			free[i] -= s.price
			left--
		}
	}
	return true
}

// take takes the devices of the request from those of a machine with several kinds. It returns how
// much it took; 0 if the request does not fit. It chooses like step.take.
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
