package cluster_test

import (
	"fmt"
	"testing"

	"github.com/berth-project/berth/cluster"
)

// A sighting of another UID is not given to the task that arrives.
func TestRecallAnotherUID(t *testing.T) {
	h := newCorner(t)
	h.do(hNode("n", 1), hOpen("pod/g", 1))
	h.do(cluster.TaskSeen{Task: ref("pod/g", "p0"), UID: "u1", Node: "n"})
	h.do(cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", UID: "u2", Shape: hShape(1)}})
	if task := h.Task(ref("pod/g", "p0")); task.Status != cluster.Pending {
		t.Fatalf("u2 is %s: it inherits what was seen of u1", task.Status)
	}
}

// A sighting of the successor, before that is put, is kept for it.
func TestSightingOfSuccessorLost(t *testing.T) {
	h := newCorner(t)
	h.do(hNode("n", 1), hOpen("pod/g", 1), cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", UID: "u1", Shape: hShape(1)}})
	h.do(cluster.TaskSeen{Task: ref("pod/g", "p0"), UID: "u2", Node: "n", Devices: whole("n", 0)})
	h.do(cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", UID: "u2", Shape: hShape(1)}})
	if task := h.Task(ref("pod/g", "p0")); task.Status != cluster.Bound {
		t.Fatalf("u2 runs on n and is %s here", task.Status)
	}
}

// A late TaskGone of one UID does not drop the sighting of another that waits.
func TestLateGoneForgetsSighting(t *testing.T) {
	h := newCorner(t)
	h.do(hNode("n", 1), hOpen("pod/g", 1))
	h.do(cluster.TaskSeen{Task: ref("pod/g", "p0"), UID: "u2", Node: "n", Devices: whole("n", 0)}, cluster.TaskGone{Task: ref("pod/g", "p0"), UID: "u1"})
	h.do(cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", UID: "u2", Shape: hShape(1)}})
	if task := h.Task(ref("pod/g", "p0")); task.Status != cluster.Bound {
		t.Fatalf("u2 runs on n and is %s here", task.Status)
	}
}

// A late answer with the UID of a task does not concern its successor.
func TestLateAnswerHitsSuccessor(t *testing.T) {
	h := newCorner(t)
	r := ref("pod/g", "p0")
	h.do(hNode("n", 1), hOpen("pod/g", 1), cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", UID: "u1", Shape: hShape(1)}})
	h.do(cluster.Assign{Task: r, UID: "u1", Node: "n", Devices: whole("n", 0), Attempt: 1}, cluster.BindSent{Task: r, Attempt: 1})
	h.do(cluster.TaskGone{Task: r, UID: "u1"}, cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", UID: "u2", Shape: hShape(1)}})
	h.do(cluster.Assign{Task: r, UID: "u2", Node: "n", Devices: whole("n", 0), Attempt: 1}, cluster.BindSent{Task: r, Attempt: 1})
	h.do(cluster.BindFailed{Task: r, UID: "u1", Attempt: 1}) // the answer about u1: not found
	if task := h.Task(r); task.Status != cluster.Assumed {
		t.Fatalf("u2, whose binding was sent, is %s: its device is given to others", task.Status)
	}
}

// A closed job that is put again with another UID of a task: the new task does not
// inherit the node.
func TestTaskUIDInSpec(t *testing.T) {
	h := newCorner(t)
	put := hJob("job/j", "w0")
	put.Job.Alternatives[0].Tasks[0].UID = "u1"
	h.do(hNode("n", 1), put, cluster.TaskSeen{Task: ref("job/j", "w0"), UID: "u1", Node: "n"})
	again := hJob("job/j", "w0")
	again.Job.Alternatives[0].Tasks[0].UID = "u2"
	h.do(again)
	if task := h.Task(ref("job/j", "w0")); task.UID == "u2" && task.Status != cluster.Pending {
		t.Fatalf("u2 is %s on %s", task.Status, task.Node.Name)
	}
}

// The revision of a fact that brought nothing new is remembered.
func TestEqualFactForgetsRevision(t *testing.T) {
	h := newCorner(t)
	a, b := hNode("n", 0), hNode("n", 0)
	b.Node.Unschedulable = true
	a.Revision = 3
	h.do(a)
	a.Revision = 5
	h.do(a)
	b.Revision = 4
	h.do(b)
	if h.Node("n").Unschedulable {
		t.Error("node: revision 4 won over 5")
	}
	j, k := hJob("job/j", "w"), hJob("job/j", "w")
	k.Job.Priority = 9
	j.Revision = 3
	h.do(j)
	j.Revision = 5
	h.do(j)
	k.Revision = 4
	h.do(k)
	if h.Job("job/j").Priority == 9 {
		t.Error("job: revision 4 won over 5")
	}
}

// A stale spec of the predecessor does not replace the successor.
func TestStalePredecessor(t *testing.T) {
	h := newCorner(t)
	h.do(hNode("n", 1), hOpen("pod/g", 1))
	h.do(cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", UID: "u2", Shape: hShape(1)}, Revision: 7}, cluster.TaskSeen{Task: ref("pod/g", "p0"), UID: "u2", Node: "n"})
	h.do(cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", UID: "u1", Shape: hShape(1)}, Revision: 3})
	if task := h.Task(ref("pod/g", "p0")); task.UID != "u2" {
		t.Errorf("revision 3 (u1) replaced revision 7 (u2), which runs")
	}
}

// Avoided shapes do not depend on the order of facts about different tasks.
func TestAvoidsOrder(t *testing.T) {
	run := func(swap bool) *corner {
		h := newCorner(t)
		h.do(hNode("n", 2), hOpen("pod/g", 1))
		for i, s := range []*cluster.Shape{hShape(0), hShape(1)} {
			name := fmt.Sprintf("p%d", i)
			h.do(cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: name, Shape: s}}, cluster.TaskSeen{Task: ref("pod/g", name), Node: "n"})
		}
		a, b := cluster.TaskGone{Task: ref("pod/g", "p0"), Rejected: 100}, cluster.TaskGone{Task: ref("pod/g", "p1"), Rejected: 90}
		if swap {
			h.do(b, a)
		} else {
			h.do(a, b)
		}
		return h
	}
	a, b := run(false), run(true)
	if a.Digest() != b.Digest() {
		t.Errorf("%s", cluster.Difference(a.State.Lines(), b.State.Lines()))
	}
}

// A node that is put again after it was gone keeps its status while a task was on it.
func TestNodeBack(t *testing.T) {
	run := func(first bool) *corner {
		h := newCorner(t)
		n := hNode("n", 1)
		n.Node.Phase = "NOT_READY"
		n.Node.Devices[0].Lost = true
		back := hNode("n", 1)
		gone := cluster.TaskGone{Task: ref("pod/g", "p0")}
		h.do(n, hOpen("pod/g", 1), cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", Shape: hShape(0)}}, cluster.TaskSeen{Task: ref("pod/g", "p0"), Node: "n"})
		if first {
			h.do(gone, cluster.NodeGone{Name: "n"}, back)
		} else {
			h.do(cluster.NodeGone{Name: "n"}, back, gone)
		}
		return h
	}
	a, b := run(true), run(false)
	if a.Digest() != b.Digest() {
		t.Errorf("%s", cluster.Difference(a.State.Lines(), b.State.Lines()))
	}
}

// SetScaled holds whether it arrives before or after the jobs of the set.
func TestSetScaledOrder(t *testing.T) {
	job := hJob("job/m1", "w")
	job.Job.Set = cluster.Set{Name: "m", Desired: 1}
	a, b := newCorner(t), newCorner(t)
	a.do(cluster.SetScaled{Set: "m", Desired: 3}, job, cluster.JobGone{Job: "job/m1"}, job)
	b.do(job, cluster.JobGone{Job: "job/m1"}, job, cluster.SetScaled{Set: "m", Desired: 3})
	if a.View().Sets().Desired("m") != b.View().Sets().Desired("m") {
		t.Errorf("the set was scaled to 3; desired %d or %d, by the order of facts", a.View().Sets().Desired("m"), b.View().Sets().Desired("m"))
	}
}

// A JobPut that is told again keeps what JobSeen reported.
func TestHealthSurvives(t *testing.T) {
	h := newCorner(t)
	h.do(hJob("job/a", "w"), cluster.JobSeen{Job: "job/a", Health: cluster.HealthFailed})
	v := h.View().Recent().JobsVersion()
	h.do(hJob("job/a", "w")) // a resync
	if h.Job("job/a").Health != cluster.HealthFailed || h.View().Recent().JobsVersion() != v {
		t.Errorf("health is %q, versions touched: %v", h.Job("job/a").Health, h.View().Recent().JobsVersion() != v)
	}
}

// Names of tasks have no slash, so that IDs do not collide.
func TestTaskIDsCollide(t *testing.T) {
	h := newCorner(t)
	if h.Apply(hJob("job/a", "b/c")) != nil {
		return
	}
	h.do(hNode("n", 2), hJob("job/a/b", "c"))
	h.do(cluster.TaskSeen{Task: ref("job/a", "b/c"), Node: "n", Devices: whole("n", 0)}, cluster.TaskSeen{Task: ref("job/a/b", "c"), Node: "n", Devices: whole("n", 1)})
	if err := h.Audit(); err != nil {
		t.Error(err)
	}
	if got := len(h.Node("n").Tasks); got != 2 {
		t.Errorf("%d tasks are listed on the node, 2 are there", got)
	}
}

// Of two rejections of a shape the later end holds, whichever is told last.
func TestAvoidUntil(t *testing.T) {
	h := newCorner(t)
	h.do(hNode("n", 2), hOpen("pod/g", 1))
	for _, name := range []string{"p0", "p1"} {
		h.do(cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: name, Shape: hShape(1)}}, cluster.TaskSeen{Task: ref("pod/g", name), Node: "n"})
	}
	h.do(cluster.TaskGone{Task: ref("pod/g", "p0"), Rejected: 100}, cluster.TaskGone{Task: ref("pod/g", "p1"), Rejected: 50})
	h.do(cluster.SessionOpened{Now: 60})
	if !h.Node("n").Avoided(hShape(1)) {
		t.Error("avoided until 100, and not avoided at 60")
	}
}

// Displaced jobs can be reported out of order.
func TestDisplacedUnsorted(t *testing.T) {
	h := newCorner(t)
	j := hJob("job/a", "w")
	j.Job.Displaced = []string{"job/z", "job/y", "job/b"}
	h.do(j, cluster.Displace{Job: "job/a", Victims: []string{"job/z"}})
	if got := h.Job("job/a").Displaced; len(got) != 3 {
		t.Errorf("%v", got)
	}
}

// A stale fact does not free the room of an evicted task whose binding was sent and
// not answered.
func TestEvictedWhileSent(t *testing.T) {
	h := newCorner(t)
	r := ref("job/j", "w")
	h.do(hNode("n", 1), hJob("job/j", "w"), cluster.Assign{Task: r, Node: "n", Devices: whole("n", 0), Attempt: 1}, cluster.BindSent{Task: r, Attempt: 1})
	h.do(cluster.Evict{Task: r, Attempt: 2}, cluster.TaskSeen{Task: r}) // as it was before it was bound
	if task := h.Task(r); task.Status != cluster.Releasing {
		t.Errorf("%s: the binding may have been made", task.Status)
	}
}
