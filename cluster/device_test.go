package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

func TestRoomAndFree(t *testing.T) {
	d := cluster.Device{DeviceSpec: &cluster.DeviceSpec{Memory: 80 * gi, Reserved: 2 * gi}, Foreign: 3 * gi, Use: cluster.DeviceUse{Memory: 10 * gi}}
	if d.Room() != 75*gi || d.Free() != 65*gi {
		t.Errorf("room %d, free %d", d.Room()/gi, d.Free()/gi)
	}
	d.Foreign = 200 * gi
	if d.Room() != 0 || d.Free() != -10*gi {
		t.Errorf("room %d, free %d", d.Room()/gi, d.Free()/gi)
	}
}

// TestForeignAndReservedMemory checks that tasks get neither foreign nor reserved
// memory, and that foreign memory leaves a device usable.
func TestForeignAndReservedMemory(t *testing.T) {
	whole := cluster.Shape{Need: cluster.Need{Devices: 1}}
	alone := cluster.Shape{Need: cluster.Need{Devices: 1, Memory: 79 * gi}, Isolation: cluster.Isolation{GPU: cluster.GPUDeviceExclusive}}
	share := cluster.Shape{Need: cluster.Need{Devices: 1, Share: 900}}
	memory := cluster.Shape{Need: cluster.Need{Devices: 1, Memory: 76 * gi}}
	layers := cluster.Shape{Need: cluster.Need{Layers: &cluster.Layers{Total: 1, Bytes: 76 * gi}}}
	tests := map[string]struct {
		reserved, foreign cluster.Bytes
		shape             cluster.Shape
		takes, usable     bool
	}{
		"whole device":                          {2 * gi, gi, whole, true, true},
		"whole device, too much foreign memory": {0, gi + 1, whole, false, true},
		"share":                                 {4 * gi, 4 * gi, share, true, true},
		"share, too much foreign memory":        {4 * gi, 5 * gi, share, false, true},
		"share, reserved memory":                {9 * gi, 0, share, true, true},
		"share, some foreign memory too":        {9 * gi, gi, share, true, true},
		"share, more foreign memory too":        {9 * gi, gi + 1, share, false, true},
		"memory":                                {2 * gi, 2 * gi, memory, true, true},
		"memory, too much foreign memory":       {2 * gi, 3 * gi, memory, false, true},
		"memory, too much reserved memory":      {5 * gi, 0, memory, false, false},
		"layers":                                {2 * gi, 2 * gi, layers, true, true},
		"layers, too much foreign memory":       {2 * gi, 3 * gi, layers, false, true},
		"exclusive, exactly what is left":       {0, gi, alone, true, true},
		"exclusive, more than what is left":     {gi / 2, gi, alone, false, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			n := enginetest.Node("n").CPU(8, "64Gi").GPUs(1, "A100", "80Gi").Build()
			d := &n.Devices[0]
			d.OwnSpec().Reserved, d.Foreign = tt.reserved, tt.foreign
			if takes, usable := tt.shape.Takes(d), tt.shape.Usable(d); takes != tt.takes || usable != tt.usable {
				t.Errorf("takes: %v, usable: %v", takes, usable)
			}
			if n.Feasible(&tt.shape) != tt.takes {
				t.Errorf("Feasible returns %v", !tt.takes)
			}
			claims, ok := n.Choose(&tt.shape, nil)
			if ok != tt.takes || ok && claims[0].Memory > d.Room() {
				t.Errorf("Choose returns %v, %v", claims, ok)
			}
		})
	}
}

// A device that takes a share takes any smaller share, and no share holds more memory than
// the device has left.
func TestSmallerSharesFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := func(most cluster.Bytes, label string) cluster.Bytes {
			return cluster.Bytes(rapid.Int64Range(0, int64(most)).Draw(t, label))
		}
		n := enginetest.Node("n").CPU(8, "64Gi").GPUs(1, "L4", "24Gi").Build()
		d := &n.Devices[0]
		d.OwnSpec().Reserved, d.Foreign = bytes(24*gi, "reserved"), bytes(2*gi, "foreign")
		if rapid.Bool().Draw(t, "in use") {
			part := cluster.Milli(rapid.IntRange(1, 1000).Draw(t, "held"))
			d.Use = cluster.DeviceUse{Leases: 1, Milli: part, Memory: min(d.Of(part), d.Room())}
		}
		larger := rapid.IntRange(2, 1000).Draw(t, "larger")
		smaller := rapid.IntRange(1, larger-1).Draw(t, "smaller")
		for _, share := range []int{larger, smaller} {
			s := cluster.Shape{Need: cluster.Need{Devices: 1, Share: cluster.Milli(share)}}
			claims, ok := n.Choose(&s, nil)
			if ok && claims[0].Memory > d.Free() {
				t.Fatalf("a share of %d‰ holds %d of %d bytes", share, claims[0].Memory, d.Free())
			}
			if ok != n.Feasible(&s) || ok != s.Takes(d) {
				t.Fatalf("a share of %d‰ is chosen: %v", share, ok)
			}
			if !ok && share == larger {
				return
			}
			if !ok {
				t.Fatalf("the device takes %d‰ but not %d‰", larger, smaller)
			}
		}
	})
}

func TestNeedSelectsDevices(t *testing.T) {
	n := enginetest.Node("n").GPUs(2, "A100", "80Gi").GPUs(2, "MI300", "192Gi").With(func(n *cluster.Node) {
		n.Devices[2].OwnSpec().Type, n.Devices[3].OwnSpec().Type = "rocm", "rocm"
	}).Build()
	if got := n.Devices[3].ID.String(); got != "n:rocm:1" {
		t.Errorf("the ID of the last device is %s", got)
	}
	tests := map[string]struct {
		need cluster.Need
		want []int
	}{
		"a type":                  {cluster.Need{Devices: 1, Types: []string{"cann", "rocm"}}, []int{2}},
		"a type without devices":  {cluster.Need{Devices: 1, Types: []string{"cann"}}, nil},
		"too many of a type":      {cluster.Need{Devices: 3, Types: []string{"rocm"}}, nil},
		"selected devices":        {cluster.Need{Devices: 2, Selected: []cluster.DeviceID{{"n", "cuda", 1}, {"n", "rocm", 1}}}, []int{1, 3}},
		"too few are on the node": {cluster.Need{Devices: 2, Selected: []cluster.DeviceID{{"n", "cuda", 1}, {"o", "cuda", 0}}}, nil},
		"selected, and of a type": {cluster.Need{Devices: 1, Types: []string{"rocm"}, Selected: []cluster.DeviceID{{"n", "cuda", 1}, {"n", "rocm", 1}}}, []int{3}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := cluster.Shape{Need: tt.need}
			claims, _ := n.Choose(&s, nil)
			var got []int
			for _, c := range claims {
				got = append(got, c.Device)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if n.Feasible(&s) != (tt.want != nil) {
				t.Errorf("Feasible returns %v", tt.want == nil)
			}
		})
	}
	a, b := cluster.DeviceID{"a", "cuda", 10}, cluster.DeviceID{"a", "cuda", 9}
	if a.Compare(b) <= 0 || b.Compare(cluster.DeviceID{"a", "rocm", 0}) >= 0 || a.Compare(cluster.DeviceID{"b", "", 0}) >= 0 {
		t.Error("Compare does not order by node, type and index")
	}
}

func TestShareOfEveryDevice(t *testing.T) {
	half := cluster.Shape{Need: cluster.Need{WholeNode: true, Share: 500}}
	tests := map[string]struct {
		held *enginetest.JobBuilder
		sum  cluster.Bytes
		want []cluster.Claim
	}{
		"an idle node":           {nil, 0, []cluster.Claim{{Device: 0, Milli: 500, Memory: 40 * gi}, {Device: 1, Milli: 500, Memory: 40 * gi}}},
		"half is held":           {enginetest.Job("x").Share(2, 500).On("n"), 80 * gi, []cluster.Claim{{Device: 0, Milli: 500, Memory: 40 * gi}, {Device: 1, Milli: 500, Memory: 40 * gi}}},
		"held as a whole node":   {enginetest.Job("x").WholeNodes(1, "8Gi").Shape(func(s *cluster.Shape) { s.Need.Share = 100 }).On("n"), 0, nil},
		"one device is too full": {enginetest.Job("x").Share(1, 501).On("n"), 0, nil},
		"the sum is too small":   {nil, 80*gi + 1, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			parts := []enginetest.Part{enginetest.Node("n").CPU(8, "64Gi").GPUs(2, "A100", "80Gi")}
			if tt.held != nil {
				parts = append(parts, tt.held)
			}
			n := enginetest.State(parts...).Node("n")
			shape := half
			shape.Need.SumAtLeast = tt.sum
			got, _ := n.Choose(&shape, nil)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if most := n.Most(&shape); most != 1 {
				t.Errorf("Most is %d, want 1", most)
			}
		})
	}
}
