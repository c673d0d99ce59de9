package cluster_test

import (
	"encoding/json"
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

// TestLayersWithTheirSizes checks that each device holds layers in a row, the last device
// the last ones, and that every layer counts with its own size.
func TestLayersWithTheirSizes(t *testing.T) {
	// Seven layers of 2 GiB, two of 3 GiB and an output layer of 5 GiB: 25 GiB in all.
	sizes := []cluster.LayerRun{{Count: 7, Bytes: 2 * gi}, {Count: 2, Bytes: 3 * gi}, {Count: 1, Bytes: 5 * gi}}
	layers := func(l cluster.Layers) *cluster.Layers {
		l.Total, l.Bytes, l.Fixed, l.Sizes = 10, 5*gi, gi, sizes
		return &l
	}
	claim := func(device, layers int, memory cluster.Bytes) cluster.Claim {
		return cluster.Claim{Device: device, Layers: layers, Memory: memory * gi}
	}
	tests := map[string]struct {
		node    *enginetest.NodeBuilder
		layers  *cluster.Layers
		devices int
		want    []cluster.Claim
		spill   cluster.Bytes
	}{
		// With 5 GiB for each layer, a device of 26 GiB would hold 5 of them.
		"one device": {enginetest.Node("n").GPUs(2, "A", "26Gi"), layers(cluster.Layers{}), 0, []cluster.Claim{claim(0, 10, 26)}, 0},
		"three devices where the largest layer would take five": {enginetest.Node("n").GPUs(5, "A", "12Gi"), layers(cluster.Layers{}), 0,
			[]cluster.Claim{claim(0, 4, 9), claim(1, 4, 10), claim(2, 2, 9)}, 0},
		"in proportion": {enginetest.Node("n").GPUs(1, "A", "21Gi").GPUs(1, "B", "11Gi"), layers(cluster.Layers{}), 0, []cluster.Claim{claim(0, 8, 18), claim(1, 2, 9)}, 0},
		"the output layer fits on one device only": {enginetest.Node("n").GPUs(1, "A", "5Gi").GPUs(1, "B", "22Gi"), layers(cluster.Layers{}), 2,
			[]cluster.Claim{claim(0, 2, 5), claim(1, 8, 22)}, 0},
		"the last device cannot hold the output layer": {enginetest.Node("n").GPUs(1, "A", "22Gi").GPUs(1, "B", "5Gi"), layers(cluster.Layers{}), 2, nil, 0},
		"the last layers are on devices": {enginetest.Node("n").CPU(8, "8Gi").GPUs(1, "A", "20Gi"), layers(cluster.Layers{Spill: true, Least: 1}), 0,
			[]cluster.Claim{claim(0, 7, 20)}, 6},
		"the first layers do not fit into the node's memory": {enginetest.Node("n").CPU(8, "5Gi").GPUs(1, "A", "20Gi"), layers(cluster.Layers{Spill: true, Least: 1}), 0, nil, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := cluster.Shape{Resources: cluster.Resources{{Name: cluster.Memory}}, Need: cluster.Need{Devices: tt.devices, Layers: tt.layers}}
			claims, _ := tt.node.Build().Choose(&s, nil)
			for i := range claims {
				claims[i].Milli = 0
			}
			if diff := cmp.Diff(tt.want, claims); diff != "" {
				t.Error(diff)
			}
			if claims != nil && s.Spill(claims) != tt.spill*gi {
				t.Errorf("%d bytes spill, not %d GiB", s.Spill(claims), tt.spill)
			}
		})
	}
}

// TestHeld checks how many layers equal devices hold.
func TestHeld(t *testing.T) {
	l := cluster.Layers{Total: 10, Bytes: 5 * gi, Fixed: gi, Sizes: []cluster.LayerRun{{Count: 9, Bytes: 2 * gi}, {Count: 1, Bytes: 5 * gi}}}
	for _, tt := range []struct{ devices, free, want int }{{1, 5, 0}, {1, 6, 1}, {1, 10, 3}, {2, 10, 7}, {3, 10, 10}, {9, 2, 0}} {
		if got := l.Held(tt.devices, cluster.Bytes(tt.free)*gi); got != tt.want {
			t.Errorf("%d devices of %d GiB hold %d layers, not %d", tt.devices, tt.free, got, tt.want)
		}
	}
	if l.All() != 23*gi || l.First(4) != 8*gi || l.First(10) != 23*gi {
		t.Errorf("all layers take %d, the first four %d", l.All(), l.First(4))
	}
}

// TestLayersFromBefore checks that layers are read that were written before they had sizes.
func TestLayersFromBefore(t *testing.T) {
	var l cluster.Layers
	if err := json.Unmarshal([]byte(`{"total":10,"bytes":2,"fixed":1,"least":3,"spill":true}`), &l); err != nil {
		t.Fatal(err)
	}
	if l.All() != 20 || l.Within(8) != 3 || l.Held(3, 9) != 10 || l.First(4) != 8 {
		t.Errorf("%+v: %d bytes, %d within 8, %d on three devices", l, l.All(), l.Within(8), l.Held(3, 9))
	}
	if got := cluster.LayersOf(l.Each(), 1); !cmp.Equal(got, cluster.Layers{Total: 10, Bytes: 2, Fixed: 1}) {
		t.Errorf("%+v", got)
	}
}

// drawLayers draws layers of up to four sizes.
func drawLayers(t *rapid.T) *cluster.Layers {
	l := &cluster.Layers{Fixed: cluster.Bytes(rapid.IntRange(0, 2).Draw(t, "fixed")) * gi, Spill: rapid.Bool().Draw(t, "spill")}
	for range rapid.IntRange(1, 4).Draw(t, "sizes") {
		r := cluster.LayerRun{Count: rapid.IntRange(1, 30).Draw(t, "count"), Bytes: cluster.Bytes(rapid.IntRange(1, 6).Draw(t, "bytes")) * gi}
		l.Total, l.Bytes, l.Sizes = l.Total+r.Count, max(l.Bytes, r.Bytes), append(l.Sizes, r)
	}
	return l
}

// TestLayersInProportion checks on random nodes that the devices hold as many layers as
// possible, in rows that fit, and in proportion to the room of each device.
func TestLayersInProportion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := enginetest.Node("n").CPU(8, "1Ti").With(func(n *cluster.Node) {
			for range rapid.IntRange(1, 8).Draw(t, "devices") {
				n.Devices = append(n.Devices, cluster.Device{
					DeviceSpec: &cluster.DeviceSpec{Memory: cluster.Bytes(rapid.IntRange(1, 90).Draw(t, "memory")) * gi, Reserved: cluster.Bytes(rapid.IntRange(0, 3).Draw(t, "reserved")) * gi},
				})
			}
		}).Build()
		l := drawLayers(t)
		s := cluster.Shape{Resources: cluster.Resources{{Name: cluster.Memory}}, Need: cluster.Need{Layers: l}}
		claims, ok := n.Choose(&s, nil)
		room := func(i int) cluster.Bytes { return n.Devices[i].Room() - l.Fixed }
		// On all devices as many layers fit as are found from the last layer and the last device backwards.
		first := l.Total
		for i := len(n.Devices) - 1; i >= 0; i-- {
			end := first
			for first > 0 && l.First(end)-l.First(first-1) <= room(i) {
				first--
			}
		}
		if want := first == 0 || l.Spill && first < l.Total; ok != want {
			t.Fatalf("Choose returns %v, and the devices hold %d of %d layers", ok, l.Total-first, l.Total)
		}
		if !ok {
			return
		}
		on, rooms := 0, cluster.Bytes(0)
		for _, c := range claims {
			on += c.Layers
			rooms += room(c.Device)
		}
		if on != l.Total-first {
			t.Fatalf("%d of %d layers are on devices that hold %d", on, l.Total, l.Total-first)
		}
		base, start, before := l.First(l.Total-on), l.Total-on, cluster.Bytes(0)
		for i, c := range claims {
			end := start + c.Layers
			if i > 0 && c.Device <= claims[i-1].Device || c.Layers < 1 || c.Memory != l.Fixed+l.First(end)-l.First(start) || c.Memory > n.Devices[c.Device].Room() {
				t.Fatalf("%+v has the layers from %d to %d", c, start, end)
			}
			// A border is at its place, or the row before it or after it is full or has one layer.
			before += room(c.Device)
			place := base + cluster.Bytes(cluster.MulDiv(int64(l.All()-base), int64(before), int64(rooms)))
			away := l.First(end) - place
			full := room(c.Device)-(c.Memory-l.Fixed) < l.Bytes || c.Layers == 1
			if i+1 < len(claims) {
				next := claims[i+1]
				full = full || room(next.Device)-(next.Memory-l.Fixed) < l.Bytes || next.Layers == 1
			}
			if max(away, -away) > l.Bytes && !full {
				t.Fatalf("the row of %+v ends %d bytes from its place: %+v", c, away, claims)
			}
			start = end
		}
	})
}

// TestFewerDevicesWithSizes checks on random nodes of equal devices that no smaller number
// of devices holds the layers.
func TestFewerDevicesWithSizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLayers(t)
		l.Spill = false
		memory := cluster.Bytes(rapid.IntRange(1, 90).Draw(t, "memory")) * gi
		n := enginetest.Node("n").CPU(8, "1Ti").With(func(n *cluster.Node) {
			for range 8 {
				n.Devices = append(n.Devices, cluster.Device{DeviceSpec: &cluster.DeviceSpec{Memory: memory}})
			}
		}).Build()
		s := cluster.Shape{Need: cluster.Need{Layers: l}}
		claims, ok := n.Choose(&s, nil)
		if fits := l.Held(8, memory) == l.Total; fits != ok {
			t.Fatalf("Choose returns %v", ok)
		}
		if ok && len(claims) > 1 && l.Held(len(claims)-1, memory) == l.Total {
			t.Fatalf("%d devices are taken, and one less is enough", len(claims))
		}
	})
}
