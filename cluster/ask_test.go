package cluster_test

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/fixture"
)

func TestDeviceAsk(t *testing.T) {
	const gpu = cluster.DefaultDeviceResource
	amd := fixture.Node("amd").GPUs(2, "MI300", "192Gi").With(func(n *cluster.Node) { n.DeviceResource = "amd.com/gpu" })
	need := func(n cluster.Need) *fixture.JobBuilder {
		return fixture.Job("j").Shape(func(s *cluster.Shape) { s.Need = n })
	}
	ask := func(name string, value int64, product string) cluster.DeviceAsk {
		return cluster.DeviceAsk{Amount: cluster.Amount{Name: name, Value: value}, Product: product}
	}
	tests := map[string]struct {
		job  *fixture.JobBuilder
		want cluster.DeviceAsk
	}{
		"no devices":          {fixture.Job("j").CPU(1000, "1Gi"), cluster.DeviceAsk{}},
		"whole ones":          {need(cluster.Need{Devices: 2}), ask(gpu, 2000, "")},
		"shares":              {need(cluster.Need{Devices: 2, Share: 300}), ask(gpu, 600, "")},
		"exclusive shares":    {need(cluster.Need{Devices: 2, Share: 300}).Isolate(cluster.Isolation{GPU: cluster.GPUDeviceExclusive}), ask(gpu, 2000, "")},
		"memory":              {need(cluster.Need{Devices: 1, Memory: 40 << 30}), ask(gpu, 500, "")},
		"by name":             {need(cluster.Need{Devices: 1, Resource: "amd.com/gpu"}), ask("amd.com/gpu", 1000, "amd.com/gpu:MI300")},
		"by product":          {need(cluster.Need{Devices: 1, Products: []string{"MI300"}}), ask("amd.com/gpu", 1000, "amd.com/gpu:MI300")},
		"one that only has":   {need(cluster.Need{Devices: 1, Memory: 96 << 30}), ask("amd.com/gpu", 500, "amd.com/gpu:MI300")},
		"without terms":       {need(cluster.Need{Devices: 1, Products: []string{"A100"}}), ask(gpu, 1000, "")},
		"either product":      {need(cluster.Need{Devices: 1, Products: []string{"A100", "MI300"}}), ask(gpu, 1000, "")},
		"whole nodes":         {need(cluster.Need{WholeNode: true}), ask(gpu, 4000, "")},
		"layers":              {need(cluster.Need{Layers: &cluster.Layers{Total: 3, Bytes: 1 << 30}}), ask(gpu, 1000, "")},
		"selected elsewhere":  {need(cluster.Need{Devices: 1, Selected: []cluster.DeviceID{{Node: "other", Type: "cuda"}}}), ask(gpu, 1000, "")},
		"none there":          {need(cluster.Need{Devices: 1, Partition: "1g.10gb"}), cluster.DeviceAsk{}},
		"none of the product": {need(cluster.Need{Devices: 1, Products: []string{"H100"}}), cluster.DeviceAsk{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			state := fixture.State(fixture.Node("n").GPUs(4, "A100", "80Gi"), amd, fixture.Queue("q").Limit("amd.com/gpu:MI300", 1000).Limit(gpu+":H100", 1000), tc.job)
			if got := state.DeviceAsk(state.Job("job/j").Tasks()[0].Shape); got != tc.want {
				t.Errorf("want %+v, have %+v", tc.want, got)
			}
		})
	}
}
