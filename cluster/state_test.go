package cluster_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/fixture"
)

func names(nodes []*cluster.Node) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.Name)
	}
	return out
}

func TestNodesComeAndGo(t *testing.T) {
	s := fixture.State(
		fixture.Node("c").GPUs(4, "A100", "40Gi"),
		fixture.Node("a").GPUs(4, "A100", "40Gi"),
		fixture.Node("b").GPUs(8, "A100", "80Gi"),
		fixture.Node("d"),
	)
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, names(s.Nodes())); diff != "" {
		t.Error(diff)
	}
	groups := func() map[string][]string {
		out := map[string][]string{}
		for _, g := range s.Groups() {
			out[g.Key.String()] = names(g.Nodes)
		}
		return out
	}
	if diff := cmp.Diff(map[string][]string{"A100 × 4": {"a", "c"}, "A100 × 8": {"b"}}, groups()); diff != "" {
		t.Error(diff)
	}
	if err := s.AddNode(&cluster.Node{Name: "a"}); err == nil {
		t.Error("a second node of the same name was taken")
	}
	slot := s.Node("c").Slot()
	if _, err := s.RemoveNode("c"); err != nil {
		t.Error(err)
	}
	if _, err := s.RemoveNode("c"); err == nil {
		t.Error("a node was removed twice")
	}
	if err := s.AddNode(&cluster.Node{Name: "0"}); err != nil {
		t.Error(err)
	}
	if got := s.Node("0").Slot(); got != slot {
		t.Errorf("slot %d was not reused: %d", slot, got)
	}
	if s.Rank(s.Node("0").Slot()) != 0 || s.Rank(s.Node("d").Slot()) != 3 {
		t.Error("ranks do not follow names")
	}
	if err := s.UpdateNode("b", func(n *cluster.Node) { n.Devices = n.Devices[:4]; n.Name = "other" }); err != nil {
		t.Error(err)
	}
	if err := s.UpdateNode("nobody", func(*cluster.Node) {}); err == nil {
		t.Error("an absent node was updated")
	}
	if diff := cmp.Diff(map[string][]string{"A100 × 4": {"a", "b"}}, groups()); diff == "" {
		t.Error("devices of 80 and 40 GiB are one group")
	}
	if s.Node("b") == nil || s.Node("b").Group().DeviceMemory() != 320*gi {
		t.Error("the group of b is wrong")
	}
}

func TestKeyOrder(t *testing.T) {
	a := cluster.Key{Product: "A", Memory: 10, Count: 4}
	for name, b := range map[string]cluster.Key{
		"product": {Product: "B", Memory: 1, Count: 1}, "memory": {Product: "A", Memory: 11, Count: 1}, "count": {Product: "A", Memory: 10, Count: 5},
	} {
		if a.Compare(b) >= 0 || b.Compare(a) <= 0 {
			t.Errorf("%s does not order groups", name)
		}
	}
	shared := cluster.Key{Product: "A10-SHARED", Count: 4, Strategy: "mps", Replicas: 4}
	if got := shared.String(); got != "A10-SHARED × 4 (mps, 4 replicas)" {
		t.Error(got)
	}
}

func TestGroupOfSlices(t *testing.T) {
	n := fixture.Node("n").GPUs(1, "A100", "80Gi").Slices(2, "A100", "1g.10gb", "10Gi").Build()
	want := cluster.Key{Product: "A100+A100-MIG-1g.10gb", Count: 3, Memory: 10 << 10, Resource: "nvidia.com/gpu+nvidia.com/mig-1g.10gb"}
	if diff := cmp.Diff(want, n.Group().Key); diff != "" {
		t.Error(diff)
	}
	if n.DeviceCapacity() != 1000 || n.Capacity("nvidia.com/gpu") != 1000 || n.Capacity("cpu") != 0 {
		t.Error("slices count as devices")
	}
}

// TestChangedFindsWhatChanged compares the list of changes with a plain note of each node's version.
func TestChangedFindsWhatChanged(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := cluster.NewState()
		seen := map[int]uint64{}
		cursor := uint64(0)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			name := string(rune('a' + rapid.IntRange(0, 7).Draw(rt, "node")))
			switch n := s.Node(name); {
			case n == nil:
				if err := s.AddNode(&cluster.Node{Name: name}); err != nil {
					rt.Fatal(err)
				}
				seen[s.Node(name).Slot()] = s.Version()
			case rapid.Bool().Draw(rt, "remove"):
				if _, err := s.RemoveNode(name); err != nil {
					rt.Fatal(err)
				}
				seen[n.Slot()] = s.Version()
			default:
				if err := s.UpdateNode(name, func(*cluster.Node) {}); err != nil {
					rt.Fatal(err)
				}
				seen[n.Slot()] = s.Version()
			}
			if !rapid.Bool().Draw(rt, "look") {
				continue
			}
			got := map[int]bool{}
			last := s.Version() + 1
			s.Changed(cursor, func(slot int) {
				if got[slot] || seen[slot] >= last {
					rt.Fatalf("slot %d came twice or out of order", slot)
				}
				got[slot], last = true, seen[slot]
			})
			for slot, version := range seen {
				if got[slot] != (version > cursor) {
					rt.Fatalf("slot %d of version %d since %d: visited %v", slot, version, cursor, got[slot])
				}
			}
			cursor = s.Version()
		}
	})
}

func task(s *cluster.State, job string, i int) *cluster.Task { return s.Job("job/" + job).Tasks()[i] }

func TestPlaceEvictNominateBind(t *testing.T) {
	s := fixture.State(
		fixture.Node("n").CPU(8, "64Gi").GPUs(1, "A100", "80Gi"),
		fixture.Job("old").CPU(6000, "8Gi").Devices(1).On("n"),
		fixture.Job("new").CPU(4000, "8Gi").Devices(1),
		fixture.Job("small").CPU(1000, "1Gi"),
	)
	n, old, new := s.Node("n"), task(s, "old", 0), task(s, "new", 0)
	claims := []cluster.Claim{{Device: 0, Milli: 1000, Memory: 80 * gi}}
	if err := s.Place(new, n, claims); err == nil || !strings.Contains(err.Error(), "not enough cpu") {
		t.Fatalf("a full node took a task: %v", err)
	}
	version := n.Version()
	if err := s.Evict(old); err != nil {
		t.Fatal(err)
	}
	if n.Version() <= version {
		t.Error("the version did not grow")
	}
	if err := s.Evict(old); err == nil {
		t.Error("a task was evicted twice")
	}
	if err := s.Place(new, n, claims); err != nil {
		t.Fatal(err)
	}
	if new.Status != cluster.Nominated {
		t.Fatalf("placed on releasing room it is %s", new.Status)
	}
	if err := s.Place(new, n, claims); err == nil {
		t.Error("a task was placed twice")
	}
	if err := s.Unevict(new); err == nil {
		t.Error("a task was given back that was never evicted")
	}
	small := task(s, "small", 0)
	if err := s.Place(small, n, nil); err != nil {
		t.Fatal(err)
	}
	if small.Status != cluster.Bound {
		t.Errorf("there was room at once, yet it is %s", small.Status)
	}
	if s.Bind(new) {
		t.Error("it was bound while the old one is still there")
	}
	if diff := cmp.Diff([]string{"job/new/worker-0"}, ids(s.Nominated())); diff != "" {
		t.Error(diff)
	}
	s.Clear(old)
	if !s.Bind(new) || new.Status != cluster.Bound || len(s.Nominated()) != 0 {
		t.Error("it was not bound although the room is free")
	}
	s.Unbind(new)
	if new.Status != cluster.Nominated || len(s.Nominated()) != 1 {
		t.Error("it could not be unbound")
	}
	if err := s.RemoveJob("job/new"); err != nil {
		t.Error(err)
	}
	if err := s.RemoveJob("job/new"); err == nil {
		t.Error("a job was removed twice")
	}
	want := []cluster.Ledger{{Name: "cpu", Capacity: 8000, Used: 1000}, {Name: "memory", Capacity: 64 << 30, Used: 1 << 30}}
	if diff := cmp.Diff(want, n.Resources); diff != "" {
		t.Error(diff)
	}
	if !n.Devices[0].Idle() {
		t.Errorf("the device is held: %+v", n.Devices[0].Use)
	}
}

func ids(tasks []*cluster.Task) []string {
	var out []string
	for _, t := range tasks {
		out = append(out, t.ID)
	}
	return out
}

// TestNominationOnSharedDevices: shares that fit beside what is leaving are bound at once.
func TestNominationOnSharedDevices(t *testing.T) {
	tests := map[string]struct {
		share     cluster.Milli
		isolation cluster.Isolation
		want      cluster.Status
	}{
		"fits beside it":      {500, cluster.Isolation{}, cluster.Bound},
		"needs its room":      {501, cluster.Isolation{}, cluster.Nominated},
		"wants to be alone":   {100, cluster.Isolation{GPU: cluster.GPUDeviceExclusive}, cluster.Nominated},
		"counts those beside": {300, cluster.Isolation{}, cluster.Bound},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := fixture.State(
				fixture.Node("n").CPU(8, "64Gi").GPUs(1, "A100", "80Gi"),
				fixture.Job("old").Share(1, 500).On("n"),
				fixture.Job("new").Share(1, tt.share).Isolate(tt.isolation),
			)
			if err := s.Evict(task(s, "old", 0)); err != nil {
				t.Fatal(err)
			}
			new := task(s, "new", 0)
			claims, _ := s.Node("n").Choose(new.Shape, nil)
			if err := s.Place(new, s.Node("n"), claims); err != nil {
				t.Fatal(err)
			}
			if new.Status != tt.want {
				t.Errorf("it is %s", new.Status)
			}
		})
	}
}

func TestPlaceRefusesWhatIsNotThere(t *testing.T) {
	strict := cluster.Isolation{CPU: cluster.CPUStrictIsolated}
	tests := map[string]struct {
		job    *fixture.JobBuilder
		claims []cluster.Claim
		want   string
	}{
		"no such resource":  {fixture.Job("j").Resource("rdma", 1), nil, "not enough rdma"},
		"no such device":    {fixture.Job("j").Devices(1), []cluster.Claim{{Device: 7}}, "device 7 is not there"},
		"one device twice":  {fixture.Job("j").Devices(2), []cluster.Claim{{Device: 0}, {Device: 0}}, "claimed twice"},
		"a held device":     {fixture.Job("j").Devices(1), []cluster.Claim{{Device: 0, Milli: 501}}, "held by others"},
		"a lost device":     {fixture.Job("j").Devices(1), []cluster.Claim{{Device: 1, Milli: 1}}, "device 1 is lost"},
		"no isolable cores": {fixture.Job("j").CPU(3000, "1Gi").Isolate(strict), nil, "isolable"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := fixture.State(
				fixture.Node("n").CPU(8, "64Gi").GPUs(2, "A100", "80Gi").Advertise(cluster.Advertised{IsolableCores: 2}).
					With(func(n *cluster.Node) { n.Devices[1].Lost = true }),
				fixture.Job("x").Share(1, 500).On("n"), tt.job,
			)
			err := s.Place(task(s, "j", 0), s.Node("n"), tt.claims)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if task(s, "j", 0).Status != cluster.Pending {
				t.Error("it was placed all the same")
			}
		})
	}
}

func TestRestoreBooksWhatRuns(t *testing.T) {
	s := fixture.State(
		fixture.Node("n").CPU(2, "4Gi").GPUs(1, "A10", "24Gi"),
		fixture.Job("big").CPU(8000, "1Gi").Devices(1), fixture.Job("twin").Devices(1),
	)
	n := s.Node("n")
	claims := []cluster.Claim{{Device: 0, Milli: 1000, Memory: 24 * gi}}
	if err := s.Restore(task(s, "big", 0), n, claims); err != nil {
		t.Fatal(err)
	}
	if free := n.Ledger(cluster.CPU).Free(); free != -6000 {
		t.Errorf("%d cores are free", free)
	}
	if err := s.Restore(task(s, "big", 0), n, claims); err == nil {
		t.Error("a task was restored twice")
	}
	if err := s.Restore(task(s, "twin", 0), n, claims); err == nil {
		t.Error("a device was booked twice")
	}
}

func TestSpilledLayersTakeMemory(t *testing.T) {
	layers := func(s *cluster.Shape) {
		s.Need = cluster.Need{Layers: &cluster.Layers{Total: 30, Bytes: gi, Fixed: 0, Least: 1, Spill: true}}
	}
	s := fixture.State(fixture.Node("n").CPU(8, "16Gi").GPUs(1, "A10", "24Gi"), fixture.Job("j").Shape(layers), fixture.Job("k").Shape(layers))
	n, j := s.Node("n"), task(s, "j", 0)
	claims, ok := n.Choose(j.Shape, nil)
	if !ok {
		t.Fatal("no room")
	}
	if err := s.Place(j, n, claims); err != nil {
		t.Fatal(err)
	}
	if used := n.Ledger(cluster.Memory).Used; used != 6<<30 {
		t.Errorf("%d bytes of memory are in use", used)
	}
	if used := s.Queue("default").Used.Of("memory"); used != 6<<30 {
		t.Errorf("the queue was charged %d bytes", used)
	}
	s.Clear(j)
	if used := n.Ledger(cluster.Memory).Used; used != 0 || len(s.Queue("default").Used) != 0 {
		t.Errorf("%d bytes of memory are still in use", used)
	}
}

func TestNodeLossFreesItsTasks(t *testing.T) {
	s := fixture.State(
		fixture.Node("a").CPU(8, "16Gi").GPUs(1, "A10", "24Gi"), fixture.Node("b").CPU(8, "16Gi").GPUs(1, "A10", "24Gi"),
		fixture.Job("gang").Gang(2).Devices(1).On("a", "b"),
	)
	if len(s.Pending()) != 0 {
		t.Error("a running job is pending")
	}
	lost, err := s.RemoveNode("a")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"job/gang/worker-0"}, ids(lost)); diff != "" {
		t.Error(diff)
	}
	j := s.Job("job/gang")
	if j.Placed() != 1 || len(s.Pending()) != 1 {
		t.Errorf("%d tasks placed, %d jobs pending", j.Placed(), len(s.Pending()))
	}
	s.Restart(j)
	if j.Placed() != 0 || j.Chosen != -1 || !s.Node("b").Devices[0].Idle() {
		t.Error("the rest of the gang still holds room")
	}
}

func TestAddJobRefusesNonsense(t *testing.T) {
	s := cluster.NewState()
	tests := map[string]*cluster.Job{
		"no queue":  {ID: "job/a", Queue: "nobody", Alternatives: []cluster.Alternative{{Min: 1, Tasks: []*cluster.Task{{Shape: &cluster.Shape{}}}}}},
		"no tasks":  {ID: "job/b"},
		"a minimum": {ID: "job/c", Alternatives: []cluster.Alternative{{Min: 2, Tasks: []*cluster.Task{{Shape: &cluster.Shape{}}}}}},
	}
	for want, j := range tests {
		if err := s.AddJob(j); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	ok := fixture.Job("d").Build()
	if err := s.AddJob(ok); err != nil {
		t.Error(err)
	}
	if err := s.AddJob(fixture.Job("d").Build()); err == nil {
		t.Error("a job was added twice")
	}
	if (&cluster.Job{}).Tasks() != nil {
		t.Error("a job without alternatives has tasks")
	}
}

func TestQueueKeepsWhatItUses(t *testing.T) {
	s := fixture.State(fixture.Node("n").CPU(8, "16Gi"), fixture.Queue("q"), fixture.Job("j").Queue("q").CPU(1000, "1Gi").On("n"))
	s.SetQueue(&cluster.Queue{Name: "q", Limits: cluster.Resources{{Name: "cpu", Value: 1}}})
	q := s.Queue("q")
	if diff := cmp.Diff(cluster.Resources{{Name: "cpu", Value: 1000}, {Name: "memory", Value: 1 << 30}}, q.Used); diff != "" {
		t.Error(diff)
	}
	if q.Tier != cluster.TierStandard || q.Weight != 1 {
		t.Errorf("defaults: %+v", q)
	}
	if len(s.Queues()) != 2 {
		t.Error("the default queue is gone")
	}
}

// TestCloneIsApart changes a copy in every way and finds the original as it was.
func TestCloneIsApart(t *testing.T) {
	s := fixture.State(
		fixture.Node("a").CPU(8, "16Gi").GPUs(2, "A10", "24Gi").Label("rack", "r1"),
		fixture.Node("b").CPU(8, "16Gi").GPUs(2, "A10", "24Gi"),
		fixture.Job("run").Gang(2).CPU(1000, "1Gi").Devices(1).On("a", "b"), fixture.Job("wait").Devices(2),
	)
	if err := s.Evict(task(s, "run", 0)); err != nil {
		t.Fatal(err)
	}
	claims, _ := s.Node("a").Choose(task(s, "wait", 0).Shape, nil)
	if err := s.Place(task(s, "wait", 0), s.Node("a"), claims); err != nil {
		t.Fatal(err)
	}
	c := s.Clone()
	if c.Version() != s.Version() || c.Node("a") == s.Node("a") || task(c, "run", 1).Node != c.Node("b") || c.Nominated()[0] != task(c, "wait", 0) {
		t.Fatal("the copy is no copy")
	}
	if c.Node("a").Group() == s.Node("a").Group() || c.Node("a").Group().Nodes[1] != c.Node("b") {
		t.Error("groups are shared")
	}
	version := s.Version()
	c.Node("a").Labels["rack"] = "r2"
	if _, err := c.RemoveNode("b"); err != nil {
		t.Fatal(err)
	}
	c.Clear(task(c, "run", 0))
	if err := c.RemoveJob("job/wait"); err != nil {
		t.Fatal(err)
	}
	if s.Version() != version || s.Node("b") == nil || s.Node("a").Labels["rack"] != "r1" || task(s, "run", 0).Status != cluster.Releasing {
		t.Error("the original changed")
	}
	if len(s.Node("a").Tasks) != 2 || s.Queue("default").Used.Of(cluster.CPU) != 1000 {
		t.Error("the original's books changed")
	}
}

// TestUpdateNodeBooksAnew: whatever changes about a node, its books say what its tasks hold.
func TestUpdateNodeBooksAnew(t *testing.T) {
	s := fixture.State(
		fixture.Node("n").CPU(8, "16Gi").GPUs(3, "A10", "24Gi"),
		fixture.Job("first").CPU(1000, "1Gi").Devices(1).On("n"), fixture.Job("last").Resource("rdma", 1).Devices(2).On("n"),
	)
	n, q := s.Node("n"), s.Queue("default")
	// Another name for the devices, a ledger that was not there, and a fresh list of both.
	err := s.UpdateNode("n", func(n *cluster.Node) {
		n.Resources = []cluster.Ledger{{Name: "rdma", Capacity: 2}, {Name: "cpu", Capacity: 4000}, {Name: "memory", Capacity: 8 << 30, Used: 77}}
		n.DeviceResource = "nvidia.com/gpu.shared"
		for i := range n.Devices {
			n.Devices[i].Resource = ""
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []cluster.Ledger{{Name: "cpu", Capacity: 4000, Used: 1000}, {Name: "memory", Capacity: 8 << 30, Used: 1 << 30}, {Name: "rdma", Capacity: 2, Used: 1}}
	if diff := cmp.Diff(want, n.Resources); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(cluster.Resources{{Name: "cpu", Value: 1000}, {Name: "memory", Value: 1 << 30}, {Name: "nvidia.com/gpu.shared", Value: 3000}, {Name: "rdma", Value: 1}}, q.Used); diff != "" {
		t.Error(diff)
	}
	// Two devices are gone: who held one of them is pending again.
	if err := s.UpdateNode("n", func(n *cluster.Node) { n.Devices = n.Devices[:1] }); err != nil {
		t.Fatal(err)
	}
	if task(s, "last", 0).Status != cluster.Pending || task(s, "first", 0).Status != cluster.Bound || n.DeviceUsed() != 1000 {
		t.Errorf("last is %s, first %s, %d in use", task(s, "last", 0).Status, task(s, "first", 0).Status, n.DeviceUsed())
	}
	for _, j := range []string{"job/first", "job/last"} {
		if err := s.RemoveJob(j); err != nil {
			t.Error(err)
		}
	}
	if len(q.Used) != 0 || n.DeviceUsed() != 0 {
		t.Errorf("something is left: %v, %d", q.Used, n.DeviceUsed())
	}
}

// TestLeavingTasksKeepTheirIsolation: what was promised to a task holds until it has left.
func TestLeavingTasksKeepTheirIsolation(t *testing.T) {
	session := func(name string) cluster.Isolation {
		return cluster.Isolation{GPU: cluster.GPUSessionExclusive, Session: name}
	}
	strict := cluster.Isolation{CPU: cluster.CPUStrictIsolated}
	tests := map[string]struct {
		old, new *fixture.JobBuilder
		want     cluster.Status
	}{
		"shared beside a leaving session":  {fixture.Job("old").Share(1, 300).Isolate(session("s1")), fixture.Job("new").Share(1, 300), cluster.Nominated},
		"another session":                  {fixture.Job("old").Share(1, 300).Isolate(session("s1")), fixture.Job("new").Share(1, 300).Isolate(session("s2")), cluster.Nominated},
		"the same session":                 {fixture.Job("old").Share(1, 300).Isolate(session("s1")), fixture.Job("new").Share(1, 300).Isolate(session("s1")), cluster.Bound},
		"a session beside a leaving share": {fixture.Job("old").Share(1, 300), fixture.Job("new").Share(1, 300).Isolate(session("s1")), cluster.Nominated},
		"isolable cores":                   {fixture.Job("old").CPU(3000, "1Gi").Isolate(strict), fixture.Job("new").CPU(2000, "1Gi").Isolate(strict), cluster.Nominated},
		"other isolable cores":             {fixture.Job("old").CPU(2000, "1Gi").Isolate(strict), fixture.Job("new").CPU(2000, "1Gi").Isolate(strict), cluster.Bound},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := fixture.State(fixture.Node("n").CPU(64, "64Gi").GPUs(1, "A", "80Gi").Advertise(cluster.Advertised{IsolableCores: 4}), tt.old.On("n"), tt.new)
			if err := s.Evict(task(s, "old", 0)); err != nil {
				t.Fatal(err)
			}
			fresh := task(s, "new", 0)
			claims, _ := s.Node("n").Choose(fresh.Shape, nil)
			if err := s.Place(fresh, s.Node("n"), claims); err != nil {
				t.Fatal(err)
			}
			if fresh.Status != tt.want {
				t.Errorf("it is %s", fresh.Status)
			}
		})
	}
}
