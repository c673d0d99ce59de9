package fillvalue

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// world is a State of nodes with 2 devices and 64 cores each, and an engine that packs by fill value.
type world struct {
	*testing.T
	state  *cluster.State
	engine *engine.Engine
	jobs   int
}

func newWorld(t *testing.T, nodes, devices int) *world {
	t.Helper()
	var parts []enginetest.Part
	for i := range nodes {
		parts = append(parts, enginetest.Node(fmt.Sprintf("node-%02d", i)).CPU(64, "256Gi").GPUs(devices, "A100", "40Gi"))
	}
	return &world{T: t, state: enginetest.State(parts...), engine: newEngine(t)}
}

func newEngine(t *testing.T) *engine.Engine {
	t.Helper()
	p, err := New(engine.NoArguments{})
	if err != nil {
		t.Fatal(err)
	}
	return enginetest.Engine(enginetest.Fit(), p)
}

// arrive adds a job that requests devices, or a share of one, and returns its ID.
func (w *world) arrive(need cluster.Need) string {
	w.Helper()
	w.jobs++
	job := enginetest.Job(fmt.Sprintf("j%03d", w.jobs)).CPU(1000, "1Gi").Shape(func(s *cluster.Shape) { s.Need = need }).Build()
	w.apply(cluster.JobPut{Job: *job})
	return job.ID
}

func (w *world) apply(c cluster.Change) {
	w.Helper()
	if err := w.state.Apply(c); err != nil {
		w.Fatal(err)
	}
}

// session runs one session and returns its decisions.
func (w *world) session(e *engine.Engine) engine.Outcome {
	w.Helper()
	s := e.Open(w.state, engine.Options{Record: true, Search: engine.Twin})
	out, err := s.Run()
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		w.Fatal(err)
	}
	return out
}

func share(milli cluster.Milli) cluster.Need { return cluster.Need{Devices: 1, Share: milli} }
func whole(devices int) cluster.Need         { return cluster.Need{Devices: devices} }

// TestPartsThatFitTogether: if tasks request 0.7 or 0.3 of a device, best fit fills a device with
// three times 0.3, and fill value keeps room for 0.7.
func TestPartsThatFitTogether(t *testing.T) {
	w := newWorld(t, 3, 1)
	for range 8 { // what is expected
		w.apply(cluster.JobGone{Job: w.arrive(share(700))})
		w.apply(cluster.JobGone{Job: w.arrive(share(300))})
	}
	nodes := map[string][]cluster.Milli{}
	for _, need := range []cluster.Need{share(300), share(300), share(300), share(700), share(700), share(700)} {
		w.arrive(need)
		for _, d := range w.session(w.engine).Decisions {
			nodes[d.Node] = append(nodes[d.Node], need.Share)
		}
	}
	for name, held := range nodes {
		if !slices.Equal(held, []cluster.Milli{300, 700}) {
			t.Errorf("%s has %v", name, held)
		}
	}
	if len(nodes) != 3 {
		t.Errorf("%v", nodes)
	}
}

// TestSlotsAreKept: tasks with one device leave nodes whole for tasks that request all devices.
func TestSlotsAreKept(t *testing.T) {
	w := newWorld(t, 4, 4)
	for range 10 {
		w.apply(cluster.JobGone{Job: w.arrive(whole(1))})
		w.apply(cluster.JobGone{Job: w.arrive(whole(4))})
	}
	touched := map[string]bool{}
	for range 4 {
		w.arrive(whole(1))
		for _, d := range w.session(w.engine).Decisions {
			touched[d.Node] = true
		}
	}
	if len(touched) != 1 {
		t.Errorf("4 tasks with one device are on %v", touched)
	}
}

// TestColdStart: before eight tasks have arrived, the node with the least left is taken.
func TestColdStart(t *testing.T) {
	w := newWorld(t, 2, 2)
	w.arrive(share(500))
	first := w.session(w.engine).Decisions[0].Node
	w.arrive(share(500))
	if out := w.session(w.engine); out.Decisions[0].Node != first || w.state.View().Parameters(Name) != nil {
		t.Errorf("%+v", out.Decisions)
	}
}

// TestRestart: an engine that begins with a snapshot decides as the one that was there before.
func TestRestart(t *testing.T) {
	w := newWorld(t, 9, 4)
	for i := range 3 { // added last, and seen first when the nodes are read again by name
		b := enginetest.Node(fmt.Sprintf("mixed-%d", i)).CPU(64, "256Gi").GPUs(2, "L4", "24Gi").GPUs(2, "A100", "40Gi")
		w.apply(cluster.NodePut{Node: *b.Build()})
	}
	needs := []cluster.Need{share(300), share(700), whole(1), whole(2), whole(4), share(450)}
	learnt := 0
	for i := range 60 {
		w.arrive(needs[(i*i+i/3)%len(needs)])
		data, err := json.Marshal(w.state.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		var sn cluster.Snapshot
		if err := json.Unmarshal(data, &sn); err != nil {
			t.Fatal(err)
		}
		copied, err := sn.State()
		if err != nil {
			t.Fatal(err)
		}
		other := &world{T: t, state: copied, engine: newEngine(t)}
		a, b := w.session(w.engine), other.session(other.engine)
		if w.state.Digest() != copied.Digest() {
			t.Fatalf("step %d: %+v, after a restart %+v\n%s", i, a.Decisions, b.Decisions, cluster.Difference(w.state.Lines(), copied.Lines()))
		}
		for _, c := range a.Changes {
			if c.Kind() == (cluster.Learn{}).Kind() {
				learnt++
			}
		}
		if i%4 == 3 {
			w.apply(cluster.JobGone{Job: fmt.Sprintf("job/j%03d", i-2)})
		}
	}
	if learnt < 20 {
		t.Errorf("prices were learnt %d times", learnt)
	}
}

// TestWrongParameters: parameters from a snapshot that do not belong to the workload are not used.
func TestWrongParameters(t *testing.T) {
	for _, values := range [][]int64{{1}, {8, 1000, 8, 1 << 40, 0}, {8, 1000, 8, 0, -1}, {9, 0, 9, 0, 0}, slices.Repeat([]int64{math.MaxInt64}, 5), slices.Repeat([]int64{8}, 6)} {
		w := newWorld(t, 2, 2)
		for range 8 {
			w.arrive(whole(2))
		}
		w.apply(cluster.Learn{Plugin: Name, Parameters: values})
		if out := w.session(w.engine); len(out.Decisions) != 2 {
			t.Errorf("%v: %+v", values, out.Decisions)
		}
	}
}

func TestPoints(t *testing.T) {
	last := 101.0
	for _, cost := range []int64{math.MinInt64, -noPlace, -8_192_000, -1000, 0, 1000, 102_400, 8_192_000, noPlace, math.MaxInt64} {
		x := points(cost)
		if x < 0 || x > last || x == last && cost > -noPlace && cost < noPlace {
			t.Errorf("cost %d has the score %v after %v", cost, x, last)
		}
		last = x
	}
	if points(0) != 50 || points(100*unit) != 25 {
		t.Errorf("%v, %v", points(0), points(100*unit))
	}
}

func TestChance(t *testing.T) {
	for _, c := range []struct {
		mean, times, variance, want float64
	}{{0, 1, 1, 0.5}, {1, 1, 1, 0.8413}, {-1, 1, 1, 0.1587}, {2, 2, 4, 0.6915}, {100, 1, 1, 1}, {-100, 1, 1, 0}, {1e30, 2, 1e-3, 1}} {
		if got := float64(chance(c.mean, int64(c.times), c.variance)) / unit; math.Abs(got-c.want) > 0.002 {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestNodesMayBecomeEmpty: a task is placed beside three tasks and not beside one task that holds
// more devices, because the node with one task is more likely to be empty soon. If tasks do not end,
// the node with the least left is taken.
func TestNodesMayBecomeEmpty(t *testing.T) {
	for _, ends := range []bool{false, true} {
		w := newWorld(t, 2, 8)
		for range 20 { // what is expected
			for _, need := range []cluster.Need{whole(1), whole(8)} {
				id := w.arrive(need)
				if ends {
					w.session(w.engine)
				}
				w.apply(cluster.JobGone{Job: id})
			}
		}
		place := func(need cluster.Need, node string) string {
			id := w.arrive(need)
			if out := w.session(w.engine); len(out.Decisions) != 1 || out.Decisions[0].Node != node {
				t.Errorf("tasks end: %v: want %s on %s: %+v", ends, id, node, out.Decisions)
			}
			return id
		}
		place(whole(4), "node-00")
		rest := place(whole(4), "node-00")
		for range 3 {
			place(whole(1), "node-01")
		}
		w.apply(cluster.JobGone{Job: rest})
		want := "node-00"
		if ends {
			want = "node-01"
		}
		place(whole(1), want)
	}
}

// TestRelease: the probability is 0 if no task has ended, and grows to one third, in steps, as tasks
// end for as long as others arrive.
func TestRelease(t *testing.T) {
	for _, c := range []struct {
		running       int64
		ahead         float64
		arrived, left int64
		want          float64
	}{
		{0, 100, 100, 0, 0}, {100, 50, 100, 0, 0},
		{100, 50, 1000, 10, 0},      // it would be 0.005
		{100, 50, 200, 100, 0.3125}, // 50 tasks arrive and 50 end before the room is full, of 150
		{100, 50, 100_000, 99_900, 0.3125}, {100, 0, 100_000, 99_900, 0}, {5, 1e9, 10, 20, 0.3125},
	} {
		f := fleet{running: c.running}
		if got := float64(f.releaseIn(c.ahead, &cluster.Demand{Arrived: c.arrived, Left: c.left})) / certain; got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestPartsThatFewFit: beside a task with 0.65 of a device, only requests for at most 0.35 fit, which
// are rare. Beside a task with 0.32, requests for 0.65 and 0.47 fit as well. If tasks end, a task with
// 0.32 is placed beside 0.65.
func TestPartsThatFewFit(t *testing.T) {
	for _, ends := range []bool{false, true} {
		w := newWorld(t, 2, 1)
		for i := range 32 { // what is expected
			id := w.arrive([]cluster.Need{share(650), share(320), whole(1), share(470), whole(1), share(470), whole(1), share(470)}[i%8])
			if ends {
				w.session(w.engine)
			}
			w.apply(cluster.JobGone{Job: id})
		}
		place := func(need cluster.Need) (job, node string) {
			job = w.arrive(need)
			out := w.session(w.engine)
			if len(out.Decisions) != 1 {
				t.Fatalf("tasks end: %v: %s: %+v", ends, job, out.Decisions)
			}
			return job, out.Decisions[0].Node
		}
		_, want := place(share(650))
		rest, _ := place(share(350))
		_, other := place(share(320))
		w.apply(cluster.JobGone{Job: rest})
		if !ends {
			want = other
		}
		if _, got := place(share(320)); got != want {
			t.Errorf("tasks end: %v: on %s, want %s", ends, got, want)
		}
	}
}
