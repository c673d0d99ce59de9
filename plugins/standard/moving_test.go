package standard_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// moving returns a cluster in which x must move from a to b to make room for new.
func moving() *cluster.State {
	return enginetest.State(
		a100("a", 4), low("x").On("a"),
		a100("b", 4), enginetest.Job("y").Devices(2).On("b"),
		enginetest.Job("new").Devices(4),
	)
}

// Each move alone leaves the gang its minimum. The second move must count the first one,
// which is not complete yet.
func TestMovesLeaveTheMinimumRunning(t *testing.T) {
	s := enginetest.State(
		a100("a", 4), a100("b", 4), a100("c", 4), a100("d", 4),
		low("x").Gang(3).Min(2).On("a", "b", "c"), enginetest.Job("y").Devices(1).On("d"),
		enginetest.Job("new1").Devices(4),
	)
	e := profile(t)
	if got := evictedTasks(session(t, e, s, engine.Options{})); len(got) != 1 {
		t.Fatalf("the first move takes %v, want one task", got)
	}
	add(t, s, enginetest.Job("new2").Devices(4))
	session(t, e, s, engine.Options{})
	if n := bound(s.Job("job/x")); n == 1 {
		t.Errorf("%d tasks run of a gang with a minimum of 2", n)
	}
}

// A nominated task does not run yet, so the gang cannot give up another task for it.
func TestNominatedTasksAreNotSpare(t *testing.T) {
	s := enginetest.State(
		a100("a", 1), a100("b", 1), a100("c", 1),
		low("x").Gang(3).Min(2).Priority(1).On("a", "b"), low("y").On("c"),
	)
	y := s.Job("job/y").Tasks()[0]
	apply(t, s, cluster.Decided{Changes: []cluster.Change{cluster.Evict{Task: y.Ref(), Attempt: y.Attempt + 1}}})
	e := profile(t)
	session(t, e, s, engine.Options{})
	x := s.Job("job/x")
	if x.Tasks()[2].Status != cluster.Nominated {
		t.Fatalf("the third task is %s, want it nominated", x.Tasks()[2].Status)
	}
	add(t, s, enginetest.Job("new").Devices(1).Priority(5))
	session(t, e, s, engine.Options{})
	if n := bound(x); n == 1 {
		t.Errorf("%d tasks run of a gang with a minimum of 2", n)
	}
}

// Tasks that move count where they will be: the pending tasks of the gang are placed there
// too, and not in the rack that is being left.
func TestMovedGangKeepsItsRack(t *testing.T) {
	s := enginetest.State(
		a100("a", 4).Label("rack", "1"), a100("b", 4).Label("rack", "2"),
		low("x").Gang(3).Min(2).Topology(cluster.Topology{Required: "rack"}).On("a", "a"),
		enginetest.Job("y").Devices(1).On("b"),
		enginetest.Job("new").Devices(4).Priority(9).Selector("rack", "1"),
	)
	e := profile(t)
	x := s.Job("job/x")
	if d := cmp.Diff([]string{"job/x/worker-0", "job/x/worker-1"}, evictedTasks(session(t, e, s, engine.Options{}))); d != "" {
		t.Fatalf("moved (-want +got):\n%s", d)
	}
	add(t, s, a100("a2", 4).Label("rack", "1"))
	session(t, e, s, engine.Options{})
	for _, w := range x.Tasks()[:2] {
		reportStopped(t, s, w)
	}
	session(t, e, s, engine.Options{})
	got := map[string]string{}
	for _, w := range x.Tasks() {
		if w.Node != nil {
			got[w.Name] = w.Node.Labels["rack"]
		}
	}
	if d := cmp.Diff(map[string]string{"worker-0": "2", "worker-1": "2", "worker-2": "2"}, got); d != "" {
		t.Errorf("racks (-want +got):\n%s", d)
	}
}

// A task moves from one device of its node to another one, and then the node loses both.
func TestMoveWithinShrinkingNode(t *testing.T) {
	s := enginetest.State(a100("a", 4))
	for i, b := range []*enginetest.JobBuilder{
		enginetest.Job("p0").Devices(1), enginetest.Job("p1").Devices(1), low("x").Share(1, 500), enginetest.Job("y").Share(1, 500),
	} {
		j := b.Build()
		milli := cluster.Milli(1000)
		if i > 1 {
			milli = 500
		}
		claims := []cluster.Claim{{Device: i, Milli: milli, Memory: enginetest.Size("40Gi")}}
		apply(t, s, cluster.JobPut{Job: *j}, cluster.SeenOn(j.Tasks()[0], s.Node("a"), claims, 0))
	}
	add(t, s, enginetest.Job("new").Devices(1))
	e := profile(t)
	if d := cmp.Diff([]string{"job/x/worker-0"}, evictedTasks(session(t, e, s, engine.Options{}))); d != "" {
		t.Fatalf("moved (-want +got):\n%s", d)
	}
	shrunk := *s.Node("a")
	shrunk.Devices = shrunk.Devices[:2]
	apply(t, s, cluster.NodePut{Node: shrunk})
	session(t, e, s, engine.Options{})
	if x := s.Job("job/x").Tasks()[0]; x.Runs() && len(x.Claims) == 0 {
		t.Error("x runs without a device")
	}
}

// While one task of a job moves, its other tasks are placed when room becomes free.
func TestPendingWhileMoving(t *testing.T) {
	s := enginetest.State(
		a100("a", 4), a100("b", 4), a100("d", 1),
		low("x").Gang(4).Min(1).On("a", "d"), enginetest.Job("y").Devices(3).On("b"),
		enginetest.Job("new").Devices(4).Priority(4),
	)
	e := profile(t)
	if d := cmp.Diff([]string{"job/x/worker-0"}, evictedTasks(session(t, e, s, engine.Options{}))); d != "" {
		t.Fatalf("moved (-want +got):\n%s", d)
	}
	for _, name := range []string{"c1", "c2"} {
		add(t, s, a100(name, 1))
		session(t, e, s, engine.Options{})
	}
	for _, w := range s.Job("job/x").Tasks() {
		if w.Status == cluster.Pending {
			t.Errorf("%s is pending, although there was a node for it", w.ID)
		}
	}
}

// An event names the same node as its decision. For an eviction it is the node that the task was on.
func TestEventsNameTheNodeOfTheirDecision(t *testing.T) {
	out := session(t, profile(t), moving(), engine.Options{})
	got := map[string]string{}
	for _, e := range out.Events {
		if e.Decision == nil {
			continue
		}
		got[string(e.Kind)+" "+e.Task.ID()] = e.Node
		if e.Node != e.Decision.Node {
			t.Errorf("%s of %s: the event names %s, the decision %s", e.Kind, e.Task.ID(), e.Node, e.Decision.Node)
		}
	}
	if d := cmp.Diff(map[string]string{"Evicted job/x/worker-0": "a", "Nominated job/x/worker-0": "b", "Nominated job/new/worker-0": "a"}, got); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}
