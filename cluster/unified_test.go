package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// board returns a node with 100 GiB of unified memory and one device.
func board() *enginetest.NodeBuilder {
	return enginetest.Node("n").CPU(8, "100Gi").GPUs(1, "GB10", "100Gi").With(func(n *cluster.Node) { n.Unified = true })
}

func TestUnifiedMemoryIsBookedOnce(t *testing.T) {
	s := enginetest.State(board(), enginetest.Job("x").CPU(0, "10Gi").DeviceMemory(1, "40Gi"), enginetest.Job("y").CPU(0, "20Gi").DeviceMemory(1, "40Gi"))
	n := s.Node("n")
	ledger := n.Ledger(cluster.Memory)
	x, y := task(s, "x", 0), task(s, "y", 0)
	place := func(tk *cluster.Task) error {
		claims, ok := n.Choose(tk.Shape, nil)
		if !ok {
			t.Fatalf("%s has no room", tk.ID)
		}
		return s.Place(tk, n, claims, 0)
	}
	if err := place(x); err != nil {
		t.Fatal(err)
	}
	if ledger.Used != int64(50*gi) || x.Holds(cluster.Memory) != int64(50*gi) {
		t.Errorf("used %d", ledger.Used>>30)
	}
	if n.Feasible(y.Shape) {
		t.Error("a shape with 60 GiB is feasible in 50 GiB")
	}
	if err := s.Place(y, n, []cluster.Claim{{Milli: 400, Memory: 40 * gi}}, 0); err == nil {
		t.Error("60 GiB were booked of 50 GiB")
	}
	mark := s.Mark()
	if err := s.Evict(x); err != nil {
		t.Fatal(err)
	}
	if ledger.Used != 0 || ledger.Releasing != int64(50*gi) {
		t.Errorf("used %d, releasing %d", ledger.Used>>30, ledger.Releasing>>30)
	}
	if err := place(y); err != nil || y.Status != cluster.Nominated {
		t.Errorf("%v, %s", err, y.Status)
	}
	if s.Bind(y, 0) {
		t.Error("y was bound while x is releasing")
	}
	if s.Undo(mark); ledger.Used != int64(50*gi) || ledger.Releasing != 0 {
		t.Errorf("used %d", ledger.Used>>30)
	}
	s.Clear(x)
	if ledger.Used != 0 || n.Devices[0].Use != (cluster.DeviceUse{}) {
		t.Errorf("%+v, %+v", ledger, n.Devices[0].Use)
	}
	// A whole device holds what is left of the unified memory.
	w := cluster.Shape{Resources: cluster.Resources{{Name: cluster.Memory, Value: int64(30 * gi)}}, Need: cluster.Need{Devices: 1}}
	claims, _ := n.Choose(&w, nil)
	if diff := cmp.Diff([]cluster.Claim{{Milli: cluster.Whole, Memory: 70 * gi}}, claims); diff != "" {
		t.Error(diff)
	}
}

func TestReservationOnShrinkingUnifiedMemory(t *testing.T) {
	s := enginetest.State(board(), enginetest.Job("x").DeviceMemory(1, "60Gi").On("n"), enginetest.Job("y").DeviceMemory(1, "60Gi"))
	n, x, y := s.Node("n"), task(s, "x", 0), task(s, "y", 0)
	if err := s.Evict(x); err != nil {
		t.Fatal(err)
	}
	if err := s.Place(y, n, []cluster.Claim{{Milli: 600, Memory: 60 * gi}}, 0); err != nil {
		t.Fatal(err)
	}
	if !n.Keeps(y) {
		t.Error("an unchanged node does not keep the reservation")
	}
	if err := s.UpdateNode("n", func(n *cluster.Node) { n.Ledger(cluster.Memory).Capacity = int64(50 * gi) }); err != nil {
		t.Fatal(err)
	}
	if n.Keeps(y) {
		t.Error("a reservation of 60 GiB is kept in 50 GiB")
	}
}

func TestSpillOnUnifiedMemory(t *testing.T) {
	layers := func(total int) cluster.Shape {
		return cluster.Shape{Resources: cluster.Resources{{Name: cluster.Memory}}, Need: cluster.Need{Layers: &cluster.Layers{Total: total, Bytes: 10 * gi, Least: 1, Spill: true}}}
	}
	n := board().With(func(n *cluster.Node) { n.Devices[0].OwnSpec().Reserved = 60 * gi }).Build()
	fits, more := layers(10), layers(11)
	if claims, ok := n.Choose(&fits, nil); !ok || claims[0].Layers != 4 {
		t.Errorf("want four layers on the device and six in memory: %v", claims)
	}
	if n.Feasible(&more) {
		t.Error("eleven layers are feasible where ten fit")
	}
}

// TestUnifiedMemoryAddsUp makes random changes on a node with unified memory. Tasks never hold
// more than the node has, and an undo restores the ledgers exactly.
func TestUnifiedMemoryAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := []enginetest.Part{board()}
		names := []string{"a", "b", "c", "d"}
		for _, name := range names {
			j := enginetest.Job(name).CPU(0, rapid.SampledFrom([]string{"0", "8Gi", "30Gi"}).Draw(t, "memory"))
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				j.Share(1, cluster.Milli(rapid.IntRange(1, 999).Draw(t, "share")))
			case 1:
				j.DeviceMemory(1, rapid.SampledFrom([]string{"10Gi", "33Gi", "70Gi"}).Draw(t, "device"))
			case 2:
				j.Devices(1)
			default:
				total := rapid.IntRange(1, 12).Draw(t, "layers")
				j.Shape(func(s *cluster.Shape) {
					s.Need.Layers = &cluster.Layers{Total: total, Bytes: 7 * gi, Fixed: gi, Least: total / 2, Spill: true}
				})
			}
			parts = append(parts, j)
		}
		s := enginetest.State(parts...)
		n := s.Node("n")
		for range 20 {
			tk := task(s, rapid.SampledFrom(names).Draw(t, "task"), 0)
			before := *n.Ledger(cluster.Memory)
			use := n.Devices[0].Use
			switch tk.Status {
			case cluster.Pending:
				if claims, ok := n.Choose(tk.Shape, nil); ok {
					if err := s.Place(tk, n, claims, 0); err != nil {
						t.Fatalf("the chosen devices do not fit: %v", err)
					}
					if rapid.Bool().Draw(t, "undo") {
						s.Clear(tk)
						if before != *n.Ledger(cluster.Memory) || use != n.Devices[0].Use {
							t.Fatalf("%+v became %+v", before, *n.Ledger(cluster.Memory))
						}
					}
				}
			case cluster.Bound:
				mark := s.Mark()
				if err := s.Evict(tk); err != nil {
					t.Fatal(err)
				}
				if rapid.Bool().Draw(t, "undo") {
					if s.Undo(mark); before != *n.Ledger(cluster.Memory) || use != n.Devices[0].Use {
						t.Fatalf("%+v became %+v", before, *n.Ledger(cluster.Memory))
					}
				}
				s.Release(mark)
			case cluster.Nominated:
				s.Bind(tk, 0)
			default:
				s.Clear(tk)
			}
			there := int64(0)
			for _, o := range n.Tasks {
				if o.Status != cluster.Nominated {
					there += o.Holds(cluster.Memory)
				}
			}
			if l := n.Ledger(cluster.Memory); l.Used > l.Capacity || there > l.Capacity || n.Devices[0].Use.Memory > n.Devices[0].Room() {
				t.Fatalf("%+v, %d held", l, there)
			}
		}
	})
}

// TestBestDevicesExceedUnifiedMemory: Choose finds devices for a feasible shape even if those
// with the best score need more memory than the node has.
func TestBestDevicesExceedUnifiedMemory(t *testing.T) {
	n := enginetest.Node("n").CPU(8, "100Gi").GPUs(2, "S", "40Gi").GPUs(2, "L", "80Gi").With(func(n *cluster.Node) { n.Unified = true }).Build()
	s := cluster.Shape{Resources: cluster.Resources{{Name: cluster.Memory}}, Need: cluster.Need{Devices: 2}}
	best := func(d *cluster.Device) int64 { return int64(d.Memory) }
	if claims, ok := n.Choose(&s, best); !ok || claims[0].Device != 0 || claims[1].Device != 1 || !n.Feasible(&s) {
		t.Errorf("%v", claims)
	}
	for claims := range n.Choices(&s, best, cluster.Distinctions{}) {
		var sum cluster.Bytes
		for _, c := range claims {
			sum += c.Memory
		}
		if sum > 100*gi {
			t.Errorf("%v holds %d GiB of 100 GiB", claims, sum/gi)
		}
	}
}

func TestExclusiveLayersOnUnifiedMemory(t *testing.T) {
	s := enginetest.State(enginetest.Node("n").CPU(8, "100Gi").GPUs(2, "GB10", "80Gi").With(func(n *cluster.Node) { n.Unified = true }))
	shape := &cluster.Shape{Resources: cluster.Resources{{Name: cluster.Memory, Value: int64(10 * gi)}}, Isolation: cluster.Isolation{GPU: cluster.GPUDeviceExclusive}, Need: cluster.Need{Devices: 2, Layers: &cluster.Layers{Total: 8, Bytes: 2 * gi}}}
	claims, ok := s.Node("n").Choose(shape, nil)
	want := []cluster.Claim{{Milli: cluster.Whole, Memory: 80 * gi, Layers: 4}, {Device: 1, Milli: cluster.Whole, Memory: 10 * gi, Layers: 4}}
	if diff := cmp.Diff(want, claims); diff != "" || !ok {
		t.Error(diff)
	}
}
