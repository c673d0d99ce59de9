package cluster_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

func TestPlaceEvictNominateBind(t *testing.T) {
	s := enginetest.State(
		enginetest.Node("n").CPU(8, "64Gi").GPUs(1, "A100", "80Gi"),
		enginetest.Job("old").CPU(6000, "8Gi").Devices(1).On("n"),
		enginetest.Job("new").CPU(4000, "8Gi").Devices(1),
		enginetest.Job("small").CPU(1000, "1Gi"),
	)
	n, old, new := s.Node("n"), task(s, "old", 0), task(s, "new", 0)
	claims := []cluster.Claim{{Device: 0, Milli: 1000, Memory: 80 * gi}}
	if err := s.Place(new, n, claims, 0); err == nil || !strings.Contains(err.Error(), "not enough cpu") {
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
	if err := s.Place(new, n, claims, 0); err != nil {
		t.Fatal(err)
	}
	if new.Status != cluster.Nominated {
		t.Fatalf("a task that is placed in releasing room is %s", new.Status)
	}
	if err := s.Place(new, n, claims, 0); err == nil {
		t.Error("a task was placed twice")
	}
	small := task(s, "small", 0)
	if err := s.Place(small, n, nil, 0); err != nil {
		t.Fatal(err)
	}
	if small.Status != cluster.Assumed {
		t.Errorf("a task that is placed in free room is %s", small.Status)
	}
	if s.Bind(new, 0) {
		t.Error("the task was bound while the old one is still releasing")
	}
	if diff := cmp.Diff([]string{"job/new/worker-0"}, ids(s.View().Nominated())); diff != "" {
		t.Error(diff)
	}
	s.Clear(old)
	if !s.Bind(new, 0) || new.Status != cluster.Assumed || len(s.View().Nominated()) != 0 {
		t.Error("the task was not bound although the room is free")
	}
	s.Nominate(new, 0)
	if new.Status != cluster.Nominated || len(s.View().Nominated()) != 1 {
		t.Error("Hold did not make the task Nominated")
	}
	if err := s.RemoveJob("job/new"); err != nil {
		t.Error(err)
	}
	if err := s.RemoveJob("job/new"); err != nil || s.Job("job/new") != nil {
		t.Errorf("removing a job twice: %v", err)
	}
	want := []cluster.Ledger{{Name: "cpu", Capacity: 8000, Used: 1000}, {Name: "memory", Capacity: 64 << 30, Used: 1 << 30}}
	if diff := cmp.Diff(want, n.Resources); diff != "" {
		t.Error(diff)
	}
	if !n.Devices[0].Idle() {
		t.Errorf("the device is held: %+v", n.Devices[0].Use)
	}
}

// TestNominationOnSharedDevices: a share that fits next to a releasing task is assigned at
// once.
func TestNominationOnSharedDevices(t *testing.T) {
	tests := map[string]struct {
		share     cluster.Milli
		isolation cluster.Isolation
		want      cluster.Status
	}{
		"fits next to it": {500, cluster.Isolation{}, cluster.Assumed},
		"needs its room":  {501, cluster.Isolation{}, cluster.Nominated},
		"is exclusive":    {100, cluster.Isolation{GPU: cluster.GPUDeviceExclusive}, cluster.Nominated},
		"needs less":      {300, cluster.Isolation{}, cluster.Assumed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := enginetest.State(
				enginetest.Node("n").CPU(8, "64Gi").GPUs(1, "A100", "80Gi"),
				enginetest.Job("old").Share(1, 500).On("n"),
				enginetest.Job("new").Share(1, tt.share).Isolate(tt.isolation),
			)
			if err := s.Evict(task(s, "old", 0)); err != nil {
				t.Fatal(err)
			}
			new := task(s, "new", 0)
			claims, _ := s.Node("n").Choose(new.Shape, nil)
			if err := s.Place(new, s.Node("n"), claims, 0); err != nil {
				t.Fatal(err)
			}
			if new.Status != tt.want {
				t.Errorf("it is %s", new.Status)
			}
		})
	}
}

func TestPlaceRefusesMissingRoom(t *testing.T) {
	strict := cluster.Isolation{CPU: cluster.CPUStrictIsolated}
	tests := map[string]struct {
		job    *enginetest.JobBuilder
		claims []cluster.Claim
		want   string
	}{
		"no such resource":  {enginetest.Job("j").Resource("rdma", 1), nil, "not enough rdma"},
		"no such device":    {enginetest.Job("j").Devices(1), []cluster.Claim{{Device: 7}}, "device 7 does not exist"},
		"one device twice":  {enginetest.Job("j").Devices(2), []cluster.Claim{{Device: 0}, {Device: 0}}, "claimed twice"},
		"a held device":     {enginetest.Job("j").Devices(1), []cluster.Claim{{Device: 0, Milli: 501}}, "held by other tasks"},
		"a lost device":     {enginetest.Job("j").Devices(1), []cluster.Claim{{Device: 1, Milli: 1}}, "device 1 is lost"},
		"no isolable cores": {enginetest.Job("j").CPU(3000, "1Gi").Isolate(strict), nil, "isolable"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := enginetest.State(
				enginetest.Node("n").CPU(8, "64Gi").GPUs(2, "A100", "80Gi").SupportedIsolation(cluster.SupportedIsolation{IsolableCores: 2}).
					With(func(n *cluster.Node) { n.Devices[1].Lost = true }),
				enginetest.Job("x").Share(1, 500).On("n"), tt.job,
			)
			err := s.Place(task(s, "j", 0), s.Node("n"), tt.claims, 0)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if task(s, "j", 0).Status != cluster.Pending {
				t.Error("the task was placed despite the error")
			}
		})
	}
}

func TestRestoreBooksRunningTasks(t *testing.T) {
	s := enginetest.State(
		enginetest.Node("n").CPU(2, "4Gi").GPUs(1, "A10", "24Gi"),
		enginetest.Job("big").CPU(8000, "1Gi").Devices(1), enginetest.Job("twin").Devices(1),
	)
	n := s.Node("n")
	claims := []cluster.Claim{{Device: 0, Milli: 1000, Memory: 24 * gi}}
	if err := s.Restore(task(s, "big", 0), n, claims, 0); err != nil {
		t.Fatal(err)
	}
	if free := n.Ledger(cluster.CPU).Free(); free != -6000 {
		t.Errorf("%d cores are free", free)
	}
	if err := s.Restore(task(s, "big", 0), n, claims, 0); err == nil {
		t.Error("a task was restored twice")
	}
	if err := s.Restore(task(s, "twin", 0), n, claims, 0); err == nil {
		t.Error("a device was booked twice")
	}
	if err := s.Evict(task(s, "big", 0)); err != nil {
		t.Fatal(err)
	}
	if err := s.Restore(task(s, "twin", 0), n, claims, 0); err == nil {
		t.Error("a task was restored on a device that a releasing task still holds")
	}
}

func TestSpilledLayersTakeMemory(t *testing.T) {
	layers := func(s *cluster.Shape) {
		s.Need = cluster.Need{Layers: &cluster.Layers{Total: 30, Bytes: gi, Fixed: 0, Least: 1, Spill: true}}
	}
	s := enginetest.State(enginetest.Node("n").CPU(8, "16Gi").GPUs(1, "A10", "24Gi"), enginetest.Job("j").Shape(layers), enginetest.Job("k").Shape(layers))
	n, j := s.Node("n"), task(s, "j", 0)
	claims, ok := n.Choose(j.Shape, nil)
	if !ok {
		t.Fatal("no room")
	}
	if err := s.Place(j, n, claims, 0); err != nil {
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

// TestUpdateNodeBooksAgain: whatever changes about a node, its ledgers show what its tasks
// hold.
func TestUpdateNodeBooksAgain(t *testing.T) {
	s := enginetest.State(
		enginetest.Node("n").CPU(8, "16Gi").GPUs(3, "A10", "24Gi"),
		enginetest.Job("first").CPU(1000, "1Gi").Devices(1).On("n"), enginetest.Job("last").Resource("rdma", 1).Devices(2).On("n"),
	)
	n, q := s.Node("n"), s.Queue("default")
	// Another name for the devices, a new ledger, and new lists of both.
	err := s.UpdateNode("n", func(n *cluster.Node) {
		n.Resources = []cluster.Ledger{{Name: "rdma", Capacity: 2}, {Name: "cpu", Capacity: 4000}, {Name: "memory", Capacity: 8 << 30, Used: 77}}
		n.DeviceResource = "nvidia.com/gpu.shared"
		for i := range n.Devices {
			n.Devices[i].OwnSpec().Resource = ""
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
	// Two devices are not listed any more. The task that holds them keeps them as lost
	// devices. They are dropped with the next list of devices once no task holds them.
	if err := s.UpdateNode("n", func(n *cluster.Node) { n.Devices = n.Devices[:1] }); err != nil {
		t.Fatal(err)
	}
	if task(s, "last", 0).Status != cluster.Bound || task(s, "first", 0).Status != cluster.Bound || n.DeviceUsed() != 1000 || n.DeviceCapacity() != 1000 {
		t.Errorf("last is %s, first %s, %d of %d in use", task(s, "last", 0).Status, task(s, "first", 0).Status, n.DeviceUsed(), n.DeviceCapacity())
	}
	for _, j := range []string{"job/first", "job/last"} {
		if err := s.RemoveJob(j); err != nil {
			t.Error(err)
		}
	}
	if len(q.Used) != 0 || n.DeviceUsed() != 0 {
		t.Errorf("something is still used: %v, %d", q.Used, n.DeviceUsed())
	}
}

// TestLeavingTasksKeepTheirIsolation: the isolation of a releasing task applies until it has
// left.
func TestLeavingTasksKeepTheirIsolation(t *testing.T) {
	session := func(name string) cluster.Isolation {
		return cluster.Isolation{GPU: cluster.GPUSessionExclusive, Session: name}
	}
	strict := cluster.Isolation{CPU: cluster.CPUStrictIsolated}
	tests := map[string]struct {
		old, new *enginetest.JobBuilder
		want     cluster.Status
	}{
		"shared, next to a releasing session":  {enginetest.Job("old").Share(1, 300).Isolate(session("s1")), enginetest.Job("new").Share(1, 300), cluster.Nominated},
		"another session":                      {enginetest.Job("old").Share(1, 300).Isolate(session("s1")), enginetest.Job("new").Share(1, 300).Isolate(session("s2")), cluster.Nominated},
		"the same session":                     {enginetest.Job("old").Share(1, 300).Isolate(session("s1")), enginetest.Job("new").Share(1, 300).Isolate(session("s1")), cluster.Assumed},
		"a session, next to a releasing share": {enginetest.Job("old").Share(1, 300), enginetest.Job("new").Share(1, 300).Isolate(session("s1")), cluster.Nominated},
		"isolable cores":                       {enginetest.Job("old").CPU(3000, "1Gi").Isolate(strict), enginetest.Job("new").CPU(2000, "1Gi").Isolate(strict), cluster.Nominated},
		"other isolable cores":                 {enginetest.Job("old").CPU(2000, "1Gi").Isolate(strict), enginetest.Job("new").CPU(2000, "1Gi").Isolate(strict), cluster.Assumed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := enginetest.State(enginetest.Node("n").CPU(64, "64Gi").GPUs(1, "A", "80Gi").SupportedIsolation(cluster.SupportedIsolation{IsolableCores: 4}), tt.old.On("n"), tt.new)
			if err := s.Evict(task(s, "old", 0)); err != nil {
				t.Fatal(err)
			}
			fresh := task(s, "new", 0)
			claims, _ := s.Node("n").Choose(fresh.Shape, nil)
			if err := s.Place(fresh, s.Node("n"), claims, 0); err != nil {
				t.Fatal(err)
			}
			if fresh.Status != tt.want {
				t.Errorf("it is %s", fresh.Status)
			}
		})
	}
}

// TestKeeps: a node keeps a reservation only while it has what is reserved.
func TestKeeps(t *testing.T) {
	tests := map[string]func(*cluster.Node){
		"a lost device":        func(n *cluster.Node) { n.Devices[0].Lost = true },
		"a smaller device":     func(n *cluster.Node) { n.Devices[0].OwnSpec().Memory /= 2 },
		"fewer cores":          func(n *cluster.Node) { n.Ledger(cluster.CPU).Capacity = 1000 },
		"no such resource":     func(n *cluster.Node) { n.Resources = n.Resources[:1] },
		"fewer isolable cores": func(n *cluster.Node) { n.SupportedIsolation.IsolableCores = 1 },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			s := enginetest.State(enginetest.Node("n").CPU(8, "64Gi").GPUs(1, "A", "80Gi").SupportedIsolation(cluster.SupportedIsolation{IsolableCores: 4}),
				enginetest.Job("j").CPU(2000, "1Gi").Devices(1).Isolate(cluster.Isolation{CPU: cluster.CPUStrictIsolated}).On("n"))
			n, j := s.Node("n"), task(s, "j", 0)
			if !n.Keeps(j) {
				t.Fatal("an unchanged node does not keep its reservation")
			}
			if err := s.UpdateNode("n", change); err != nil {
				t.Fatal(err)
			}
			if n.Keeps(j) {
				t.Error("the node keeps a reservation of what it does not have")
			}
		})
	}
}

// TestUndoChecksNothing: Undo restores the State from before, even if the task could not be
// placed like that now.
func TestUndoChecksNothing(t *testing.T) {
	s := enginetest.State(enginetest.Node("n").CPU(8, "64Gi").GPUs(1, "A", "80Gi"), enginetest.Job("j").Devices(1).On("n"))
	if err := s.UpdateNode("n", func(n *cluster.Node) { n.Devices[0].OwnSpec().Memory /= 2 }); err != nil {
		t.Fatal(err)
	}
	j := task(s, "j", 0)
	mark := s.Mark()
	if err := s.Evict(j); err != nil {
		t.Fatal(err)
	}
	if s.Undo(mark); j.Status != cluster.Bound {
		t.Errorf("it is %s", j.Status)
	}
}

func TestWholeNodeTasksShareNoNode(t *testing.T) {
	whole := func(s *cluster.Shape) { s.Need.WholeNode, s.Need.Share = true, 400 }
	s := enginetest.State(enginetest.Node("n").CPU(8, "100Gi").GPUs(1, "A", "80Gi"), enginetest.Job("a").Shape(whole).On("n"), enginetest.Job("b").Shape(whole), enginetest.Job("c").Devices(1).Shape(func(s *cluster.Shape) { s.Need.Share = 400 }))
	n, a, b := s.Node("n"), task(s, "a", 0), task(s, "b", 0)
	claims := []cluster.Claim{{Milli: 400, Memory: 32 * gi}}
	if s.Place(b, n, claims, 0) == nil || s.Restore(b, n, claims, 0) == nil {
		t.Error("two tasks have the whole node")
	}
	if err := s.Evict(a); err != nil {
		t.Fatal(err)
	}
	if err := s.Place(b, n, claims, 0); err != nil || b.Status != cluster.Nominated {
		t.Errorf("%v, %s while another task is releasing the node", err, b.Status)
	}
	if s.Bind(b, 0) {
		t.Error("bound while another task is releasing the node")
	}
	if err := s.Place(task(s, "c", 0), n, claims, 0); err == nil && task(s, "c", 0).Status != cluster.Assumed {
		t.Error("a task with a share of a device has room next to it, but was not assigned")
	}
	s.Clear(a)
	if !s.Bind(b, 0) {
		t.Error("the task was not bound although the node is free")
	}
}
