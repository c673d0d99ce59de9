package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// TestDeviceMemoryOfAWholeNode checks that DeviceMemory and FreeDeviceMemory agree with
// what a task that takes a whole node claims.
func TestDeviceMemoryOfAWholeNode(t *testing.T) {
	each := func(change func(*cluster.Device)) func(*cluster.Node) {
		return func(n *cluster.Node) {
			for i := range n.Devices {
				change(&n.Devices[i])
			}
		}
	}
	type memory struct {
		Ever, Now cluster.Bytes
		Claims    []cluster.Bytes // nil: the node does not take the task
	}
	tests := map[string]struct { // the node has two devices of 24 GiB and 36 GiB of memory; the task requests 2 GiB of memory
		change func(*cluster.Node)
		want   memory
	}{
		"all":         {each(func(*cluster.Device) {}), memory{48 * gi, 48 * gi, []cluster.Bytes{24 * gi, 24 * gi}}},
		"reserved":    {each(func(d *cluster.Device) { d.OwnSpec().Reserved = 4 * gi }), memory{40 * gi, 40 * gi, []cluster.Bytes{20 * gi, 20 * gi}}},
		"foreign":     {each(func(d *cluster.Device) { d.Foreign = gi }), memory{48 * gi, 46 * gi, []cluster.Bytes{23 * gi, 23 * gi}}},
		"in use":      {each(func(d *cluster.Device) { d.Foreign = 2 * gi }), memory{48 * gi, 44 * gi, nil}},
		"one lost":    {func(n *cluster.Node) { n.Devices[0].Lost = true }, memory{24 * gi, 24 * gi, []cluster.Bytes{24 * gi}}},
		"time-sliced": {each(func(d *cluster.Device) { d.OwnSpec().Shares = "card" }), memory{24 * gi, 24 * gi, []cluster.Bytes{24 * gi, 24 * gi}}},
		"unified":     {func(n *cluster.Node) { n.Unified = true }, memory{34 * gi, 34 * gi, []cluster.Bytes{24 * gi, 10 * gi}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			state := enginetest.State(enginetest.Node("n").CPU(8, "36Gi").GPUs(2, "L4", "24Gi").With(tt.change), enginetest.Job("j").CPU(1000, "2Gi").WholeNodes(1, "1Gi"))
			n, s := state.Node("n"), state.Jobs()[0].Tasks()[0].Shape
			got := memory{Ever: s.DeviceMemory(n), Now: s.FreeDeviceMemory(n)}
			claims, _ := n.Choose(s, nil)
			for _, c := range claims {
				got.Claims = append(got.Claims, c.Memory)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("memory (-want +got):\n%s", d)
			}
		})
	}
}

// TestReplicasInSum checks that replicas that share memory add it once to a sum, so
// that replicas of different GPUs are preferred for a large sum.
func TestReplicasInSum(t *testing.T) {
	sliced := func(n *cluster.Node) {
		for i := range n.Devices {
			n.Devices[i].OwnSpec().Shares = []string{"a", "b"}[i/2]
		}
	}
	tests := map[string]struct {
		sum  cluster.Bytes
		want []int // nil: the node does not take the task
	}{
		"of one GPU":   {24 * gi, []int{0, 1}},
		"of both GPUs": {48 * gi, []int{0, 2}},
		"too much":     {48*gi + 1, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			n := enginetest.State(enginetest.Node("n").CPU(8, "64Gi").GPUs(4, "L4", "24Gi").With(sliced)).Node("n")
			claims, _ := n.Choose(&cluster.Shape{Need: cluster.Need{Devices: 2, SumAtLeast: tt.sum}}, nil)
			var got []int
			for _, c := range claims {
				got = append(got, c.Device)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("devices (-want +got):\n%s", d)
			}
		})
	}
}
