package noderesourcesfit

import (
	"fmt"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"pgregory.net/rapid"
)

const g = cluster.Bytes(1 << 30)

func drawNode(t *rapid.T) *enginetest.NodeBuilder {
	b := enginetest.Node("n").CPU(rapid.IntRange(1, 8).Draw(t, "cores"), fmt.Sprintf("%dGi", rapid.IntRange(1, 64).Draw(t, "ram")))
	if rapid.Bool().Draw(t, "fpga") {
		b.Resource("example.com/fpga", rapid.Int64Range(0, 2).Draw(t, "fpgas"))
	}
	for range rapid.IntRange(0, 3).Draw(t, "sets") {
		count := rapid.IntRange(1, 3).Draw(t, "count")
		product := rapid.SampledFrom([]string{"A100", "L4"}).Draw(t, "product")
		memory := rapid.SampledFrom([]string{"0", "24Gi", "70Gi", "80Gi"}).Draw(t, "memory")
		if rapid.IntRange(0, 3).Draw(t, "slices") == 0 {
			b.Slices(count, product, "1g.10gb", memory)
		} else {
			b.GPUs(count, product, memory)
		}
	}
	return b.With(func(n *cluster.Node) {
		reserved := cluster.Bytes(0)
		if rapid.IntRange(0, 4).Draw(t, "reserves") == 0 {
			reserved = cluster.Bytes(rapid.Int64Range(0, 20).Draw(t, "reserved")) * g
		}
		alike := len(n.Devices) > 0 // as on all machines with unified memory
		for i := range n.Devices {
			d := &n.Devices[i]
			alike = alike && d.Memory > 0 && d.Memory == n.Devices[0].Memory
			d.Lost = rapid.IntRange(0, 9).Draw(t, "lost") == 0
			d.OwnSpec().Link = rapid.SampledFrom([]string{"", "a", "a", "b"}).Draw(t, "link")
			d.OwnSpec().NUMA = rapid.IntRange(-1, 1).Draw(t, "numa")
			if d.Memory == 0 {
				continue
			}
			d.OwnSpec().Reserved = reserved
			if rapid.IntRange(0, 4).Draw(t, "shared") == 0 {
				d.Foreign = cluster.Bytes(rapid.Int64Range(0, 40).Draw(t, "foreign")) * g
			}
		}
		n.Unified = alike && rapid.Bool().Draw(t, "unified")
		if !n.Unified && rapid.IntRange(0, 2).Draw(t, "time-slicing") == 0 {
			slice(n)
		}
	})
}

// slice makes equal adjacent devices replicas of one device.
func slice(n *cluster.Node) {
	for i := 1; i < len(n.Devices); i++ {
		a, b := &n.Devices[i-1], &n.Devices[i]
		if a.Memory == 0 || a.Memory != b.Memory || a.Product != b.Product || a.Profile != b.Profile {
			continue
		}
		if a.Shares == "" {
			a.Shares = fmt.Sprintf("card-%d", i)
		}
		b.Shares, b.Foreign = a.Shares, a.Foreign
	}
}

func drawNeed(t *rapid.T) cluster.Need {
	n := cluster.Need{
		Devices:     rapid.IntRange(1, 4).Draw(t, "devices"),
		SameProduct: rapid.Bool().Draw(t, "same"),
		SameLink:    rapid.Bool().Draw(t, "same link"),
	}
	if rapid.IntRange(0, 4).Draw(t, "partition") == 0 {
		n.Partition = "1g.10gb"
	}
	if rapid.IntRange(0, 4).Draw(t, "products") == 0 {
		n.Products = []string{"A100"}
	}
	switch rapid.IntRange(0, 6).Draw(t, "kind") {
	case 0:
		return cluster.Need{}
	case 1:
		n.Memory = cluster.Bytes(rapid.Int64Range(1, 90).Draw(t, "each")) * g
	case 2:
		n.Share = cluster.Milli(rapid.Int64Range(1, 1000).Draw(t, "share"))
	case 3:
		n.SumAtLeast = cluster.Bytes(rapid.Int64Range(1, 300).Draw(t, "sum")) * g
		if rapid.Bool().Draw(t, "of shares") {
			n.Share = cluster.Milli(rapid.Int64Range(1, 1000).Draw(t, "share"))
		}
	case 4:
		n.WholeNode, n.SameProduct = true, false
		n.SumAtLeast = cluster.Bytes(rapid.Int64Range(0, 300).Draw(t, "sum")) * g
		if rapid.Bool().Draw(t, "of shares") {
			n.Share = cluster.Milli(rapid.Int64Range(1, 1000).Draw(t, "share"))
		}
	case 5:
		if rapid.Bool().Draw(t, "as many as it takes") {
			n.Devices = 0
		}
		sizes := make([]cluster.Bytes, rapid.IntRange(1, 40).Draw(t, "layers"))
		first, others := rapid.Int64Range(1, 9).Draw(t, "first"), rapid.Int64Range(1, 9).Draw(t, "others")
		for i := range sizes {
			if sizes[i] = cluster.Bytes(others) * g; i < len(sizes)/2 {
				sizes[i] = cluster.Bytes(first) * g
			}
		}
		l := cluster.LayersOf(sizes, g)
		n.Devices = min(n.Devices, l.Total) // each device gets at least one layer
		l.Spill = rapid.Bool().Draw(t, "spill")
		l.Least = rapid.IntRange(0, l.Total).Draw(t, "least")
		n.Layers = &l
	}
	return n
}

func drawShape(t *rapid.T) *cluster.Shape {
	b := enginetest.Job("j").CPU(rapid.Int64Range(0, 4000).Draw(t, "cpu"), fmt.Sprintf("%dGi", rapid.IntRange(0, 20).Draw(t, "memory")))
	if rapid.IntRange(0, 5).Draw(t, "asks fpga") == 0 {
		b.Resource("example.com/fpga", 1)
	}
	class := rapid.SampledFrom([]cluster.GPUClass{"", "", cluster.GPUShared, cluster.GPUSessionExclusive, cluster.GPUDeviceExclusive}).Draw(t, "class")
	session := ""
	if class == cluster.GPUSessionExclusive {
		session = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "session")
	}
	return shape(b.Isolate(cluster.Isolation{GPU: class, Session: session}).Shape(func(s *cluster.Shape) { s.Need = drawNeed(t) }))
}

// room computes, independently of the filter, whether the node accepts the shape.
func room(s *cluster.Shape, n *cluster.Node) bool {
	for _, a := range s.Resources {
		if l := n.Ledger(a.Name); a.Value > 0 && (l == nil || l.Capacity-l.Used < a.Value) {
			return false
		}
	}
	_, ok := n.Choose(s, nil)
	return ok
}

// The filter accepts exactly what can be chosen and placed. What it rejects permanently does
// not fit the empty node either.
func TestFitIsWhatCanBePlaced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := enginetest.State(drawNode(t))
		n := state.Node("n")
		for i := range rapid.IntRange(1, 8).Draw(t, "tasks") {
			s := drawShape(t)
			if n.Unified && n.Ledger(cluster.Memory).Free() <= s.Resources.Of(cluster.Memory) {
				continue // any number of devices gets nothing of a unified memory that is full
			}
			r := judge(s, n)
			if r != nil && r.Want.Value <= r.Have.Value {
				t.Fatalf("%+v on %+v: it requests no more than there is: %+v", s, n, r)
			}
			if never := possible(s, n); (never == nil) != room(s, n.Emptied()) {
				t.Fatalf("%+v on %+v: %+v, but the empty node has room: %v", s, n, never, room(s, n.Emptied()))
			}
			if (r == nil) != room(s, n) {
				t.Fatalf("%+v on %+v: rejection %+v, but room %v", s, n, r, room(s, n))
			}
			if r == nil && lacks(s, n) {
				t.Fatalf("%+v on %+v: the cheap test rejects it, and the filters do not", s, n)
			}
			if r != nil {
				if emptyFits := room(s, n.Emptied()); r.Cure.Transient() != emptyFits {
					t.Fatalf("%+v on %+v: rejection %+v, but the empty node has room: %v", s, n, r, emptyFits)
				}
				continue
			}
			// Devices can be chosen with any preference among them.
			var score func(*cluster.Device) int64
			if s.Need.Layers == nil {
				by := rapid.SliceOfN(rapid.Int64Range(0, 100), len(n.Devices), len(n.Devices)).Draw(t, "scores")
				score = func(d *cluster.Device) int64 { return by[d.Index] }
			}
			claims, ok := n.Choose(s, score)
			if !ok {
				t.Fatalf("%+v on %+v: accepted, but no devices can be chosen", s, n)
			}
			for _, c := range claims[:max(0, len(claims)-1)] {
				d, o := &n.Devices[c.Device], &n.Devices[claims[len(claims)-1].Device]
				if s.Need.SameLink && s.Need.Devices > 1 && !s.Need.WholeNode && (d.Link == "" || d.Link != o.Link || d.Parent != "") {
					t.Fatalf("%+v on %+v: devices %v are not in one NVLink domain", s, n, claims)
				}
			}
			j := enginetest.Job(fmt.Sprint(i)).Shape(func(into *cluster.Shape) { *into = *s }).Build()
			if err := state.Apply(cluster.JobPut{Job: *j}); err != nil {
				t.Fatal(err)
			}
			x := state.Begin()
			if err := x.Place(state.Job(j.ID).Tasks()[0], n, claims, 0); err != nil {
				t.Fatalf("accepted, but: %v", err)
			}
			x.End()
		}
	})
}

// EverShort, which makes no copy, gives the same result as the check of an emptied copy of the node.
func TestEverShortIsFitOnTheEmptyNode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, n := drawShape(t), enginetest.State(drawNode(t)).Node("n")
		short, known := s.EverShort(n)
		if !known || !hasCapacity(s, n) {
			return
		}
		r, want := ifEmpty.devices(short), checkEmpty(s, n.Emptied())
		if (r == nil) != (want == nil) || r != nil && r.Reason != want.Reason {
			t.Fatalf("without a copy it is %+v, for the empty node %+v", r, want)
		}
	})
}
