package fillvalue

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/berth-project/berth/cluster"
)

// drawWorkload returns a workload of random requests for two kinds of devices.
func drawWorkload(random *rand.Rand) workload {
	kinds := []cluster.Device{
		{DeviceSpec: &cluster.DeviceSpec{Product: "A100", Memory: 40 << 30}},
		{DeviceSpec: &cluster.DeviceSpec{Product: "L4", Memory: 24 << 30}},
	}
	needs := []cluster.Need{{}, {Devices: 1}, {Devices: 2}, {Devices: 4}, {Devices: 8}, {Devices: 1, Share: 500}, {Devices: 1, Share: 310}, {Devices: 2, Share: 450}, {Devices: 2, Memory: 10 << 30}}
	var learnt []cluster.Requested
	for range 3 + random.IntN(12) {
		need := needs[random.IntN(len(needs))]
		if need.Devices > 0 && random.IntN(3) == 0 {
			need.Products = []string{kinds[random.IntN(len(kinds))].Product}
		}
		resources := cluster.Resources{}.With(cluster.CPU, int64(random.IntN(40))*500).With(cluster.Memory, int64(random.IntN(6))*(8<<30))
		learnt = append(learnt, cluster.Requested{Resources: resources, Need: need, Weight: 1 + int64(random.IntN(50))})
	}
	w := newWorkload(learnt, 1)
	w.learnKinds(kinds)
	return w
}

// TestFillStepByStep compares fill values with those of a machine that is filled step by step.
func TestFillStepByStep(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	positive := 0
	for range 400 {
		w := drawWorkload(random)
		m := &machine{cpu: 64_000, memory: 256 << 30, kinds: slices.Repeat([]int32{int32(random.IntN(2))}, 1+random.IntN(8))}
		if random.IntN(4) == 0 {
			m.kinds[0] = 0
		}
		f := newFleet()
		for range 20 {
			r := &room{machine: m, cpu: int64(random.IntN(257)) * 250, memory: int64(random.IntN(65)) << 32}
			for range m.kinds {
				free := cluster.Milli(random.IntN(4) * 333)
				if free == 999 {
					free = cluster.Whole
				}
				r.free = append(r.free, free)
				r.milli += int64(free)
			}
			slices.SortFunc(r.free, func(a, b cluster.Milli) int { return int(b - a) })
			r.pool = f.poolOf(r)
			want, wantEarly := stepByStep(&w, r)
			if got := w.fill(r); got != want {
				t.Fatalf("cpu %d, memory %d, free %v of kinds %v: fill value %d, step by step %d", r.cpu, r.memory, r.free, m.kinds, got, want)
			}
			if r.early != wantEarly || r.early > want {
				t.Fatalf("cpu %d, memory %d, free %v of kinds %v: %d with weights, step by step %d", r.cpu, r.memory, r.free, m.kinds, r.early, wantEarly)
			}
			if want > 0 {
				positive++
			}
		}
	}
	if positive < 2000 {
		t.Errorf("%d fill values are positive", positive)
	}
}

// TestFillOfRenewedWorkloads compares fill values of rooms that share pools, for workloads that follow each
// other and use the memory of the last one.
func TestFillOfRenewedWorkloads(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	most := int32(0)
	for range 5 {
		f, last := newFleet(), outcomes{}
		m := &machine{cpu: 64_000, memory: 256 << 30, kinds: slices.Repeat([]int32{int32(random.IntN(2))}, 8)}
		for number := uint64(1); number <= 3; number++ {
			w := drawWorkload(random)
			w.number, w.outcomes = number, last
			w.outcomes.empty()
			for range 300 {
				r := &room{machine: m, cpu: int64(random.IntN(65)) * 1000, memory: int64(random.IntN(17)) << 34, free: make([]cluster.Milli, 8)}
				for i := range 2 + random.IntN(2) {
					r.free[i] = cluster.Milli(500 * (1 + random.IntN(2)))
					r.milli += int64(r.free[i])
				}
				slices.SortFunc(r.free, func(a, b cluster.Milli) int { return int(b - a) })
				r.pool = f.poolOf(r)
				if want, _ := stepByStep(&w, r); w.fill(r) != want {
					t.Fatalf("workload %d, cpu %d, memory %d, free %v: fill value %d, step by step %d", number, r.cpu, r.memory, r.free, w.fill(r), want)
				}
			}
			most, last = max(most, w.outcomes.length), w.outcomes
		}
	}
	if most <= outcomesOfPage {
		t.Errorf("at most %d outcomes are kept, which fit on one page", most)
	}
}

// stepByStep returns the fill value of the room, without and with the weights of steps: each step of each
// sequence is looked at.
func stepByStep(w *workload, r *room) (all, weighted int64) {
	var sum int64
	for _, sequence := range w.sequences {
		cpu, memory := r.cpu, r.memory
		free := slices.Clone(r.free)
		for at, i := range sequence {
			q := &w.requests[i]
			if q.cpu > cpu || int64(q.memory) > memory {
				continue
			}
			var fit []int
			for d, f := range free {
				if p := q.price[r.machine.kinds[d]]; p > 0 && f >= p {
					fit = append(fit, d)
				}
			}
			if len(fit) < q.devices {
				continue
			}
			if q.devices == 1 {
				slices.SortStableFunc(fit, func(a, b int) int { return int(free[a] - free[b]) })
			}
			for _, d := range fit[:q.devices] {
				p := q.price[r.machine.kinds[d]]
				free[d] -= p
				sum += int64(p)
				weighted += int64(p) * early[at]
			}
			cpu -= q.cpu
			memory -= int64(q.memory)
		}
	}
	return sum * unit / sequences, weighted / sequences
}

// mixed returns a workload of tasks with parts of a device, one device and several, and a room of a
// machine with eight devices on which some of them are.
func mixed() (*workload, *room) {
	var learnt []cluster.Requested
	for i, need := range []cluster.Need{{}, {Devices: 1}, {Devices: 1, Share: 500}, {Devices: 1, Share: 220}, {Devices: 1, Share: 810}, {Devices: 2}, {Devices: 4}, {Devices: 8}} {
		for j := range 5 {
			cores := int64(max(1, need.Devices)) * int64(2+3*j) * 1000
			learnt = append(learnt, cluster.Requested{Resources: cluster.Resources{}.With(cluster.CPU, cores).With(cluster.Memory, cores<<22), Need: need, Weight: int64(1 + (7*i+3*j)%11)})
		}
	}
	w := newWorkload(learnt, 1)
	f := newFleet()
	f.kinds = []cluster.Device{{DeviceSpec: &cluster.DeviceSpec{Product: "A100", Memory: 40 << 30}}}
	w.learnKinds(f.kinds)
	m := &machine{cpu: 128_000, memory: 1 << 40, kinds: make([]int32, 8)}
	return &w, f.share(&room{machine: m, cpu: 70_000, memory: 1 << 39, free: []cluster.Milli{1000, 1000, 1000, 780, 500, 500, 190, 0}})
}

// revalue computes the fill value of the room as for another workload.
func revalue(w *workload, r *room) int64 {
	w.number++
	w.outcomes.empty()
	return w.fill(r)
}

// valueWith computes the fill value of a room that differs from r in its cores.
func valueWith(w *workload, r *room, cpu int64) int64 {
	other := *r
	other.cpu, other.filledAt = cpu, 0
	return w.fill(&other)
}

// BenchmarkFill measures the fill value of a room: the first of a workload with these devices, and
// further ones that have other cores.
func BenchmarkFill(b *testing.B) {
	b.Run("first", func(b *testing.B) {
		w, r := mixed()
		b.ReportAllocs()
		for b.Loop() {
			revalue(w, r)
		}
	})
	b.Run("other cores", func(b *testing.B) {
		w, r := mixed()
		b.ReportAllocs()
		for i := int64(0); b.Loop(); i++ {
			valueWith(w, r, i*17%512*250)
		}
	})
}

// TestAllocations: when the buffers have grown, neither fill values nor new prices need memory.
func TestAllocations(t *testing.T) {
	check := func(what string, f func()) {
		t.Helper()
		if n := testing.AllocsPerRun(100, f); n > 0 {
			t.Errorf("%s allocates memory %v times", what, n)
		}
	}
	w, r := mixed()
	check("the fill value of a room", func() {
		if revalue(w, r) == 0 {
			t.Fatal("nothing fits")
		}
	})
	world := newWorld(t, 4, 4)
	for _, need := range []cluster.Need{share(300), share(700), whole(1), whole(2), whole(4), share(450), whole(2), whole(1), share(300)} {
		world.arrive(need)
		world.session(world.engine)
	}
	p := &plugin{}
	p.open(world.state.View())
	if p.learn() == nil {
		t.Fatal("no prices were learnt")
	}
	shape := world.state.Job("job/j001").Tasks()[0].Shape
	check("scores of nodes with new prices", func() {
		p.epoch++
		for _, n := range p.view.Nodes() {
			p.score(shape, n)
		}
	})
}
