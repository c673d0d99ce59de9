package live

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/standard"
)

// world is a leader that gets random facts, with all that it logged and all its refusals.
type world struct {
	t        testing.TB
	dice     *rand.Rand
	leader   *Leader
	log      []cluster.Change
	refusals map[uint64][]*engine.Refusal // by position
	now      int64
}

const (
	worldNodes = 8
	worldJobs  = 16
)

// Append keeps the changes.
func (w *world) Append(position uint64, changes []cluster.Change) error {
	if position != uint64(len(w.log))+1 {
		return fmt.Errorf("position %d follows %d", position, len(w.log))
	}
	w.log = append(w.log, changes...)
	return nil
}

func newWorld(t testing.TB, seed uint64, ring int) *world {
	w := &world{t: t, dice: rand.New(rand.NewPCG(seed, 0)), refusals: map[uint64][]*engine.Refusal{}}
	w.leader = NewLeader(Options{State: cluster.NewState(), Engine: testEngine(t), Log: w, Ring: ring})
	for i := range worldNodes {
		w.apply(cluster.NodePut{Node: *w.node(i)})
	}
	w.apply(cluster.QueuePut{Queue: cluster.Queue{Name: "owners", Quota: cluster.Resources{{Name: cluster.DefaultDeviceResource, Value: 8000}}}})
	w.apply(cluster.QueuePut{Queue: cluster.Queue{Name: "guests", Quota: cluster.Resources{{Name: cluster.DefaultDeviceResource, Value: 0}}}})
	return w
}

func testEngine(t testing.TB) *engine.Engine {
	t.Helper()
	e, err := engine.New(standard.Registry(), standard.Profile())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (w *world) apply(c cluster.Change) {
	w.t.Helper()
	if err := w.leader.Apply(c); err != nil {
		w.t.Fatalf("%s: %v", c.Kind(), err)
	}
}

func (w *world) node(i int) *cluster.Node {
	return enginetest.Node(fmt.Sprintf("n%d", i)).CPU(32, "256Gi").GPUs(1+i%4, "L4", "24Gi").Label("rack", fmt.Sprintf("r%d", i%2)).Build()
}

func jobID(i int) string { return fmt.Sprintf("job/j%d", i) }

func (w *world) job(i int) *cluster.Job {
	j := enginetest.Job(fmt.Sprintf("j%d", i)).Queue([]string{"owners", "guests"}[w.dice.IntN(2)]).Priority(int32(w.dice.IntN(3)))
	j.CPU(1000, "1Gi").Devices(1 + w.dice.IntN(4)).Gang(1 + w.dice.IntN(2))
	if w.dice.IntN(2) == 0 {
		j.Preemptible()
	}
	return j.Build()
}

// step applies one random fact or runs one session.
func (w *world) step() {
	switch roll := w.dice.IntN(20); {
	case roll < 7:
		w.apply(cluster.JobPut{Job: *w.job(w.dice.IntN(worldJobs))})
	case roll < 9:
		w.apply(cluster.JobGone{Job: jobID(w.dice.IntN(worldJobs))})
	case roll < 10:
		w.apply(cluster.NodeGone{Name: fmt.Sprintf("n%d", w.dice.IntN(worldNodes))})
	case roll < 12:
		w.apply(cluster.NodePut{Node: *w.node(w.dice.IntN(worldNodes))})
	case roll < 13:
		if err := w.leader.Apply(cluster.JobPut{}); err == nil {
			w.t.Error("a malformed fact is not rejected")
		}
	case roll < 16:
		w.answer()
	default:
		w.session()
	}
}

// answer reports that bindings were confirmed or failed, and that releasing tasks have ended.
func (w *world) answer() {
	var facts []cluster.Change
	for _, j := range w.leader.State().Jobs() {
		for _, t := range j.Tasks() {
			switch {
			case t.Status == cluster.Assumed && w.dice.IntN(4) == 0:
				facts = append(facts, cluster.BindFailed{Task: t.Ref(), Attempt: t.Attempt})
			case t.Status == cluster.Assumed:
				facts = append(facts, cluster.TaskSeen{Task: t.Ref(), Node: t.Node.Name, Started: w.now})
			case t.Status == cluster.Releasing:
				facts = append(facts, cluster.TaskSeen{Task: t.Ref()})
			}
		}
	}
	for _, c := range facts {
		w.apply(c)
	}
}

func (w *world) session() {
	w.now += 1_000_000_000
	out, err := w.leader.Run(engine.Options{Now: w.now})
	if err != nil {
		w.t.Fatal(err)
	}
	w.refusals[w.leader.Position()] = out.Refusals
}

// replay is the State and the view that the log up to the position gives.
func (w *world) replay(position uint64) (*cluster.State, *View) {
	w.t.Helper()
	s := cluster.NewState()
	var rows tables
	rows.start(s)
	for i, c := range w.log[:position] {
		if err := s.Apply(c); err != nil {
			w.t.Fatalf("position %d: %v", i+1, err)
		}
		rows.record(s, w.refusals[uint64(i+1)])
	}
	return s, rows.view(s, position)
}
