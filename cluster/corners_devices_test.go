package cluster_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

// TestUnknownDevicesOfReleasingTask checks that State does not choose the same device for
// two tasks with unknown devices, one of which is releasing.
func TestUnknownDevicesOfReleasingTask(t *testing.T) {
	h := newCorner(t)
	h.do(putNode("n", 2), putJob("job/a", "w"), putJob("job/b", "w"), putJob("job/c", "w"), putJobOf("job/z", shapeWithDevices(0), "w"))
	h.do(cluster.TaskSeen{Task: ref("job/a", "w"), Node: "n"}, cluster.TaskSeen{Task: ref("job/b", "w"), Node: "n"})
	h.do(cluster.Evict{Task: ref("job/a", "w"), Attempt: 1})
	h.do(cluster.TaskSeen{Task: ref("job/z", "w"), Node: "n"}) // any change of the node, so that devices are chosen again
	// Both devices are still in use: by a, which is releasing, and by b.
	err := h.Apply(cluster.Assign{Task: ref("job/c", "w"), Node: "n", Devices: whole("n", 1), Attempt: 1})
	if err == nil {
		t.Fatalf("c is %s on a device that is held; a holds %v, b holds %v", h.Task(ref("job/c", "w")).Status, h.Task(ref("job/a", "w")).Claims, h.Task(ref("job/b", "w")).Claims)
	}
}

// TestNegativeHoldings checks that negative holdings are rejected, in a fact and in a
// decision.
func TestNegativeHoldings(t *testing.T) {
	h := newCorner(t)
	h.do(putNode("n", 1), putJob("job/a", "w"), putJob("job/b", "w"), putJob("job/c", "w"))
	neg := []cluster.Holding{{Device: uuid("n", 0), Milli: -1000, Memory: -24 * gi}}
	if err := h.Apply(cluster.Assign{Task: ref("job/a", "w"), Node: "n", Devices: neg, Attempt: 1}); err == nil {
		t.Error("a decision with negative holdings was applied")
	}
	h.do(cluster.Assign{Task: ref("job/b", "w"), Node: "n", Devices: whole("n", 0), Attempt: 1})
	if err := h.Apply(cluster.Assign{Task: ref("job/c", "w"), Node: "n", Devices: whole("n", 0), Attempt: 1}); err == nil {
		t.Error("two decisions assigned the same device")
	}
	h2 := newCorner(t)
	h2.do(putNode("n", 1), putJob("job/a", "w"))
	if err := h2.Apply(cluster.TaskSeen{Task: ref("job/a", "w"), Node: "n", Devices: neg}); err == nil {
		t.Error("a malformed fact was applied")
	}
}

// TestClaimsDifferFromRequest checks that a decision is rejected if its devices are not
// what the task requests.
func TestClaimsDifferFromRequest(t *testing.T) {
	h := newCorner(t)
	h.do(putNode("n", 1), putJob("job/a", "w"), putJob("job/b", "w"), putJob("job/c", "w"))
	h.do(cluster.Assign{Task: ref("job/a", "w"), Node: "n", Devices: whole("n", 0), Attempt: 1})
	if err := h.Apply(cluster.Assign{Task: ref("job/b", "w"), Node: "n", Attempt: 1}); err == nil {
		t.Error("a task that requests a device was assigned without one")
	}
	if err := h.Apply(cluster.Assign{Task: ref("job/c", "w"), Node: "n", Devices: []cluster.Holding{{Device: uuid("n", 0)}}, Attempt: 1}); err == nil {
		t.Error("a task was assigned with no part of a device that another task holds whole")
	}
}

// TestEmptyDeviceName checks that a TaskSeen with a device without a name is rejected.
func TestEmptyDeviceName(t *testing.T) {
	h := newCorner(t)
	h.do(putNode("n", 1), putJob("job/a", "w"))
	if err := h.Apply(cluster.TaskSeen{Task: ref("job/a", "w"), Node: "n", Devices: []cluster.Holding{{Milli: 1000}}}); err != nil {
		return // rejected, as expected
	}
	if _, err := h.Snapshot().State(); err != nil {
		t.Fatal(err)
	}
}

// TestEmptyDevicesInJSON checks that a TaskSeen with an empty list of devices has the
// same effect after it was encoded as JSON, where the list is left out.
func TestEmptyDevicesInJSON(t *testing.T) {
	c := cluster.TaskSeen{Task: ref("job/a", "w"), Node: "n", Devices: []cluster.Holding{}}
	b, _ := cluster.Encode(c)
	back, err := cluster.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	h, g := newCorner(t), newCorner(t)
	for _, x := range []*corner{h, g} {
		x.do(putNode("n", 1), putJob("job/a", "w"))
	}
	h.do(c)
	g.do(back)
	if h.Digest() != g.Digest() {
		t.Errorf("the State differs after encoding as JSON: %s\n%s", b, cluster.Difference(h.State.Lines(), g.State.Lines()))
	}
}

// TestEmptyLists checks that empty and absent lists give the same digest, also after a
// restart.
func TestEmptyLists(t *testing.T) {
	h := newCorner(t)
	put := putJob("job/a", "w")
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
			t.Errorf("%s: the digest differs after encoding as JSON\n%s", what, cluster.Difference(h.State.Lines(), s.Lines()))
		}
	}
	check("topology")
	h = newCorner(t)
	n := putNode("n", 1)
	n.Node.SupportedIsolation.GPU = []cluster.GPUClass{}
	h.do(n)
	check("advertised")
	h = newCorner(t)
	s := shapeWithDevices(0)
	s.Need.Products = []string{}
	h.do(putJobOf("job/a", s, "w"))
	check("need")
	// The digest must not depend on which of two equal shapes was interned first.
	a, b := newCorner(t), newCorner(t)
	x, y := putJobOf("job/x", s, "w"), putJobOf("job/y", shapeWithDevices(0), "w")
	a.do(x, y)
	b.do(y, x)
	if a.Digest() != b.Digest() {
		t.Error("the digest depends on the order of facts about two jobs")
	}
}

// TestSessions checks a device on which facts report tasks of two sessions.
func TestSessions(t *testing.T) {
	h := newCorner(t)
	of := func(session string) *cluster.Shape {
		s := shapeWithDevices(1)
		s.Need.Share = 200
		s.Isolation = cluster.Isolation{GPU: cluster.GPUSessionExclusive, Session: session}
		return s
	}
	part := []cluster.Holding{{Device: uuid("n", 0), Milli: 200, Memory: gi}}
	h.do(putNode("n", 1), putJobOf("job/a", of("A"), "w"), putJobOf("job/b", of("B"), "w"), putJobOf("job/c", of("A"), "w"))
	h.do(cluster.TaskSeen{Task: ref("job/b", "w"), Node: "n", Devices: part}, cluster.TaskSeen{Task: ref("job/a", "w"), Node: "n", Devices: part})
	if err := h.Audit(); err != nil {
		t.Error(err)
	}
	h.do(cluster.TaskSeen{Task: ref("job/a", "w")}) // a has stopped, and only session B holds the device
	if err := h.Apply(cluster.Assign{Task: ref("job/c", "w"), Node: "n", Devices: part, Attempt: 1}); err == nil {
		t.Error("a task of session A was assigned to a device that session B holds")
	}
}

// TestBindBesideExclusive checks that a nominated task is not bound on a device that an
// exclusive task holds.
func TestBindBesideExclusive(t *testing.T) {
	h := newCorner(t)
	share := shapeWithDevices(1)
	share.Need.Share = 400
	alone := shapeWithDevices(1)
	alone.Isolation.GPU = cluster.GPUDeviceExclusive
	part := []cluster.Holding{{Device: uuid("n", 0), Milli: 400, Memory: 24 * gi * 4 / 10}}
	h.do(putNode("n", 1), putJob("job/v", "w"), putJobOf("job/p", share, "w"), putJobOf("job/f", alone, "w"))
	h.do(cluster.TaskSeen{Task: ref("job/v", "w"), Node: "n", Devices: whole("n", 0)})
	h.do(cluster.Evict{Task: ref("job/v", "w"), For: "job/p", Attempt: 1}, cluster.Nominate{Task: ref("job/p", "w"), Node: "n", Devices: part})
	h.do(cluster.TaskSeen{Task: ref("job/v", "w")})
	h.do(cluster.TaskSeen{Task: ref("job/f", "w"), Node: "n", Devices: part}) // bound by another scheduler
	if err := h.Apply(cluster.Assign{Task: ref("job/p", "w"), Node: "n", Devices: part, Attempt: 1}); err == nil {
		t.Error("a task was assigned to a device that an exclusive task holds")
	}
}

// TestNominateAgain checks that a nominated task that is nominated again, after its
// request has grown, does not overcommit the node.
func TestNominateAgain(t *testing.T) {
	h := newCorner(t)
	h.do(putNode("n", 0), putJobOf("job/a", shapeWithDevices(0), "w"), cluster.Nominate{Task: ref("job/a", "w"), Node: "n"})
	big := shapeWithDevices(0)
	big.Resources = cluster.Resources{{Name: cluster.CPU, Value: 1_000_000}, {Name: cluster.Memory, Value: int64(gi)}}
	h.do(putJobOf("job/a", big, "w"))
	if err := h.Apply(cluster.Nominate{Task: ref("job/a", "w"), Node: "n"}); err == nil && h.Node("n").Ledger(cluster.CPU).Free() < 0 {
		t.Error("a decision overcommitted the node")
	}
}

// TestUnlistedDevicesAreRemoved checks that devices that are not listed any more do not
// accumulate on the node.
func TestUnlistedDevicesAreRemoved(t *testing.T) {
	h := newCorner(t)
	h.do(putNode("n", 1), putJob("job/a", "w"))
	for i := range 2000 {
		h.do(cluster.TaskSeen{Task: ref("job/a", "w"), Node: "n", Devices: []cluster.Holding{{Device: fmt.Sprintf("MIG-%d", i), Milli: 1000}}}, cluster.TaskSeen{Task: ref("job/a", "w")})
	}
	h.do(putNode("n", 1))
	if got := len(h.Node("n").Devices); got > 10 {
		t.Errorf("the node has %d devices, and lists 1", got)
	}
}

// TestResourceNameChangedBack checks that the resource name of a device can be changed
// and changed back.
func TestResourceNameChangedBack(t *testing.T) {
	h, g := newCorner(t), newCorner(t)
	n := putNode("n", 1)
	n.Node.Devices[0].OwnSpec().Resource = "example.com/gpu"
	h.do(n, putNode("n", 1))
	g.do(putNode("n", 1))
	if h.Digest() != g.Digest() {
		t.Errorf("the last fact is not applied: the resource is %s", h.Node("n").Devices[0].Resource)
	}
}

// TestDuplicateResource checks that a shape with the same resource twice is rejected.
func TestDuplicateResource(t *testing.T) {
	h := newCorner(t)
	s := &cluster.Shape{Resources: cluster.Resources{{Name: cluster.CPU, Value: 1000}, {Name: cluster.CPU, Value: 500}, {Name: cluster.Memory, Value: 1}}}
	if h.Apply(putJobOf("job/a", s, "w")) != nil {
		return
	}
	h.do(putNode("n", 0), cluster.TaskSeen{Task: ref("job/a", "w"), Node: "n"})
	b, _ := json.Marshal(h.Snapshot())
	var sn cluster.Snapshot
	_ = json.Unmarshal(b, &sn)
	again, err := sn.State()
	if err != nil {
		t.Fatal(err)
	}
	if x, y := h.Node("n").Ledger(cluster.CPU).Used, again.Node("n").Ledger(cluster.CPU).Used; x != y || h.Digest() != again.Digest() {
		t.Errorf("%d is used, and %d after encoding as JSON; the digests are equal: %v", x, y, h.Digest() == again.Digest())
	}
}

// TestHugeHoldings checks that huge holdings do not overflow.
func TestHugeHoldings(t *testing.T) {
	h := newCorner(t)
	h.do(putNode("n", 1), putJob("job/a", "w"), putJob("job/b", "w"), putJob("job/c", "w"))
	const most = cluster.Bytes(1<<63 - 1)
	for _, j := range []string{"job/a", "job/b"} {
		if h.Apply(cluster.TaskSeen{Task: ref(j, "w"), Node: "n", Devices: []cluster.Holding{{Device: uuid("n", 0), Milli: 400, Memory: most}}}) != nil {
			return
		}
	}
	if err := h.Apply(cluster.Assign{Task: ref("job/c", "w"), Node: "n", Devices: []cluster.Holding{{Device: uuid("n", 0), Milli: 200, Memory: gi}}, Attempt: 1}); err == nil {
		t.Error("a task was assigned to a full device: its memory in use overflowed")
	}
}

// session runs a session at the time now, in seconds.
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

func newEngine(t *testing.T) *engine.Engine {
	e, err := engine.New(standard.Registry(), standard.Profile())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestSessionOnHeldDevices checks that a session assigns no task to a node if tasks that
// facts reported hold all its devices.
func TestSessionOnHeldDevices(t *testing.T) {
	h := newCorner(t)
	e := newEngine(t)
	h.do(putNode("n", 2), putJob("job/a", "w"), putJob("job/b", "w"), putJobOf("job/z", shapeWithDevices(0), "w"))
	h.do(cluster.TaskSeen{Task: ref("job/a", "w"), Node: "n"}, cluster.TaskSeen{Task: ref("job/b", "w"), Node: "n"}, cluster.TaskSeen{Task: ref("job/a", "w"), Node: "n", Releasing: true}, cluster.TaskSeen{Task: ref("job/z", "w"), Node: "n"})
	h.do(putJob("job/c", "w"))
	h.session(e, 1000)
	if task := h.Task(ref("job/c", "w")); task.Status == cluster.Assumed {
		t.Error("c is assigned, and a, which is releasing, and b hold both devices")
	}
}
