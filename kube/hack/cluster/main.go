// Command cluster runs a Kubernetes control plane with nodes that kwok simulates, to try
// berth-scheduler where there is neither Docker nor a GPU. It runs until it is interrupted.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/berth-project/berth/kube/internal/controlplane"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func main() {
	nodes := flag.Int("nodes", 1, "how many nodes there are")
	gpus := flag.Int("gpus", 8, "how many GPUs each node has")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *nodes, *gpus); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, nodes, gpus int) error {
	if nodes < 0 || gpus < 0 {
		return fmt.Errorf("-nodes and -gpus: want 0 or more, have %d and %d", nodes, gpus)
	}
	fmt.Println("Starting etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok.")
	cp, err := controlplane.Start(ctx, controlplane.Options{
		Components: []controlplane.Component{controlplane.ControllerManager, controlplane.Scheduler, controlplane.Kwok},
	})
	if err != nil {
		return err
	}
	defer func() { _ = cp.Stop() }()
	for i := range nodes {
		if err := cp.AddNodes(ctx, node(i, gpus)); err != nil {
			return err
		}
	}
	fmt.Printf("The cluster is ready. In another terminal:\n\n  export KUBECONFIG=%s\n\nInterrupt this program to delete the cluster.\n", cp.Kubeconfig())
	<-ctx.Done()
	return nil
}

// node returns a node with the labels that GPU Feature Discovery sets.
func node(index, gpus int) controlplane.Node {
	count := strconv.Itoa(gpus)
	n := controlplane.Node{Name: fmt.Sprintf("node-%d", index)}
	if gpus > 0 {
		n.Labels = map[string]string{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": count, "nvidia.com/gpu.memory": "81559"}
		n.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(count)}
	}
	return n
}
