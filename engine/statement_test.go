package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// evictor is an adapter that evicts preemptible tasks until the job fits.
func evictor() *policy {
	return &policy{name: "Evictor", open: func(s *engine.Session) {
		s.Hooks.AddAdapter(func(stmt *engine.Statement, job *cluster.Job, r *engine.Refusal) *engine.Refusal {
			for _, n := range s.View.Nodes() {
				for _, t := range n.Tasks {
					if t.Job.Preemptible && t.Runs() {
						if err := stmt.Evict(t, job.ID, "MadeRoom"); err != nil {
							panic(err)
						}
						if s.Place(stmt, job) == nil {
							return nil
						}
					}
				}
			}
			return r
		})
	}}
}

func TestAdaptersMakeRoom(t *testing.T) {
	s := with(twoNodes(),
		enginetest.Job("cheap").Gang(2).Devices(1).Preemptible().On("a", "b"), enginetest.Job("dear").Devices(1).On("b"),
		enginetest.Job("new").Devices(2), enginetest.Job("never").Gang(2).Devices(2),
	)
	e := enginetest.Engine(fit(), evictor())
	out := run(t, e, s)
	var got []string
	for _, d := range out.Decisions {
		got = append(got, string(d.Action)+" "+d.Task.ID()+" "+d.Node+" "+d.For)
	}
	want := []string{"Evict job/cheap/worker-0 a job/new", "Nominate job/new/worker-0 a "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(out.Refusals) != 1 || out.Refusals[0].Job != "job/never" {
		t.Errorf("refusals: %+v", out.Refusals)
	}
	if s.Job("job/cheap").Tasks()[1].Status != cluster.Bound {
		t.Error("an adapter that failed evicted a task")
	}
	if len(where(run(t, e, s))) != 0 {
		t.Error("the task was bound before its room was free")
	}
	apply(t, s, left(s.Job("job/cheap").Tasks()[0]))
	// The room is free now. The gang that lost a task may not evict its other task to make room for it.
	if diff := cmp.Diff(map[string]string{"job/new/worker-0": "a"}, where(run(t, e, s))); diff != "" {
		t.Error(diff)
	}
	if s.Job("job/new").Tasks()[0].Status != cluster.Assumed {
		t.Error("the task is not assigned")
	}
}

func TestRollbackToACheckpoint(t *testing.T) {
	s := with(twoNodes(), enginetest.Job("x").Devices(1).On("a"), enginetest.Job("j").Gang(2).Devices(1))
	ssn := enginetest.Engine(fit()).Open(s, engine.Options{})
	stmt := ssn.Begin()
	x, j := s.Job("job/x").Tasks()[0], s.Job("job/j")
	if err := stmt.Evict(x, "job/j", "Test"); err != nil {
		t.Fatal(err)
	}
	if err := stmt.Evict(x, "job/j", "Test"); err == nil {
		t.Error("evicted twice")
	}
	mark := stmt.Checkpoint()
	a := s.Node("a")
	claims, _ := a.Choose(j.Tasks()[0].Shape, nil)
	if err := stmt.Allocate(j.Tasks()[0], a, claims); err != nil {
		t.Fatal(err)
	}
	if err := stmt.Allocate(j.Tasks()[0], a, claims); err == nil {
		t.Error("allocated twice")
	}
	version := a.Version()
	stmt.Rollback(mark)
	if j.Tasks()[0].Node != nil || x.Status != cluster.Releasing {
		t.Error("rolled back too little or too much")
	}
	stmt.Discard()
	if !x.Runs() || a.Devices[0].Use.Milli != 1000 || a.Devices[0].Use.ReleasingLeases != 0 {
		t.Errorf("not as before: %s %+v", x.Status, a.Devices[0].Use)
	}
	if a.Version() <= version {
		t.Error("a version is lower than before")
	}
	if len(stmt.Commit()) != 0 {
		t.Error("an empty statement has decisions")
	}
}

func TestUnboundNominationRollsBack(t *testing.T) {
	s := with(twoNodes(), enginetest.Job("old").Devices(2).On("a"), enginetest.Job("new").Devices(2))
	ssn := enginetest.Engine(fit()).Open(s, engine.Options{})
	stmt := ssn.Begin()
	old, fresh := s.Job("job/old").Tasks()[0], s.Job("job/new").Tasks()[0]
	if err := stmt.Evict(old, "", "Test"); err != nil {
		t.Fatal(err)
	}
	claims, _ := s.Node("a").Choose(fresh.Shape, nil)
	if err := stmt.Allocate(fresh, s.Node("a"), claims); err != nil {
		t.Fatal(err)
	}
	stmt.Commit()
	apply(t, s, left(old))
	again := ssn.Begin()
	if !again.Bind(fresh) || again.Bind(fresh) {
		t.Error("Bind does not bind once")
	}
	again.Discard()
	if fresh.Status != cluster.Nominated {
		t.Errorf("after rollback it is %s", fresh.Status)
	}
}

// TestInterleavedGangsAreBound checks that two gangs are bound once their room is free, although the
// ID of job/ml/worker-0-b is sorted between the tasks of job/ml.
func TestInterleavedGangsAreBound(t *testing.T) {
	s := enginetest.State(
		enginetest.Node("a").CPU(8, "32Gi").GPUs(4, "L4", "24Gi"),
		enginetest.Job("old").Devices(4).On("a"),
		enginetest.Job("ml").Gang(2).Devices(1), enginetest.Job("ml/worker-0-b").Gang(2).Devices(1),
	)
	ssn := enginetest.Engine(fit()).Open(s, engine.Options{})
	stmt := ssn.Begin()
	old := s.Job("job/old").Tasks()[0]
	if err := stmt.Evict(old, "", "Test"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"job/ml", "job/ml/worker-0-b"} {
		if r := ssn.Place(stmt, s.Job(id)); r != nil {
			t.Fatalf("%s is refused: %v", id, r.Reason)
		}
	}
	stmt.Commit()
	apply(t, s, left(old))
	want := map[string]string{
		"job/ml/worker-0": "a", "job/ml/worker-1": "a",
		"job/ml/worker-0-b/worker-0": "a", "job/ml/worker-0-b/worker-1": "a",
	}
	if d := cmp.Diff(want, where(run(t, enginetest.Engine(fit()), s))); d != "" {
		t.Errorf("bound (-want +got):\n%s", d)
	}
}
