package tenantadmission

import (
	"fmt"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"pgregory.net/rapid"
)

// room rejects nodes that have no room for a task, as NodeResourcesFit does, and prefers
// devices in an order of its own.
type room struct{ order []int64 }

func (room) Name() string { return "room" }
func (r room) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddShapeFilter(nil, func(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
		for _, a := range s.Resources {
			if l := n.Ledger(a.Name); a.Value > 0 && (l == nil || l.Free() < a.Value) {
				return &engine.Rejection{Reason: "Full", Cure: engine.Wait | engine.Evict}
			}
		}
		if n.Feasible(s) {
			return nil
		}
		return &engine.Rejection{Reason: "Full", Cure: engine.Wait | engine.Evict}
	})
	s.Hooks.AddDeviceScore(func(s *cluster.Shape, _ *cluster.Node, d *cluster.Device) float64 {
		if s.Need.Layers != nil || len(r.order) == 0 {
			return 0
		}
		return float64(r.order[int(d.Index)%len(r.order)])
	})
}

var names = []string{cluster.CPU, cluster.Memory, gpu, "amd.com/gpu", "nvidia.com/mig-1g.10gb", "example.com/fpga", gpu + ":A100", gpu + ":L4", "amd.com/gpu:L4", "nvidia.com/mig-1g.10gb:A100"}

func drawQueue(t *rapid.T, name string) *enginetest.QueueBuilder {
	b := enginetest.Queue(name)
	for _, r := range names {
		if rapid.IntRange(0, 2).Draw(t, "limited") == 0 {
			most := int64(6000)
			if r == cluster.Memory {
				most = 100 << 30
			}
			b.Limit(r, rapid.Int64Range(0, most).Draw(t, r))
			if rapid.IntRange(0, 3).Draw(t, "deserves") == 0 {
				b.Quota(r, rapid.Int64Range(0, most).Draw(t, r))
			}
		}
	}
	return b
}

func drawNode(t *rapid.T, name string) *enginetest.NodeBuilder {
	b := enginetest.Node(name).CPU(16, "128Gi").Resource("example.com/fpga", 4)
	for range rapid.IntRange(1, 3).Draw(t, "sets") {
		product := rapid.SampledFrom([]string{"A100", "L4"}).Draw(t, "product")
		memory := rapid.SampledFrom([]string{"24Gi", "70Gi", "80Gi"}).Draw(t, "memory")
		if rapid.IntRange(0, 3).Draw(t, "slices") == 0 {
			b.Slices(2, product, "1g.10gb", "10Gi")
		} else {
			b.GPUs(rapid.IntRange(1, 3).Draw(t, "count"), product, memory)
		}
	}
	return b.With(func(n *cluster.Node) {
		n.Unified = rapid.IntRange(0, 3).Draw(t, "unified") == 0
		n.DeviceResource = rapid.SampledFrom([]string{gpu, gpu, "amd.com/gpu"}).Draw(t, "resource")
		for i := range n.Devices {
			if n.Devices[i].Profile == "" && rapid.IntRange(0, 5).Draw(t, "named") == 0 {
				n.Devices[i].OwnSpec().Resource = "amd.com/gpu"
			}
		}
	})
}

func drawJob(t *rapid.T, name string) *enginetest.JobBuilder {
	b := enginetest.Job(name).Queue(rapid.SampledFrom([]string{"p", "q"}).Draw(t, "queue")).
		CPU(rapid.Int64Range(0, 3000).Draw(t, "cpu"), fmt.Sprintf("%dGi", rapid.IntRange(0, 30).Draw(t, "memory"))).
		Gang(rapid.IntRange(1, 3).Draw(t, "gang")).Min(1)
	if rapid.IntRange(0, 4).Draw(t, "fpga") == 0 {
		b.Resource("example.com/fpga", 1)
	}
	n := cluster.Need{Devices: rapid.IntRange(1, 3).Draw(t, "devices"), SameProduct: rapid.Bool().Draw(t, "same")}
	n.Resource = rapid.SampledFrom([]string{"", "", gpu, "amd.com/gpu"}).Draw(t, "resource")
	n.Products = rapid.SampledFrom([][]string{nil, nil, {"L4"}, {"A100"}}).Draw(t, "products")
	if rapid.IntRange(0, 4).Draw(t, "partition") == 0 {
		n.Partition, n.Resource = "1g.10gb", ""
	}
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		n = cluster.Need{}
	case 1:
		n.Memory = cluster.Bytes(rapid.Int64Range(1, 80<<30).Draw(t, "each"))
	case 2:
		n.Share = cluster.Milli(rapid.Int64Range(1, 1000).Draw(t, "share"))
	case 3:
		n.WholeNode, n.SameProduct = true, false
	case 4:
		n.Devices = 0
		n.Layers = &cluster.Layers{Total: rapid.IntRange(1, 30).Draw(t, "layers"), Bytes: 3 << 30, Fixed: 1 << 30, Spill: rapid.Bool().Draw(t, "spill")}
	}
	class := rapid.SampledFrom([]cluster.GPUClass{"", "", "", cluster.GPUShared, cluster.GPUDeviceExclusive}).Draw(t, "class")
	if rapid.Bool().Draw(t, "preemptible") {
		b.Preemptible()
	}
	return b.Isolate(cluster.Isolation{GPU: class}).Shape(func(s *cluster.Shape) { s.Need = n })
}

// After any arrivals and ends of jobs, no queue holds more than it may.
func TestLimitsHold(t *testing.T) {
	placed := 0
	rapid.Check(t, func(t *rapid.T) {
		p, err := New(engine.NoArguments{})
		if err != nil {
			t.Fatal(err)
		}
		e := enginetest.Engine(p, room{rapid.SliceOfN(rapid.Int64Range(0, 100), 1, 5).Draw(t, "order")})
		state := enginetest.State(drawNode(t, "a"), drawNode(t, "b"), drawQueue(t, "top"), drawQueue(t, "p"), drawQueue(t, "q").Parent("top"))
		for round := range rapid.IntRange(1, 3).Draw(t, "sessions") {
			for i := range rapid.IntRange(1, 5).Draw(t, "jobs") {
				if err := state.Apply(cluster.JobPut{Job: *drawJob(t, fmt.Sprint(round, "-", i)).Build()}); err != nil {
					t.Fatal(err)
				}
			}
			s := e.Open(state, engine.Options{Search: engine.Twin})
			out, err := s.Run()
			if err != nil {
				t.Fatal(err)
			}
			s.Close()
			placed += len(out.Decisions)
			for _, q := range state.Queues() {
				for _, l := range q.Limits {
					if used := q.Used.Of(l.Name); used > l.Value {
						t.Fatalf("queue %s holds %d of %s and may hold %d", q.Name, used, l.Name, l.Value)
					}
				}
				for _, l := range q.Quota {
					if firm := q.UsedByFirm.Of(l.Name); firm > l.Value {
						t.Fatalf("the quota of queue %s is %d of %s, and %d is held by jobs that are not preemptible", q.Name, l.Value, l.Name, firm)
					}
				}
			}
			for _, j := range state.Jobs() {
				if rapid.IntRange(0, 2).Draw(t, "ends") == 0 {
					if err := state.Apply(cluster.JobGone{Job: j.ID}); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	})
	if placed == 0 {
		t.Error("nothing was ever placed")
	}
}
