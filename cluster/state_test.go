package cluster_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

func names(nodes []*cluster.Node) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.Name)
	}
	return out
}

func TestAddAndRemoveNodes(t *testing.T) {
	s := enginetest.State(
		enginetest.Node("c").GPUs(4, "A100", "40Gi"),
		enginetest.Node("a").GPUs(4, "A100", "40Gi"),
		enginetest.Node("b").GPUs(8, "A100", "80Gi"),
		enginetest.Node("d"),
	)
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, names(s.Nodes())); diff != "" {
		t.Error(diff)
	}
	groups := func() map[string][]string {
		out := map[string][]string{}
		for _, g := range s.View().Groups() {
			out[g.Key.String()] = names(g.Nodes)
		}
		return out
	}
	if diff := cmp.Diff(map[string][]string{"A100 × 4": {"a", "c"}, "A100 × 8": {"b"}}, groups()); diff != "" {
		t.Error(diff)
	}
	slot := s.Node("c").Slot()
	if err := s.RemoveNode("c"); err != nil {
		t.Error(err)
	}
	if err := s.Apply(cluster.NodeGone{Name: "c"}); err != nil || s.Node("c") != nil {
		t.Errorf("removing a node twice: %v", err)
	}
	if err := s.AddNode(&cluster.Node{Name: "0"}); err != nil {
		t.Error(err)
	}
	if got := s.Node("0").Slot(); got != slot {
		t.Errorf("slot %d was not reused: %d", slot, got)
	}
	if diff := cmp.Diff([]string{"0", "a", "b", "d"}, byRank(s)); diff != "" {
		t.Error(diff)
	}
	if err := s.UpdateNode("b", func(n *cluster.Node) { n.Devices = n.Devices[:4] }); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string][]string{"A100 × 4": {"a", "b"}}, groups()); diff == "" {
		t.Error("devices of 80 and 40 GiB are one group")
	}
	if s.Node("b") == nil || s.Node("b").Group().DeviceMemory() != 320*gi {
		t.Error("the group of b is wrong")
	}
}

func TestKeyOrder(t *testing.T) {
	a := cluster.GroupKey{Product: "A", Memory: 10, Count: 4}
	for name, b := range map[string]cluster.GroupKey{
		"product": {Product: "B", Memory: 1, Count: 1}, "memory": {Product: "A", Memory: 11, Count: 1}, "count": {Product: "A", Memory: 10, Count: 5},
	} {
		if a.Compare(b) >= 0 || b.Compare(a) <= 0 {
			t.Errorf("%s does not order groups", name)
		}
	}
	shared := cluster.GroupKey{Product: "A10-SHARED", Count: 4, Strategy: "mps", Replicas: 4}
	if got := shared.String(); got != "A10-SHARED × 4 (mps, 4 replicas)" {
		t.Error(got)
	}
}

func TestGroupOfSlices(t *testing.T) {
	n := enginetest.Node("n").GPUs(1, "A100", "80Gi").Slices(2, "A100", "1g.10gb", "10Gi").Build()
	want := cluster.GroupKey{Product: "A100+A100-MIG-1g.10gb", Count: 3, Memory: 10 << 10, Resource: "nvidia.com/gpu+nvidia.com/mig-1g.10gb"}
	if diff := cmp.Diff(want, n.Group().Key); diff != "" {
		t.Error(diff)
	}
	if n.DeviceCapacity() != 1000 || n.Capacity("nvidia.com/gpu") != 1000 || n.Capacity("cpu") != 0 {
		t.Error("MIG slices count for nvidia.com/gpu")
	}
}

// TestRecentNodes compares the list of changes with a separate record of each node's version.
func TestRecentNodes(t *testing.T) {
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
				if err := s.RemoveNode(name); err != nil {
					rt.Fatal(err)
				}
				seen[n.Slot()] = s.Version()
			default:
				if err := s.UpdateNode(name, func(n *cluster.Node) { n.Unschedulable = !n.Unschedulable }); err != nil {
					rt.Fatal(err)
				}
				seen[n.Slot()] = s.Version()
			}
			if !rapid.Bool().Draw(rt, "look") {
				continue
			}
			got := map[int]bool{}
			last := s.Version() + 1
			s.View().Recent().Nodes(cursor, func(slot int) {
				if got[slot] || seen[slot] >= last {
					rt.Fatalf("slot %d was visited twice or out of order", slot)
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

func ids(tasks []*cluster.Task) []string {
	var out []string
	for _, t := range tasks {
		out = append(out, t.ID)
	}
	return out
}

func TestRemovedNodeFreesItsTasks(t *testing.T) {
	s := enginetest.State(
		enginetest.Node("a").CPU(8, "16Gi").GPUs(1, "A10", "24Gi"), enginetest.Node("b").CPU(8, "16Gi").GPUs(1, "A10", "24Gi"),
		enginetest.Job("gang").Gang(2).Devices(1).On("a", "b"),
	)
	if len(s.Pending()) != 0 {
		t.Error("a running job is pending")
	}
	if err := s.RemoveNode("a"); err != nil {
		t.Fatal(err)
	}
	j := s.Job("job/gang")
	if j.Placed() != 1 || len(s.Pending()) != 1 {
		t.Errorf("%d tasks placed, %d jobs pending", j.Placed(), len(s.Pending()))
	}
	s.Clear(j.Tasks()[1])
	if j.Chosen != -1 || !s.Node("b").Devices[0].Idle() {
		t.Error("the rest of the gang still holds room")
	}
}

func TestAddJobRefusesMalformedJobs(t *testing.T) {
	s := cluster.NewState()
	tests := map[string]*cluster.Job{
		"no shape":    {ID: "job/a", Alternatives: []cluster.Alternative{{Min: 1, Tasks: []*cluster.Task{{Name: "t"}}}}},
		"no tasks":    {ID: "job/b"},
		"the minimum": {ID: "job/c", Alternatives: []cluster.Alternative{{Min: 2, Tasks: []*cluster.Task{{Name: "t", Shape: &cluster.Shape{}}}}}},
	}
	for want, j := range tests {
		if err := s.AddJob(j); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	ok := enginetest.Job("d").Build()
	if err := s.AddJob(ok); err != nil {
		t.Error(err)
	}
	known := s.Job("job/d")
	if err := s.AddJob(enginetest.Job("d").Build()); err != nil || s.Job("job/d") != known {
		t.Errorf("adding a job twice: %v", err)
	}
	if (&cluster.Job{}).Tasks() != nil {
		t.Error("a job without alternatives has tasks")
	}
}

func TestNewTermsKeepUse(t *testing.T) {
	s := enginetest.State(enginetest.Node("n").CPU(8, "16Gi"), enginetest.Queue("q"), enginetest.Job("j").Queue("q").CPU(1000, "1Gi").On("n"))
	if err := s.SetQueue(&cluster.Queue{Name: "q", Limits: cluster.Resources{{Name: "cpu", Value: 1}}}); err != nil {
		t.Fatal(err)
	}
	q := s.Queue("q")
	if diff := cmp.Diff(cluster.Resources{{Name: "cpu", Value: 1000}, {Name: "memory", Value: 1 << 30}}, q.Used); diff != "" {
		t.Error(diff)
	}
	if q.Tier != cluster.TierStandard || q.Weight != 1 {
		t.Errorf("defaults: %+v", q)
	}
	if len(s.Queues()) != 2 {
		t.Error("the default queue was removed")
	}
}

// TestCloneIsIndependent changes a copy in many ways. The original must stay the same.
func TestCloneIsIndependent(t *testing.T) {
	s := enginetest.State(
		enginetest.Node("a").CPU(8, "16Gi").GPUs(2, "A10", "24Gi").Label("rack", "r1"),
		enginetest.Node("b").CPU(8, "16Gi").GPUs(2, "A10", "24Gi"),
		enginetest.Job("run").Gang(2).CPU(1000, "1Gi").Devices(1).On("a", "b"), enginetest.Job("wait").Devices(2),
	)
	if err := s.Evict(task(s, "run", 0)); err != nil {
		t.Fatal(err)
	}
	claims, _ := s.Node("a").Choose(task(s, "wait", 0).Shape, nil)
	if err := s.Place(task(s, "wait", 0), s.Node("a"), claims, 0); err != nil {
		t.Fatal(err)
	}
	c := s.Clone()
	if c.Version() != s.Version() || c.Node("a") == s.Node("a") || task(c, "run", 1).Node != c.Node("b") || c.View().Nominated()[0] != task(c, "wait", 0) {
		t.Fatal("the copy differs from the original, or shares objects with it")
	}
	if c.Node("a").Group() == s.Node("a").Group() || c.Node("a").Group().Nodes[1] != c.Node("b") {
		t.Error("groups are shared")
	}
	version := s.Version()
	c.Node("a").Labels["rack"] = "r2"
	if err := c.RemoveNode("b"); err != nil {
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
		t.Error("the tasks or the use of the original changed")
	}
}
