package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

const gi = cluster.Bytes(1) << 30

func TestChoose(t *testing.T) {
	type want struct {
		Claims []cluster.Claim
		OK     bool
	}
	mixed := func() *enginetest.NodeBuilder {
		return enginetest.Node("n").CPU(8, "100Gi").GPUs(2, "A10", "24Gi").GPUs(2, "A100", "80Gi")
	}
	tests := map[string]struct {
		node  *enginetest.NodeBuilder
		held  []*enginetest.JobBuilder
		shape cluster.Shape
		score func(*cluster.Device) int64
		want  want
	}{
		"no device requested": {node: mixed(), want: want{nil, true}},
		"a whole device, the lowest free index": {
			node: mixed(), held: []*enginetest.JobBuilder{enginetest.Job("x").Devices(1).On("n")},
			shape: cluster.Shape{Need: cluster.Need{Devices: 1}},
			want:  want{[]cluster.Claim{{Device: 1, Milli: 1000, Memory: 24 * gi}}, true},
		},
		"the devices with the best scores": {
			node: mixed(), shape: cluster.Shape{Need: cluster.Need{Devices: 2}},
			score: func(d *cluster.Device) int64 { return int64(d.Index % 3) },
			want:  want{[]cluster.Claim{{Device: 1, Milli: 1000, Memory: 24 * gi}, {Device: 2, Milli: 1000, Memory: 80 * gi}}, true},
		},
		"a share of each": {
			node: mixed(), shape: cluster.Shape{Need: cluster.Need{Devices: 3, Share: 250}},
			want: want{[]cluster.Claim{{Device: 0, Milli: 250, Memory: 6 * gi}, {Device: 1, Milli: 250, Memory: 6 * gi}, {Device: 2, Milli: 250, Memory: 20 * gi}}, true},
		},
		"memory of a device that is large enough": {
			node: mixed(), shape: cluster.Shape{Need: cluster.Need{Devices: 1, Memory: 40 * gi}},
			want: want{[]cluster.Claim{{Device: 2, Milli: 500, Memory: 40 * gi}}, true},
		},
		"memory rounds the share down": {
			node: mixed(), shape: cluster.Shape{Need: cluster.Need{Devices: 1, Memory: gi}},
			want: want{[]cluster.Claim{{Device: 0, Milli: 41, Memory: gi}}, true},
		},
		"a shared device has room left": {
			node: mixed(), held: []*enginetest.JobBuilder{enginetest.Job("x").Share(4, 700).On("n")},
			shape: cluster.Shape{Need: cluster.Need{Devices: 1, Share: 300}},
			want:  want{[]cluster.Claim{{Device: 0, Milli: 300, Memory: 24 * gi * 3 / 10}}, true},
		},
		"a shared device is too full": {
			node: mixed(), held: []*enginetest.JobBuilder{enginetest.Job("x").Share(4, 701).On("n")},
			shape: cluster.Shape{Need: cluster.Need{Devices: 1, Share: 300}},
		},
		"exclusive takes the whole device": {
			node: mixed(), shape: cluster.Shape{Need: cluster.Need{Devices: 1, Share: 300}, Isolation: cluster.Isolation{GPU: cluster.GPUDeviceExclusive}},
			want: want{[]cluster.Claim{{Device: 0, Milli: 1000, Memory: 24 * gi}}, true},
		},
		"a device that an exclusive task holds": {
			node:  enginetest.Node("n").GPUs(1, "A10", "24Gi"),
			held:  []*enginetest.JobBuilder{enginetest.Job("x").Share(1, 100).Isolate(cluster.Isolation{GPU: cluster.GPUDeviceExclusive}).On("n")},
			shape: cluster.Shape{Need: cluster.Need{Devices: 1, Share: 100}},
		},
		"a device that the same session holds": {
			node:  enginetest.Node("n").GPUs(1, "A10", "24Gi"),
			held:  []*enginetest.JobBuilder{enginetest.Job("x").Share(1, 500).Isolate(cluster.Isolation{GPU: cluster.GPUSessionExclusive, Session: "s"}).On("n")},
			shape: cluster.Shape{Need: cluster.Need{Devices: 1, Share: 500}, Isolation: cluster.Isolation{GPU: cluster.GPUSessionExclusive, Session: "s"}},
			want:  want{[]cluster.Claim{{Device: 0, Milli: 500, Memory: 12 * gi}}, true},
		},
		"a device that a session holds": {
			node:  enginetest.Node("n").GPUs(1, "A10", "24Gi"),
			held:  []*enginetest.JobBuilder{enginetest.Job("x").Share(1, 500).Isolate(cluster.Isolation{GPU: cluster.GPUSessionExclusive, Session: "s"}).On("n")},
			shape: cluster.Shape{Need: cluster.Need{Devices: 1, Share: 500}},
		},
		"devices of one product": {
			node: mixed(), held: []*enginetest.JobBuilder{enginetest.Job("x").Devices(1).On("n")},
			shape: cluster.Shape{Need: cluster.Need{Devices: 2, SameProduct: true}},
			want:  want{[]cluster.Claim{{Device: 2, Milli: 1000, Memory: 80 * gi}, {Device: 3, Milli: 1000, Memory: 80 * gi}}, true},
		},
		"no product has enough devices": {node: mixed(), shape: cluster.Shape{Need: cluster.Need{Devices: 3, SameProduct: true}}},
		"an allowed product": {
			node: mixed(), shape: cluster.Shape{Need: cluster.Need{Devices: 1, Products: []string{"A100"}}},
			want: want{[]cluster.Claim{{Device: 2, Milli: 1000, Memory: 80 * gi}}, true},
		},
		"a sum that the first devices give": {
			node: mixed(), shape: cluster.Shape{Need: cluster.Need{Devices: 2, Share: 900, SumAtLeast: 40 * gi}},
			want: want{[]cluster.Claim{{Device: 0, Milli: 900, Memory: 24 * gi * 9 / 10}, {Device: 1, Milli: 900, Memory: 24 * gi * 9 / 10}}, true},
		},
		"a sum that only the largest devices give": {
			node: mixed(), shape: cluster.Shape{Need: cluster.Need{Devices: 2, Share: 900, SumAtLeast: 140 * gi}},
			want: want{[]cluster.Claim{{Device: 2, Milli: 900, Memory: 72 * gi}, {Device: 3, Milli: 900, Memory: 72 * gi}}, true},
		},
		"a sum that no devices give": {node: mixed(), shape: cluster.Shape{Need: cluster.Need{Devices: 2, Share: 900, SumAtLeast: 145 * gi}}},
		"a whole node": {
			node: enginetest.Node("n").GPUs(2, "A10", "24Gi"), shape: cluster.Shape{Need: cluster.Need{WholeNode: true, SumAtLeast: 48 * gi}},
			want: want{[]cluster.Claim{{Device: 0, Milli: 1000, Memory: 24 * gi}, {Device: 1, Milli: 1000, Memory: 24 * gi}}, true},
		},
		"a whole node that is too small": {
			node: enginetest.Node("n").GPUs(2, "A10", "24Gi"), shape: cluster.Shape{Need: cluster.Need{WholeNode: true, SumAtLeast: 49 * gi}},
		},
		"a whole node that is in use": {
			node: enginetest.Node("n").GPUs(2, "A10", "24Gi"), held: []*enginetest.JobBuilder{enginetest.Job("x").Share(1, 1).On("n")},
			shape: cluster.Shape{Need: cluster.Need{WholeNode: true}},
		},
		"a whole node without devices": {node: enginetest.Node("n"), shape: cluster.Shape{Need: cluster.Need{WholeNode: true}}},
		"a MIG slice by its profile": {
			node:  enginetest.Node("n").GPUs(1, "A100", "80Gi").Slices(2, "A100", "1g.10gb", "10Gi"),
			shape: cluster.Shape{Need: cluster.Need{Devices: 1, Partition: "1g.10gb"}},
			want:  want{[]cluster.Claim{{Device: 1, Milli: 1000, Memory: 10 * gi}}, true},
		},
		"a MIG slice is not requested by count": {
			node:  enginetest.Node("n").Slices(2, "A100", "1g.10gb", "10Gi"),
			shape: cluster.Shape{Need: cluster.Need{Devices: 1}},
		},
		"another resource name": {node: mixed(), shape: cluster.Shape{Need: cluster.Need{Devices: 1, Resource: "amd.com/gpu"}}},
		"a lost device": {
			node:  enginetest.Node("n").GPUs(2, "A10", "24Gi").With(func(n *cluster.Node) { n.Devices[0].Lost = true }),
			shape: cluster.Shape{Need: cluster.Need{Devices: 1}},
			want:  want{[]cluster.Claim{{Device: 1, Milli: 1000, Memory: 24 * gi}}, true},
		},
		"layers on as few devices as possible": {
			node: mixed(), shape: cluster.Shape{Need: cluster.Need{Layers: &cluster.Layers{Total: 50, Bytes: 2 * gi, Fixed: 4 * gi}}},
			want: want{[]cluster.Claim{{Device: 2, Milli: 675, Memory: 54 * gi, Layers: 25}, {Device: 3, Milli: 675, Memory: 54 * gi, Layers: 25}}, true},
		},
		"layers on the device that holds most": {
			node: mixed(), shape: cluster.Shape{Resources: cluster.Resources{{Name: "memory", Value: 10 << 30}}, Need: cluster.Need{Devices: 1, Layers: &cluster.Layers{Total: 20, Bytes: 2 * gi, Fixed: 4 * gi, Least: 10, Spill: true}}},
			want: want{[]cluster.Claim{{Device: 2, Milli: 550, Memory: 44 * gi, Layers: 20}}, true},
		},
		"at least one layer on each requested device": {
			node: mixed(), shape: cluster.Shape{Need: cluster.Need{Devices: 3, Layers: &cluster.Layers{Total: 5, Bytes: 2 * gi, Fixed: gi}}},
			want: want{[]cluster.Claim{{Device: 0, Milli: 125, Memory: 3 * gi, Layers: 1}, {Device: 1, Milli: 125, Memory: 3 * gi, Layers: 1}, {Device: 2, Milli: 87, Memory: 7 * gi, Layers: 3}}, true},
		},
		"fewer layers than devices": {
			node: mixed(), shape: cluster.Shape{Need: cluster.Need{Devices: 3, Layers: &cluster.Layers{Total: 2, Bytes: 2 * gi, Fixed: gi}}},
		},
		"unknown products count as one product": {
			node:  enginetest.Node("n").GPUs(1, "", "24Gi").GPUs(1, "A10", "24Gi"),
			shape: cluster.Shape{Need: cluster.Need{Devices: 2, SameProduct: true}},
		},
		"the other layers spill": {
			node: mixed(), shape: cluster.Shape{Resources: cluster.Resources{{Name: "memory", Value: 10 << 30}}, Need: cluster.Need{Devices: 1, Products: []string{"A10"}, Layers: &cluster.Layers{Total: 20, Bytes: 2 * gi, Fixed: 4 * gi, Least: 10, Spill: true}}},
			want: want{[]cluster.Claim{{Device: 0, Milli: 1000, Memory: 24 * gi, Layers: 10}}, true},
		},
		"too few layers on devices": {
			node: mixed(), shape: cluster.Shape{Need: cluster.Need{Devices: 1, Products: []string{"A10"}, Layers: &cluster.Layers{Total: 20, Bytes: 2 * gi, Fixed: 4 * gi, Least: 11, Spill: true}}},
		},
		"no memory to spill to": {
			node: mixed(), shape: cluster.Shape{Resources: cluster.Resources{{Name: "memory", Value: 99 << 30}}, Need: cluster.Need{Devices: 1, Products: []string{"A10"}, Layers: &cluster.Layers{Total: 20, Bytes: 2 * gi, Least: 1, Spill: true}}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			parts := []enginetest.Part{tt.node}
			for _, j := range tt.held {
				parts = append(parts, j)
			}
			n := enginetest.State(parts...).Nodes()[0]
			claims, ok := n.Choose(&tt.shape, tt.score)
			if diff := cmp.Diff(tt.want, want{claims, ok}); diff != "" {
				t.Error(diff)
			}
			if feasible := n.Feasible(&tt.shape); feasible != ok {
				t.Errorf("Feasible returns %v, and Choose %v", feasible, ok)
			}
		})
	}
}

func TestMost(t *testing.T) {
	n := enginetest.Node("n").CPU(8, "64Gi").GPUs(1, "A10", "24Gi").GPUs(1, "A100", "80Gi").SupportedIsolation(cluster.SupportedIsolation{IsolableCores: 6}).Build()
	cores := func(milli int64, s cluster.Shape) cluster.Shape {
		s.Resources = cluster.Resources{{Name: cluster.CPU, Value: milli}}
		return s
	}
	tests := map[string]struct {
		shape cluster.Shape
		want  int
	}{
		"cores":          {cores(3000, cluster.Shape{}), 2},
		"isolable cores": {cores(2000, cluster.Shape{Isolation: cluster.Isolation{CPU: cluster.CPUStrictIsolated}}), 3},
		"whole devices":  {cluster.Shape{Need: cluster.Need{Devices: 2}}, 1},
		"share":          {cluster.Shape{Need: cluster.Need{Devices: 1, Share: 300}}, 6},
		"memory":         {cluster.Shape{Need: cluster.Need{Devices: 1, Memory: 20 * gi}}, 5},
		"exclusive":      {cluster.Shape{Need: cluster.Need{Devices: 1, Share: 300}, Isolation: cluster.Isolation{GPU: cluster.GPUDeviceExclusive}}, 2},
		"whole node":     {cluster.Shape{Need: cluster.Need{WholeNode: true}}, 1},
		"too few":        {cluster.Shape{Need: cluster.Need{Devices: 3}}, 0},
		"no resource":    {cluster.Shape{Resources: cluster.Resources{{Name: "rdma", Value: 1}}}, 0},
		"layers":         {cluster.Shape{Need: cluster.Need{Layers: &cluster.Layers{Total: 1, Bytes: gi}}}, 2000},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := n.Most(&tt.shape); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// TestFeasibleSums compares Feasible with Choose for sums of memory on devices of one product,
// some of which are partly in use.
func TestFeasibleSums(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		roll := func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "roll") }
		devices := 1 + roll(18)
		n := enginetest.State(enginetest.Node("n").CPU(64, "640Gi").GPUs(devices, "A10", "24Gi")).Nodes()[0]
		for i := range n.Devices {
			d := &n.Devices[i]
			d.Foreign = cluster.Bytes(max(0, roll(20)-10)) * gi / 4
			if roll(3) == 0 {
				d.Use = cluster.DeviceUse{Milli: 100, Memory: cluster.Bytes(roll(4)) * gi, Leases: 1}
			}
		}
		need := cluster.Need{Devices: 1 + roll(devices), Share: cluster.Milli(100 * (1 + roll(10))), SameProduct: roll(2) == 0}
		need.SumAtLeast = 1 + cluster.Bytes(need.Devices)*24*gi*cluster.Bytes(roll(11))/10
		if roll(2) == 0 {
			need.Sums = []cluster.Sum{{Product: []string{"A10", "L4"}[roll(2)], AtLeast: need.SumAtLeast + cluster.Bytes(roll(9))*gi}}
		}
		shape := cluster.Shape{Need: need}
		if _, ok := n.Choose(&shape, nil); n.Feasible(&shape) != ok {
			rt.Errorf("Feasible returns %v for %+v, and Choose %v", !ok, need, ok)
		}
	})
}
