package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

func TestObserve(t *testing.T) {
	s := enginetest.State(enginetest.Node("n").CPU(8, "64Gi").GPUs(3, "A100", "80Gi").With(func(n *cluster.Node) { n.Devices[0].OwnSpec().Reserved = 2 * gi }),
		enginetest.Job("x").DeviceMemory(2, "20Gi").On("n"), enginetest.Job("y").DeviceMemory(1, "10Gi").On("n"))
	n := s.Node("n")
	if err := s.Evict(task(s, "y", 0)); err != nil { // the evicted task still uses its memory
		t.Fatal(err)
	}
	version, freed := n.Version(), n.Freed()
	if err := s.Observe("n", []cluster.Bytes{40 * gi, 75 * gi, -1}); err != nil {
		t.Fatal(err)
	}
	// Of the first device, 80 - 2 reserved - 20 - 10 held = 48 should be free and 40 are. Of the second, 60 should be free and 75 are.
	if got := []cluster.Bytes{n.Devices[0].Foreign, n.Devices[1].Foreign, n.Devices[2].Foreign}; !cmp.Equal(got, []cluster.Bytes{8 * gi, 0, 0}) {
		t.Errorf("%v", got)
	}
	if n.Version() <= version || n.Freed() > freed {
		t.Error("the version did not grow, or room counts as freed")
	}
	version = n.Version()
	if err := s.Observe("n", []cluster.Bytes{40 * gi, 60 * gi}); err != nil || n.Version() > version {
		t.Errorf("a reading with nothing new changed the node: %v", err)
	}
	if err := s.Observe("n", []cluster.Bytes{48 * gi}); err != nil || n.Devices[0].Foreign != 0 || n.Freed() <= freed {
		t.Errorf("the foreign memory was not freed: %v, %d", err, n.Devices[0].Foreign)
	}
	version = n.Version()
	for name, read := range map[string]cluster.NodeRead{
		"no such node":   {Name: "o", Free: map[string]cluster.Bytes{"GPU-o-0": 1}},
		"no such device": {Name: "n", Free: map[string]cluster.Bytes{"GPU-o-0": 1}},
		"nothing":        {Name: "n"},
	} {
		if err := s.Apply(read); err != nil || n.Version() != version {
			t.Errorf("%s: a reading changed something: %v", name, err)
		}
	}
	if s.Apply(cluster.NodeRead{Name: "n", Free: map[string]cluster.Bytes{"GPU-n-0": -1}}) == nil {
		t.Error("a negative amount of free memory was accepted")
	}
}

func TestReadingsIgnoreReservations(t *testing.T) {
	s := enginetest.State(enginetest.Node("n").CPU(8, "100Gi").GPUs(1, "A", "80Gi"), enginetest.Job("a").DeviceMemory(1, "60Gi").On("n"), enginetest.Job("b").DeviceMemory(1, "60Gi"))
	n, a, b := s.Node("n"), task(s, "a", 0), task(s, "b", 0)
	if err := s.Evict(a); err != nil {
		t.Fatal(err)
	}
	if err := s.Place(b, n, []cluster.Claim{{Milli: 750, Memory: 60 * gi}}, 0); err != nil || b.Status != cluster.Nominated {
		t.Fatal(err, b.Status)
	}
	s.Clear(a)
	if err := s.Observe("n", []cluster.Bytes{50 * gi}); err != nil || n.Devices[0].Foreign != 30*gi {
		t.Errorf("%v, foreign %d", err, n.Devices[0].Foreign>>30)
	}
	if s.Bind(b, 0) {
		t.Error("a task with 60 GiB was bound to a device with 50 GiB free")
	}
}

func TestReadingsOfUnifiedMemory(t *testing.T) {
	s := enginetest.State(board(), enginetest.Job("ram").CPU(0, "8Gi").On("n"), enginetest.Job("w").Devices(1), enginetest.Job("more").CPU(0, "90Gi"))
	n, w, more := s.Node("n"), task(s, "w", 0), task(s, "more", 0)
	if err := s.Observe("n", []cluster.Bytes{92 * gi}); err != nil || n.Devices[0].Foreign != 0 || !n.Feasible(w.Shape) {
		t.Errorf("%v: memory that a task holds counts as foreign: %d GiB", err, n.Devices[0].Foreign>>30)
	}
	if err := s.Observe("n", []cluster.Bytes{40 * gi}); err != nil || n.Devices[0].Foreign != 52*gi || n.Ledger(cluster.Memory).Free() != int64(40*gi) {
		t.Errorf("%v: foreign %d", err, n.Devices[0].Foreign>>30)
	}
	if s.Place(more, n, nil, 0) == nil {
		t.Error("a task with 90 GiB was placed in 40 GiB")
	}
	if n.Feasible(&cluster.Shape{Resources: cluster.Resources{{Name: cluster.Memory, Value: int64(20 * gi)}}, Need: cluster.Need{Devices: 1, Memory: 30 * gi}}) {
		t.Error("a shape with 50 GiB is feasible in 40 GiB")
	}
	if err := s.UpdateNode("n", func(n *cluster.Node) { n.Unified = false }); err != nil || n.Ledger(cluster.Memory).Foreign != 0 {
		t.Errorf("%v: memory is not unified any more, but some of it is still foreign", err)
	}
}

func TestRestoreAfterReading(t *testing.T) {
	s := enginetest.State(enginetest.Node("n").CPU(8, "100Gi").GPUs(1, "A", "80Gi"), enginetest.Job("a").DeviceMemory(1, "60Gi"), enginetest.Job("b").DeviceMemory(1, "1Gi"))
	n := s.Node("n")
	if err := s.UpdateNode("n", func(n *cluster.Node) { n.Devices[0].Lost = true }); err != nil {
		t.Fatal(err)
	}
	if err := s.Observe("n", []cluster.Bytes{20 * gi}); err != nil {
		t.Fatal(err)
	}
	if err := s.Restore(task(s, "a", 0), n, []cluster.Claim{{Milli: 750, Memory: 60 * gi}}, 0); err != nil || n.Devices[0].Use.Memory != 60*gi {
		t.Errorf("a running task was not booked: %v", err)
	}
	if s.Place(task(s, "b", 0), n, []cluster.Claim{{Milli: 12, Memory: gi}}, 0) == nil {
		t.Error("a task was placed on a lost device")
	}
}
