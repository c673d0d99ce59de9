package fillvalue

import (
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
	kinds     int    // for how many kinds of devices the prices of requests are known
	number    uint64 // of the workload; fill values of others are not valid

	cpu, memory masks             // of all steps
	cpuOnly     [sequences]uint64 // masks of the steps without devices
	byKind      []*stepsOfKind    // by kind of devices
	outcomes    outcomes          // of pools
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
	sequenceLength = 60 // at most 64, the bits of a mask
)

// cpuOnlyPart is the part of the requests without devices that sequences have, as 1 ÷ cpuOnlyPart.
// They fill cores that tasks with devices need.
const cpuOnlyPart = 5

// maxDevices is more than a node has. A request for more fits nowhere.
const maxDevices = 1 << 20

// newWorkload makes a workload of the requests that State has learnt. The number differs from those of
// all workloads before.
func newWorkload(learnt []cluster.Requested, number uint64) workload {
	w := workload{number: number}
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
	w.cpu = newMasks(w, func(q *request) int64 { return q.cpu })
	w.memory = newMasks(w, func(q *request) int64 { return int64(q.memory) })
	for s, sequence := range w.sequences {
		for i, q := range sequence {
			if w.requests[q].devices == 0 {
				w.cpuOnly[s] |= 1 << i
			}
		}
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
