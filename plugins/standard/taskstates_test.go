package standard_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/standard"
)

// These tests follow a task from a decision to its confirmation, refusal or end.

const sec = int64(1_000_000_000)

// liveScheduler runs sessions on one State, with facts in between that a test reports.
type liveScheduler struct {
	*testing.T
	state  *cluster.State
	engine *engine.Engine
	now    int64
}

func newLiveScheduler(t *testing.T, parts ...enginetest.Part) *liveScheduler {
	t.Helper()
	e, err := engine.New(standard.Registry(), standard.Profile())
	if err != nil {
		t.Fatal(err)
	}
	return &liveScheduler{T: t, state: enginetest.State(parts...), engine: e, now: 1000 * sec}
}

func (c *liveScheduler) report(changes ...cluster.Change) {
	c.Helper()
	for _, ch := range changes {
		if err := c.state.Apply(ch); err != nil {
			c.Fatalf("%s: %v", ch.Kind(), err)
		}
	}
	if err := c.state.Audit(); err != nil {
		c.Fatal(err)
	}
}

// session runs one session, and checks that its changes replay to the same State.
func (c *liveScheduler) session(after int64) engine.Outcome {
	c.Helper()
	c.now += after
	twin, err := c.state.Snapshot().State()
	if err != nil {
		c.Fatal(err)
	}
	s := c.engine.Open(c.state, engine.Options{Now: c.now, Hold: 600 * sec, Patient: true, Record: true, Search: engine.Twin})
	defer s.Close()
	out, err := s.Run()
	if err != nil {
		c.Fatal(err)
	}
	for _, ch := range out.Changes {
		if err := twin.Apply(ch); err != nil {
			c.Fatal(err)
		}
	}
	if twin.Digest() != c.state.Digest() {
		c.Fatal("the changes of the session do not replay")
	}
	return out
}

func (c *liveScheduler) task(job string, i int) *cluster.Task {
	return c.state.Job("job/" + job).Tasks()[i]
}

// statuses counts the tasks of the job by status.
func (c *liveScheduler) statuses(job string) map[string]int {
	out := map[string]int{}
	for _, t := range c.state.Job("job/" + job).Tasks() {
		out[t.Status.String()]++
	}
	return out
}

func (c *liveScheduler) want(job string, want map[string]int) {
	c.Helper()
	if d := cmp.Diff(want, c.statuses(job)); d != "" {
		c.Errorf("%s (-want +got):\n%s", job, d)
	}
}

func failed(t *cluster.Task) cluster.Change {
	return cluster.BindFailed{Task: t.Ref(), Attempt: t.Attempt}
}

func sent(t *cluster.Task) cluster.Change {
	return cluster.BindSent{Task: t.Ref(), Attempt: t.Attempt}
}

func seen(t *cluster.Task) cluster.Change {
	return cluster.TaskSeen{Task: t.Ref(), Node: t.Node.Name}
}

func gpus(name string, n int) *enginetest.NodeBuilder {
	return enginetest.Node(name).CPU(64, "512Gi").GPUs(n, "L4", "24Gi")
}

func TestBindingConfirmed(t *testing.T) {
	c := newLiveScheduler(t, gpus("a", 1), enginetest.Job("j").Devices(1))
	c.session(sec)
	c.want("j", map[string]int{"Assumed": 1})
	task := c.task("j", 0)
	assigned := task.Started
	c.report(cluster.TaskSeen{Task: task.Ref(), Node: "a", Started: assigned + 5*sec})
	if task.Status != cluster.Bound || task.Started != assigned+5*sec {
		t.Errorf("%s since %d, want Bound since %d: the start is corrected", task.Status, task.Started, assigned+5*sec)
	}
}

func TestBindingRefused(t *testing.T) {
	c := newLiveScheduler(t, gpus("a", 1), enginetest.Job("j").Devices(1))
	c.session(sec)
	task := c.task("j", 0)
	late := failed(task)
	c.report(late)
	c.want("j", map[string]int{"Pending": 1})
	c.session(sec)
	c.want("j", map[string]int{"Assumed": 1})
	c.report(late) // the same answer to the first attempt again
	c.want("j", map[string]int{"Assumed": 1})
	c.report(failed(task))
	c.want("j", map[string]int{"Pending": 1})
}

func TestAnswerLost(t *testing.T) {
	c := newLiveScheduler(t, gpus("a", 1), enginetest.Job("j").Devices(1), enginetest.Job("k").Devices(1))
	c.session(sec)
	task := c.task("j", 0)
	c.report(sent(task), cluster.TaskSeen{Task: task.Ref()}) // a stale fact: the task is not bound
	for range 3 {
		c.session(100_000 * sec)
	}
	c.want("j", map[string]int{"Assumed": 1})
	c.want("k", map[string]int{"Pending": 1}) // the room is not given to another task
	c.report(failed(task))                    // the binding was read back: it failed
	c.want("j", map[string]int{"Pending": 1})
}

// The 40th binding of a gang of 64 is refused while no binding is confirmed.
func TestGangRefusedBeforeAnyIsConfirmed(t *testing.T) {
	c := newLiveScheduler(t, gpus("a", 32), gpus("b", 32), enginetest.Job("g").Gang(64).Devices(1))
	c.session(sec)
	c.want("g", map[string]int{"Assumed": 64})
	for i := range 39 {
		c.report(sent(c.task("g", i)))
	}
	c.report(failed(c.task("g", 39)))
	c.want("g", map[string]int{"Pending": 25, "Assumed": 39}) // tasks are pending at once if their binding was not sent
	for i := range 39 {
		c.report(failed(c.task("g", i))) // the bindings were read back: none succeeded
	}
	c.want("g", map[string]int{"Pending": 64})
	c.session(2 * sec)
	c.want("g", map[string]int{"Assumed": 64})
}

// The same with 39 confirmed bindings: no room is freed under a running task. The gang is
// completed if possible, and otherwise evicted after the grace period.
func TestGangRefusedAfterSomeAreConfirmed(t *testing.T) {
	for name, completed := range map[string]bool{"completed": true, "evicted": false} {
		t.Run(name, func(t *testing.T) {
			c := newLiveScheduler(t, gpus("a", 32), gpus("b", 32), enginetest.Job("g").Gang(64).Devices(1))
			c.session(sec)
			for i := range 39 {
				c.report(seen(c.task("g", i)))
			}
			refused := c.task("g", 39)
			node, device := refused.Node.Name, refused.Node.Devices[refused.Claims[0].Device].UUID
			c.report(failed(refused))
			c.want("g", map[string]int{"Bound": 39, "Assumed": 24, "Pending": 1})
			if completed {
				c.session(2 * sec)
				c.want("g", map[string]int{"Bound": 39, "Assumed": 25})
				return
			}
			lost := []string{device} // the room of the task no longer exists
			c.report(cluster.NodeSeen{Name: node, Lost: &lost})
			for i := 40; i < 64; i++ {
				if task := c.task("g", i); task.Status == cluster.Assumed {
					c.report(seen(task))
				}
			}
			evicted := 0
			for range 5 {
				out := c.session(30 * sec) // the grace period of a gang below its minimum is a minute
				for i := range out.Decisions {
					if out.Decisions[i].Action == engine.EvictTask {
						evicted++
					}
				}
			}
			c.want("g", map[string]int{"Releasing": 63, "Pending": 1})
			if evicted != 63 {
				t.Errorf("%d evictions", evicted)
			}
		})
	}
}

func TestRejectedByTheNode(t *testing.T) {
	c := newLiveScheduler(t, gpus("a", 1), gpus("b", 1))
	put := cluster.JobPut{Job: cluster.Job{ID: "job/j", Open: true, Alternatives: []cluster.Alternative{{Min: 1}}}}
	shape := enginetest.Job("x").Devices(1).Build().Tasks()[0].Shape
	pod := func(uid string) cluster.Change {
		return cluster.TaskPut{Job: "job/j", Task: cluster.Task{Name: "p", UID: uid, Shape: shape}}
	}
	c.report(put, pod("first"))
	c.session(sec)
	first := c.task("j", 0)
	node := first.Node.Name
	c.report(seen(first), cluster.TaskGone{Task: first.Ref(), UID: "first", Rejected: c.now + 60*sec})
	if n := len(c.state.Job("job/j").Tasks()); n != 0 {
		t.Fatalf("%d tasks are left", n)
	}
	c.report(pod("second"))
	c.session(sec)
	second := c.task("j", 0)
	if second.Node == nil || second.Node.Name == node || second.Attempt != 1 {
		t.Errorf("the successor is on %v, attempt %d; %s is to be avoided", second.Node, second.Attempt, node)
	}
	c.report(cluster.TaskGone{Task: second.Ref(), UID: "second"}, cluster.NodeGone{Name: second.Node.Name}, pod("third"))
	c.session(sec)
	c.want("j", map[string]int{"Pending": 1}) // still avoided
	c.session(61 * sec)
	if third := c.task("j", 0); third.Node == nil || third.Node.Name != node {
		t.Errorf("the node is offered again after a while, and the task is on %v", third.Node)
	}
}

func TestBoundElsewhereByAnother(t *testing.T) {
	c := newLiveScheduler(t, gpus("a", 1), gpus("b", 1), enginetest.Job("j").Devices(1))
	c.session(sec)
	task := c.task("j", 0)
	from, to := task.Node.Name, "b"
	if from == "b" {
		to = "a"
	}
	c.report(cluster.TaskSeen{Task: task.Ref(), Node: to})
	if task.Status != cluster.Bound || task.Node.Name != to || !c.state.Node(from).Devices[0].Idle() || c.state.Node(to).Devices[0].Idle() {
		t.Errorf("%s on %s", task.Status, task.Node.Name)
	}
}

func TestDeletedWhileAssumed(t *testing.T) {
	c := newLiveScheduler(t, gpus("a", 1), enginetest.Job("other").Devices(1))
	c.report(cluster.JobPut{Job: cluster.Job{ID: "job/j", Priority: 1, Open: true, Alternatives: []cluster.Alternative{{Min: 1}}}},
		cluster.TaskPut{Job: "job/j", Task: cluster.Task{Name: "p", UID: "u", Shape: enginetest.Job("x").Devices(1).Build().Tasks()[0].Shape}})
	c.session(sec)
	task := c.task("j", 0)
	c.report(sent(task), cluster.TaskSeen{Task: task.Ref(), UID: "u", Releasing: true})
	c.want("j", map[string]int{"Releasing": 1})
	c.session(sec)
	if other := c.task("other", 0); other.Runs() {
		t.Error("its room was given to another task before it was released")
	}
	c.report(cluster.TaskGone{Task: task.Ref(), UID: "u"}, cluster.TaskSeen{Task: task.Ref(), UID: "u"})
	if n := len(c.state.Job("job/j").Tasks()); n != 0 {
		t.Error("a task with the same UID exists again")
	}
	c.session(sec)
	c.want("other", map[string]int{"Assumed": 1})
}

func TestNodeGoneWhileAssumed(t *testing.T) {
	c := newLiveScheduler(t, gpus("a", 1), enginetest.Job("j").Devices(1))
	c.session(sec)
	task := c.task("j", 0)
	c.report(sent(task), cluster.NodeGone{Name: "a"})
	c.session(10_000 * sec)
	c.want("j", map[string]int{"Assumed": 1})
	if absent := c.state.View().Absent(); len(absent) != 1 || absent[0].Name != "a" {
		t.Errorf("absent: %v", absent)
	}
	c.report(failed(task))
	c.want("j", map[string]int{"Pending": 1})
	if len(c.state.View().Absent()) != 0 {
		t.Error("the removed node is remembered without a task on it")
	}
}

// preempted returns a cluster in which old was evicted for new.
func preempted(t *testing.T) *liveScheduler {
	t.Helper()
	c := newLiveScheduler(t, gpus("a", 2), enginetest.Job("old").Devices(2).Preemptible().On("a"), enginetest.Job("new").Devices(2).Priority(10))
	c.session(sec)
	c.want("old", map[string]int{"Releasing": 1})
	c.want("new", map[string]int{"Nominated": 1})
	return c
}

func TestEvictionRefused(t *testing.T) {
	c := preempted(t)
	old := c.task("old", 0)
	c.report(cluster.EvictionRefused{Task: old.Ref(), Attempt: old.Attempt - 1}) // refers to an earlier attempt
	c.want("old", map[string]int{"Releasing": 1})
	c.report(cluster.EvictionRefused{Task: old.Ref(), Attempt: old.Attempt, ProtectedUntil: c.now + 60*sec})
	c.want("old", map[string]int{"Bound": 1})
	c.want("new", map[string]int{"Pending": 1})
	if d := c.state.Job("job/new").Displaced; len(d) != 0 {
		t.Errorf("it still counts as displaced: %v", d)
	}
	c.session(10 * sec)
	c.want("old", map[string]int{"Bound": 1}) // protected for a while
	c.session(60 * sec)
	c.want("old", map[string]int{"Releasing": 1}) // and then evicted again
}

// An evicted task never releases its room: the waiting job is placed elsewhere, and sessions
// do not repeat decisions.
func TestEvictedTaskNeverStops(t *testing.T) {
	c := preempted(t)
	for range 3 {
		c.session(300 * sec)
	}
	if !c.task("old", 0).Overdue() {
		t.Fatal("the task is not overdue")
	}
	c.want("new", map[string]int{"Pending": 1})
	decisions := 0
	for range 10 {
		decisions += len(c.session(1000 * sec).Decisions)
	}
	if decisions != 0 {
		t.Errorf("%d decisions about room that is not released", decisions)
	}
	c.report(cluster.NodePut{Node: *gpus("b", 2).Build()})
	c.session(sec)
	if task := c.task("new", 0); !task.Runs() || task.Node.Name != "b" {
		t.Errorf("%s on %v", task.Status, task.Node)
	}
	c.report(cluster.TaskSeen{Task: c.task("old", 0).Ref()}) // it has released its room after all
	c.session(sec)
	c.want("old", map[string]int{"Assumed": 1})
}

// A foreign pod takes reserved room: State records it, and the next session withdraws the
// reservation, for a gang all of its reservations.
func TestReservedRoomTaken(t *testing.T) {
	c := newLiveScheduler(t, gpus("a", 2), gpus("b", 2),
		enginetest.Job("old").Gang(2).Devices(2).Preemptible().On("a", "b"), enginetest.Job("new").Gang(2).Devices(2).Priority(10))
	c.session(sec)
	c.want("new", map[string]int{"Nominated": 2})
	foreign := enginetest.Job("foreign").Devices(2).Build()
	c.report(cluster.JobPut{Job: *foreign})
	n := c.state.Node("a")
	c.report(cluster.TaskSeen{Task: cluster.TaskRef{Job: "job/foreign", Name: foreign.Tasks()[0].Name}, Node: "a",
		Devices: []cluster.Holding{{Device: n.Devices[0].UUID, Milli: cluster.Whole, Memory: n.Devices[0].Memory}, {Device: n.Devices[1].UUID, Milli: cluster.Whole, Memory: n.Devices[1].Memory}}})
	c.session(sec)
	c.want("foreign", map[string]int{"Bound": 1})
	c.want("new", map[string]int{"Pending": 2})
}

// After a restart, reservations have the same devices, alternative and time.
func TestRestartKeepsReservations(t *testing.T) {
	c := preempted(t)
	digest := c.state.Digest()
	again, err := c.state.Snapshot().State()
	if err != nil || again.Digest() != digest {
		t.Fatalf("%v, another State", err)
	}
	e, err := c.engine.Another()
	if err != nil {
		t.Fatal(err)
	}
	c.state, c.engine = again, e
	if len(c.session(sec).Decisions) != 0 {
		t.Error("there are new decisions")
	}
	c.report(cluster.TaskSeen{Task: c.task("old", 0).Ref()})
	c.session(sec)
	c.want("new", map[string]int{"Assumed": 1})
}

// The devices of a node are listed in another order: no task moves, and a device keeps the
// ID by which it is selected.
func TestDevicesInAnotherOrder(t *testing.T) {
	c := newLiveScheduler(t, gpus("a", 4), enginetest.Job("j").Gang(2).Devices(1))
	c.session(sec)
	held := func() map[string]string {
		out := map[string]string{}
		n := c.state.Node("a")
		for _, task := range c.state.Job("job/j").Tasks() {
			for _, claim := range task.Claims {
				d := &n.Devices[claim.Device]
				out[task.Name] += fmt.Sprint(d.UUID, " ", d.ID, " ", d.Use.Leases, " ")
			}
		}
		return out
	}
	before := held()
	node := *gpus("a", 4).Build()
	slices.Reverse(node.Devices)
	for i := range node.Devices {
		node.Devices[i].ID = cluster.DeviceID{}
	}
	c.report(cluster.NodePut{Node: node})
	if d := cmp.Diff(before, held()); d != "" {
		t.Errorf("held (-want +got):\n%s", d)
	}
	if len(c.session(sec).Decisions) != 0 {
		t.Error("there are decisions")
	}
}

// A pod is added to a running elastic job: nothing else changes.
func TestTaskAddedToARunningJob(t *testing.T) {
	c := newLiveScheduler(t, gpus("a", 4))
	shape := enginetest.Job("x").Devices(1).Build().Tasks()[0].Shape
	add := func(name string) cluster.Change {
		return cluster.TaskPut{Job: "job/j", Task: cluster.Task{Name: name, UID: name, Shape: shape}}
	}
	c.report(add("p0")) // the pod is reported before its job
	c.session(sec)
	c.report(cluster.JobPut{Job: cluster.Job{ID: "job/j", Open: true, Alternatives: []cluster.Alternative{{Min: 2}}}})
	c.session(sec)
	c.want("j", map[string]int{"Pending": 1}) // the job has fewer tasks than its minimum
	c.report(add("p1"))
	c.session(sec)
	c.want("j", map[string]int{"Assumed": 2})
	c.report(seen(c.task("j", 0)), seen(c.task("j", 1)))
	before := map[string]any{"p0": c.task("j", 0).Claims, "p1": c.task("j", 1).Claims}
	c.report(add("p2"))
	c.session(sec)
	c.want("j", map[string]int{"Bound": 2, "Assumed": 1})
	if d := cmp.Diff(before, map[string]any{"p0": c.task("j", 0).Claims, "p1": c.task("j", 1).Claims}); d != "" {
		t.Error(d)
	}
	c.report(cluster.TaskGone{Task: c.task("j", 0).Ref(), UID: "p0"})
	c.want("j", map[string]int{"Bound": 1, "Assumed": 1})
}

// A new spec with another priority, minimum and shape does not change where running tasks
// are and what they hold.
func TestSpecPutAgain(t *testing.T) {
	c := newLiveScheduler(t, gpus("a", 4), enginetest.Job("j").Gang(2).Devices(1))
	c.session(sec)
	c.report(seen(c.task("j", 0)), seen(c.task("j", 1)))
	used := c.state.Node("a").DeviceUsed()
	c.report(cluster.JobPut{Job: *enginetest.Job("j").Gang(3).Min(1).Devices(2).Priority(5).Build()})
	if c.state.Node("a").DeviceUsed() != used {
		t.Errorf("%d in use, before it was %d", c.state.Node("a").DeviceUsed(), used)
	}
	c.want("j", map[string]int{"Bound": 2, "Pending": 1})
	c.session(sec)
	c.want("j", map[string]int{"Bound": 2, "Assumed": 1})
	if c.state.Node("a").DeviceUsed() != used+2000 {
		t.Errorf("%d in use", c.state.Node("a").DeviceUsed())
	}
	c.report(cluster.JobPut{Job: *enginetest.Job("j").Devices(1).Build()}) // the new spec has one task
	c.want("j", map[string]int{"Bound": 2, "Assumed": 1})
	c.report(cluster.TaskSeen{Task: c.task("j", 1).Ref()})
	c.want("j", map[string]int{"Bound": 1, "Assumed": 1}) // a task that the spec no longer has is not placed again
}

// A session reports when it should be run again although nothing changes.
func TestNextWake(t *testing.T) {
	c := preempted(t)
	if got, want := c.session(sec).NextWake, 1001*sec+600*sec+1; got != want {
		t.Errorf("woken at %d, want %d: the reservation expires", got, want)
	}
	c = newLiveScheduler(t, gpus("a", 1), enginetest.Job("j").Devices(1), enginetest.Job("k").Devices(1))
	if got, want := c.session(sec).NextWake, 1002*sec; got != want {
		t.Errorf("woken at %d, want %d: a refused job is tried again after a second", got, want)
	}
	c.report(cluster.JobGone{Job: "job/k"})
	if got := c.session(sec).NextWake; got != 0 {
		t.Errorf("woken at %d, although time changes nothing", got)
	}
	c = newLiveScheduler(t, gpus("a", 2), enginetest.Job("g").Gang(3).Devices(1).On("a", "a"))
	c.session(sec)
	if got, want := c.session(100*sec).NextWake, int64(0); got == want {
		t.Error("no wake at the end of the grace period of a gang below its minimum")
	}
}
