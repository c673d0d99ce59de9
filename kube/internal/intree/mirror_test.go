package intree

import (
	"fmt"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"pgregory.net/rapid"
)

// TestUndo places, evicts and rolls back random tasks in a statement. At the end all is
// rolled back, and the mirror is equal to one that is built anew.
func TestUndo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for i := range 3 {
			w.putNode(t, node(fmt.Sprintf("n%d", i), map[string]string{zoneLabel: fmt.Sprint("z", i%2)}))
		}
		var jobs []string
		for i := range 6 {
			jobs = append(jobs, w.job(t, drawPod(t, fmt.Sprintf("p%d", i))))
		}
		w.run(t) // some are placed, and may be evicted below
		s := w.engine.Open(w.state, engine.Options{Now: w.now})
		before := describe(w.plugin.mirror)
		stmt := s.Begin()
		var checkpoints []int
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			task := w.state.Job(rapid.SampledFrom(jobs).Draw(t, "job")).Tasks()[0]
			switch on := w.state.Nodes()[rapid.IntRange(0, 2).Draw(t, "node")]; {
			case chance(t, "checkpoint", 4):
				checkpoints = append(checkpoints, stmt.Checkpoint())
			case chance(t, "rollback", 6) && len(checkpoints) > 0:
				stmt.Rollback(checkpoints[len(checkpoints)-1])
				checkpoints = checkpoints[:len(checkpoints)-1]
			case task.Status == cluster.Pending:
				_ = stmt.Allocate(task, on, nil) // the node may lack the room
			case task.Runs():
				_ = stmt.Evict(task, "job", "Test")
			}
			checkNodes(t, w)
		}
		stmt.Rollback(0)
		if after := describe(w.plugin.mirror); after != before {
			t.Fatalf("before:\n%s\nafter:\n%s", before, after)
		}
		stmt.Discard()
		if err := s.Close(); err != nil {
			t.Fatalf("%v", err)
		}
		w.run(t)
		w.checkMirror(t)
	})
}

// checkNodes fails the test if the mirror has other pods than the tasks that keep their
// room, in the middle of a statement.
func checkNodes(t *rapid.T, w *world) {
	for _, n := range w.state.Nodes() {
		want := 0
		for _, task := range n.Tasks {
			if task.KeepsRoom() {
				want++
				if !w.plugin.mirror.has(n.Name, w.store.pods[KeyOf(task)].info.Pod.UID) {
					t.Fatalf("node %s lacks %s", n.Name, task.ID)
				}
			}
		}
		if got := len(w.plugin.mirror.nodes[n.Name].pods); got != want {
			t.Fatalf("node %s has %d pods, want %d", n.Name, got, want)
		}
	}
}

// TestMirrorInverse checks that remove undoes add, and setNode undoes setNode.
func TestMirrorInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMirror()
		names := []string{"a", "b", "c"}
		for _, name := range names[:2] {
			m.setNode(name, drawNode(t, name))
		}
		var undo []func()
		before := describe(m)
		for i := range rapid.IntRange(1, 20).Draw(t, "steps") {
			name := rapid.SampledFrom(names).Draw(t, "node")
			if chance(t, "set", 3) {
				var object *v1.Node
				if !chance(t, "remove", 3) {
					object = drawNode(t, name)
				}
				earlier := m.setNode(name, object)
				undo = append(undo, func() { m.setNode(name, earlier) })
				continue
			}
			info, err := framework.NewPodInfo(drawPod(t, fmt.Sprint("p", i)))
			if err != nil {
				t.Fatalf("%v", err)
			}
			if err := m.add(name, info); err != nil {
				t.Fatalf("%v", err)
			}
			undo = append(undo, func() {
				if err := m.remove(name, info.Pod.UID); err != nil {
					t.Fatalf("%v", err)
				}
			})
		}
		for i := len(undo) - 1; i >= 0; i-- {
			undo[i]()
		}
		if after := describe(m); after != before {
			t.Fatalf("before:\n%s\nafter:\n%s", before, after)
		}
	})
}

// TestPortsOfTwoPods checks that a port remains in use if one of two pods that have it is
// removed.
func TestPortsOfTwoPods(t *testing.T) {
	m := newMirror()
	m.setNode("a", node("a", nil))
	for _, name := range []string{"p", "q"} {
		o := plain(name)
		o.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80, ContainerPort: 80, Protocol: v1.ProtocolTCP}}
		info, err := framework.NewPodInfo(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.add("a", info); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range []string{"p", "q"} {
		if err := m.remove("a", plain(name).UID); err != nil {
			t.Fatal(err)
		}
		if used := m.nodes["a"].info.UsedPorts.CheckConflict("", "TCP", 80); used != (i == 0) {
			t.Errorf("after %d removals, in use: %t", i+1, used)
		}
	}
	if err := m.remove("a", "uid-p"); err == nil {
		t.Error("a pod was removed twice")
	}
}
