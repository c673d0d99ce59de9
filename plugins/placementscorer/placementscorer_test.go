package placementscorer

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// ownChoice chooses devices without the preferences of other plugins.
func ownChoice(s *cluster.Shape, n *cluster.Node) ([]cluster.Claim, bool) {
	return n.Choose(s, func(d *cluster.Device) int64 { return points(s, d) })
}

// run runs a session with this plugin and returns the node and devices of each job.
func run(t *testing.T, state *cluster.State) map[string]string {
	t.Helper()
	p, err := New(engine.NoArguments{})
	if err != nil {
		t.Fatal(err)
	}
	s := enginetest.Engine(p, enginetest.Fit()).Open(state, engine.Options{Search: engine.Twin})
	defer s.Close()
	out, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	where := map[string]string{}
	for _, d := range out.Decisions {
		at := d.Node
		for _, c := range d.Claims {
			at += fmt.Sprintf(" %d", c.Device)
		}
		where[d.Task.Job[len("job/"):]] = at
	}
	return where
}

func TestReplicas(t *testing.T) {
	nodes := []enginetest.Part{
		enginetest.Node("a").CPU(8, "64Gi").GPUs(2, "H100", "80Gi"),
		enginetest.Node("b").CPU(8, "64Gi").GPUs(2, "H100", "80Gi"),
	}
	replicas := func(s cluster.Strategy, n int) []enginetest.Part {
		var out []enginetest.Part
		for i := range n {
			out = append(out, enginetest.Job(fmt.Sprint("m-", i)).ModelReplica(s).Set("m", n).Created(int64(i)).DeviceMemory(1, "30Gi"))
		}
		return out
	}
	tests := map[string]struct {
		parts []enginetest.Part
		want  map[string]string
	}{
		"packed": {replicas(cluster.Binpack, 5), map[string]string{"m-0": "a 0", "m-1": "a 0", "m-2": "a 1", "m-3": "a 1", "m-4": "b 0"}},
		"spread": {replicas(cluster.Spread, 5), map[string]string{"m-0": "a 0", "m-1": "b 0", "m-2": "a 1", "m-3": "b 1", "m-4": "a 0"}},
		"spread away from others": {
			append(replicas(cluster.Spread, 1), enginetest.Job("x").ModelReplica(cluster.Binpack).Set("x", 1).On("a")),
			map[string]string{"m-0": "b 0"},
		},
		"packed beside a job": {
			append(replicas(cluster.Binpack, 1), enginetest.Job("x").DeviceMemory(1, "10Gi").On("b")),
			map[string]string{"m-0": "b 0"},
		},
		"a task that is not of a model": {
			[]enginetest.Part{enginetest.Job("x").DeviceMemory(1, "10Gi").On("b"), enginetest.Job("j").DeviceMemory(1, "10Gi")},
			map[string]string{"j": "a 0"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, run(t, enginetest.State(slices.Concat(nodes, tt.parts)...))); d != "" {
				t.Errorf("placements (-want +got):\n%s", d)
			}
		})
	}
}

// The node has devices of 80 GiB: the first is free, the second has 20 GiB free and one
// lease, the third 40 GiB free and two leases.
func TestDevices(t *testing.T) {
	held := func(name string, device int, memory string) func(*cluster.State) {
		return func(s *cluster.State) {
			j := enginetest.Job(name).DeviceMemory(1, memory).Build()
			m := enginetest.Size(memory)
			seen := cluster.SeenOn(j.Tasks()[0], s.Node("n"), []cluster.Claim{{Device: device, Milli: s.Node("n").Devices[device].Part(m), Memory: m}}, 0)
			if err := s.ApplyAll([]cluster.Change{cluster.JobPut{Job: *j}, seen}); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := map[string]struct {
		job          *enginetest.JobBuilder
		pack, spread string
	}{
		"10 GiB":                               {enginetest.Job("m").DeviceMemory(1, "10Gi"), "n 1", "n 0"},
		"30 GiB":                               {enginetest.Job("m").DeviceMemory(1, "30Gi"), "n 2", "n 0"},
		"two devices":                          {enginetest.Job("m").DeviceMemory(2, "10Gi"), "n 1 2", "n 0 1"},
		"a share":                              {enginetest.Job("m").Share(1, 250), "n 1", "n 0"},
		"a whole device":                       {enginetest.Job("m").Devices(1), "n 0", "n 0"},
		"layers that fit one device":           {enginetest.Job("m").Shape(layers(4, false)), "n 1", "n 0"},
		"layers that fit only the idle device": {enginetest.Job("m").Shape(layers(15, false)), "n 0", "n 0"},
		"layers that need two devices":         {enginetest.Job("m").Shape(layers(25, false)), "n 0 2", "n 0 2"},
		"an exclusive device":                  {enginetest.Job("m").DeviceMemory(1, "10Gi").Isolate(cluster.Isolation{GPU: cluster.GPUDeviceExclusive}), "n 0", "n 0"},
	}
	for name, tt := range tests {
		for strategy, want := range map[cluster.Strategy]string{cluster.Binpack: tt.pack, cluster.Spread: tt.spread} {
			t.Run(name+", "+string(strategy), func(t *testing.T) {
				state := enginetest.State(enginetest.Node("n").CPU(8, "64Gi").GPUs(3, "H100", "80Gi"), tt.job.ModelReplica(strategy))
				for _, hold := range []func(*cluster.State){held("x", 1, "60Gi"), held("y", 2, "20Gi"), held("z", 2, "20Gi")} {
					hold(state)
				}
				if got := run(t, state)["m"]; got != want {
					t.Errorf("placed on %q, want %q", got, want)
				}
			})
		}
	}
}

func TestPoints(t *testing.T) {
	spread, pack := shape(enginetest.Job("m").ModelReplica(cluster.Spread).Share(1, 100)), shape(enginetest.Job("m").ModelReplica(cluster.Binpack).Share(1, 100))
	idle := cluster.Device{DeviceSpec: &cluster.DeviceSpec{Memory: 1000}}
	device := func(leases, leaving int32, used cluster.Bytes) *cluster.Device {
		d := idle
		d.Use = cluster.DeviceUse{Leases: leases, ReleasingLeases: leaving, Memory: used}
		return &d
	}
	tests := map[string]struct {
		better, worse *cluster.Device
		shape         *cluster.Shape
	}{
		"spread: fewer leases":               {device(1, 0, 900), device(2, 0, 100), spread},
		"spread: more free":                  {device(1, 0, 400), device(1, 0, 500), spread},
		"spread: not being released":         {device(1, 0, 400), device(1, 1, 400), spread},
		"spread: free counts more than that": {device(1, 1, 400), device(1, 0, 500), spread},
		"spread: very many leases":           {device(98, 0, 900), device(2000, 0, 0), spread},
		"pack: fuller":                       {device(1, 0, 500), device(9, 0, 400), pack},
		"pack: not being released":           {device(1, 0, 500), device(1, 1, 500), pack},
		"pack: fuller counts more than that": {device(1, 1, 500), device(1, 0, 499), pack},
		"pack: idle, and being released":     {device(0, 0, 0), device(0, 1, 0), pack},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			better, worse := deviceScore(tt.shape, nil, tt.better), deviceScore(tt.shape, nil, tt.worse)
			if better <= worse || better > 100 || worse < 0 {
				t.Errorf("%v and %v, want more and less, from 0 to 100", better, worse)
			}
		})
	}
	if got := deviceScore(shape(enginetest.Job("j").Share(1, 100)), nil, device(0, 0, 0)); got != 0 {
		t.Errorf("a task that is not of a model: %v, want 0", got)
	}
}

func TestArguments(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"strategy": "binpack"}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}
