package cluster_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

// A counted task that leaves and one that stays do not get the same device.
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

// Negative holdings are rejected, in a fact and in a decision.
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

// A decision is rejected whose claims are not what the shape requests.
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

// A device without a name in TaskSeen is rejected.
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

// "Holds no devices" and "devices are not known" stay apart in JSON.
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
		t.Errorf("another State after JSON: %s\n%s", b, cluster.Difference(h.State.Lines(), g.State.Lines()))
	}
}

// Empty and absent lists have the same digest, also after a restart.
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
			t.Errorf("%s: another digest after JSON\n%s", what, cluster.Difference(h.State.Lines(), s.Lines()))
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

// Facts can bring two sessions together on one device.
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

// A reservation is not bound beside a task that tolerates no other.
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

// A task that is nominated again is booked by a shape that fits.
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

// Devices that are no longer listed do not pile up on the node.
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

// A device can be requested under another name and under the first one again.
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

// Shapes that name a resource twice are rejected.
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

// Huge holdings do not wrap around.
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

// The engine starts no task on a node whose devices are all held by facts.
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
