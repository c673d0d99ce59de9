package cluster_test

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// moving returns a job with two tasks: the first moves from node a to the given node and
// device, and the second is pending.
func moving(t *testing.T, to string, device int) (*cluster.State, *cluster.Job) {
	t.Helper()
	state := enginetest.State(
		enginetest.Node("a").CPU(8, "32Gi").GPUs(4, "L4", "24Gi"), enginetest.Node("b").CPU(8, "32Gi").GPUs(1, "L4", "24Gi"),
		enginetest.Job("j").Gang(2).Min(1).Devices(1),
	)
	j := state.Job("job/j")
	first, claim := j.Tasks()[0], func(d int) []cluster.Claim {
		return []cluster.Claim{{Device: d, Milli: cluster.Whole, Memory: 24 << 30}}
	}
	if err := state.Restore(first, state.Node("a"), claim(2), 0); err != nil {
		t.Fatal(err)
	}
	if err := state.Evict(first); err != nil {
		t.Fatal(err)
	}
	shadow := j.Shadow([]*cluster.Task{first})
	if n := len(shadow.Tasks()); n != 1 {
		t.Fatalf("Shadow has %d tasks, want 1", n)
	}
	if err := state.Place(shadow.Tasks()[0], state.Node(to), claim(device), 0); err != nil {
		t.Fatal(err)
	}
	state.AddLanding(shadow.Tasks()[0])
	return state, j
}

// TestPendingWhileATaskMoves checks that a job with a pending task is pending while
// another of its tasks moves, which holds room on two nodes but counts once.
func TestPendingWhileATaskMoves(t *testing.T) {
	state, j := moving(t, "b", 0)
	second := j.Tasks()[1]
	claims := []cluster.Claim{{Device: 0, Milli: cluster.Whole, Memory: 24 << 30}}
	if err := state.Place(second, state.Node("a"), claims, 0); err != nil {
		t.Fatal(err)
	}
	if n := len(state.Pending()); n != 0 {
		t.Errorf("%d jobs are pending, want 0: no task is pending", n)
	}
	state.Clear(second)
	if n := len(state.Pending()); n != 1 {
		t.Errorf("%d jobs are pending, want 1: a task is pending", n)
	}
	state.Clear(j.Tasks()[0])
	if at := j.Tasks()[0]; at.Status != cluster.Nominated || at.Node.Name != "b" || len(state.Pending()) != 1 {
		t.Errorf("the task is %s on %v, and %d jobs are pending; want Nominated on b, and 1", at.Status, at.Node, len(state.Pending()))
	}
}

// TestMoveOnNodeThatLosesDevices checks that a task that moves within a node keeps its
// claims when the node does not list the devices any more. The devices are lost, and the
// next session withdraws the landing.
func TestMoveOnNodeThatLosesDevices(t *testing.T) {
	state, j := moving(t, "a", 3)
	if err := state.UpdateNode("a", func(n *cluster.Node) { n.Devices = n.Devices[:1] }); err != nil {
		t.Fatal(err)
	}
	first := j.Tasks()[0]
	n := state.Node("a")
	if first.Status != cluster.Releasing || first.Landing() == nil || n.Keeps(first.Landing()) {
		t.Errorf("the task is %s with the claims %v and the landing %v", first.Status, first.Claims, first.Landing())
	}
	for _, c := range first.Claims {
		if d := n.Devices[c.Device]; !d.Lost || !d.Gone {
			t.Errorf("device %s is lost: %v, gone: %v", d.UUID, d.Lost, d.Gone)
		}
	}
	if err := state.Apply(cluster.TaskSeen{Task: first.Ref()}); err != nil || first.Status != cluster.Nominated {
		t.Errorf("error %v; the task is %s, want Nominated", err, first.Status)
	}
}

// TestRefOfLanding checks that Ref of a landing is that of the task that moves.
func TestRefOfLanding(t *testing.T) {
	state, j := moving(t, "b", 0)
	first := j.Tasks()[0]
	if ref := first.Landing().Ref(); ref != first.Ref() || state.Task(ref) != first {
		t.Errorf("Ref of the landing is %v, want %v", ref, first.Ref())
	}
}
