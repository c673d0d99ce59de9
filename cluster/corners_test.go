package cluster_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/fixture"
	"github.com/berth-project/berth/plugins/standard"
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

// JobGone of an open job with subgroups.
func TestJobGoneWithSubgroups(t *testing.T) {
	h := newCorner(t)
	put := hOpen("pod/g", 1)
	put.Job.Alternatives[0].Subgroups = []cluster.Subgroup{{Name: "leader", Min: 1}}
	h.do(put, cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", Subgroup: 1, Shape: hShape(0)}})
	if p, err := h.try(cluster.JobGone{Job: "pod/g"}); err != nil || p != nil {
		t.Fatalf("err %v, panic %v", err, p)
	}
}

// Task before its job; the job has no such subgroup.
func TestTaskBeforeJobSubgroup(t *testing.T) {
	h := newCorner(t)
	h.do(cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", Subgroup: 1, Shape: hShape(0)}})
	if p, err := h.try(hOpen("pod/g", 1)); err != nil || p != nil {
		t.Fatalf("err %v, panic %v", err, p)
	}
}

// A closed job put again with fewer subgroups while a task runs that is dropped.
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

// A sighting of another UID is given to the task that comes.
func TestRecallAnotherUID(t *testing.T) {
	h := newCorner(t)
	h.do(hNode("n", 1), hOpen("pod/g", 1))
	h.do(cluster.TaskSeen{Task: ref("pod/g", "p0"), UID: "u1", Node: "n"})
	h.do(cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", UID: "u2", Shape: hShape(1)}})
	if task := h.Task(ref("pod/g", "p0")); task.Status != cluster.Pending {
		t.Fatalf("u2 is %s: it inherits what was seen of u1", task.Status)
	}
}

// What is seen of the successor before it is put is lost.
func TestSightingOfSuccessorLost(t *testing.T) {
	h := newCorner(t)
	h.do(hNode("n", 1), hOpen("pod/g", 1), cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", UID: "u1", Shape: hShape(1)}})
	h.do(cluster.TaskSeen{Task: ref("pod/g", "p0"), UID: "u2", Node: "n", Devices: whole("n", 0)})
	h.do(cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", UID: "u2", Shape: hShape(1)}})
	if task := h.Task(ref("pod/g", "p0")); task.Status != cluster.Bound {
		t.Fatalf("u2 runs on n and is %s here", task.Status)
	}
}

// A late TaskGone of u1 forgets the sighting of u2 that waits.
func TestLateGoneForgetsSighting(t *testing.T) {
	h := newCorner(t)
	h.do(hNode("n", 1), hOpen("pod/g", 1))
	h.do(cluster.TaskSeen{Task: ref("pod/g", "p0"), UID: "u2", Node: "n", Devices: whole("n", 0)}, cluster.TaskGone{Task: ref("pod/g", "p0"), UID: "u1"})
	h.do(cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", UID: "u2", Shape: hShape(1)}})
	if task := h.Task(ref("pod/g", "p0")); task.Status != cluster.Bound {
		t.Fatalf("u2 runs on n and is %s here", task.Status)
	}
}

// A late answer about u1 hits u2, because attempts begin at 0 again and answers have no UID.
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

// A closed job is put again with another UID of a task: it inherits the node.
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

// Stale facts: a revision that brought nothing new is not remembered.
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

// A stale spec of the predecessor replaces the successor.
func TestStalePredecessor(t *testing.T) {
	h := newCorner(t)
	h.do(hNode("n", 1), hOpen("pod/g", 1))
	h.do(cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", UID: "u2", Shape: hShape(1)}, Revision: 7}, cluster.TaskSeen{Task: ref("pod/g", "p0"), UID: "u2", Node: "n"})
	h.do(cluster.TaskPut{Job: "pod/g", Task: cluster.Task{Name: "p0", UID: "u1", Shape: hShape(1)}, Revision: 3})
	if task := h.Task(ref("pod/g", "p0")); task.UID != "u2" {
		t.Errorf("revision 3 (u1) replaced revision 7 (u2), which runs")
	}
}

// Counted tasks: one that leaves and one that stays get the same device.
func TestCountedAndReleasing(t *testing.T) {
	h := newCorner(t)
	h.do(hNode("n", 2), hJob("job/a", "w"), hJob("job/b", "w"), hJob("job/c", "w"), hJobOf("job/z", hShape(0), "w"))
	h.do(cluster.TaskSeen{Task: ref("job/a", "w"), Node: "n"}, cluster.TaskSeen{Task: ref("job/b", "w"), Node: "n"})
	h.do(cluster.Evict{Task: ref("job/a", "w"), Attempt: 1})
	h.do(cluster.TaskSeen{Task: ref("job/z", "w"), Node: "n"}) // any fact about the node
	// Both devices are held physically: by a, which is leaving, and by b.
	err := h.Apply(cluster.Assign{Task: ref("job/c", "w"), Node: "n", Devices: whole("n", 1), Attempt: 1})
	if err == nil {
		t.Fatalf("c is %s on a device that is held: a has %v, b has %v", h.Task(ref("job/c", "w")).Status, h.Task(ref("job/a", "w")).Claims, h.Task(ref("job/b", "w")).Claims)
	}
}

// Negative holdings, in a fact and in a decision.
func TestNegativeHoldings(t *testing.T) {
	h := newCorner(t)
	h.do(hNode("n", 1), hJob("job/a", "w"), hJob("job/b", "w"), hJob("job/c", "w"))
	neg := []cluster.Holding{{Device: uuid("n", 0), Milli: -1000, Memory: -24 * hGi}}
	if err := h.Apply(cluster.Assign{Task: ref("job/a", "w"), Node: "n", Devices: neg, Attempt: 1}); err == nil {
		t.Error("a decision with negative holdings was applied")
	}
	h.do(cluster.Assign{Task: ref("job/b", "w"), Node: "n", Devices: whole("n", 0), Attempt: 1})
	if err := h.Apply(cluster.Assign{Task: ref("job/c", "w"), Node: "n", Devices: whole("n", 0), Attempt: 1}); err == nil {
		t.Error("decisions booked a device twice")
	}
	h2 := newCorner(t)
	h2.do(hNode("n", 1), hJob("job/a", "w"))
	if err := h2.Apply(cluster.TaskSeen{Task: ref("job/a", "w"), Node: "n", Devices: neg}); err == nil {
		t.Error("a malformed fact was applied")
	}
}

// A decision that gives a task which needs a device none, or layers that it does not have.
func TestClaimsThatAreNotTheShapes(t *testing.T) {
	h := newCorner(t)
	h.do(hNode("n", 1), hJob("job/a", "w"), hJob("job/b", "w"), hJob("job/c", "w"))
	h.do(cluster.Assign{Task: ref("job/a", "w"), Node: "n", Devices: whole("n", 0), Attempt: 1})
	if err := h.Apply(cluster.Assign{Task: ref("job/b", "w"), Node: "n", Attempt: 1}); err == nil {
		t.Error("needs a device, was assigned without one, on a node that has none free")
	}
	if err := h.Apply(cluster.Assign{Task: ref("job/c", "w"), Node: "n", Devices: []cluster.Holding{{Device: uuid("n", 0)}}, Attempt: 1}); err == nil {
		t.Error("assigned a device that another has whole, with a claim of nothing")
	}
}

// A device without a name in TaskSeen makes a State that cannot be restored.
func TestEmptyDeviceName(t *testing.T) {
	h := newCorner(t)
	h.do(hNode("n", 1), hJob("job/a", "w"))
	if err := h.Apply(cluster.TaskSeen{Task: ref("job/a", "w"), Node: "n", Devices: []cluster.Holding{{Milli: 1000}}}); err != nil {
		return // rejected: fine
	}
	if _, err := h.Snapshot().State(); err != nil {
		t.Fatal(err)
	}
}

// "holds no devices" becomes "not known" in JSON.
func TestEmptyDevicesInJSON(t *testing.T) {
	c := cluster.TaskSeen{Task: ref("job/a", "w"), Node: "n", Devices: []cluster.Holding{}}
	b, _ := cluster.Encode(c)
	back, err := cluster.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	h, g := newCorner(t), newCorner(t)
	for _, x := range []*corner{h, g} {
		x.do(hNode("n", 1), hJob("job/a", "w"))
	}
	h.do(c)
	g.do(back)
	if h.Digest() != g.Digest() {
		t.Errorf("another State after JSON: %s\n%s", b, differing(spell(h.State), spell(g.State)))
	}
}

// Empty and absent lists make different digests, also after a restart.
func TestEmptyLists(t *testing.T) {
	h := newCorner(t)
	put := hJob("job/a", "w")
	put.Job.Alternatives[0].Topology.Preferred = []string{}
	h.do(put)
	check := func(what string) {
		b, _ := json.Marshal(h.Snapshot())
		var sn cluster.Snapshot
		if err := json.Unmarshal(b, &sn); err != nil {
			t.Fatal(err)
		}
		s, err := sn.State()
		if err != nil {
			t.Fatal(err)
		}
		if s.Digest() != h.Digest() {
			t.Errorf("%s: another digest after JSON\n%s", what, differing(spell(h.State), spell(s)))
		}
	}
	check("topology")
	h = newCorner(t)
	n := hNode("n", 1)
	n.Node.Advertised.GPU = []cluster.GPUClass{}
	h.do(n)
	check("advertised")
	h = newCorner(t)
	s := hShape(0)
	s.Need.Products = []string{}
	h.do(hJobOf("job/a", s, "w"))
	check("need")
	// and which of two equal shapes came first is in the digest
	a, b := newCorner(t), newCorner(t)
	x, y := hJobOf("job/x", s, "w"), hJobOf("job/y", hShape(0), "w")
	a.do(x, y)
	b.do(y, x)
	if a.Digest() != b.Digest() {
		t.Error("facts about two jobs in another order give another digest")
	}
}

// Avoided shapes: order of facts about different tasks.
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
		t.Errorf("%s", differing(spell(a.State), spell(b.State)))
	}
}

// A node that comes back keeps its old status only if the task was seen gone later.
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
		t.Errorf("%s", differing(spell(a.State), spell(b.State)))
	}
}

// SetScaled is forgotten with the last job, and kept if it comes later.
func TestSetScaledOrder(t *testing.T) {
	job := hJob("job/m1", "w")
	job.Job.Set = cluster.Set{Name: "m", Desired: 1}
	a, b := newCorner(t), newCorner(t)
	a.do(cluster.SetScaled{Set: "m", Desired: 3}, job, cluster.JobGone{Job: "job/m1"}, job)
	b.do(job, cluster.JobGone{Job: "job/m1"}, job, cluster.SetScaled{Set: "m", Desired: 3})
	if a.Desired("m") != b.Desired("m") {
		t.Errorf("the set was scaled to 3; desired %d or %d, by the order of facts", a.Desired("m"), b.Desired("m"))
	}
}

// JobPut told again wipes what JobSeen said.
func TestHealthSurvives(t *testing.T) {
	h := newCorner(t)
	h.do(hJob("job/a", "w"), cluster.JobSeen{Job: "job/a", Health: cluster.HealthFailed})
	v := h.JobsVersion()
	h.do(hJob("job/a", "w")) // a resync
	if h.Job("job/a").Health != cluster.HealthFailed || h.JobsVersion() != v {
		t.Errorf("health is %q, versions touched: %v", h.Job("job/a").Health, h.JobsVersion() != v)
	}
}

// Alternatives of the same name: a running task is lost.
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

// Task names with slashes: IDs collide.
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

// Two sessions on one device.
func TestSessions(t *testing.T) {
	h := newCorner(t)
	of := func(session string) *cluster.Shape {
		s := hShape(1)
		s.Need.Share = 200
		s.Isolation = cluster.Isolation{GPU: cluster.GPUSessionExclusive, Session: session}
		return s
	}
	part := []cluster.Holding{{Device: uuid("n", 0), Milli: 200, Memory: hGi}}
	h.do(hNode("n", 1), hJobOf("job/a", of("A"), "w"), hJobOf("job/b", of("B"), "w"), hJobOf("job/c", of("A"), "w"))
	h.do(cluster.TaskSeen{Task: ref("job/b", "w"), Node: "n", Devices: part}, cluster.TaskSeen{Task: ref("job/a", "w"), Node: "n", Devices: part})
	if err := h.Audit(); err != nil {
		t.Error(err)
	}
	h.do(cluster.TaskSeen{Task: ref("job/a", "w")}) // a has left; session B is there alone
	if err := h.Apply(cluster.Assign{Task: ref("job/c", "w"), Node: "n", Devices: part, Attempt: 1}); err == nil {
		t.Error("session A was assigned to a device of session B")
	}
}

// A reservation is bound beside a task that tolerates nobody.
func TestBindBesideExclusive(t *testing.T) {
	h := newCorner(t)
	share := hShape(1)
	share.Need.Share = 400
	alone := hShape(1)
	alone.Isolation.GPU = cluster.GPUDeviceExclusive
	part := []cluster.Holding{{Device: uuid("n", 0), Milli: 400, Memory: 24 * hGi * 4 / 10}}
	h.do(hNode("n", 1), hJob("job/v", "w"), hJobOf("job/p", share, "w"), hJobOf("job/f", alone, "w"))
	h.do(cluster.TaskSeen{Task: ref("job/v", "w"), Node: "n", Devices: whole("n", 0)})
	h.do(cluster.Evict{Task: ref("job/v", "w"), For: "job/p", Attempt: 1}, cluster.Nominate{Task: ref("job/p", "w"), Node: "n", Devices: part})
	h.do(cluster.TaskSeen{Task: ref("job/v", "w")})
	h.do(cluster.TaskSeen{Task: ref("job/f", "w"), Node: "n", Devices: part}) // bound by another scheduler
	if err := h.Apply(cluster.Assign{Task: ref("job/p", "w"), Node: "n", Devices: part, Attempt: 1}); err == nil {
		t.Error("assigned beside a task that has the device to itself")
	}
}

// Nominate again books the new shape without a look.
func TestNominateAgain(t *testing.T) {
	h := newCorner(t)
	h.do(hNode("n", 0), hJobOf("job/a", hShape(0), "w"), cluster.Nominate{Task: ref("job/a", "w"), Node: "n"})
	big := hShape(0)
	big.Resources = cluster.Resources{{Name: cluster.CPU, Value: 1_000_000}, {Name: cluster.Memory, Value: int64(hGi)}}
	h.do(hJobOf("job/a", big, "w"))
	if err := h.Apply(cluster.Nominate{Task: ref("job/a", "w"), Node: "n"}); err == nil && h.Node("n").Ledger(cluster.CPU).Free() < 0 {
		t.Error("a decision overfilled the node")
	}
}

// Closed to open: a task that is put stays "extra" and is dropped when its binding fails.
func TestExtraPutAgain(t *testing.T) {
	h := newCorner(t)
	h.do(hNode("n", 1), hJob("pod/a", "w"), cluster.Assign{Task: ref("pod/a", "w"), Node: "n", Devices: whole("n", 0), Attempt: 1})
	h.do(hOpen("pod/a", 1), cluster.TaskPut{Job: "pod/a", Task: cluster.Task{Name: "w", Shape: hShape(1)}})
	h.do(cluster.BindFailed{Task: ref("pod/a", "w"), Attempt: 1})
	if h.Task(ref("pod/a", "w")) == nil {
		t.Error("the task was put, its binding failed, and it is forgotten")
	}
}

// Shapes: digest depends on which idle shapes were purged.
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
		t.Errorf("snapshot and log give another digest\n%s", differing(spell(h.State), spell(twin)))
	}
	if err := h.Audit(); err != nil {
		t.Error(err)
	}
}

// ApplyAll: a bad node takes the good ones before it along.
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

// Nil in a statement.
func TestNilDecision(t *testing.T) {
	h := newCorner(t)
	if p, _ := h.try(cluster.Decided{Changes: []cluster.Change{nil}}); p != nil {
		t.Errorf("panic %v", p)
	}
}

// Devices that are not listed pile up on the node.
func TestDevicesLeak(t *testing.T) {
	h := newCorner(t)
	h.do(hNode("n", 1), hJob("job/a", "w"))
	for i := range 2000 {
		h.do(cluster.TaskSeen{Task: ref("job/a", "w"), Node: "n", Devices: []cluster.Holding{{Device: fmt.Sprintf("MIG-%d", i), Milli: 1000}}}, cluster.TaskSeen{Task: ref("job/a", "w")})
	}
	h.do(hNode("n", 1))
	if got := len(h.Node("n").Devices); got > 10 {
		t.Errorf("%d devices on a node that has 1", got)
	}
}

// Overdue duplicates: two shapes rejected at different times; the earlier time wins if told last.
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

// A set whose only job moves to another set leaves its group behind.
func TestSetLeftBehind(t *testing.T) {
	job := func(set string) cluster.JobPut {
		j := hJob("job/m1", "w")
		j.Job.Set = cluster.Set{Name: set, Desired: 1}
		return j
	}
	h := newCorner(t)
	h.do(job("m"), cluster.ChooseGroup{Set: "m", Group: cluster.Key{Product: "L4", Count: 1}}, job("n"))
	if got := h.Home("m"); got != nil {
		t.Errorf("the set m has no job, and keeps the home %v for good", *got)
	}
}

// Displaced jobs out of order.
func TestDisplacedUnsorted(t *testing.T) {
	h := newCorner(t)
	j := hJob("job/a", "w")
	j.Job.Displaced = []string{"job/z", "job/y", "job/b"}
	h.do(j, cluster.Displace{Job: "job/a", Victims: []string{"job/z"}})
	if got := h.Job("job/a").Displaced; len(got) != 3 {
		t.Errorf("%v", got)
	}
}

// Undo of many shapes (purge while undoing).
func TestUndoPurge(t *testing.T) {
	h := newCorner(t)
	at := func(i int) *cluster.Shape {
		s := hShape(0)
		s.Resources[0].Value = int64(1000 + i)
		return s
	}
	h.do(hNode("n", 0), hJobOf("job/a", at(0), "w"), cluster.TaskSeen{Task: ref("job/a", "w"), Node: "n"})
	before, was := h.Digest(), spell(h.State)
	mark := h.Mark()
	h.do(cluster.TaskSeen{Task: ref("job/a", "w")}, cluster.JobGone{Job: "job/a"})
	for i := 1; i <= 1100; i++ {
		h.do(hJobOf(fmt.Sprintf("job/x%d", i), at(i), "w"))
	}
	h.Undo(mark)
	h.Release(mark)
	if h.Digest() != before {
		t.Errorf("not undone\n%s", differing(was, spell(h.State)))
	}
	if err := h.Audit(); err != nil {
		t.Error(err)
	}
}

// A task that is not requested any more moves, and is given room again.
func TestExtraIsNominated(t *testing.T) {
	h := newCorner(t)
	h.do(hNode("a", 1), hNode("b", 1), hJob("job/j", "w0", "w1"), cluster.TaskSeen{Task: ref("job/j", "w1"), Node: "a", Devices: whole("a", 0)})
	h.do(cluster.Evict{Task: ref("job/j", "w1"), Attempt: 1}, cluster.Move{Task: ref("job/j", "w1"), Node: "b", Devices: whole("b", 0)})
	h.do(hJob("job/j", "w0"), cluster.TaskSeen{Task: ref("job/j", "w1")})
	if task := h.Task(ref("job/j", "w1")); task != nil {
		t.Errorf("w1 is not requested, has left, and is %s on %s", task.Status, task.Node.Name)
	}
}

// Tasks of two forms: the job is not pending although a task of its form waits.
func TestTwoForms(t *testing.T) {
	h := newCorner(t)
	put := hJob("job/a", "w0", "w1")
	put.Job.Alternatives[0].Name, put.Job.Alternatives[0].Min = "big", 2
	alt := hJob("job/a", "w0").Job.Alternatives[0]
	alt.Name = "small"
	put.Job.Alternatives = append(put.Job.Alternatives, alt)
	h.do(hNode("n", 3), put, cluster.TaskSeen{Task: ref("job/a", "w0"), Node: "n"}, cluster.TaskSeen{Task: cluster.TaskRef{Job: "job/a", Alternative: 1, Name: "w0"}, Node: "n"})
	j := h.Job("job/a")
	if j.Tasks()[1].Status == cluster.Pending && !h.Waits(j) {
		t.Error("a task of its form waits, and the job does not")
	}
}

// An evicted task whose binding was sent and not answered: a stale fact frees its room.
func TestEvictedWhileSent(t *testing.T) {
	h := newCorner(t)
	r := ref("job/j", "w")
	h.do(hNode("n", 1), hJob("job/j", "w"), cluster.Assign{Task: r, Node: "n", Devices: whole("n", 0), Attempt: 1}, cluster.BindSent{Task: r, Attempt: 1})
	h.do(cluster.Evict{Task: r, Attempt: 2}, cluster.TaskSeen{Task: r}) // as it was before it was bound
	if task := h.Task(r); task.Status != cluster.Releasing {
		t.Errorf("%s: the binding may have been made", task.Status)
	}
}

// Tasks that are not requested any more do not make the minimum.
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

// A device that is asked for under another name again.
func TestResourceBack(t *testing.T) {
	h, g := newCorner(t), newCorner(t)
	n := hNode("n", 1)
	n.Node.Devices[0].Resource = "example.com/gpu"
	h.do(n, hNode("n", 1))
	g.do(hNode("n", 1))
	if h.Digest() != g.Digest() {
		t.Errorf("the last fact does not win: %s", h.Node("n").Devices[0].Resource)
	}
}

// EvictionRefused after the job was evicted from two tasks.
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

// Shapes with a resource twice are booked otherwise after a restart.
func TestResourceTwice(t *testing.T) {
	h := newCorner(t)
	s := &cluster.Shape{Resources: cluster.Resources{{Name: cluster.CPU, Value: 1000}, {Name: cluster.CPU, Value: 500}, {Name: cluster.Memory, Value: 1}}}
	if h.Apply(hJobOf("job/a", s, "w")) != nil {
		return
	}
	h.do(hNode("n", 0), cluster.TaskSeen{Task: ref("job/a", "w"), Node: "n"})
	b, _ := json.Marshal(h.Snapshot())
	var sn cluster.Snapshot
	_ = json.Unmarshal(b, &sn)
	again, err := sn.State()
	if err != nil {
		t.Fatal(err)
	}
	if x, y := h.Node("n").Ledger(cluster.CPU).Used, again.Node("n").Ledger(cluster.CPU).Used; x != y || h.Digest() != again.Digest() {
		t.Errorf("used %d, after JSON %d; digests equal: %v", x, y, h.Digest() == again.Digest())
	}
}

// Huge holdings wrap around.
func TestHugeHoldings(t *testing.T) {
	h := newCorner(t)
	h.do(hNode("n", 1), hJob("job/a", "w"), hJob("job/b", "w"), hJob("job/c", "w"))
	const most = cluster.Bytes(1<<63 - 1)
	for _, j := range []string{"job/a", "job/b"} {
		if h.Apply(cluster.TaskSeen{Task: ref(j, "w"), Node: "n", Devices: []cluster.Holding{{Device: uuid("n", 0), Milli: 400, Memory: most}}}) != nil {
			return
		}
	}
	if err := h.Apply(cluster.Assign{Task: ref("job/c", "w"), Node: "n", Devices: []cluster.Holding{{Device: uuid("n", 0), Milli: 200, Memory: hGi}}, Attempt: 1}); err == nil {
		t.Error("a full device was given away: memory in use wrapped around")
	}
}

func (h *corner) session(e *engine.Engine, now int64) engine.Outcome {
	h.Helper()
	s := e.Open(h.State, engine.Options{Now: now * 1_000_000_000, Hold: 600_000_000_000, Patient: true, Record: true})
	defer s.Close()
	out, err := s.Run()
	if err != nil {
		h.Fatal(err)
	}
	return out
}

func hEngine(t *testing.T) *engine.Engine {
	e, err := engine.New(standard.Registry(), standard.Profile())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A gang that a fact made whole again stays torn; the next time it has no grace.
func TestTornForGood(t *testing.T) {
	h := &corner{t, fixture.State(fixture.Node("a").CPU(64, "512Gi").GPUs(2, "L4", "24Gi"), fixture.Node("full").CPU(64, "512Gi"), fixture.Job("j").Gang(2).Devices(1))}
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

// H8 with the engine: it starts a task on a node whose devices are all held.
func TestEngineOnHeldDevice(t *testing.T) {
	h := newCorner(t)
	e := hEngine(t)
	h.do(hNode("n", 2), hJob("job/a", "w"), hJob("job/b", "w"), hJobOf("job/z", hShape(0), "w"))
	h.do(cluster.TaskSeen{Task: ref("job/a", "w"), Node: "n"}, cluster.TaskSeen{Task: ref("job/b", "w"), Node: "n"}, cluster.TaskSeen{Task: ref("job/a", "w"), Node: "n", Leaving: true}, cluster.TaskSeen{Task: ref("job/z", "w"), Node: "n"})
	h.do(hJob("job/c", "w"))
	h.session(e, 1000)
	if task := h.Task(ref("job/c", "w")); task.Status == cluster.Assumed {
		t.Error("c is to start at once; a, which leaves, and b have both devices")
	}
}

// H1c with the engine.
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
