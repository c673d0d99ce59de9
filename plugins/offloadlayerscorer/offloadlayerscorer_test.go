package offloadlayerscorer

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

func TestKeep(t *testing.T) {
	layers := func(s *cluster.Shape) {
		s.Need.Layers = &cluster.Layers{Total: 32, Bytes: enginetest.Size("1Gi"), Spill: true, Least: 1}
	}
	job := func() *enginetest.JobBuilder { return enginetest.Job("m") }
	tests := map[string]struct {
		job     *enginetest.JobBuilder
		reports cluster.Offload
		want    float64
	}{
		"all on devices":                     {job(), cluster.Offload{Layers: 32, Total: 32}, 100},
		"some":                               {job(), cluster.Offload{Layers: 8, Total: 32}, 25},
		"none":                               {job(), cluster.Offload{Total: 32}, 0},
		"nothing reported, no layers":        {job(), cluster.Offload{}, 0},
		"no total":                           {job(), cluster.Offload{Layers: 8}, 0},
		"more layers than the total":         {job(), cluster.Offload{Layers: 40, Total: 32}, 100},
		"a negative number of layers":        {job(), cluster.Offload{Layers: -1, Total: 32}, 0},
		"layers of the placement":            {job().Shape(layers).On("a"), cluster.Offload{}, 75},
		"layers of the placement, two tasks": {job().Gang(2).Shape(layers).On("a", "b"), cluster.Offload{}, 50},
		"layers of the placement, one of two tasks": {job().Gang(2).Min(1).Shape(layers).On("a"), cluster.Offload{}, 37.5},
		"reported layers take precedence":           {job().Shape(layers).On("a"), cluster.Offload{Layers: 16, Total: 32}, 50},
		"not placed":                                {job().Shape(layers), cluster.Offload{}, 0},
		"devices, but no layers":                    {job().Devices(1).On("a"), cluster.Offload{}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			state := enginetest.State(tt.job,
				enginetest.Node("a").CPU(8, "64Gi").GPUs(1, "L4", "24Gi"), enginetest.Node("b").CPU(8, "64Gi").GPUs(1, "T4", "8Gi"))
			j := state.Job("job/m")
			if err := state.Apply(cluster.JobSeen{Job: j.ID, Health: j.Health, Offload: tt.reports}); err != nil {
				t.Fatal(err)
			}
			if got := keep(j); got != tt.want {
				t.Errorf("score %v, want %v", got, tt.want)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"most": 10}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}
