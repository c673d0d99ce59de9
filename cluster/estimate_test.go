package cluster_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

func TestDeviceEstimate(t *testing.T) {
	const gpu = cluster.DefaultDeviceResource
	amd := enginetest.Node("amd").GPUs(2, "MI300", "192Gi").With(func(n *cluster.Node) { n.DeviceResource = "amd.com/gpu" })
	need := func(n cluster.Need) *enginetest.JobBuilder {
		return enginetest.Job("j").Shape(func(s *cluster.Shape) { s.Need = n })
	}
	ask := func(name string, value int64, product string) cluster.DeviceEstimate {
		return cluster.DeviceEstimate{Amount: cluster.Amount{Name: name, Value: value}, Product: product}
	}
	tests := map[string]struct {
		job  *enginetest.JobBuilder
		want cluster.DeviceEstimate
	}{
		"no devices":          {enginetest.Job("j").CPU(1000, "1Gi"), cluster.DeviceEstimate{}},
		"whole devices":       {need(cluster.Need{Devices: 2}), ask(gpu, 2000, "")},
		"shares":              {need(cluster.Need{Devices: 2, Share: 300}), ask(gpu, 600, "")},
		"exclusive shares":    {need(cluster.Need{Devices: 2, Share: 300}).Isolate(cluster.Isolation{GPU: cluster.GPUDeviceExclusive}), ask(gpu, 2000, "")},
		"memory":              {need(cluster.Need{Devices: 1, Memory: 40 << 30}), ask(gpu, 500, "")},
		"by resource name":    {need(cluster.Need{Devices: 1, Resource: "amd.com/gpu"}), ask("amd.com/gpu", 1000, "amd.com/gpu:MI300")},
		"by product":          {need(cluster.Need{Devices: 1, Products: []string{"MI300"}}), ask("amd.com/gpu", 1000, "amd.com/gpu:MI300")},
		"only one fits":       {need(cluster.Need{Devices: 1, Memory: 96 << 30}), ask("amd.com/gpu", 500, "amd.com/gpu:MI300")},
		"no queue has terms":  {need(cluster.Need{Devices: 1, Products: []string{"A100"}}), ask(gpu, 1000, "")},
		"either product":      {need(cluster.Need{Devices: 1, Products: []string{"A100", "MI300"}}), ask(gpu, 1000, "")},
		"whole nodes":         {need(cluster.Need{WholeNode: true}), ask(gpu, 4000, "")},
		"layers":              {need(cluster.Need{Layers: &cluster.Layers{Total: 3, Bytes: 10 << 30, Fixed: 10 << 30}}), ask(gpu, 500, "")},
		"layers, 3 devices":   {need(cluster.Need{Layers: &cluster.Layers{Total: 6, Bytes: 30 << 30}}), ask(gpu, 2250, "")},
		"layers, 2 requested": {need(cluster.Need{Devices: 2, Layers: &cluster.Layers{Total: 3, Bytes: 20 << 30}}), ask(gpu, 1000, "")},
		"exclusive layers":    {need(cluster.Need{Layers: &cluster.Layers{Total: 3, Bytes: 10 << 30}}).Isolate(cluster.Isolation{GPU: cluster.GPUDeviceExclusive}), ask(gpu, 1000, "")},
		"selected elsewhere":  {need(cluster.Need{Devices: 1, Selected: []cluster.DeviceID{{Node: "other", Type: "cuda"}}}), ask(gpu, 1000, "")},
		"no such partition":   {need(cluster.Need{Devices: 1, Partition: "1g.10gb"}), cluster.DeviceEstimate{}},
		"no such product":     {need(cluster.Need{Devices: 1, Products: []string{"H100"}}), cluster.DeviceEstimate{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			state := enginetest.State(enginetest.Node("n").GPUs(4, "A100", "80Gi"), amd, enginetest.Queue("q").Limit("amd.com/gpu:MI300", 1000).Limit(gpu+":H100", 1000), tc.job)
			got := state.View().DeviceEstimate(state.Job("job/j").Tasks()[0].Shape)
			if got.Least > got.Value {
				t.Errorf("%+v: Least is more than the amount", got)
			}
			if got.Least = 0; got != tc.want {
				t.Errorf("want %+v, have %+v", tc.want, got)
			}
		})
	}
}

// TestDeviceEstimateLeast checks that Choose never claims less than DeviceEstimate.Least, and
// that the estimate is the same if every device is examined.
func TestDeviceEstimateLeast(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		roll := func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "roll") }
		total := 1 + roll(20)
		need := cluster.Need{Devices: roll(3), Layers: &cluster.Layers{Total: total, Bytes: cluster.Bytes(1+roll(40)) << 28, Fixed: cluster.Bytes(roll(9)) << 28, Spill: roll(2) == 1, Least: roll(total)}}
		if roll(3) == 0 {
			need = cluster.Need{Devices: 1 + roll(2), Memory: cluster.Bytes(1+roll(80)) << 29}
		}
		state := enginetest.State(enginetest.Node("a").CPU(8, "90Gi").GPUs(1+roll(3), "A", "24Gi"), enginetest.Node("b").CPU(8, "90Gi").GPUs(1+roll(3), "B", "10Gi").GPUs(1+roll(2), "C", "40Gi"),
			enginetest.Job("j").Shape(func(s *cluster.Shape) { s.Need = need }))
		shape := state.Job("job/j").Tasks()[0].Shape
		ask := state.View().DeviceEstimate(shape)
		for _, n := range state.Nodes() {
			for _, score := range []func(*cluster.Device) int64{nil, func(d *cluster.Device) int64 { return int64(d.Memory) }} {
				claims, _ := n.Choose(shape, score)
				sum := int64(0)
				for _, c := range claims {
					sum += int64(c.Milli)
				}
				if len(claims) > 0 && sum < ask.Least {
					rt.Fatalf("the claims %v are less than Least of %+v", claims, ask)
				}
			}
		}
		if state.ForgetUniform(); state.View().DeviceEstimate(shape) != ask {
			rt.Fatalf("every device examined: %+v, otherwise %+v", state.View().DeviceEstimate(shape), ask)
		}
	})
}
