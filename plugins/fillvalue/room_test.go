package fillvalue

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// TestForgetting: what is forgotten is computed again, with the same result. Rooms that nodes have are kept.
func TestForgetting(t *testing.T) {
	w := newWorld(t, 6, 4)
	for _, need := range []cluster.Need{share(300), share(700), whole(1), whole(2), whole(4), share(450), whole(2), whole(1), share(300)} {
		w.arrive(need)
		w.session(w.engine)
	}
	open := func() *plugin {
		p := &plugin{}
		p.open(w.state.View())
		p.learn()
		return p
	}
	p, fresh := open(), open()
	check := func(when string) {
		t.Helper()
		for _, j := range w.state.Jobs() {
			for _, n := range p.view.Nodes() {
				s := j.Tasks()[0].Shape
				if got, want := p.score(s, n), fresh.score(s, n); got != want {
					t.Errorf("%s: the score of %s on %s is %v, want %v", when, j.ID, n.Name, got, want)
				}
			}
		}
	}
	check("at first")
	before := len(p.fleet.rooms.young)
	p.fleet.forgetUnused()
	if got := len(p.fleet.rooms.young); got != len(p.fleet.used) || got >= before {
		t.Errorf("%d of %d rooms are kept, and nodes have %d", got, before, len(p.fleet.used))
	}
	check("after one turn")
	for range 2 {
		p.fleet.forgetUnused()
	}
	if len(p.fleet.rooms.old) != len(p.fleet.used) {
		t.Errorf("%d rooms are kept that were not used, and nodes have %d", len(p.fleet.rooms.old), len(p.fleet.used))
	}
	check("after three turns")
	for _, n := range p.view.Nodes() { // nodes with equal rooms share one, also if it is looked up again
		was := p.room(n)
		if now := p.fleet.read(n, &p.fleet.nodes[n.Slot()]); now != was {
			t.Errorf("the room of %s was made twice", n.Name)
		}
	}
}

func TestRounded(t *testing.T) {
	for _, c := range []struct{ amount, capacity, parts, nearest, count int64 }{
		{0, 128_000, 32, 0, 0},
		{1_999, 128_000, 32, 0, 0},
		{2_000, 128_000, 32, 4_000, 1},
		{126_000, 128_000, 32, 128_000, 32},
		{127_999, 127_999, 32, 127_999, 32},
		{200_000, 128_000, 32, 128_000, 32}, // more is free than there was when the machine was described
		{unlimited, unlimited, 32, unlimited, 32},
		{3, 7, 32, 3, 14},
		{5, 0, 32, 0, 0},
	} {
		if nearest, count := rounded(c.amount, c.capacity, c.parts); nearest != c.nearest || count != c.count {
			t.Errorf("%d of %d is rounded to %d in %d parts, want %d and %d", c.amount, c.capacity, nearest, count, c.nearest, c.count)
		}
	}
}

// TestSmallRequests: a task that requests less than a part of the machine takes one part.
func TestSmallRequests(t *testing.T) {
	for _, c := range []struct{ free, request, want int64 }{{100, 0, 100}, {100, 1, 90}, {100, 10, 90}, {100, 25, 75}, {5, 1, 0}, {5, 50, 0}} {
		if got := less(c.free, c.request, 10); got != c.want {
			t.Errorf("of %d, %d are left after a request of %d; want %d", c.free, got, c.request, c.want)
		}
	}
}

// TestSettled: a price that differs little from the former one stays, so that no node is scored again.
func TestSettled(t *testing.T) {
	w := newWorkload([]cluster.Requested{{Need: whole(4), Weight: 1}, {Need: cluster.Need{Devices: 2, Products: []string{"A100"}}, Weight: 1}}, 1)
	highest := func(slot int) int64 { return slotPrice * w.requests[w.slots[slot].request].milli * unit }
	was := prices{learntAt: 8, slots: []int64{highest(0) / 2, highest(1)}, sets: []int64{setPrice / 2}}
	now := prices{learntAt: 8, slots: []int64{highest(0)/2 + highest(0)/settled, highest(1) - highest(1)/settled - 1}, sets: []int64{setPrice/2 + setPrice/settled + 1}}
	other := now
	other.learntAt = 16
	settled := now
	settled.slots, settled.sets = append([]int64{}, now.slots...), append([]int64{}, now.sets...)
	settled.settle(&was, &w)
	if settled.slots[0] != was.slots[0] || settled.slots[1] != now.slots[1] || settled.sets[0] != now.sets[0] {
		t.Errorf("before %v, then %v, settled %v", was, now, settled)
	}
	if other.settle(&was, &w); other.slots[0] != now.slots[0] {
		t.Error("a price of another workload stays")
	}
}

// TestMachinesAreForgotten: nodes that report another capacity again and again do not take more and more
// memory.
func TestMachinesAreForgotten(t *testing.T) {
	w := newWorld(t, 1, 1)
	p := &plugin{}
	p.open(w.state.View())
	for i := range 2*maxMachines + 100 {
		n := enginetest.Node("node-00").Resource(cluster.CPU, int64(64_000+i)).Resource(cluster.Memory, 1<<38).GPUs(1, "A100", "40Gi").Build()
		w.apply(cluster.NodePut{Node: *n})
		p.open(w.state.View())
		p.count()
		if n := len(p.fleet.machines); n > maxMachines+3 {
			t.Fatalf("%d machines are kept for one node", n)
		}
	}
}

// TestGoneDevices: a device that the node does not report any more, and that no task holds, counts for
// nothing. A State that is restored from a snapshot does not have it.
func TestGoneDevices(t *testing.T) {
	w := newWorld(t, 1, 2)
	job := w.arrive(whole(2))
	w.session(w.engine)
	w.apply(cluster.NodePut{Node: *enginetest.Node("node-00").CPU(64, "256Gi").GPUs(1, "A100", "40Gi").Build()})
	w.apply(cluster.JobGone{Job: job})
	restored, err := w.state.Snapshot().State()
	if err != nil {
		t.Fatal(err)
	}
	a, b := &plugin{}, &plugin{}
	a.open(w.state.View())
	b.open(restored.View())
	if was := len(w.state.Node("node-00").Devices); was != 2 || a.fleet.whole != b.fleet.whole {
		t.Errorf("%d devices; %d thousandths count, and %d after the State was restored", was, a.fleet.whole, b.fleet.whole)
	}
}

// TestRequestsThatFitNowhere: prices are accepted after a restart, also if a task has requested more devices
// than any node has.
func TestRequestsThatFitNowhere(t *testing.T) {
	w := newWorld(t, 2, 8)
	for range 9 {
		w.arrive(whole(maxDevices))
		w.arrive(whole(1))
	}
	w.session(w.engine)
	v := w.state.View()
	p := &plugin{}
	p.open(v)
	if got := p.pricesFrom(v.Parameters(Name)).learntAt; got == 0 || got != v.Demand().LearntAt {
		t.Errorf("the prices are for the requests at %d, and State has learnt at %d", got, v.Demand().LearntAt)
	}
}

// TestUnlimitedCores: on nodes without a number of cores, the fill value still decides.
func TestUnlimitedCores(t *testing.T) {
	w := newWorld(t, 0, 0)
	for _, name := range []string{"a", "b"} {
		w.apply(cluster.NodePut{Node: *enginetest.Node(name).GPUs(4, "A100", "40Gi").Build()})
	}
	for range 8 {
		w.apply(cluster.JobGone{Job: w.arrive(whole(1))})
		w.apply(cluster.JobGone{Job: w.arrive(whole(4))})
	}
	p := &plugin{}
	p.open(w.state.View())
	p.learn()
	s := &cluster.Shape{Need: whole(1)}
	idle := p.score(s, w.state.Node("a"))
	job := enginetest.Job("first").Shape(func(s *cluster.Shape) { s.Need = whole(1) }).Build()
	w.apply(cluster.JobPut{Job: *job})
	w.session(w.engine)
	p.open(w.state.View())
	on := w.state.Job(job.ID).Tasks()[0].Node.Name
	if got := p.score(s, w.state.Node(on)); got <= idle || idle <= points(noPlace) {
		t.Errorf("a node with a task has the score %v, and an idle one %v", got, idle)
	}
}
