package placementscorer

import (
	"math"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// shape returns the shape of the job's tasks.
func shape(j *enginetest.JobBuilder) *cluster.Shape { return j.Build().Tasks()[0].Shape }

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestBinpack(t *testing.T) {
	model := func() *enginetest.JobBuilder { return enginetest.Job("m").ModelReplica(cluster.Binpack) }
	empty := enginetest.State(enginetest.Node("n").CPU(8, "64Gi").GPUs(2, "H100", "80Gi")).Node("n")
	// 40 GiB of the first device and 48 GiB of the node's memory are free.
	used := enginetest.State(enginetest.Node("n").CPU(8, "64Gi").GPUs(2, "H100", "80Gi"),
		enginetest.Job("j").CPU(0, "16Gi").DeviceMemory(1, "40Gi").On("n")).Node("n")
	// The node has less than what runs on it.
	over := enginetest.State(enginetest.Node("n").CPU(8, "64Gi"), enginetest.Job("j").CPU(0, "80Gi").On("n")).Node("n")
	nameless := enginetest.Node("n").CPU(8, "64Gi").GPUs(1, "X", "0").Build()
	unified := enginetest.Node("n").CPU(8, "64Gi").GPUs(1, "GB10", "64Gi").With(func(n *cluster.Node) { n.Unified = true }).Build()
	tests := map[string]struct {
		job  *enginetest.JobBuilder
		node *cluster.Node
		want float64
	}{
		"one device":                         {model().CPU(0, "8Gi").DeviceMemory(1, "20Gi"), empty, 100 * (8.0/64 + 2*20.0/80) / 3},
		"the fullest device that fits":       {model().CPU(0, "8Gi").DeviceMemory(1, "20Gi"), used, 100 * (8.0/48 + 2*20.0/40) / 3},
		"the fullest device is too full":     {model().CPU(0, "8Gi").DeviceMemory(1, "60Gi"), used, 100 * (8.0/48 + 2*60.0/80) / 3},
		"the larger fraction of two devices": {model().CPU(0, "8Gi").DeviceMemory(2, "20Gi"), used, 100 * (8.0/48 + 2*20.0/40) / 3},
		"a share of each":                    {model().Share(1, 900), empty, 100 * 2 * 0.9 / 3},
		"whole devices":                      {model().Devices(1), empty, 100 * 2.0 / 3},
		"all that is free":                   {model().CPU(0, "48Gi").DeviceMemory(1, "40Gi"), used, 100},
		"no device":                          {model().CPU(0, "8Gi"), used, 100 * 8.0 / 48},
		"nothing requested":                  {model(), used, 0},
		"nothing requested, the node has less than it holds": {model(), over, 0},
		"memory requested, the node has less than it holds":  {model().CPU(0, "1Gi"), over, 100},
		"a device of unknown size":                           {model().Share(1, 500), nameless, 100 * 2 * 0.5 / 3},
		"unified memory":                                     {model().CPU(0, "16Gi").DeviceMemory(1, "16Gi"), unified, 100 * (32.0/64 + 2*16.0/64) / 3},
		"it does not fit":                                    {model().DeviceMemory(1, "90Gi"), empty, 0},
		"all layers must be on devices":                      {model().Shape(layers(8, false)), empty, 100 * 2 * 32.0 / 80 / 3},
		"layers may spill, all fit":                          {model().Shape(layers(8, true)), empty, 100 * (8 + 1.0/2 + 2*32.0/80/3/2) / 9},
		"layers may spill, some do":                          {model().Shape(layers(44, true)), empty, 100 * (40 + 1.0/3 + (16.0/64+2)/3/6) / 45},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := pack(ownChoice, shape(tt.job), tt.node); !near(got, tt.want) {
				t.Errorf("score %v, want %v", got, tt.want)
			}
		})
	}
}

// layers is a request for layers of 4 GiB each.
func layers(total int, spill bool) func(*cluster.Shape) {
	return func(s *cluster.Shape) {
		s.Need.Layers = &cluster.Layers{Total: total, Bytes: enginetest.Size("4Gi"), Least: 1, Spill: spill}
	}
}

// One more layer on devices counts more than everything else.
func TestMoreLayersWin(t *testing.T) {
	more := enginetest.State(enginetest.Node("n").CPU(8, "640Gi").GPUs(1, "H100", "84Gi")).Node("n")
	full := enginetest.State(enginetest.Node("n").CPU(8, "160Gi").GPUs(1, "A100", "80Gi"), enginetest.Job("j").CPU(0, "60Gi").On("n")).Node("n")
	for _, strategy := range []cluster.Strategy{cluster.Binpack, cluster.Spread} {
		s := shape(enginetest.Job("m").ModelReplica(strategy).Shape(layers(44, true)))
		if a, b := pack(ownChoice, s, more), pack(ownChoice, s, full); a <= b {
			t.Errorf("%s: 21 layers score %v, 20 layers on a fuller node %v", strategy, a, b)
		}
	}
}

// Of equally many layers, those on fewer devices win, whatever else is free.
func TestFewerDevicesWin(t *testing.T) {
	one := enginetest.State(enginetest.Node("n").CPU(8, "640Gi").GPUs(1, "H100", "164Gi")).Node("n")
	two := enginetest.State(enginetest.Node("n").CPU(8, "80Gi").GPUs(2, "A100", "80Gi")).Node("n")
	for _, strategy := range []cluster.Strategy{cluster.Binpack, cluster.Spread} {
		s := shape(enginetest.Job("m").ModelReplica(strategy).Shape(layers(40, true)))
		if a, b := pack(ownChoice, s, one), pack(ownChoice, s, two); a <= b {
			t.Errorf("%s: 40 layers on one device score %v, on two fuller ones %v", strategy, a, b)
		}
	}
}

func TestKeepBinpacked(t *testing.T) {
	model := func(name string) *enginetest.JobBuilder {
		return enginetest.Job(name).ModelReplica(cluster.Binpack).Set("m", 1).CPU(0, "8Gi").DeviceMemory(1, "20Gi")
	}
	state := enginetest.State(
		enginetest.Node("a").CPU(8, "64Gi").GPUs(1, "H100", "80Gi"), enginetest.Node("b").CPU(8, "64Gi").GPUs(1, "H100", "80Gi"),
		model("alone").On("a"), model("first").On("b"), model("second").On("b"), model("nowhere"), model("both").Gang(2).On("a", "b"),
	)
	// Without its own claim, "alone" would find 60 GiB of a free, because "both" is on a
	// too. The others would find 40 GiB of b.
	a, b := 100*(8.0/56+2*20.0/60)/3, 100*(8.0/48+2*20.0/40)/3
	for name, want := range map[string]float64{"alone": a, "first": b, "second": b, "nowhere": 0, "both": (a + b) / 2} {
		if got := keep(state.Job("job/" + name)); !near(got, want) {
			t.Errorf("%s: score %v, want %v", name, got, want)
		}
	}
}
