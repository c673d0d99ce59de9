package cluster_test

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// TestHeldBack checks that a job is not pending after a binding of it was refused, until its
// back-off has ended; that refusals during a back-off do not count; that a clone and a restored
// snapshot do the same; and that a binding that is made ends the count.
func TestHeldBack(t *testing.T) {
	state := enginetest.State(enginetest.Node("a").GPUs(2, "A100", "80Gi"), enginetest.Job("x").Devices(1))
	ref := state.Job("job/x").Tasks()[0].Ref()
	attempt := uint64(0)
	apply := func(s *cluster.State, list ...cluster.Change) {
		t.Helper()
		for _, c := range list {
			if err := s.Apply(c); err != nil {
				t.Fatal(err)
			}
		}
	}
	place := func(s *cluster.State) {
		t.Helper()
		attempt++
		apply(s, cluster.Decided{Changes: []cluster.Change{cluster.Assign{Task: ref, Node: "a", Devices: []cluster.Holding{{Device: s.Node("a").Devices[0].UUID, Milli: cluster.Whole}}, Attempt: attempt}}})
	}
	fail := func(s *cluster.State, retryAt int64) {
		t.Helper()
		apply(s, cluster.BindFailed{Task: ref, Attempt: attempt, RetryAt: retryAt})
	}
	check := func(s *cluster.State, pending bool, next int64) {
		t.Helper()
		if got := len(s.Pending()) == 1; got != pending || s.View().HeldBack() != next {
			t.Errorf("pending %t, next %d; want %t, %d", got, s.View().HeldBack(), pending, next)
		}
	}
	apply(state, cluster.SessionOpened{Now: 100})
	place(state)
	fail(state, 200)
	check(state, false, 200)
	if p := state.Job("job/x").BindRefused; p.Tries != 1 || state.Node("a").Devices[0].Use.Milli != 0 {
		t.Errorf("%+v", p)
	}
	restored, err := state.Snapshot().State()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*cluster.State{state.Clone(), restored, state} {
		apply(s, cluster.SessionOpened{Now: 199})
		check(s, false, 200)
		mark := s.Mark()
		apply(s, cluster.SessionOpened{Now: 200})
		check(s, true, 0)
		s.Undo(mark)
		check(s, false, 200)
		apply(s, cluster.SessionOpened{Now: 200})
		check(s, true, 0)
		if s.Digest() != restored.Digest() && s == state {
			t.Error("the digests differ")
		}
	}
	place(state)
	fail(state, 400)
	if p := state.Job("job/x").BindRefused; p.Tries != 2 || p.RetryAt != 400 {
		t.Errorf("%+v", p)
	}
	apply(state, cluster.SessionOpened{Now: 400})
	place(state)
	apply(state, cluster.TaskSeen{Task: ref, Node: "a"})
	if p := state.Job("job/x").BindRefused; p != nil {
		t.Errorf("%+v after the task was bound", p)
	}
}
