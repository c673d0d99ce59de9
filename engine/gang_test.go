package engine_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/sim"
)

// TestGangWaitsAsAWhole: if one task of a gang has to wait for room, none of them starts.
func TestGangWaitsAsAWhole(t *testing.T) {
	s := with(twoNodes(), enginetest.Job("old").Devices(2).On("a"), enginetest.Job("gang").Gang(2).Devices(2))
	e := enginetest.Engine(fit())
	apply(t, s, evicts(s, "job/old"))
	actions := func(out engine.Outcome) map[string]engine.Action {
		m := map[string]engine.Action{}
		for _, d := range out.Decisions {
			m[d.Task.ID()] = d.Action
		}
		return m
	}
	want := map[string]engine.Action{"job/gang/worker-0": engine.Nominate, "job/gang/worker-1": engine.Nominate}
	if diff := cmp.Diff(want, actions(run(t, e, s))); diff != "" {
		t.Error(diff)
	}
	if got := actions(run(t, e, s)); len(got) != 0 {
		t.Errorf("a part of the gang was bound: %v", got)
	}
	apply(t, s, left(s.Job("job/old").Tasks()[0]))
	want = map[string]engine.Action{"job/gang/worker-0": engine.Bind, "job/gang/worker-1": engine.Bind}
	if diff := cmp.Diff(want, actions(run(t, e, s))); diff != "" {
		t.Error(diff)
	}
}

// TestElasticJobStartsWithItsMinimum: the minimum starts although a surplus task waits for
// room.
func TestElasticJobStartsWithItsMinimum(t *testing.T) {
	s := with(twoNodes(), enginetest.Job("old").Devices(2).On("a"), enginetest.Job("grows").Gang(2).Min(1).Devices(2))
	apply(t, s, evicts(s, "job/old"))
	got := map[cluster.Status]int{}
	run(t, enginetest.Engine(fit()), s)
	for _, task := range s.Job("job/grows").Tasks() {
		got[task.Status]++
	}
	if got[cluster.Assumed] != 1 || got[cluster.Nominated] != 1 {
		t.Errorf("%v", got)
	}
}

// TestReservationIsWithdrawn: a nominated task is pending again if its node loses a device,
// and is placed on another node.
func TestReservationIsWithdrawn(t *testing.T) {
	s := with(twoNodes(), enginetest.Node("c").CPU(8, "64Gi"), enginetest.Job("old").Devices(2).On("a"), enginetest.Job("x").Devices(1).On("b"), enginetest.Job("new").Devices(2))
	e := enginetest.Engine(fit())
	apply(t, s, evicts(s, "job/old"))
	run(t, e, s)
	fresh := s.Job("job/new").Tasks()[0]
	if fresh.Status != cluster.Nominated || fresh.Node.Name != "a" {
		t.Fatalf("it is %s", fresh.Status)
	}
	apply(t, s, cluster.NodeSeen{Name: "a", Lost: &[]string{s.Node("a").Devices[1].UUID}})
	apply(t, s, left(s.Job("job/old").Tasks()[0]))
	out := run(t, e, s)
	if len(out.Decisions) != 0 || fresh.Status != cluster.Pending || out.Events[0].Kind != engine.Withdrawn {
		t.Errorf("it is %s; events %v", fresh.Status, out.Events)
	}
	apply(t, s, jobGone("job/x"))
	if diff := cmp.Diff(map[string]string{"job/new/worker-0": "b"}, where(run(t, e, s))); diff != "" {
		t.Error(diff)
	}
}

// TestAdapterMustPlaceTheMinimum: an adapter that places the minimum succeeds, and one that
// returns nil without placing it fails the session.
func TestAdapterMustPlaceTheMinimum(t *testing.T) {
	adapter := func(fn func(*engine.Session) engine.Adapter) *policy {
		return &policy{name: "Adapter", open: func(s *engine.Session) { s.Hooks.AddAdapter(fn(s)) }}
	}
	// The minimum is placed and surplus is left: that is a success.
	place := adapter(func(s *engine.Session) engine.Adapter {
		return func(stmt *engine.Statement, j *cluster.Job, _ *engine.Refusal) *engine.Refusal {
			if err := stmt.Evict(s.View.Job("job/cheap").Tasks()[0], j.ID, "Test"); err != nil {
				t.Error(err)
			}
			return s.Place(stmt, j)
		}
	})
	s := with(twoNodes(), enginetest.Job("cheap").Devices(2).Preemptible().On("a"), enginetest.Job("dear").Devices(2).On("b"), enginetest.Job("elastic").Gang(5).Min(2).Devices(1))
	out := run(t, enginetest.Engine(fit(), place), s)
	if s.Job("job/elastic").Placed() != 2 || len(out.Refusals) != 1 || !out.Refusals[0].Surplus {
		t.Errorf("%d placed, refusals %v", s.Job("job/elastic").Placed(), out.Refusals)
	}
	// An adapter that evicts and places nothing fails the session, and the eviction is undone.
	lie := adapter(func(s *engine.Session) engine.Adapter {
		return func(stmt *engine.Statement, j *cluster.Job, _ *engine.Refusal) *engine.Refusal {
			if err := stmt.Evict(s.View.Job("job/cheap").Tasks()[0], j.ID, "Test"); err != nil {
				t.Error(err)
			}
			return nil
		}
	})
	s = with(twoNodes(), enginetest.Job("cheap").Devices(2).Preemptible().On("a"), enginetest.Job("never").Devices(9))
	_, err := enginetest.Engine(fit(), lie).Open(s, engine.Options{}).Run()
	if err == nil || !strings.Contains(err.Error(), "plugin Adapter") || s.Job("job/cheap").Tasks()[0].Status != cluster.Bound {
		t.Errorf("%v; the victim is %s", err, s.Job("job/cheap").Tasks()[0].Status)
	}
}

// TestReleasingTasksDoNotCountForTheMinimum: a gang waits until its evicted task has released
// its room.
func TestReleasingTasksDoNotCountForTheMinimum(t *testing.T) {
	s := with(twoNodes(), enginetest.Job("gang").Gang(3).Devices(1).On("a", "a"))
	apply(t, s, evicts(s, "job/gang"))
	out := run(t, enginetest.Engine(fit()), s)
	if len(out.Decisions) != 0 || out.Refusals[0].Reason != engine.StillReleasing || out.Refusals[0].Permanent {
		t.Errorf("%v %+v", out.Decisions, out.Refusals[0])
	}
}

// TestLostJobTakesAnyForm: a job that lost all its tasks may take another alternative.
func TestLostJobTakesAnyForm(t *testing.T) {
	s := enginetest.State(enginetest.Node("big").GPUs(4, "A", "8Gi"), enginetest.Node("small").GPUs(1, "A", "8Gi"))
	j := &cluster.Job{ID: "job/alt"}
	for _, d := range []int{4, 1} {
		j.Alternatives = append(j.Alternatives, cluster.Alternative{Min: 1, Tasks: []*cluster.Task{{Name: string(rune('0' + d)), Shape: &cluster.Shape{Need: cluster.Need{Devices: d}}}}})
	}
	apply(t, s, cluster.JobPut{Job: *j})
	e := enginetest.Engine(fit())
	if err := sim.ConfirmBindings(s, run(t, e, s).Decisions); err != nil {
		t.Fatal(err)
	}
	if err := sim.RemoveNode(s, "big"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"job/alt/1": "small"}, where(run(t, e, s))); diff != "" {
		t.Error(diff)
	}
}

// TestBrokenScoreIsNotRemembered: a score out of range fails the next session as well.
func TestBrokenScoreIsNotRemembered(t *testing.T) {
	broken := &policy{name: "Broken", open: func(s *engine.Session) {
		s.Hooks.AddShapeScore(nil, func(_ *cluster.Shape, n *cluster.Node) float64 {
			if n.Name == "a" {
				return -1
			}
			return 1
		})
	}}
	s := with(twoNodes(), enginetest.Job("j"))
	e := enginetest.Engine(fit(), broken)
	for range 2 {
		if _, err := e.Open(s, engine.Options{}).Run(); err == nil {
			t.Error("a score of -1 was accepted")
		}
	}
}

func TestLateHooksAreAMistake(t *testing.T) {
	s := with(twoNodes(), enginetest.Job("j"))
	ssn := enginetest.Engine(fit()).Open(s, engine.Options{})
	ssn.Hooks.AddShapeScore(nil, func(*cluster.Shape, *cluster.Node) float64 { return 1 })
	if _, err := ssn.Run(); err == nil || !strings.Contains(err.Error(), "OnSessionOpen") {
		t.Errorf("%v", err)
	}
}

// TestOnlyItselfInTheWay: if only the gang's own tasks prevent its placement, its refusal is
// permanent.
func TestOnlyItselfInTheWay(t *testing.T) {
	for name, tt := range map[string]struct {
		parts     []enginetest.Part
		permanent bool
	}{
		"alone":       {nil, true},
		"another job": {[]enginetest.Part{enginetest.Job("x").On("a")}, false},
	} {
		s := add(t, with(twoNodes(), tt.parts...), mixedGang(3, 2, 2, 1))
		if r := run(t, enginetest.Engine(fit()), s).Refusals[0]; r.Permanent != tt.permanent {
			t.Errorf("%s: permanent %v", name, r.Permanent)
		}
	}
}

// mixedGang returns a job with tasks that request the given numbers of devices.
func mixedGang(least int, devices ...int) *cluster.Job {
	alt := cluster.Alternative{Min: least}
	for i, d := range devices {
		alt.Tasks = append(alt.Tasks, &cluster.Task{Name: string(rune('a' + i)), Shape: &cluster.Shape{Need: cluster.Need{Devices: d}}})
	}
	return &cluster.Job{ID: "job/mixed", Alternatives: []cluster.Alternative{alt}}
}

// TestMinimumInAnyOrder: any tasks may make up the minimum, in whatever order the job lists
// them.
func TestMinimumInAnyOrder(t *testing.T) {
	for _, devices := range [][]int{{4, 1, 1}, {1, 4, 1}, {1, 1, 4}} {
		s := add(t, enginetest.State(enginetest.Node("n").GPUs(2, "A", "8Gi")), mixedGang(2, devices...))
		out := run(t, enginetest.Engine(fit()), s)
		if len(out.Decisions) != 2 || len(out.Refusals) != 1 || !out.Refusals[0].Surplus {
			t.Errorf("%v: %d placed, refusals %v", devices, len(out.Decisions), out.Refusals)
		}
	}
}

// TestMembersThatRunNeedNoRoom: the refusal of a gang with a running task on a closed node is
// not permanent.
func TestMembersThatRunNeedNoRoom(t *testing.T) {
	closed := &policy{name: "Closed", open: func(s *engine.Session) {
		s.Hooks.AddStaticFilter(nil, func(_ *cluster.Shape, n *cluster.Node) *engine.Rejection {
			if n.Unschedulable {
				return &engine.Rejection{Reason: "Closed", Cure: engine.Grow}
			}
			return nil
		})
	}}
	s := enginetest.State(enginetest.Node("a").GPUs(1, "A", "8Gi").With(func(n *cluster.Node) { n.Unschedulable = true }), enginetest.Node("b").GPUs(1, "A", "8Gi"),
		enginetest.Job("gang").Gang(2).Devices(1).On("a"), enginetest.Job("other").Devices(1).On("b"))
	if r := run(t, enginetest.Engine(closed, fit()), s).Refusals[0]; r.Permanent || r.Reason != "NoDevices" {
		t.Errorf("%s, permanent %v", r.Reason, r.Permanent)
	}
}

// TestTornGangReleasesItsReservations: when a nominated gang loses a task, the reservations of
// its other tasks are released.
func TestTornGangReleasesItsReservations(t *testing.T) {
	allocated := map[string]int{}
	tracker := &policy{name: "Tracker", open: func(s *engine.Session) {
		s.Hooks.AddEventHandler(engine.EventHandler{
			AllocateFunc:   func(e *engine.Event) { allocated[e.Task.ID]++ },
			DeallocateFunc: func(e *engine.Event) { allocated[e.Task.ID]-- },
		})
	}}
	s := with(twoNodes(), enginetest.Job("old").Devices(2).On("a"), enginetest.Job("gang").Gang(2).Devices(2))
	apply(t, s, evicts(s, "job/old"))
	e := enginetest.Engine(fit(), tracker)
	run(t, e, s)
	apply(t, s, cluster.NodeGone{Name: "a"}, jobGone("job/old"))
	run(t, e, s)
	if n := s.Job("job/gang").Placed(); n != 0 || !s.Node("b").Devices[0].Idle() {
		t.Errorf("%d tasks of the gang still hold room", n)
	}
	// The session itself released the task on b, so the handlers were called for it.
	if diff := cmp.Diff(map[string]int{"job/gang/worker-0": 1, "job/gang/worker-1": 0}, allocated); diff != "" {
		t.Error(diff)
	}
}

// TestWholeNodesWaitForReleasingTasks: a job with whole nodes waits until its evicted task has
// released its room.
func TestWholeNodesWaitForReleasingTasks(t *testing.T) {
	s := with(twoNodes(), enginetest.Job("w").WholeNodes(2, "8Gi").On("a"))
	apply(t, s, evicts(s, "job/w"))
	out := run(t, enginetest.Engine(fit(), groups()), s)
	if len(out.Decisions) != 0 || out.Refusals[0].Reason != engine.StillReleasing {
		t.Errorf("%v %+v", out.Decisions, out.Refusals[0])
	}
}

// TestTiesUnderATaskFilterStopAtTheFirst: the filter is called for only one of many equal
// nodes.
func TestTiesUnderATaskFilterStopAtTheFirst(t *testing.T) {
	asked := 0
	filter := &policy{name: "Filter", open: func(s *engine.Session) {
		s.Hooks.AddTaskFilter(nil, func(*cluster.Task, *cluster.Job, *cluster.Node) *engine.Rejection {
			asked++
			return nil
		})
	}}
	s := with(manyNodes(500), enginetest.Job("j").Devices(1))
	if _, err := enginetest.Engine(fit(), filter).Open(s, engine.Options{}).Run(); err != nil {
		t.Fatal(err)
	}
	if asked != 1 {
		t.Errorf("the filter was called %d times, want once", asked)
	}
}
