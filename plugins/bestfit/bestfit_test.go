package bestfit

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

func TestScore(t *testing.T) {
	s := enginetest.State(
		enginetest.Node("large").CPU(128, "1Ti").GPUs(8, "A100", "80Gi"),
		enginetest.Node("small").CPU(64, "1Ti").GPUs(4, "A100", "80Gi"),
		enginetest.Node("cpu").CPU(64, "1Ti"),
	)
	one := &cluster.Shape{Resources: cluster.Resources{{Name: cluster.CPU, Value: 64_000}}, Need: cluster.Need{Devices: 4}}
	none := &cluster.Shape{Resources: cluster.Resources{{Name: cluster.CPU, Value: 32_000}}}
	for _, tt := range []struct {
		shape *cluster.Shape
		node  string
		want  float64 // what is left
	}{
		{one, "large", 1}, {one, "small", 0}, {none, "cpu", 0.25}, {none, "small", 0.75},
	} {
		n := s.Node(tt.node)
		if got := left(tt.shape, n); got != tt.want {
			t.Errorf("%s: %v is left, want %v", tt.node, got, tt.want)
		}
		if got := score(tt.shape, n); got != 100/(1+tt.want) {
			t.Errorf("%s: the score is %v", tt.node, got)
		}
	}
}

func TestDevices(t *testing.T) {
	s := &cluster.Shape{Need: cluster.Need{Devices: 1, Share: 300}}
	half := &cluster.Device{DeviceSpec: &cluster.DeviceSpec{}, Use: cluster.DeviceUse{Milli: 500}}
	if a, b := deviceScore(s, nil, half), deviceScore(s, nil, &cluster.Device{DeviceSpec: &cluster.DeviceSpec{}}); a != 50 || b != 0 {
		t.Errorf("%v, %v", a, b)
	}
	if model := (&cluster.Shape{Strategy: cluster.Binpack}); deviceScore(model, nil, half) != 0 || matters(model) {
		t.Error("it applies to models")
	}
}
