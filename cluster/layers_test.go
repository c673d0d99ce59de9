package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// split returns the number of layers by device.
func split(claims []cluster.Claim) map[int]int {
	out := map[int]int{}
	for _, c := range claims {
		out[c.Device] = c.Layers
	}
	return out
}

func TestLayersAreDivided(t *testing.T) {
	node := func() *enginetest.NodeBuilder {
		return enginetest.Node("n").CPU(8, "20Gi").GPUs(1, "A", "11Gi").GPUs(1, "B", "31Gi").GPUs(1, "C", "21Gi")
	}
	tests := map[string]struct {
		layers  cluster.Layers
		devices int
		want    map[int]int
	}{
		"one device holds all":            {cluster.Layers{Total: 30, Bytes: gi, Fixed: gi}, 0, map[int]int{1: 30}},
		"two devices in proportion":       {cluster.Layers{Total: 40, Bytes: gi, Fixed: gi}, 0, map[int]int{1: 24, 2: 16}},
		"three devices are requested":     {cluster.Layers{Total: 12, Bytes: gi, Fixed: gi}, 3, map[int]int{0: 2, 1: 6, 2: 4}},
		"all devices are full":            {cluster.Layers{Total: 60, Bytes: gi, Fixed: gi}, 0, map[int]int{0: 10, 1: 30, 2: 20}},
		"too many layers":                 {cluster.Layers{Total: 61, Bytes: gi, Fixed: gi}, 0, map[int]int{}},
		"the other layers spill":          {cluster.Layers{Total: 80, Bytes: gi, Fixed: gi, Least: 60, Spill: true}, 0, map[int]int{0: 10, 1: 30, 2: 20}},
		"too little memory to spill":      {cluster.Layers{Total: 81, Bytes: gi, Fixed: gi, Least: 60, Spill: true}, 0, map[int]int{}},
		"too few layers on devices":       {cluster.Layers{Total: 70, Bytes: gi, Fixed: gi, Least: 61, Spill: true}, 0, map[int]int{}},
		"fewer layers than devices":       {cluster.Layers{Total: 2, Bytes: gi, Fixed: gi}, 3, map[int]int{}},
		"fixed alone fills a device":      {cluster.Layers{Total: 15, Bytes: gi, Fixed: 11 * gi}, 0, map[int]int{1: 15}},
		"the smallest device is left out": {cluster.Layers{Total: 30, Bytes: gi, Fixed: 11 * gi}, 0, map[int]int{1: 20, 2: 10}},
		"one requested device holds none": {cluster.Layers{Total: 10, Bytes: gi, Fixed: 11 * gi}, 3, map[int]int{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := cluster.Shape{Resources: cluster.Resources{{Name: cluster.Memory}}, Need: cluster.Need{Devices: tt.devices, Layers: &tt.layers}}
			claims, _ := node().Build().Choose(&s, nil)
			if diff := cmp.Diff(tt.want, split(claims)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLayersOfOneProduct checks which product is chosen if all devices must be of one:
// the one that holds most layers, then the one that needs the fewest devices, then the
// one with the best score.
func TestLayersOfOneProduct(t *testing.T) {
	node := enginetest.Node("n").CPU(8, "100Gi").GPUs(1, "A", "11Gi").GPUs(2, "B", "9Gi").GPUs(2, "C", "9Gi").Build()
	tests := map[string]struct {
		layers cluster.Layers
		score  func(*cluster.Device) int64
		want   map[int]int
	}{
		"all on one device":    {cluster.Layers{Total: 10, Bytes: gi, Fixed: gi}, nil, map[int]int{0: 10}},
		"no product is enough": {cluster.Layers{Total: 17, Bytes: gi, Fixed: gi}, nil, map[int]int{}},
		"the product that holds most": {
			cluster.Layers{Total: 17, Bytes: gi, Fixed: gi, Least: 1, Spill: true}, nil, map[int]int{1: 8, 2: 8}},
		"the product with the better score": {
			cluster.Layers{Total: 16, Bytes: gi, Fixed: gi}, func(d *cluster.Device) int64 { return int64(d.Index) }, map[int]int{3: 8, 4: 8}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := cluster.Shape{Resources: cluster.Resources{{Name: cluster.Memory}}, Need: cluster.Need{SameProduct: true, Layers: &tt.layers}}
			claims, _ := node.Choose(&s, tt.score)
			if diff := cmp.Diff(tt.want, split(claims)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLayersInProportion checks on random nodes that layers are distributed in
// proportion to what the devices can hold.
func TestLayersInProportion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := enginetest.Node("n").CPU(8, "1Ti").With(func(n *cluster.Node) {
			for range rapid.IntRange(1, 8).Draw(t, "devices") {
				n.Devices = append(n.Devices, cluster.Device{
					Memory: cluster.Bytes(rapid.IntRange(1, 90).Draw(t, "memory")) * gi, Reserved: cluster.Bytes(rapid.IntRange(0, 3).Draw(t, "reserved")) * gi,
				})
			}
		}).Build()
		l := &cluster.Layers{Total: rapid.IntRange(1, 120).Draw(t, "total"), Bytes: cluster.Bytes(rapid.IntRange(1, 4).Draw(t, "bytes")) * gi,
			Fixed: cluster.Bytes(rapid.IntRange(0, 2).Draw(t, "fixed")) * gi, Spill: rapid.Bool().Draw(t, "spill")}
		s := cluster.Shape{Resources: cluster.Resources{{Name: cluster.Memory}}, Need: cluster.Need{Layers: l}}
		claims, ok := n.Choose(&s, nil)
		room := func(d *cluster.Device) int { return int(max(0, d.Room()-l.Fixed) / l.Bytes) }
		all := 0
		for i := range n.Devices {
			all += room(&n.Devices[i])
		}
		if want := all >= l.Total || l.Spill && all > 0; ok != want {
			t.Fatalf("Choose returns %v, and the devices hold %d of %d layers", ok, all, l.Total)
		}
		sum, used := 0, 0
		for _, c := range claims {
			sum += c.Layers
			used += room(&n.Devices[c.Device])
		}
		if ok && sum != min(all, l.Total) {
			t.Fatalf("%d of %d layers are on devices that hold %d", sum, l.Total, all)
		}
		for _, c := range claims {
			d := &n.Devices[c.Device]
			fit := room(d)
			if c.Layers < 1 || c.Layers > fit || c.Memory != l.Fixed+cluster.Bytes(c.Layers)*l.Bytes || c.Memory > d.Room() {
				t.Fatalf("%+v of %d", c, fit)
			}
			// Each device has one layer and its part of the others. Rounding adds less than one layer for each device.
			rest, spare := sum-len(claims), used-len(claims)
			if spare > 0 {
				if part := 1 + rest*(fit-1)/spare; c.Layers < part || c.Layers > part+len(claims) {
					t.Fatalf("a device has %d layers, and its part is %d: %v", c.Layers, part, claims)
				}
			}
		}
	})
}
