package testcluster

import (
	"fmt"

	"github.com/berth-project/berth/kube/internal/controlplane"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A Product is a model of GPUs, as GPU Feature Discovery names it.
type Product struct {
	Name   string
	Memory int // MiB of each device
}

// The products of the nodes of tests.
var (
	H100 = Product{"NVIDIA-H100-80GB-HBM3", 81559}
	L4   = Product{"NVIDIA-L4", 23034}
)

// Node returns a node with GPUs.
func Node(name string, gpus int, product Product, edit ...func(*controlplane.Node)) controlplane.Node {
	n := controlplane.Node{
		Name: name,
		Labels: map[string]string{
			"nvidia.com/gpu.product": product.Name,
			"nvidia.com/gpu.count":   fmt.Sprint(gpus),
			"nvidia.com/gpu.memory":  fmt.Sprint(product.Memory),
		},
		Allocatable: corev1.ResourceList{GPU: *resource.NewQuantity(int64(gpus), resource.DecimalSI)},
	}
	for _, e := range edit {
		e(&n)
	}
	return n
}

// AddNodes adds nodes, and returns when they are ready.
func (c *Cluster) AddNodes(nodes ...controlplane.Node) {
	c.Helper()
	if err := c.CP.AddNodes(c.Ctx, nodes...); err != nil {
		c.Fatal(err)
	}
}
