package cluster_test

import (
	"fmt"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// corner is a State in a corner that random changes seldom reach.
type corner struct {
	*testing.T
	*cluster.State
}

func newCorner(t *testing.T) *corner { return &corner{t, cluster.NewState()} }

func (h *corner) do(list ...cluster.Change) {
	h.Helper()
	for _, c := range list {
		if err := h.Apply(c); err != nil {
			h.Fatalf("%s: %v", show(c), err)
		}
	}
}

func (h *corner) try(c cluster.Change) (panicked any, err error) {
	defer func() { panicked = recover() }()
	return nil, h.Apply(c)
}

const hGi = cluster.Bytes(1) << 30

func hNode(name string, devices int) cluster.NodePut {
	n := cluster.Node{Name: name, Resources: []cluster.Ledger{{Name: cluster.CPU, Capacity: 64000}, {Name: cluster.Memory, Capacity: int64(512 * hGi)}}}
	for i := range devices {
		n.Devices = append(n.Devices, cluster.Device{UUID: uuid(name, i), Product: "L4", Type: "cuda", Memory: 24 * hGi})
	}
	return cluster.NodePut{Node: n}
}

func hShape(devices int) *cluster.Shape {
	return &cluster.Shape{Resources: cluster.Resources{{Name: cluster.CPU, Value: 1000}, {Name: cluster.Memory, Value: int64(hGi)}}, Need: cluster.Need{Devices: devices}}
}

func hJob(id string, names ...string) cluster.JobPut { return hJobOf(id, hShape(1), names...) }

func hJobOf(id string, s *cluster.Shape, names ...string) cluster.JobPut {
	alt := cluster.Alternative{Min: 1}
	for i, n := range names {
		alt.Tasks = append(alt.Tasks, &cluster.Task{Name: n, Index: i, Shape: s})
	}
	return cluster.JobPut{Job: cluster.Job{ID: id, Alternatives: []cluster.Alternative{alt}}}
}

func hOpen(id string, min int) cluster.JobPut {
	return cluster.JobPut{Job: cluster.Job{ID: id, Open: true, Alternatives: []cluster.Alternative{{Min: min}}}}
}

func ref(job, name string) cluster.TaskRef { return cluster.TaskRef{Job: job, Name: name} }

func whole(node string, i int) []cluster.Holding {
	return []cluster.Holding{{Device: uuid(node, i), Milli: 1000, Memory: 24 * hGi}}
}

// An open job with subgroups can be removed.
func TestJobGoneWithSubgroups(t *testing.T) {
	h := newCorner(t)
	put := hOpen("pod/g", 1)
	put.Job.Alternatives[0].Subgroups = []cluster.Subgroup{{Name: "leader", Min: 1}}
	h.do(put, cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", Subgroup: 1, Shape: hShape(0)}})
	if p, err := h.try(cluster.JobGone{Job: "pod/g"}); err != nil || p != nil {
		t.Fatalf("err %v, panic %v", err, p)
	}
}

// A task that comes before its job, and names a subgroup that the job does not have,
// is in none.
func TestTaskBeforeJobSubgroup(t *testing.T) {
	h := newCorner(t)
	h.do(cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", Subgroup: 1, Shape: hShape(0)}})
	if p, err := h.try(hOpen("pod/g", 1)); err != nil || p != nil {
		t.Fatalf("err %v, panic %v", err, p)
	}
}

// A closed job can be put again with fewer subgroups while a task runs that it does
// not request any more.
func TestRespecFewerSubgroups(t *testing.T) {
	h := newCorner(t)
	put := hJobOf("job/j", hShape(0), "a", "b")
	put.Job.Alternatives[0].Subgroups = []cluster.Subgroup{{Name: "g1"}, {Name: "g2"}}
	put.Job.Alternatives[0].Tasks[1].Subgroup = 2
	h.do(hNode("n", 0), put, cluster.TaskSeen{Task: ref("job/j", "a"), Node: "n"}, cluster.TaskSeen{Task: ref("job/j", "b"), Node: "n"})
	h.do(hJobOf("job/j", hShape(0), "a"))
	if _, err := h.Snapshot().State(); err != nil {
		t.Errorf("snapshot cannot be restored: %v", err)
	}
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("panic %v", p)
		}
	}()
	h.Job("job/j").Stands()
}

// Alternatives of the same name lose no running task.
func TestSameAlternativeName(t *testing.T) {
	h := newCorner(t)
	put := func(priority int32) cluster.JobPut {
		p := hJob("job/a", "w")
		p.Job.Priority = priority
		alt := hJob("job/a", "w").Job.Alternatives[0]
		p.Job.Alternatives = append(p.Job.Alternatives, alt)
		p.Job.Alternatives[0].Name, p.Job.Alternatives[1].Name = "x", "x"
		return p
	}
	if err := h.Apply(put(0)); err != nil {
		return
	}
	second := cluster.TaskRef{Job: "job/a", Alternative: 1, Name: "w"}
	h.do(hNode("n", 2), cluster.TaskSeen{Task: second, Node: "n", Devices: whole("n", 0)})
	h.do(cluster.TaskSeen{Task: ref("job/a", "w"), Node: "n", Devices: whole("n", 1)})
	h.do(put(1))
	if err := h.Audit(); err != nil {
		t.Error(err)
	}
}

// A task that its job requests again is not dropped when its binding fails.
func TestExtraPutAgain(t *testing.T) {
	h := newCorner(t)
	h.do(hNode("n", 1), hJob("pod/a", "w"), cluster.Assign{Task: ref("pod/a", "w"), Node: "n", Devices: whole("n", 0), Attempt: 1})
	h.do(hOpen("pod/a", 1), cluster.TaskPut{Job: "pod/a", Task: cluster.Task{Name: "w", Shape: hShape(1)}})
	h.do(cluster.BindFailed{Task: ref("pod/a", "w"), Attempt: 1})
	if h.Task(ref("pod/a", "w")) == nil {
		t.Error("the task was put, its binding failed, and it is forgotten")
	}
}

// The digest does not depend on which idle shapes were dropped.
func TestPurgedShapes(t *testing.T) {
	h := newCorner(t)
	at := func(i int) *cluster.Shape {
		s := hShape(0)
		s.Resources[0].Value = int64(1000 + i)
		return s
	}
	h.do(hNode("n", 0))
	for i := 1; i <= 1024; i++ { // that many idle shapes
		h.do(hJobOf("job/x", at(i), "w"), cluster.JobGone{Job: "job/x"})
	}
	h.do(hJobOf("job/a", at(0), "w"), cluster.TaskSeen{Task: ref("job/a", "w"), Node: "n"})
	twin, err := h.Snapshot().State()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []cluster.Change{hJobOf("job/a", at(5000), "w"), hJobOf("job/a", at(0), "w")} {
		h.do(c)
		if err := twin.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	if h.Digest() != twin.Digest() {
		t.Errorf("snapshot and log give another digest\n%s", cluster.Difference(h.State.Lines(), twin.Lines()))
	}
	if err := h.Audit(); err != nil {
		t.Error(err)
	}
}

// ApplyAll keeps the nodes before a malformed one.
func TestApplyAllStops(t *testing.T) {
	h := newCorner(t)
	bad := hNode("c", 2)
	bad.Node.Devices[1].UUID = bad.Node.Devices[0].UUID
	err := h.ApplyAll([]cluster.Change{hNode("a", 1), hNode("b", 1), bad})
	if err == nil {
		t.Fatal("accepted")
	}
	if h.Node("a") == nil || h.Node("b") == nil {
		t.Error("the nodes before the malformed one were not added")
	}
}

// A statement with a nil decision is rejected.
func TestNilDecision(t *testing.T) {
	h := newCorner(t)
	if p, _ := h.try(cluster.Decided{Changes: []cluster.Change{nil}}); p != nil {
		t.Errorf("panic %v", p)
	}
}

// A set whose only job moves to another set does not keep its group.
func TestSetLeftBehind(t *testing.T) {
	job := func(set string) cluster.JobPut {
		j := hJob("job/m1", "w")
		j.Job.Set = cluster.Set{Name: set, Desired: 1}
		return j
	}
	h := newCorner(t)
	h.do(job("m"), cluster.ChooseGroup{Set: "m", Group: cluster.Key{Product: "L4", Count: 1}}, job("n"))
	if got := h.View().Sets().Home("m"); got != nil {
		t.Errorf("the set m has no job, and keeps the home %v for good", *got)
	}
}

// An undo finds its shapes where many were idle.
func TestUndoPurge(t *testing.T) {
	h := newCorner(t)
	at := func(i int) *cluster.Shape {
		s := hShape(0)
		s.Resources[0].Value = int64(1000 + i)
		return s
	}
	h.do(hNode("n", 0), hJobOf("job/a", at(0), "w"), cluster.TaskSeen{Task: ref("job/a", "w"), Node: "n"})
	before, was := h.Digest(), h.State.Lines()
	mark := h.Mark()
	h.do(cluster.TaskSeen{Task: ref("job/a", "w")}, cluster.JobGone{Job: "job/a"})
	for i := 1; i <= 1100; i++ {
		h.do(hJobOf(fmt.Sprintf("job/x%d", i), at(i), "w"))
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

// A task that is not requested any more gets no room again when it moves.
func TestExtraIsNominated(t *testing.T) {
	h := newCorner(t)
	h.do(hNode("a", 1), hNode("b", 1), hJob("job/j", "w0", "w1"), cluster.TaskSeen{Task: ref("job/j", "w1"), Node: "a", Devices: whole("a", 0)})
	h.do(cluster.Evict{Task: ref("job/j", "w1"), Attempt: 1}, cluster.Move{Task: ref("job/j", "w1"), Node: "b", Devices: whole("b", 0)})
	h.do(hJob("job/j", "w0"), cluster.TaskSeen{Task: ref("job/j", "w1")})
	if task := h.Task(ref("job/j", "w1")); task != nil {
		t.Errorf("w1 is not requested, has left, and is %s on %s", task.Status, task.Node.Name)
	}
}

// A job is pending while a task of its form waits, although tasks of another form were
// seen.
func TestTwoForms(t *testing.T) {
	h := newCorner(t)
	put := hJob("job/a", "w0", "w1")
	put.Job.Alternatives[0].Name, put.Job.Alternatives[0].Min = "big", 2
	alt := hJob("job/a", "w0").Job.Alternatives[0]
	alt.Name = "small"
	put.Job.Alternatives = append(put.Job.Alternatives, alt)
	h.do(hNode("n", 3), put, cluster.TaskSeen{Task: ref("job/a", "w0"), Node: "n"}, cluster.TaskSeen{Task: cluster.TaskRef{Job: "job/a", Alternative: 1, Name: "w0"}, Node: "n"})
	j := h.Job("job/a")
	if j.Tasks()[1].Status == cluster.Pending && !h.View().Waits(j) {
		t.Error("a task of its form waits, and the job does not")
	}
}

// Tasks that are not requested any more do not count for the minimum.
func TestExtraCounts(t *testing.T) {
	h := newCorner(t)
	put := hJob("job/j", "w0", "w1", "w2")
	h.do(hNode("n", 4), put)
	for _, w := range []string{"w0", "w1", "w2"} {
		h.do(cluster.TaskSeen{Task: ref("job/j", w), Node: "n"})
	}
	next := hJob("job/j", "w0", "w3")
	next.Job.Alternatives[0].Min = 2
	h.do(next)
	if h.Job("job/j").Stands() {
		t.Error("it stands on tasks that it does not request")
	}
}

// A refused eviction of one of two tasks leaves the job displaced.
func TestStillDisplaced(t *testing.T) {
	h := newCorner(t)
	h.do(hNode("n", 2), hJob("job/v", "w0", "w1"), hJobOf("job/p", hShape(2), "w"))
	h.do(cluster.TaskSeen{Task: ref("job/v", "w0"), Node: "n"}, cluster.TaskSeen{Task: ref("job/v", "w1"), Node: "n"})
	h.do(cluster.Decided{Changes: []cluster.Change{
		cluster.Evict{Task: ref("job/v", "w0"), For: "job/p", Attempt: 1}, cluster.Evict{Task: ref("job/v", "w1"), For: "job/p", Attempt: 1},
		cluster.Displace{Job: "job/p", Victims: []string{"job/v"}}}})
	h.do(cluster.EvictionRefused{Task: ref("job/v", "w0"), Attempt: 1})
	if len(h.Job("job/p").Displaced) == 0 {
		t.Error("w1 of job/v was evicted for job/p, and job/v does not count as displaced")
	}
}

// A gang that a fact made whole is not torn any more, and has its grace the next time.
func TestTornForGood(t *testing.T) {
	h := &corner{t, enginetest.State(enginetest.Node("a").CPU(64, "512Gi").GPUs(2, "L4", "24Gi"), enginetest.Node("full").CPU(64, "512Gi"), enginetest.Job("j").Gang(2).Devices(1))}
	e := hEngine(t)
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
	if j.Torn == 0 {
		t.Fatal("not torn")
	}
	h.do(cluster.TaskSeen{Task: w1.Ref(), Node: "a"}) // bound by another scheduler
	h.session(e, 1020)
	if j.Torn != 0 {
		t.Errorf("whole again, and torn since %d", j.Torn)
	}
	h.session(e, 90000)
	h.do(cluster.TaskSeen{Task: w1.Ref()}) // it failed and is pending again
	for _, d := range h.session(e, 90001).Decisions {
		if d.Action == engine.EvictIt {
			t.Errorf("%v was evicted without any grace", d.Task)
		}
	}
}

// The engine runs over jobs whose subgroups facts have changed.
func TestEngineSubgroups(t *testing.T) {
	h := newCorner(t)
	e := hEngine(t)
	put := hJobOf("job/j", hShape(0), "a", "b")
	put.Job.Alternatives[0].Subgroups = []cluster.Subgroup{{Name: "g1"}, {Name: "g2"}}
	put.Job.Alternatives[0].Tasks[1].Subgroup = 2
	h.do(hNode("n", 0), put)
	h.session(e, 1000)
	h.do(hJobOf("job/j", hShape(0), "a", "c"))
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("panic in a session: %v", p)
		}
	}()
	h.session(e, 1001)
}

// A running task of a closed job that is put again as an open one can end, or come back
// with another UID.
func TestClosedJobBecomesOpen(t *testing.T) {
	for what, end := range map[string]cluster.Change{
		"it ends":     cluster.TaskGone{Task: ref("job/j", "a")},
		"another UID": cluster.TaskPut{Job: "job/j", Task: cluster.Task{Name: "a", UID: "2", Shape: hShape(1)}},
	} {
		t.Run(what, func(t *testing.T) {
			h := newCorner(t)
			closed := hJob("job/j", "a")
			closed.Job.Alternatives[0].Tasks[0].UID = "1"
			h.do(hNode("n", 1), closed, cluster.TaskSeen{Task: ref("job/j", "a"), Node: "n"}, hOpen("job/j", 1), end)
			if err := h.Audit(); err != nil {
				t.Error(err)
			}
		})
	}
}

// An open job that was closed before, and still runs in a form with a name, can be put again.
func TestOpenJobKeepsItsOldForm(t *testing.T) {
	h := newCorner(t)
	closed := hJob("job/j", "a")
	closed.Job.Alternatives[0].Name = "form"
	again := hOpen("job/j", 2)
	h.do(hNode("n", 1), closed, cluster.TaskSeen{Task: ref("job/j", "a"), Node: "n"}, hOpen("job/j", 1), again)
	if used := h.Node("n").Ledger(cluster.CPU).Used; used != 1000 {
		t.Errorf("%d of the CPU is used by a task that runs", used)
	}
	if err := h.Audit(); err != nil {
		t.Error(err)
	}
}

// The undo of a task that left puts it where it was, in whatever order the list is.
func TestUndoKeepsTheOrderOfTasks(t *testing.T) {
	h := newCorner(t)
	closed := hJobOf("job/j", hShape(0), "c", "a")
	closed.Job.Alternatives[0].Tasks[0].Index, closed.Job.Alternatives[0].Tasks[1].Index = 2, 0
	h.do(hNode("n", 1), closed, cluster.TaskSeen{Task: ref("job/j", "c"), Node: "n"}, cluster.TaskSeen{Task: ref("job/j", "a"), Node: "n"}, hOpen("job/j", 1),
		cluster.TaskPut{Job: "job/j", Task: cluster.Task{Name: "b", Index: 1, Shape: hShape(0)}}, cluster.TaskSeen{Task: ref("job/j", "a")})
	before := h.Digest()
	mark := h.Mark()
	h.do(cluster.TaskGone{Task: ref("job/j", "b")})
	h.Undo(mark)
	h.Release(mark)
	if h.Digest() != before {
		t.Error("not undone")
	}
}

// The default queue is at the top.
func TestDefaultQueueBelowAnother(t *testing.T) {
	h := newCorner(t)
	if _, err := h.try(cluster.QueuePut{Queue: cluster.Queue{Name: cluster.DefaultQueue, Parent: "d"}}); err == nil {
		t.Error("it is accepted below another")
	}
}
