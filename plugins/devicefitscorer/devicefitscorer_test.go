package devicefitscorer

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

const gi = cluster.Bytes(1 << 30)

func TestScore(t *testing.T) {
	shape := func(devices int, share cluster.Milli, sum cluster.Bytes) *cluster.Shape {
		return &cluster.Shape{Strategy: cluster.Binpack, Need: cluster.Need{Devices: devices, Share: share, SumAtLeast: sum}}
	}
	whole := func(share cluster.Milli, sum cluster.Bytes) *cluster.Shape {
		return &cluster.Shape{Strategy: cluster.Binpack, Need: cluster.Need{WholeNode: true, Share: share, SumAtLeast: sum}}
	}
	node := func(parts ...func(*enginetest.NodeBuilder)) *cluster.Node {
		b := enginetest.Node("n").CPU(8, "64Gi")
		for _, p := range parts {
			p(b)
		}
		return enginetest.State(b).Node("n")
	}
	l4 := func(b *enginetest.NodeBuilder) { b.GPUs(2, "L4", "24Gi") }
	a100 := func(b *enginetest.NodeBuilder) { b.GPUs(2, "A100", "80Gi") }
	tests := map[string]struct {
		shape *cluster.Shape
		node  *cluster.Node
		want  float64
	}{
		"18 of the 18 GiB that 75 % of 24 are":  {shape(1, 750, 18*gi), node(l4), 10},
		"18 of the 60 GiB that 75 % of 80 are":  {shape(1, 750, 18*gi), node(a100), 3},
		"the smaller of two products":           {shape(1, 750, 18*gi), node(a100, l4), 10},
		"two devices, 18 GiB of each":           {shape(2, 750, 36*gi), node(a100), 3},
		"a whole node, 18 GiB of each device":   {whole(750, 36*gi), node(a100), 3},
		"too large for the small ones":          {shape(1, 750, 30*gi), node(l4, a100), 5},
		"too large for all":                     {shape(1, 750, 70*gi), node(l4, a100), 0},
		"no devices":                            {shape(1, 750, 18*gi), node(), 0},
		"a whole device is a claim like others": {shape(1, 1000, 40*gi), node(a100), 5},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := score(tt.shape, tt.node); got != tt.want {
				t.Errorf("have %v, want %v", got, tt.want)
			}
		})
	}
}

// A tight device that is held by another task does not raise the score of its node.
func TestHeldDevicesDoNotCount(t *testing.T) {
	s := enginetest.State(
		enginetest.Node("n").CPU(8, "64Gi").GPUs(1, "L4", "24Gi").GPUs(1, "A100", "80Gi"),
		enginetest.Job("other").Shape(func(s *cluster.Shape) {
			s.Need = cluster.Need{Devices: 1, Products: []string{"L4"}}
		}).On("n"),
	)
	shape := &cluster.Shape{Strategy: cluster.Spread, Need: cluster.Need{Devices: 1, Share: 750, SumAtLeast: 18 * gi}}
	if got := score(shape, s.Node("n")); got != 3 {
		t.Errorf("have %v, want 3", got)
	}
}

func TestMatters(t *testing.T) {
	for name, shape := range map[string]*cluster.Shape{
		"not a model":           {Need: cluster.Need{Devices: 1, Share: 900, SumAtLeast: gi}},
		"bytes":                 {Strategy: cluster.Binpack, Need: cluster.Need{Devices: 1, Memory: gi}},
		"no memory is required": {Strategy: cluster.Binpack, Need: cluster.Need{Devices: 1, Share: 900}},
	} {
		if matters(shape) {
			t.Errorf("%s: the plugin applies", name)
		}
	}
}

func TestArguments(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"most": 10}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}

// TestDevicesThatDiffer checks that the score of a device that cannot be taken is not used for
// the next one, even if they look equal.
func TestDevicesThatDiffer(t *testing.T) {
	const gib = cluster.Bytes(1 << 30)
	pair := func(change func(*cluster.Node)) *cluster.Node {
		return enginetest.State(enginetest.Node("n").CPU(8, "100Gi").GPUs(2, "L4", "24Gi").With(change)).Node("n")
	}
	model := func() cluster.Shape {
		return cluster.Shape{Strategy: cluster.Binpack, Need: cluster.Need{Devices: 1, Share: 900, SumAtLeast: 21 * gib}}
	}
	cuda, second := model(), model()
	cuda.Need.Types = []string{"cuda"}
	second.Need.Selected = []cluster.DeviceID{{Node: "n", Type: "cuda", Index: 1}}
	plain := model()
	want := score(&plain, pair(func(*cluster.Node) {}))
	tests := map[string]struct {
		shape  cluster.Shape
		change func(*cluster.Node)
	}{
		"lost":            {model(), func(n *cluster.Node) { n.Devices[0].Lost = true }},
		"foreign memory":  {model(), func(n *cluster.Node) { n.Devices[0].Foreign = 20 * gib }},
		"reserved":        {model(), func(n *cluster.Node) { n.Devices[0].OwnSpec().Reserved = 20 * gib }},
		"of another type": {cuda, func(n *cluster.Node) { n.Devices[0].OwnSpec().Type = "rocm"; n.Devices[1].OwnSpec().Type = "cuda" }},
		"not selected":    {second, func(*cluster.Node) {}},
	}
	for name, tt := range tests {
		if got := score(&tt.shape, pair(tt.change)); got != want || got == 0 {
			t.Errorf("%s: score %v, want %v, of the second device", name, got, want)
		}
	}
}
