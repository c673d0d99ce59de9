package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

func TestObserve(t *testing.T) {
	s := enginetest.State(enginetest.Node("n").CPU(8, "64Gi").GPUs(3, "A100", "80Gi").With(func(n *cluster.Node) { n.Devices[0].Reserved = 2 * gi }),
		enginetest.Job("x").DeviceMemory(2, "20Gi").On("n"), enginetest.Job("y").DeviceMemory(1, "10Gi").On("n"))
	n := s.Node("n")
	if err := s.Evict(task(s, "y", 0)); err != nil { // it is still there
		t.Fatal(err)
	}
	version, freed := n.Version(), n.Freed()
	if err := s.Observe("n", []cluster.Bytes{40 * gi, 75 * gi, -1}); err != nil {
		t.Fatal(err)
	}
	// 80 less 2 reserved, 20 and 10 held leaves 48, of which 40 are free; of the second nobody knows 60 and 75 are said to be.
	if got := []cluster.Bytes{n.Devices[0].Foreign, n.Devices[1].Foreign, n.Devices[2].Foreign}; !cmp.Equal(got, []cluster.Bytes{8 * gi, 0, 0}) {
		t.Errorf("%v", got)
	}
	if n.Version() <= version || n.Freed() > freed {
		t.Error("it changed, and nothing was given back")
	}
	version = n.Version()
	if err := s.Observe("n", []cluster.Bytes{40 * gi, 60 * gi}); err != nil || n.Version() > version {
		t.Errorf("a reading that says nothing new made a difference: %v", err)
	}
	if err := s.Observe("n", []cluster.Bytes{48 * gi}); err != nil || n.Devices[0].Foreign != 0 || n.Freed() <= freed {
		t.Errorf("it was given back: %v, %d", err, n.Devices[0].Foreign)
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
		t.Error("less than nothing is free")
	}
}

func TestPromisesAreNotThereYet(t *testing.T) {
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
		t.Error("60 GiB were bound of a device that has 50")
	}
}

func TestReadingsOfUnifiedMemory(t *testing.T) {
	s := enginetest.State(board(), enginetest.Job("ram").CPU(0, "8Gi").On("n"), enginetest.Job("w").Devices(1), enginetest.Job("more").CPU(0, "90Gi"))
	n, w, more := s.Node("n"), task(s, "w", 0), task(s, "more", 0)
	if err := s.Observe("n", []cluster.Bytes{92 * gi}); err != nil || n.Devices[0].Foreign != 0 || !n.Feasible(w.Shape) {
		t.Errorf("%v: memory that the books know was taken for somebody else's: %d", err, n.Devices[0].Foreign>>30)
	}
	if err := s.Observe("n", []cluster.Bytes{40 * gi}); err != nil || n.Devices[0].Foreign != 52*gi || n.Ledger(cluster.Memory).Free() != int64(40*gi) {
		t.Errorf("%v: foreign %d", err, n.Devices[0].Foreign>>30)
	}
	if s.Place(more, n, nil, 0) == nil {
		t.Error("90 GiB of 40")
	}
	if n.Feasible(&cluster.Shape{Resources: cluster.Resources{{Name: cluster.Memory, Value: int64(20 * gi)}}, Need: cluster.Need{Devices: 1, Memory: 30 * gi}}) {
		t.Error("50 GiB of 40")
	}
	if err := s.UpdateNode("n", func(n *cluster.Node) { n.Unified = false }); err != nil || n.Ledger(cluster.Memory).Foreign != 0 {
		t.Errorf("%v: the pot is none any more", err)
	}
}

func TestRestoreWhatAReadingHasSeen(t *testing.T) {
	s := enginetest.State(enginetest.Node("n").CPU(8, "100Gi").GPUs(1, "A", "80Gi"), enginetest.Job("a").DeviceMemory(1, "60Gi"), enginetest.Job("b").DeviceMemory(1, "1Gi"))
	n := s.Node("n")
	if err := s.UpdateNode("n", func(n *cluster.Node) { n.Devices[0].Lost = true }); err != nil {
		t.Fatal(err)
	}
	if err := s.Observe("n", []cluster.Bytes{20 * gi}); err != nil {
		t.Fatal(err)
	}
	if err := s.Restore(task(s, "a", 0), n, []cluster.Claim{{Milli: 750, Memory: 60 * gi}}, 0); err != nil || n.Devices[0].Use.Memory != 60*gi {
		t.Errorf("what runs is booked: %v", err)
	}
	if s.Place(task(s, "b", 0), n, []cluster.Claim{{Milli: 12, Memory: gi}}, 0) == nil {
		t.Error("a lost device took something new")
	}
}
