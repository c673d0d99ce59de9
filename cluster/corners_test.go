package cluster_test

import (
	"fmt"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// corner is a test of a corner case, which random changes seldom reach, and its State.
type corner struct {
	*testing.T
	*cluster.State
}

func newCorner(t *testing.T) *corner { return &corner{t, cluster.NewState()} }

// do applies the changes, and fails the test if one of them fails.
func (h *corner) do(list ...cluster.Change) {
	h.Helper()
	for _, c := range list {
		if err := h.Apply(c); err != nil {
			h.Fatalf("%s: %v", show(c), err)
		}
	}
}

// tryApply applies the change, and returns its error or the value with which it panics.
func (h *corner) tryApply(c cluster.Change) (panicked any, err error) {
	defer func() { panicked = recover() }()
	return nil, h.Apply(c)
}

func putNode(name string, devices int) cluster.NodePut {
	n := cluster.Node{Name: name, Resources: []cluster.Ledger{{Name: cluster.CPU, Capacity: 64000}, {Name: cluster.Memory, Capacity: int64(512 * gi)}}}
	for i := range devices {
		n.Devices = append(n.Devices, cluster.Device{DeviceSpec: &cluster.DeviceSpec{Product: "L4", Type: "cuda", Memory: 24 * gi}, UUID: uuid(name, i)})
	}
	return cluster.NodePut{Node: n}
}

func shapeWithDevices(devices int) *cluster.Shape {
	return &cluster.Shape{Resources: cluster.Resources{{Name: cluster.CPU, Value: 1000}, {Name: cluster.Memory, Value: int64(gi)}}, Need: cluster.Need{Devices: devices}}
}

func putJob(id string, names ...string) cluster.JobPut {
	return putJobOf(id, shapeWithDevices(1), names...)
}

func putJobOf(id string, s *cluster.Shape, names ...string) cluster.JobPut {
	alt := cluster.Alternative{Min: 1}
	for i, n := range names {
		alt.Tasks = append(alt.Tasks, &cluster.Task{Name: n, Index: i, Shape: s})
	}
	return cluster.JobPut{Job: cluster.Job{ID: id, Alternatives: []cluster.Alternative{alt}}}
}

func putOpenJob(id string, min int) cluster.JobPut {
	return cluster.JobPut{Job: cluster.Job{ID: id, Open: true, Alternatives: []cluster.Alternative{{Min: min}}}}
}

func ref(job, name string) cluster.TaskRef { return cluster.TaskRef{Job: job, Name: name} }

func whole(node string, i int) []cluster.Holding {
	return []cluster.Holding{{Device: uuid(node, i), Milli: 1000, Memory: 24 * gi}}
}

// TestJobGoneWithSubgroups checks that an open job with subgroups can be removed.
func TestJobGoneWithSubgroups(t *testing.T) {
	h := newCorner(t)
	put := putOpenJob("pod/g", 1)
	put.Job.Alternatives[0].Subgroups = []cluster.Subgroup{{Name: "leader", Min: 1}}
	h.do(put, cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", Subgroup: 1, Shape: shapeWithDevices(0)}})
	if p, err := h.tryApply(cluster.JobGone{Job: "pod/g"}); err != nil || p != nil {
		t.Fatalf("err %v, panic %v", err, p)
	}
}

// TestTaskBeforeJobSubgroup checks a task that is put before its job, with a subgroup
// that the job does not have: it is in no subgroup.
func TestTaskBeforeJobSubgroup(t *testing.T) {
	h := newCorner(t)
	h.do(cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", Subgroup: 1, Shape: shapeWithDevices(0)}})
	if p, err := h.tryApply(putOpenJob("pod/g", 1)); err != nil || p != nil {
		t.Fatalf("err %v, panic %v", err, p)
	}
}

// TestRespecFewerSubgroups checks that a job that is not open can be put again with
// fewer subgroups while a task runs that it does not request any more.
func TestRespecFewerSubgroups(t *testing.T) {
	h := newCorner(t)
	put := putJobOf("job/j", shapeWithDevices(0), "a", "b")
	put.Job.Alternatives[0].Subgroups = []cluster.Subgroup{{Name: "g1"}, {Name: "g2"}}
	put.Job.Alternatives[0].Tasks[1].Subgroup = 2
	h.do(putNode("n", 0), put, cluster.TaskSeen{Task: ref("job/j", "a"), Node: "n"}, cluster.TaskSeen{Task: ref("job/j", "b"), Node: "n"})
	h.do(putJobOf("job/j", shapeWithDevices(0), "a"))
	if _, err := h.Snapshot().State(); err != nil {
		t.Errorf("the snapshot cannot be restored: %v", err)
	}
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("panic %v", p)
		}
	}()
	h.Job("job/j").HasMinimum()
}

// TestSameAlternativeName checks that no running task is lost if two alternatives have
// the same name.
func TestSameAlternativeName(t *testing.T) {
	h := newCorner(t)
	put := func(priority int32) cluster.JobPut {
		p := putJob("job/a", "w")
		p.Job.Priority = priority
		alt := putJob("job/a", "w").Job.Alternatives[0]
		p.Job.Alternatives = append(p.Job.Alternatives, alt)
		p.Job.Alternatives[0].Name, p.Job.Alternatives[1].Name = "x", "x"
		return p
	}
	if err := h.Apply(put(0)); err != nil {
		return
	}
	second := cluster.TaskRef{Job: "job/a", Alternative: 1, Name: "w"}
	h.do(putNode("n", 2), cluster.TaskSeen{Task: second, Node: "n", Devices: whole("n", 0)})
	h.do(cluster.TaskSeen{Task: ref("job/a", "w"), Node: "n", Devices: whole("n", 1)})
	h.do(put(1))
	if err := h.Audit(); err != nil {
		t.Error(err)
	}
}

// TestTwoAlternativesWithoutNamesGiveWay checks that no running task is lost if tasks of equal
// names run in two alternatives, and the next version of the job requests neither.
func TestTwoAlternativesWithoutNamesGiveWay(t *testing.T) {
	h := newCorner(t)
	put := putJob("job/a", "w")
	put.Job.Alternatives = append(put.Job.Alternatives, putJob("job/a", "w").Job.Alternatives[0])
	second := cluster.TaskRef{Job: "job/a", Alternative: 1, Name: "w"}
	h.do(put, putNode("n", 2), cluster.TaskSeen{Task: ref("job/a", "w"), Node: "n", Devices: whole("n", 0)}, cluster.TaskSeen{Task: second, Node: "n", Devices: whole("n", 1)})
	next := putJob("job/a", "w")
	next.Job.Alternatives[0].Name = "big"
	h.do(next)
	if err := h.Audit(); err != nil {
		t.Error(err)
	}
	if n := len(h.Node("n").Tasks); n != 2 {
		t.Errorf("%d tasks are on the node, want 2", n)
	}
}

// TestTaskRequestedAgain checks that a task that its job requests again is not removed
// when its binding fails.
func TestTaskRequestedAgain(t *testing.T) {
	h := newCorner(t)
	h.do(putNode("n", 1), putJob("pod/a", "w"), cluster.Assign{Task: ref("pod/a", "w"), Node: "n", Devices: whole("n", 0), Attempt: 1})
	h.do(putOpenJob("pod/a", 1), cluster.TaskPut{Job: "pod/a", Task: cluster.Task{Name: "w", Shape: shapeWithDevices(1)}})
	h.do(cluster.BindFailed{Task: ref("pod/a", "w"), Attempt: 1})
	if h.Task(ref("pod/a", "w")) == nil {
		t.Error("the task was put and its binding failed, and it was removed")
	}
}

// TestDroppedShapes checks that the digest does not depend on which unused shapes were
// dropped.
func TestDroppedShapes(t *testing.T) {
	h := newCorner(t)
	at := func(i int) *cluster.Shape {
		s := shapeWithDevices(0)
		s.Resources[0].Value = int64(1000 + i)
		return s
	}
	h.do(putNode("n", 0))
	for i := 1; i <= 1024; i++ { // as many unused shapes as State keeps
		h.do(putJobOf("job/x", at(i), "w"), cluster.JobGone{Job: "job/x"})
	}
	h.do(putJobOf("job/a", at(0), "w"), cluster.TaskSeen{Task: ref("job/a", "w"), Node: "n"})
	twin, err := h.Snapshot().State()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []cluster.Change{putJobOf("job/a", at(5000), "w"), putJobOf("job/a", at(0), "w")} {
		h.do(c)
		if err := twin.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	if h.Digest() != twin.Digest() {
		t.Errorf("the snapshot and the log give another digest\n%s", cluster.Difference(h.State.Lines(), twin.Lines()))
	}
	if err := h.Audit(); err != nil {
		t.Error(err)
	}
}

// TestApplyAllStopsAtError checks that ApplyAll adds the nodes before a malformed one.
func TestApplyAllStopsAtError(t *testing.T) {
	h := newCorner(t)
	bad := putNode("c", 2)
	bad.Node.Devices[1].UUID = bad.Node.Devices[0].UUID
	err := h.ApplyAll([]cluster.Change{putNode("a", 1), putNode("b", 1), bad})
	if err == nil {
		t.Fatal("a node with two devices of the same UUID is accepted")
	}
	if h.Node("a") == nil || h.Node("b") == nil {
		t.Error("the nodes before the malformed one were not added")
	}
}

// TestNilDecision checks that a nil decision does not cause a panic.
func TestNilDecision(t *testing.T) {
	h := newCorner(t)
	if p, _ := h.tryApply(cluster.Decided{Changes: []cluster.Change{nil}}); p != nil {
		t.Errorf("panic %v", p)
	}
}

// TestSetWithoutJobs checks that a set does not keep its group after its only job was put
// in another set.
func TestSetWithoutJobs(t *testing.T) {
	job := func(set string) cluster.JobPut {
		j := putJob("job/m1", "w")
		j.Job.OwnDetails().Set = cluster.Set{Name: set, Desired: 1}
		return j
	}
	h := newCorner(t)
	h.do(job("m"), cluster.ChooseGroup{Set: "m", Group: cluster.GroupKey{Product: "L4", Count: 1}}, job("n"))
	if got := h.View().Sets().Home("m"); got != nil {
		t.Errorf("the set m has no job, and still has the group %v", *got)
	}
}

// TestUndoWithUnusedShapes checks that an undo restores the shapes of a job even if many
// shapes became unused since then.
func TestUndoWithUnusedShapes(t *testing.T) {
	h := newCorner(t)
	at := func(i int) *cluster.Shape {
		s := shapeWithDevices(0)
		s.Resources[0].Value = int64(1000 + i)
		return s
	}
	h.do(putNode("n", 0), putJobOf("job/a", at(0), "w"), cluster.TaskSeen{Task: ref("job/a", "w"), Node: "n"})
	before, was := h.Digest(), h.State.Lines()
	mark := h.Mark()
	h.do(cluster.TaskSeen{Task: ref("job/a", "w")}, cluster.JobGone{Job: "job/a"})
	for i := 1; i <= 1100; i++ {
		h.do(putJobOf(fmt.Sprintf("job/x%d", i), at(i), "w"))
	}
	h.Undo(mark)
	h.Release(mark)
	if h.Digest() != before {
		t.Errorf("not undone\n%s", cluster.Difference(was, h.State.Lines()))
	}
	if err := h.Audit(); err != nil {
		t.Error(err)
	}
}

// TestTaskNotRequestedWhileItMoves checks that a task that moves, and is not requested
// any more, is removed when it has stopped on its old node.
func TestTaskNotRequestedWhileItMoves(t *testing.T) {
	h := newCorner(t)
	h.do(putNode("a", 1), putNode("b", 1), putJob("job/j", "w0", "w1"), cluster.TaskSeen{Task: ref("job/j", "w1"), Node: "a", Devices: whole("a", 0)})
	h.do(cluster.Evict{Task: ref("job/j", "w1"), Attempt: 1}, cluster.Move{Task: ref("job/j", "w1"), Node: "b", Devices: whole("b", 0)})
	h.do(putJob("job/j", "w0"), cluster.TaskSeen{Task: ref("job/j", "w1")})
	if task := h.Task(ref("job/j", "w1")); task != nil {
		t.Errorf("w1 is not requested and has stopped, and is %s on %s", task.Status, task.Node.Name)
	}
}

// TestTasksOfTwoAlternatives checks that a job is pending while a task of its chosen
// alternative is pending, although tasks of another alternative were seen on nodes.
func TestTasksOfTwoAlternatives(t *testing.T) {
	h := newCorner(t)
	put := putJob("job/a", "w0", "w1")
	put.Job.Alternatives[0].Name, put.Job.Alternatives[0].Min = "big", 2
	alt := putJob("job/a", "w0").Job.Alternatives[0]
	alt.Name = "small"
	put.Job.Alternatives = append(put.Job.Alternatives, alt)
	h.do(putNode("n", 3), put, cluster.TaskSeen{Task: ref("job/a", "w0"), Node: "n"}, cluster.TaskSeen{Task: cluster.TaskRef{Job: "job/a", Alternative: 1, Name: "w0"}, Node: "n"})
	j := h.Job("job/a")
	if j.Tasks()[1].Status == cluster.Pending && !h.View().IsPending(j) {
		t.Error("a task of the chosen alternative is pending, and the job is not")
	}
}

// TestTasksNotRequestedDoNotCount checks that tasks that are not requested any more do
// not count towards the minimum.
func TestTasksNotRequestedDoNotCount(t *testing.T) {
	h := newCorner(t)
	put := putJob("job/j", "w0", "w1", "w2")
	h.do(putNode("n", 4), put)
	for _, w := range []string{"w0", "w1", "w2"} {
		h.do(cluster.TaskSeen{Task: ref("job/j", w), Node: "n"})
	}
	next := putJob("job/j", "w0", "w3")
	next.Job.Alternatives[0].Min = 2
	h.do(next)
	if h.Job("job/j").HasMinimum() {
		t.Error("the job has its minimum by tasks that it does not request")
	}
}

// TestRefusedEvictionOfOneTask checks that a job of which two tasks were evicted still
// counts as displaced after the eviction of one of them was refused.
func TestRefusedEvictionOfOneTask(t *testing.T) {
	h := newCorner(t)
	h.do(putNode("n", 2), putJob("job/v", "w0", "w1"), putJobOf("job/p", shapeWithDevices(2), "w"))
	h.do(cluster.TaskSeen{Task: ref("job/v", "w0"), Node: "n"}, cluster.TaskSeen{Task: ref("job/v", "w1"), Node: "n"})
	h.do(cluster.Decided{Changes: []cluster.Change{
		cluster.Evict{Task: ref("job/v", "w0"), For: "job/p", Attempt: 1}, cluster.Evict{Task: ref("job/v", "w1"), For: "job/p", Attempt: 1},
		cluster.Displace{Job: "job/p", Victims: []string{"job/v"}}}})
	h.do(cluster.EvictionRefused{Task: ref("job/v", "w0"), Attempt: 1})
	if len(h.Job("job/p").Displaced) == 0 {
		t.Error("w1 of job/v was evicted for job/p, and job/v does not count as displaced")
	}
}

// TestBelowMinimumEnds checks that BelowMinimumSince is 0 after a fact gave a gang its
// minimum back, and that it has its full grace the next time.
func TestBelowMinimumEnds(t *testing.T) {
	h := &corner{t, enginetest.State(enginetest.Node("a").CPU(64, "512Gi").GPUs(2, "L4", "24Gi"), enginetest.Node("full").CPU(64, "512Gi"), enginetest.Job("j").Gang(2).Devices(1))}
	e := newEngine(t)
	h.session(e, 1000)
	j := h.Job("job/j")
	w0, w1 := j.Tasks()[0], j.Tasks()[1]
	h.do(cluster.TaskSeen{Task: w0.Ref(), Node: "a"}, cluster.BindFailed{Task: w1.Ref(), Attempt: w1.Attempt})
	cordon := func(on bool) {
		n := cluster.Node{Name: "a", Unschedulable: on}
		n.Resources, n.Devices, n.Labels = h.Node("a").Resources, h.Node("a").Devices, h.Node("a").Labels
		h.do(cluster.NodePut{Node: n})
	}
	cordon(true)
	h.session(e, 1010)
	if j.BelowMinimumSince == 0 {
		t.Fatal("the gang runs below its minimum, and BelowMinimumSince is 0")
	}
	h.do(cluster.TaskSeen{Task: w1.Ref(), Node: "a"}) // bound by another scheduler
	h.session(e, 1020)
	if j.BelowMinimumSince != 0 {
		t.Errorf("the gang has its minimum, and BelowMinimumSince is %d", j.BelowMinimumSince)
	}
	h.session(e, 90000)
	h.do(cluster.TaskSeen{Task: w1.Ref()}) // it stopped and is pending again
	for _, d := range h.session(e, 90001).Decisions {
		if d.Action == engine.EvictTask {
			t.Errorf("%v was evicted before its grace ended", d.Task)
		}
	}
}

// TestSessionAfterSubgroupsChanged checks that a session does not panic after a fact
// removed the subgroups of a job.
func TestSessionAfterSubgroupsChanged(t *testing.T) {
	h := newCorner(t)
	e := newEngine(t)
	put := putJobOf("job/j", shapeWithDevices(0), "a", "b")
	put.Job.Alternatives[0].Subgroups = []cluster.Subgroup{{Name: "g1"}, {Name: "g2"}}
	put.Job.Alternatives[0].Tasks[1].Subgroup = 2
	h.do(putNode("n", 0), put)
	h.session(e, 1000)
	h.do(putJobOf("job/j", shapeWithDevices(0), "a", "c"))
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("panic in a session: %v", p)
		}
	}()
	h.session(e, 1001)
}

// TestJobBecomesOpen checks a job that was not open and is put again as open: its
// running task can be reported as gone, or be put with another UID.
func TestJobBecomesOpen(t *testing.T) {
	for what, end := range map[string]cluster.Change{
		"gone":        cluster.TaskGone{Task: ref("job/j", "a")},
		"another UID": cluster.TaskPut{Job: "job/j", Task: cluster.Task{Name: "a", UID: "2", Shape: shapeWithDevices(1)}},
	} {
		t.Run(what, func(t *testing.T) {
			h := newCorner(t)
			closed := putJob("job/j", "a")
			closed.Job.Alternatives[0].Tasks[0].UID = "1"
			h.do(putNode("n", 1), closed, cluster.TaskSeen{Task: ref("job/j", "a"), Node: "n"}, putOpenJob("job/j", 1), end)
			if err := h.Audit(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOpenJobKeepsRunningAlternative checks that an open job that was not open before,
// and still runs in a named alternative, can be put again.
func TestOpenJobKeepsRunningAlternative(t *testing.T) {
	h := newCorner(t)
	closed := putJob("job/j", "a")
	closed.Job.Alternatives[0].Name = "form"
	again := putOpenJob("job/j", 2)
	h.do(putNode("n", 1), closed, cluster.TaskSeen{Task: ref("job/j", "a"), Node: "n"}, putOpenJob("job/j", 1), again)
	if used := h.Node("n").Ledger(cluster.CPU).Used; used != 1000 {
		t.Errorf("%d of the CPU is used, want 1000: the task still runs", used)
	}
	if err := h.Audit(); err != nil {
		t.Error(err)
	}
}

// TestUndoKeepsTheOrderOfTasks checks that the undo of a removed task inserts it at its
// old index, even if the tasks are not sorted.
func TestUndoKeepsTheOrderOfTasks(t *testing.T) {
	h := newCorner(t)
	closed := putJobOf("job/j", shapeWithDevices(0), "c", "a")
	closed.Job.Alternatives[0].Tasks[0].Index, closed.Job.Alternatives[0].Tasks[1].Index = 2, 0
	h.do(putNode("n", 1), closed, cluster.TaskSeen{Task: ref("job/j", "c"), Node: "n"}, cluster.TaskSeen{Task: ref("job/j", "a"), Node: "n"}, putOpenJob("job/j", 1),
		cluster.TaskPut{Job: "job/j", Task: cluster.Task{Name: "b", Index: 1, Shape: shapeWithDevices(0)}}, cluster.TaskSeen{Task: ref("job/j", "a")})
	before := h.Digest()
	mark := h.Mark()
	h.do(cluster.TaskGone{Task: ref("job/j", "b")})
	h.Undo(mark)
	h.Release(mark)
	if h.Digest() != before {
		t.Error("not undone")
	}
}

// TestDefaultQueueHasNoParent checks that the default queue cannot be put below another.
func TestDefaultQueueHasNoParent(t *testing.T) {
	h := newCorner(t)
	if _, err := h.tryApply(cluster.QueuePut{Queue: cluster.Queue{Name: cluster.DefaultQueue, Parent: "d"}}); err == nil {
		t.Error("the default queue with a parent is accepted")
	}
}
