package backfill_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/backfill"
	"github.com/berth-project/berth/plugins/firstcome"
)

// world runs jobs on a virtual clock: each runs for exactly its run time.
type world struct {
	t      *testing.T
	engine *engine.Engine
	state  *cluster.State
	now    int64
	ends   map[string]int64 // of running jobs
}

func newWorld(t *testing.T, arguments string, parts ...enginetest.Part) *world {
	p, err := backfill.New(enginetest.Arguments(arguments))
	if err != nil {
		t.Fatal(err)
	}
	first, err := firstcome.New(engine.NoArguments{})
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, engine: enginetest.Engine(enginetest.Fit(), p, first), state: enginetest.State(parts...), now: 1, ends: map[string]int64{}}
}

func (w *world) apply(c cluster.Change) {
	w.t.Helper()
	if err := w.state.Apply(c); err != nil {
		w.t.Fatal(err)
	}
}

// session runs a patient session that compares each decision of the index with a scan, and returns
// the jobs that start.
func (w *world) session() (started []string) {
	w.t.Helper()
	s := w.engine.Open(w.state, engine.Options{Now: w.now, Patient: true, Search: engine.Twin})
	out, err := s.Run()
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	for _, d := range out.Decisions {
		w.apply(cluster.TaskSeen{Task: d.Task, Node: d.Node, Started: w.now})
		if w.ends[d.Task.Job] == 0 {
			w.ends[d.Task.Job] = w.now + w.state.Job(d.Task.Job).RunFor
			started = append(started, d.Task.Job)
		}
	}
	return started
}

// endJobs removes the jobs that have run for their run time.
func (w *world) endJobs() {
	for _, j := range w.state.Jobs() {
		if at := w.ends[j.ID]; at > 0 && at <= w.now {
			w.apply(cluster.JobGone{Job: j.ID})
		}
	}
}

// If all run times are right, a job starts at the latest when its first earmark says, unless a job
// that comes before it was waiting as well, which may take the room.
func TestPromise(t *testing.T) {
	kept := 0
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 7))
		w := newWorld(t, `{"after": "20m", "perQueue": 2, "share": 0.5}`, node("a"), node("b"), node("c"), node("d"))
		promises, seen := map[string]int64{}, map[string]bool{}
		for step := range 400 {
			w.now += int64(time.Duration(1+random.IntN(4)) * time.Minute)
			w.endJobs()
			if random.IntN(3) > 0 {
				devices := 1 + random.IntN(2)
				if random.IntN(6) == 0 {
					devices = 4
				}
				job := enginetest.Job(fmt.Sprintf("j%03d", step)).Devices(devices).Created(w.now).RunFor(int64(time.Duration(5+random.IntN(60)) * time.Minute))
				w.apply(cluster.JobPut{Job: *job.Build()})
			}
			for _, id := range w.session() {
				if at, promised := promises[id]; promised {
					if kept++; w.now > at+int64(4*time.Minute) { // the clock moves by four minutes at most
						t.Fatalf("seed %d: %s starts %s later than promised", seed, id, time.Duration(w.now-at))
					}
				}
			}
			for _, j := range cluster.EarmarksOf(w.state.View()).Jobs() {
				first := true
				for _, o := range w.state.Pending() {
					first = first && (o == j || o.Created > j.Created)
				}
				if !seen[j.ID] && first && j.Earmarked.Start > 0 {
					promises[j.ID] = j.Earmarked.Start
				}
				seen[j.ID] = true
			}
			if err := w.state.Audit(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if kept < 30 {
		t.Errorf("only %d jobs had a promise", kept)
	}
}

func node(name string) *enginetest.NodeBuilder { return enginetest.Node(name).GPUs(4, "A100", "80Gi") }

// A job that was parked long ago gets its earmark at the time that the scheduler is asked to run a
// session for, although nothing else happens. The same sessions on a copy of the State, by an engine
// that has just started, decide the same.
func TestParkedJobComesOfAge(t *testing.T) {
	w := newWorld(t, `{"after": "2h"}`, node("a"), enginetest.Job("small").Devices(1).On("a"))
	w.apply(cluster.JobPut{Job: *enginetest.Job("large").Devices(4).Created(1).Build()})
	for w.state.Job("job/large").Earmarked == nil {
		s := w.engine.Open(w.state, engine.Options{Now: w.now, Patient: true})
		out, err := s.Run()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if w.state.Job("job/large").Earmarked != nil {
			break
		}
		if out.NextWake <= w.now || out.NextWake > 1+int64(2*time.Hour) {
			t.Fatalf("at %d it wakes at %d", w.now, out.NextWake)
		}
		w.now = out.NextWake
	}
	if w.now != 1+int64(2*time.Hour) {
		t.Errorf("it has an earmark at %s", time.Duration(w.now))
	}
	again, err := w.state.Snapshot().State()
	if err != nil {
		t.Fatal(err)
	}
	if again.Digest() != w.state.Digest() || again.Job("job/large").Earmarked == nil {
		t.Error("the snapshot does not have the earmark")
	}
	w.apply(cluster.JobGone{Job: "job/large"})
	if n := w.state.Node("a"); cluster.EarmarksOf(w.state.View()).On(n) != nil || n.Freed() != n.Version() {
		t.Error("the earmark outlives its job, or other jobs are not woken")
	}
}
