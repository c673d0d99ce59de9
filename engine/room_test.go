package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/sim"
)

// roomMaker is a plugin that registers means for the purpose.
func roomMaker(p engine.Purpose) *policy {
	return &policy{name: "Maker", open: func(s *engine.Session) {
		s.Hooks.AddEvictionPurpose(p, "MadeRoom")
	}}
}

// evicted returns the evicted tasks, sorted by name.
func evicted(out engine.Outcome) []string {
	var ids []string
	for _, d := range out.Decisions {
		if d.Action == engine.EvictTask {
			ids = append(ids, d.Task.ID()[len("job/"):])
		}
	}
	slices.Sort(ids)
	return ids
}

func four(name string) *enginetest.NodeBuilder {
	return enginetest.Node(name).CPU(8, "64Gi").GPUs(4, "A100", "80Gi")
}

func low(name string) *enginetest.JobBuilder { return enginetest.Job(name).Devices(1).Preemptible() }

func TestMakeRoomTakesLeast(t *testing.T) {
	scavenger := enginetest.Queue("scraps").Tier(cluster.TierScavenger)
	tests := map[string]struct {
		parts []enginetest.Part
		want  []string
	}{
		"none if there is room":                     {[]enginetest.Part{four("a"), low("x").On("a"), enginetest.Job("new").Devices(3)}, nil},
		"one is enough":                             {[]enginetest.Part{four("a"), low("x").Devices(2).On("a"), low("y").Devices(2).On("a"), enginetest.Job("new").Devices(2)}, []string{"x/worker-0"}},
		"one large rather than two small":           {[]enginetest.Part{four("a"), low("x").On("a"), low("y").On("a"), low("z").Devices(2).On("a"), enginetest.Job("new").Devices(2)}, []string{"z/worker-0"}},
		"the node with fewer victims":               {[]enginetest.Part{four("a"), four("b"), low("w").On("a"), low("x").On("a"), low("y").Devices(2).On("a"), low("z").Devices(4).On("b"), enginetest.Job("new").Devices(4)}, []string{"z/worker-0"}},
		"the weaker tier":                           {[]enginetest.Part{four("a"), scavenger, low("x").Devices(2).On("a"), low("y").Queue("scraps").Devices(2).Priority(9).On("a"), enginetest.Job("new").Devices(2)}, []string{"y/worker-0"}},
		"many of a weaker tier rather than one":     {[]enginetest.Part{four("a"), scavenger, low("x").Devices(2).On("a"), low("y").Queue("scraps").On("a"), low("z").Queue("scraps").On("a"), enginetest.Job("new").Devices(2)}, []string{"y/worker-0", "z/worker-0"}},
		"the lower priority":                        {[]enginetest.Part{four("a"), low("x").Devices(2).Priority(2).On("a"), low("y").Devices(2).Priority(1).On("a"), enginetest.Job("new").Devices(2)}, []string{"y/worker-0"}},
		"the younger":                               {[]enginetest.Part{four("a"), low("x").Devices(2).On("a").Started(5), low("y").Devices(2).On("a").Started(7), enginetest.Job("new").Devices(2)}, []string{"y/worker-0"}},
		"no task that is not preemptible":           {[]enginetest.Part{four("a"), enginetest.Job("x").Devices(2).On("a"), low("y").Devices(2).On("a"), enginetest.Job("new").Devices(3)}, nil},
		"surplus, and not the whole job":            {[]enginetest.Part{four("a"), low("x").Gang(4).Min(2).On("a", "a", "a", "a"), enginetest.Job("new").Devices(2)}, []string{"x/worker-0", "x/worker-1"}},
		"the whole job if surplus is not enough":    {[]enginetest.Part{four("a"), four("b"), low("x").Gang(2).Devices(2).On("a", "b"), enginetest.Job("new").Devices(4)}, []string{"x/worker-0", "x/worker-1"}},
		"for a gang, on every node":                 {[]enginetest.Part{four("a"), four("b"), low("x").Devices(3).On("a"), low("y").Devices(3).On("b"), enginetest.Job("new").Gang(2).Devices(2)}, []string{"x/worker-0"}},
		"for a gang of two kinds of node":           {[]enginetest.Part{four("a"), four("b"), low("x").Devices(3).On("a"), low("y").Devices(3).On("b"), enginetest.Job("new").Gang(2).Devices(3)}, []string{"x/worker-0", "y/worker-0"}},
		"none if one task of the gang gets no room": {[]enginetest.Part{four("a"), four("b"), low("x").Devices(3).On("a"), enginetest.Job("y").Devices(3).On("b"), enginetest.Job("new").Gang(2).Devices(3)}, nil},
		"none for surplus":                          {[]enginetest.Part{four("a"), low("x").Devices(2).On("a"), enginetest.Job("new").Gang(4).Min(2).Devices(1)}, nil},
		"in one domain, if it must be": {[]enginetest.Part{four("a").Label("rack", "1"), four("b").Label("rack", "1"), four("c").Label("rack", "2"),
			low("x").Devices(3).On("a"), low("y").On("c"), enginetest.Job("new").Gang(2).Devices(3).Topology(cluster.Topology{Required: "rack"})}, []string{"x/worker-0"}},
		"whole nodes":        {[]enginetest.Part{four("a"), four("b"), low("x").On("a"), low("y").On("b"), enginetest.Job("new").WholeNodes(2, "8Gi")}, []string{"x/worker-0", "y/worker-0"}},
		"a part of a device": {[]enginetest.Part{enginetest.Node("a").CPU(8, "64Gi").GPUs(1, "A100", "80Gi"), low("x").Share(1, 500).Priority(1).On("a"), low("y").Share(1, 500).On("a"), enginetest.Job("new").Share(1, 400)}, []string{"y/worker-0"}},
		"cores":              {[]enginetest.Part{four("a"), enginetest.Job("x").CPU(5000, "1Gi").Preemptible().On("a"), enginetest.Job("y").CPU(3000, "1Gi").Preemptible().On("a"), enginetest.Job("new").CPU(3000, "1Gi")}, []string{"x/worker-0"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := enginetest.State(tt.parts...)
			out := run(t, enginetest.Engine(fit(), enginetest.AllowAllVictims(), roomMaker(engine.Preempt)), s)
			if d := cmp.Diff(tt.want, evicted(out)); d != "" {
				t.Errorf("evicted (-want +got):\n%s", d)
			}
			if stands := s.Job("job/new").HasMinimum(); stands == (len(out.Refusals) > 0 && !out.Refusals[0].Surplus) {
				t.Errorf("the minimum is placed: %t, refusals: %d", stands, len(out.Refusals))
			}
		})
	}
}

// TestMakeRoomOnLargeClusters checks the search node by node, which is used if there are too many
// nodes and tasks to compare all plans.
func TestMakeRoomOnLargeClusters(t *testing.T) {
	var parts []enginetest.Part
	for i := range 100 {
		n := fmt.Sprintf("n%02d", i)
		parts = append(parts, four(n), low(fmt.Sprintf("a%02d", i)).Devices(2).On(n), low(fmt.Sprintf("b%02d", i)).Devices(2).Priority(int32(i%7)).On(n))
	}
	parts = append(parts, enginetest.Job("new").Gang(10).Devices(4))
	s := enginetest.State(parts...)
	out := run(t, enginetest.Engine(fit(), enginetest.AllowAllVictims(), roomMaker(engine.Preempt)), s)
	if got := len(evicted(out)); got != 20 || !s.Job("job/new").HasMinimum() {
		t.Errorf("%d were evicted, want 20; the minimum is placed: %t", got, s.Job("job/new").HasMinimum())
	}
	for _, id := range evicted(out) { // nodes on which all tasks have priority 0 cost least
		if j := s.Job("job/" + id[:3]); j.Priority != 0 {
			t.Errorf("%s has priority %d", j.ID, j.Priority)
		}
	}
}

func TestMovedTasksLand(t *testing.T) {
	e := enginetest.Engine(fit(), enginetest.AllowAllVictims(), roomMaker(engine.Move))
	s := enginetest.State(four("a"), four("b"), low("x").Devices(1).On("a"), low("y").Devices(2).On("b"), enginetest.Job("new").Devices(4))
	out := run(t, e, s)
	if d := cmp.Diff([]string{"x/worker-0"}, evicted(out)); d != "" {
		t.Fatalf("moved (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]string{"job/new/worker-0": "a", "job/x/worker-0": "b"}, where(out)); d != "" {
		t.Errorf("reserved (-want +got):\n%s", d)
	}
	x := s.Job("job/x").Tasks()[0]
	if x.Status != cluster.Releasing || x.Landing() == nil || x.Landing().Node.Name != "b" {
		t.Fatalf("the task is %s, its reservation %v", x.Status, x.Landing())
	}
	// No other task gets the room that is reserved for it.
	apply(t, s, jobPut(enginetest.Job("late").Devices(2)))
	if out := run(t, e, s); len(out.Decisions) != 0 {
		t.Errorf("decided %v", out.Decisions)
	}
	apply(t, s, left(x))
	if x.Status != cluster.Nominated || x.Node.Name != "b" {
		t.Fatalf("it is %s", x.Status)
	}
	if d := cmp.Diff(map[string]string{"job/new/worker-0": "a", "job/x/worker-0": "b"}, where(run(t, e, s))); d != "" {
		t.Errorf("bound (-want +got):\n%s", d)
	}
}

func TestNothingMovesUnlessAllLand(t *testing.T) {
	e := enginetest.Engine(fit(), enginetest.AllowAllVictims(), roomMaker(engine.Move))
	// Two tasks of x would have to move from a, and b has room for one of them.
	s := enginetest.State(four("a"), four("b"), low("x").On("a"), low("z").On("a"), enginetest.Job("y").Devices(3).On("b"), enginetest.Job("new").Devices(4))
	if out := run(t, e, s); len(out.Decisions) != 0 {
		t.Errorf("decided %v", out.Decisions)
	}
}

// TestLostReservationOfAMove checks that a task that moves is pending after it has released its room
// if the node that it moves to is lost.
func TestLostReservationOfAMove(t *testing.T) {
	e := enginetest.Engine(fit(), enginetest.AllowAllVictims(), roomMaker(engine.Move))
	s := enginetest.State(four("a"), four("b"), low("x").On("a"), low("y").Devices(2).On("b"), enginetest.Job("new").Devices(4))
	run(t, e, s)
	x := s.Job("job/x").Tasks()[0]
	if err := sim.RemoveNode(s, "b"); err != nil {
		t.Fatal(err)
	}
	if x.Landing() != nil {
		t.Fatal("room is still reserved on a node that is lost")
	}
	apply(t, s, left(x))
	if x.Status != cluster.Pending {
		t.Errorf("it is %s", x.Status)
	}
}

func TestNoJobIsEvictedTwiceForTheSameJob(t *testing.T) {
	e := enginetest.Engine(fit(), enginetest.AllowAllVictims(), roomMaker(engine.Preempt))
	s := enginetest.State(four("a"), low("x").Devices(4).On("a"), enginetest.Job("new").Devices(4).Preemptible())
	run(t, e, s)
	if d := cmp.Diff([]string{"job/x"}, s.Job("job/new").Displaced); d != "" {
		t.Fatal(d)
	}
	x, fresh := s.Job("job/x").Tasks()[0], s.Job("job/new").Tasks()[0]
	apply(t, s, left(x), cluster.Decided{Changes: []cluster.Change{cluster.Withdraw{Task: fresh.Ref()}}})
	apply(t, s, runsOn(x, s.Node("a"))) // it is placed again before the other job
	if out := run(t, e, s); len(out.Decisions) != 0 {
		t.Errorf("decided %v", out.Decisions)
	}
}

func TestRefusalListsProtectedJobs(t *testing.T) {
	never := &policy{name: "Never", open: func(s *engine.Session) {
		s.Hooks.AddPreemptable(func(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Verdict {
			return func(v *engine.Victim) engine.Verdict {
				if v.Job.ID == "job/dear" {
					return engine.Protect("TooDear")
				}
				return engine.NoOpinion
			}
		})
	}}
	s := enginetest.State(four("a"), low("dear").Devices(3).On("a"), low("x").On("a"), enginetest.Job("new").Devices(2))
	out := run(t, enginetest.Engine(fit(), enginetest.AllowAllVictims(), never, roomMaker(engine.Preempt)), s)
	want := []engine.ProtectedVictims{{Purpose: engine.Preempt, Protection: []engine.Protection{{Protector: engine.Protector{Plugin: "Never", Reason: "TooDear"}, Count: 1, Jobs: []string{"job/dear"}}}}}
	if len(out.Refusals) != 1 {
		t.Fatalf("refusals %v", out.Refusals)
	}
	if d := cmp.Diff(want, out.Refusals[0].Protected); d != "" {
		t.Errorf("protected (-want +got):\n%s", d)
	}
	if len(out.Decisions) != 0 {
		t.Errorf("decided %v", out.Decisions)
	}
}

// TestReservationsExpire checks that reservations are withdrawn after the time that Options.Hold
// gives. A victim that still holds its room then is overdue, and nothing is reserved on its room.
func TestReservationsExpire(t *testing.T) {
	e := enginetest.Engine(fit(), enginetest.AllowAllVictims(), roomMaker(engine.Preempt))
	s := enginetest.State(four("a"), low("x").Devices(4).On("a"), enginetest.Job("new").Devices(4))
	at := func(now int64) {
		ssn := e.Open(s, engine.Options{Now: now, Hold: 60})
		if _, err := ssn.Run(); err != nil {
			t.Fatal(err)
		}
		ssn.Close()
	}
	at(100)
	fresh := s.Job("job/new").Tasks()[0]
	if at(160); fresh.Status != cluster.Nominated {
		t.Fatalf("it is %s", fresh.Status)
	}
	victim := s.Job("job/x").Tasks()[0]
	if at(161); fresh.Status != cluster.Pending || !victim.Overdue() {
		t.Errorf("the task is %s, and the victim is overdue: %v", fresh.Status, victim.Overdue())
	}
	apply(t, s, cluster.TaskSeen{Task: victim.Ref()})
	if at(162); !fresh.Runs() {
		t.Errorf("the victim has released its room, and the task is %s", fresh.Status)
	}
}

// TestOverdueIsOneDecision checks that a task is marked as overdue and the reservations on its room
// are withdrawn in one record of the log, so that the room is never in use and reserved at once.
func TestOverdueIsOneDecision(t *testing.T) {
	e := enginetest.Engine(fit(), enginetest.AllowAllVictims(), roomMaker(engine.Preempt))
	s := enginetest.State(four("a"), low("x").Devices(4).On("a"), enginetest.Job("new").Devices(4))
	at := func(now int64) []cluster.Change {
		ssn := e.Open(s, engine.Options{Now: now, Hold: 60, Record: true})
		defer ssn.Close()
		out, err := ssn.Run()
		if err != nil {
			t.Fatal(err)
		}
		return out.Changes
	}
	at(100)
	apply(t, s, cluster.JobGone{Job: "job/new"}, cluster.JobPut{Job: *enginetest.Job("next").Devices(4).Build()})
	at(150)
	next := s.Job("job/next").Tasks()[0]
	if next.Status != cluster.Nominated {
		t.Fatalf("the task is %s, and not nominated on the room that is being released", next.Status)
	}
	replayed := s.Clone()
	changes := at(161)
	want := []cluster.Change{
		cluster.SessionOpened{Now: 161},
		cluster.Decided{Changes: []cluster.Change{cluster.Withdraw{Task: next.Ref()}, cluster.Overdue{Task: s.Job("job/x").Tasks()[0].Ref()}}},
	}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if apply(t, replayed, changes...); replayed.Digest() != s.Digest() {
		t.Error("applying the recorded changes gives another State")
	}
}
