package cluster_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// sliced returns a node with two GPUs of 24 GiB, of which time-slicing makes three replicas
// each.
func sliced() *enginetest.NodeBuilder {
	return enginetest.Node("n").CPU(64, "640Gi").With(func(n *cluster.Node) {
		n.Sharing = cluster.Sharing{Strategy: "time-slicing", Replicas: 3}
		for _, uuid := range []string{"GPU-0", "GPU-1"} {
			n.Devices = append(n.Devices, cluster.Replicate(cluster.Device{DeviceSpec: &cluster.DeviceSpec{Product: "L4", Type: "cuda", Memory: 24 * gi}, UUID: uuid}, n.Sharing)...)
		}
	})
}

func TestReplicasShareTheirMemory(t *testing.T) {
	part := func(name string) *enginetest.JobBuilder { return enginetest.Job(name).DeviceMemory(1, "16Gi") }
	s := enginetest.State(sliced(), part("a"), part("b"), part("c"), enginetest.Job("w").Devices(4))
	n := s.Node("n")
	place := func(name string) bool {
		claims, ok := n.Choose(task(s, name, 0).Shape, nil)
		if ok != n.Feasible(task(s, name, 0).Shape) {
			t.Error("Choose and Feasible disagree")
		}
		return ok && s.Place(task(s, name, 0), n, claims, 0) == nil
	}
	if !place("a") || !place("b") || place("c") {
		t.Error("each GPU has room for exactly one task")
	}
	if err := s.Place(task(s, "c", 0), n, []cluster.Claim{{Device: 1, Milli: 666, Memory: 16 * gi}}, 0); err == nil {
		t.Error("32 GiB were booked of 24 GiB")
	}
	if !place("w") {
		t.Error("whole replicas need no free memory, but they were refused")
	}
	s.Clear(task(s, "w", 0))
	if err := s.Evict(task(s, "a", 0)); err != nil {
		t.Fatal(err)
	}
	if err := s.Place(task(s, "c", 0), n, []cluster.Claim{{Device: 1, Milli: 666, Memory: 16 * gi}}, 0); err != nil || task(s, "c", 0).Status != cluster.Nominated {
		t.Errorf("%v: c was not nominated while a is releasing", err)
	}
	s.Clear(task(s, "a", 0))
	if !s.Bind(task(s, "c", 0), 0) {
		t.Error("c was not bound although a has left")
	}
	// A reading is about the whole GPU: what is held through one replica counts for all.
	if err := s.Observe("n", []cluster.Bytes{8 * gi, 8 * gi, 8 * gi, 6 * gi, 6 * gi, 6 * gi}); err != nil || n.Devices[0].Foreign != 0 || n.Devices[4].Foreign != 2*gi {
		t.Errorf("%v: foreign %d and %d", err, n.Devices[0].Foreign, n.Devices[4].Foreign)
	}
}

// TestSharedMemoryIsBookedOnce: tasks never hold or reserve more memory of a GPU than it has,
// and Place accepts what Choose returns.
func TestSharedMemoryIsBookedOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		roll := func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "roll") }
		var parts []enginetest.Part
		for i := range 8 {
			need := []cluster.Need{
				{Devices: 1 + roll(2)},
				{Devices: 1 + roll(3), Memory: cluster.Bytes(1+roll(20)) * gi},
				{Devices: 1 + roll(2), Share: cluster.Milli(100 + 100*roll(9)), SumAtLeast: cluster.Bytes(roll(30)) * gi},
				{Devices: roll(2), Layers: &cluster.Layers{Total: 1 + roll(8), Bytes: cluster.Bytes(1+roll(6)) * gi, Spill: roll(2) == 0}},
				{WholeNode: true, Share: 300},
			}[roll(5)]
			parts = append(parts, enginetest.Job(string(rune('a'+i))).Shape(func(s *cluster.Shape) { s.Need = need }))
		}
		s := enginetest.State(append(parts, sliced())...)
		n := s.Node("n")
		for range 30 {
			tk := task(s, string(rune('a'+roll(8))), 0)
			switch {
			case tk.Status == cluster.Bound && roll(2) == 0:
				if err := s.Evict(tk); err != nil {
					rt.Fatal(err)
				}
			case tk.Status == cluster.Nominated && roll(2) == 0:
				s.Bind(tk, 0)
			case tk.Status != cluster.Pending:
				s.Clear(tk)
			default:
				if claims, ok := n.Choose(tk.Shape, nil); ok && n.Room(tk.Shape) > 0 {
					if err := s.Place(tk, n, claims, 0); err != nil {
						rt.Fatal(err)
					}
				}
			}
			promised, held := map[string]cluster.Bytes{}, map[string]cluster.Bytes{}
			for _, o := range n.Tasks {
				for _, c := range o.Claims {
					if need := o.Shape.Need; need.Memory == 0 && need.Share == 0 && need.Layers == nil {
						continue
					}
					if o.Status != cluster.Releasing {
						promised[n.Devices[c.Device].Shares] += c.Memory
					}
					if o.Status != cluster.Nominated {
						held[n.Devices[c.Device].Shares] += c.Memory
					}
				}
			}
			for uuid := range promised {
				if promised[uuid] > 24*gi || held[uuid] > 24*gi {
					rt.Fatalf("%d GiB of %s are reserved and %d held", promised[uuid]/gi, uuid, held[uuid]/gi)
				}
			}
		}
	})
}
