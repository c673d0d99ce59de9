// Package bench measures the engine with the standard profile on synthetic clusters of
// any size.
package bench

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
)

// products lists the devices of a synthetic cluster. The first is the most frequent one.
var products = []struct {
	name   string
	memory cluster.Bytes
}{
	{"NVIDIA-H100-80GB-HBM3", 80 << 30},
	{"NVIDIA-A100-SXM4-80GB", 80 << 30},
	{"NVIDIA-A100-SXM4-40GB", 40 << 30},
	{"NVIDIA-L4", 24 << 30},
}

// Cluster returns a State with n nodes.
func Cluster(n int) *cluster.State {
	s := cluster.NewState()
	if err := s.ApplyAll(Nodes(n)); err != nil {
		panic(err)
	}
	return s
}

// Nodes returns the changes that add n nodes with eight devices each, of four products,
// in racks of 16. Every tenth node is a spot instance, and every fiftieth has no devices.
func Nodes(n int) []cluster.Change {
	out := make([]cluster.Change, n)
	for i := range out {
		p := products[(i*7)%10/3]
		node := cluster.Node{
			Name: fmt.Sprintf("node-%06d", i),
			Labels: map[string]string{
				"kubernetes.io/hostname": fmt.Sprintf("node-%06d", i),
				"rack":                   fmt.Sprintf("r%d", i/16),
				"zone":                   fmt.Sprintf("z%d", i%3),
				"nvidia.com/gpu.product": p.name,
			},
			Resources: []cluster.Ledger{
				{Name: cluster.CPU, Capacity: 128_000},
				{Name: "ephemeral-storage", Capacity: 4 << 40},
				{Name: cluster.Memory, Capacity: 1 << 40},
			},
			SupportedIsolation: cluster.SupportedIsolation{
				CPU: []cluster.CPUClass{cluster.CPUWholeCore},
				GPU: []cluster.GPUClass{cluster.GPUSessionExclusive, cluster.GPUDeviceExclusive},
			},
		}
		if i%10 == 9 {
			node.Labels["kai.scheduler/instance-type"] = "spot"
		}
		if i%50 != 49 {
			for d := range 8 {
				node.Devices = append(node.Devices, cluster.Device{
					DeviceSpec: &cluster.DeviceSpec{Product: p.name, Type: "cuda", Memory: p.memory, NUMA: d / 4},
					UUID:       fmt.Sprintf("GPU-%06d-%d", i, d),
				})
			}
		}
		out[i] = cluster.NodePut{Node: node}
	}
	return out
}

// Shapes returns n different shapes, in proportions as in real clusters: one device, a
// part of one, several, all devices of a node, or none.
func Shapes(n int) []cluster.Shape {
	out := make([]cluster.Shape, n)
	for i := range out {
		s := &out[i]
		cores := int64(4 + i%13)
		s.Resources = cluster.Resources{
			{Name: cluster.CPU, Value: cores * 1000},
			{Name: cluster.Memory, Value: (cores * 8) << 30},
		}
		switch i % 10 {
		case 0, 1, 2:
			s.Need.Devices = 1
		case 3, 4:
			s.Need = cluster.Need{Devices: 1, Share: cluster.Milli(250 * (1 + i/10%3))}
		case 5:
			s.Need = cluster.Need{Devices: 1, Memory: cluster.Bytes(8+i/10%8) << 30}
		case 6:
			s.Need.Devices = 2
		case 7:
			s.Need.Devices = 4
		case 8:
			s.Need.Devices = 8
		}
		if i%7 == 3 {
			s.Selector = []cluster.Label{{Key: "zone", Value: fmt.Sprintf("z%d", i%3)}}
		}
		if i%11 == 5 && s.Need.Devices > 0 {
			s.Need.Products = []string{products[i%4].name}
		}
		if i%13 == 6 && s.Need.Devices > 0 && s.Need.Share == 0 {
			s.Isolation.GPU = cluster.GPUDeviceExclusive
		}
		s.Preemptible = i%3 == 0
	}
	return out
}

// Job returns a job with one task.
func Job(i int, shape cluster.Shape) cluster.Job {
	return cluster.Job{
		ID: fmt.Sprintf("job/%07d", i), Created: int64(i), Preemptible: shape.Preemptible,
		Alternatives: []cluster.Alternative{{Min: 1, Tasks: []*cluster.Task{{Name: "0", Shape: &shape}}}},
	}
}
