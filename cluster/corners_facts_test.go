package cluster_test

import (
	"fmt"
	"testing"

	"github.com/berth-project/berth/cluster"
)

// TestSeenBeforePutWithAnotherUID checks that a TaskSeen with another UID is not applied
// to a task that is put later.
func TestSeenBeforePutWithAnotherUID(t *testing.T) {
	h := newCorner(t)
	h.do(putNode("n", 1), putOpenJob("pod/g", 1))
	h.do(cluster.TaskSeen{Task: ref("pod/g", "p0"), UID: "u1", Node: "n"})
	h.do(cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", UID: "u2", Shape: shapeWithDevices(1)}})
	if task := h.Task(ref("pod/g", "p0")); task.Status != cluster.Pending {
		t.Fatalf("u2 is %s, because u1 was seen on the node", task.Status)
	}
}

// TestSuccessorSeenBeforePut checks that a TaskSeen of the next task of the same name is
// kept until that task is put.
func TestSuccessorSeenBeforePut(t *testing.T) {
	h := newCorner(t)
	h.do(putNode("n", 1), putOpenJob("pod/g", 1), cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", UID: "u1", Shape: shapeWithDevices(1)}})
	h.do(cluster.TaskSeen{Task: ref("pod/g", "p0"), UID: "u2", Node: "n", Devices: whole("n", 0)})
	h.do(cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", UID: "u2", Shape: shapeWithDevices(1)}})
	if task := h.Task(ref("pod/g", "p0")); task.Status != cluster.Bound {
		t.Fatalf("u2 was seen on n, and is %s", task.Status)
	}
}

// TestLateGoneOfAnotherUID checks that a late TaskGone of one UID does not drop a
// TaskSeen of another UID that is kept.
func TestLateGoneOfAnotherUID(t *testing.T) {
	h := newCorner(t)
	h.do(putNode("n", 1), putOpenJob("pod/g", 1))
	h.do(cluster.TaskSeen{Task: ref("pod/g", "p0"), UID: "u2", Node: "n", Devices: whole("n", 0)}, cluster.TaskGone{Task: ref("pod/g", "p0"), UID: "u1"})
	h.do(cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", UID: "u2", Shape: shapeWithDevices(1)}})
	if task := h.Task(ref("pod/g", "p0")); task.Status != cluster.Bound {
		t.Fatalf("u2 was seen on n, and is %s", task.Status)
	}
}

// TestLateBindFailed checks that a late BindFailed with the UID of one task does not
// change the next task of the same name.
func TestLateBindFailed(t *testing.T) {
	h := newCorner(t)
	r := ref("pod/g", "p0")
	h.do(putNode("n", 1), putOpenJob("pod/g", 1), cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", UID: "u1", Shape: shapeWithDevices(1)}})
	h.do(cluster.Assign{Task: r, UID: "u1", Node: "n", Devices: whole("n", 0), Attempt: 1}, cluster.BindSent{Task: r, Attempt: 1})
	h.do(cluster.TaskGone{Task: r, UID: "u1"}, cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", UID: "u2", Shape: shapeWithDevices(1)}})
	h.do(cluster.Assign{Task: r, UID: "u2", Node: "n", Devices: whole("n", 0), Attempt: 1}, cluster.BindSent{Task: r, Attempt: 1})
	h.do(cluster.BindFailed{Task: r, UID: "u1", Attempt: 1}) // u1 was not found
	if task := h.Task(r); task.Status != cluster.Assumed {
		t.Fatalf("the binding of u2 was sent, and u2 is %s", task.Status)
	}
}

// TestJobPutWithAnotherTaskUID checks that a task that gets another UID by a JobPut does
// not keep the node of the old task.
func TestJobPutWithAnotherTaskUID(t *testing.T) {
	h := newCorner(t)
	put := putJob("job/j", "w0")
	put.Job.Alternatives[0].Tasks[0].UID = "u1"
	h.do(putNode("n", 1), put, cluster.TaskSeen{Task: ref("job/j", "w0"), UID: "u1", Node: "n"})
	again := putJob("job/j", "w0")
	again.Job.Alternatives[0].Tasks[0].UID = "u2"
	h.do(again)
	if task := h.Task(ref("job/j", "w0")); task.UID == "u2" && task.Status != cluster.Pending {
		t.Fatalf("u2 is %s on %s", task.Status, task.Node.Name)
	}
}

// TestRevisionOfRepeatedFact checks that the revision of a fact that changes nothing is
// kept.
func TestRevisionOfRepeatedFact(t *testing.T) {
	h := newCorner(t)
	a, b := putNode("n", 0), putNode("n", 0)
	b.Node.Unschedulable = true
	a.Revision = 3
	h.do(a)
	a.Revision = 5
	h.do(a)
	b.Revision = 4
	h.do(b)
	if h.Node("n").Unschedulable {
		t.Error("node: revision 4 was applied after revision 5")
	}
	j, k := putJob("job/j", "w"), putJob("job/j", "w")
	k.Job.Priority = 9
	j.Revision = 3
	h.do(j)
	j.Revision = 5
	h.do(j)
	k.Revision = 4
	h.do(k)
	if h.Job("job/j").Priority == 9 {
		t.Error("job: revision 4 was applied after revision 5")
	}
}

// TestStalePutOfAnotherUID checks that a stale TaskPut of an earlier task does not
// replace the present task of the same name.
func TestStalePutOfAnotherUID(t *testing.T) {
	h := newCorner(t)
	h.do(putNode("n", 1), putOpenJob("pod/g", 1))
	h.do(cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", UID: "u2", Shape: shapeWithDevices(1)}, Revision: 7}, cluster.TaskSeen{Task: ref("pod/g", "p0"), UID: "u2", Node: "n"})
	h.do(cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", UID: "u1", Shape: shapeWithDevices(1)}, Revision: 3})
	if task := h.Task(ref("pod/g", "p0")); task.UID != "u2" {
		t.Errorf("revision 3, of u1, replaced revision 7, of u2, which runs")
	}
}

// TestAvoidsOrder checks that Node.Avoids does not depend on the order of facts about
// different tasks.
func TestAvoidsOrder(t *testing.T) {
	run := func(swap bool) *corner {
		h := newCorner(t)
		h.do(putNode("n", 2), putOpenJob("pod/g", 1))
		for i, s := range []*cluster.Shape{shapeWithDevices(0), shapeWithDevices(1)} {
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

// TestNodePutAgain checks that a node that was removed and put again gets the status of
// the new fact, whether a task was still on it or not.
func TestNodePutAgain(t *testing.T) {
	run := func(first bool) *corner {
		h := newCorner(t)
		n := putNode("n", 1)
		n.Node.Phase = "NOT_READY"
		n.Node.Devices[0].Lost = true
		back := putNode("n", 1)
		gone := cluster.TaskGone{Task: ref("pod/g", "p0")}
		h.do(n, putOpenJob("pod/g", 1), cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", Shape: shapeWithDevices(0)}}, cluster.TaskSeen{Task: ref("pod/g", "p0"), Node: "n"})
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

// TestSetScaledOrder checks that SetScaled applies whether it is reported before or after
// the jobs of the set.
func TestSetScaledOrder(t *testing.T) {
	job := putJob("job/m1", "w")
	job.Job.OwnDetails().Set = cluster.Set{Name: "m", Desired: 1}
	a, b := newCorner(t), newCorner(t)
	a.do(cluster.SetScaled{Set: "m", Desired: 3}, job, cluster.JobGone{Job: "job/m1"}, job)
	b.do(job, cluster.JobGone{Job: "job/m1"}, job, cluster.SetScaled{Set: "m", Desired: 3})
	if a.View().Sets().Desired("m") != b.View().Sets().Desired("m") {
		t.Errorf("the set was scaled to 3; Desired is %d or %d, depending on the order of facts", a.View().Sets().Desired("m"), b.View().Sets().Desired("m"))
	}
}

// TestRepeatedJobPutKeepsHealth checks that a repeated JobPut keeps what JobSeen reported.
func TestRepeatedJobPutKeepsHealth(t *testing.T) {
	h := newCorner(t)
	h.do(putJob("job/a", "w"), cluster.JobSeen{Job: "job/a", Health: cluster.HealthFailed})
	v := h.View().Recent().JobsVersion()
	h.do(putJob("job/a", "w")) // a resync
	if h.Job("job/a").Health != cluster.HealthFailed || h.View().Recent().JobsVersion() != v {
		t.Errorf("the health is %q; the version of jobs changed: %v", h.Job("job/a").Health, h.View().Recent().JobsVersion() != v)
	}
}

// TestTaskNameWithSlash checks that a task name with a slash is rejected, because the IDs
// of tasks of two jobs could then be equal.
func TestTaskNameWithSlash(t *testing.T) {
	h := newCorner(t)
	if h.Apply(putJob("job/a", "b/c")) != nil {
		return
	}
	h.do(putNode("n", 2), putJob("job/a/b", "c"))
	h.do(cluster.TaskSeen{Task: ref("job/a", "b/c"), Node: "n", Devices: whole("n", 0)}, cluster.TaskSeen{Task: ref("job/a/b", "c"), Node: "n", Devices: whole("n", 1)})
	if err := h.Audit(); err != nil {
		t.Error(err)
	}
	if got := len(h.Node("n").Tasks); got != 2 {
		t.Errorf("%d tasks are listed on the node, want 2", got)
	}
}

// TestAvoidUntil checks that of two rejections of a shape the later time counts, in any
// order of the facts.
func TestAvoidUntil(t *testing.T) {
	h := newCorner(t)
	h.do(putNode("n", 2), putOpenJob("pod/g", 1))
	for _, name := range []string{"p0", "p1"} {
		h.do(cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: name, Shape: shapeWithDevices(1)}}, cluster.TaskSeen{Task: ref("pod/g", name), Node: "n"})
	}
	h.do(cluster.TaskGone{Task: ref("pod/g", "p0"), Rejected: 100}, cluster.TaskGone{Task: ref("pod/g", "p1"), Rejected: 50})
	h.do(cluster.SessionOpened{Now: 60})
	if !h.Node("n").Avoided(shapeWithDevices(1)) {
		t.Error("the shape is to be avoided until 100, and is not avoided at 60")
	}
}

// TestDisplacedUnsorted checks that displaced jobs may be reported unsorted.
func TestDisplacedUnsorted(t *testing.T) {
	h := newCorner(t)
	j := putJob("job/a", "w")
	j.Job.OwnDetails().Displaced = []string{"job/z", "job/y", "job/b"}
	h.do(j, cluster.Displace{Job: "job/a", Victims: []string{"job/z"}})
	if got := h.Job("job/a").Displaced; len(got) != 3 {
		t.Errorf("Displaced is %v, want 3 jobs", got)
	}
}

// TestEvictedWhileSent checks that a stale fact does not free the room of an evicted task
// with a binding that was sent, and of which the outcome is not known.
func TestEvictedWhileSent(t *testing.T) {
	h := newCorner(t)
	r := ref("job/j", "w")
	h.do(putNode("n", 1), putJob("job/j", "w"), cluster.Assign{Task: r, Node: "n", Devices: whole("n", 0), Attempt: 1}, cluster.BindSent{Task: r, Attempt: 1})
	h.do(cluster.Evict{Task: r, Attempt: 2}, cluster.TaskSeen{Task: r}) // a fact from before the binding
	if task := h.Task(r); task.Status != cluster.Releasing {
		t.Errorf("the task is %s, want Releasing: the binding may have been made", task.Status)
	}
}
