package controlplane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The annotation that marks a node whose kubelet kwok simulates.
const (
	fakeNode      = "kwok.x-k8s.io/node"
	fakeNodeValue = "fake"
)

// nodeWriters is the number of nodes that AddNodes creates at the same time.
const nodeWriters = 16

// Node describes a node that kwok simulates.
type Node struct {
	Name        string
	Labels      map[string]string
	Annotations map[string]string
	Taints      []corev1.Taint
	// Allocatable is both the capacity and the allocatable amount of the node. CPU, memory
	// and pods have defaults: 32 CPUs, 128 Gi and 110 pods.
	Allocatable corev1.ResourceList
}

// object returns the node as the API server accepts it. The label of the host name is set
// unless it is given, as a kubelet does.
func (n Node) object() *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname:   n.Name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: "amd64",
	}
	maps.Copy(labels, n.Labels)
	annotations := map[string]string{fakeNode: fakeNodeValue}
	maps.Copy(annotations, n.Annotations)
	amounts := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("32"),
		corev1.ResourceMemory: resource.MustParse("128Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	maps.Copy(amounts, n.Allocatable)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: labels, Annotations: annotations},
		Spec:       corev1.NodeSpec{Taints: n.Taints},
		Status:     corev1.NodeStatus{Capacity: amounts, Allocatable: amounts},
	}
}

// AddNodes creates nodes and returns when all of them are ready. The control plane must
// run kwok.
func (cp *ControlPlane) AddNodes(ctx context.Context, nodes ...Node) error {
	if cp.Pid(Kwok) == 0 {
		return errors.New("nodes cannot become ready: kwok does not run")
	}
	if err := cp.createNodes(ctx, nodes); err != nil {
		return err
	}
	return poll(ctx, func() error {
		list, err := cp.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		ready := map[string]bool{}
		for _, node := range list.Items {
			ready[node.Name] = isReady(&node)
		}
		for _, n := range nodes {
			if !ready[n.Name] {
				return fmt.Errorf("node %s is not ready", n.Name)
			}
		}
		return nil
	})
}

func (cp *ControlPlane) createNodes(ctx context.Context, nodes []Node) error {
	errs := make([]error, len(nodes))
	slots := make(chan struct{}, nodeWriters)
	var wg sync.WaitGroup
	for i, n := range nodes {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if _, err := cp.client.CoreV1().Nodes().Create(ctx, n.object(), metav1.CreateOptions{}); err != nil {
				errs[i] = fmt.Errorf("node %s: %w", n.Name, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// isReady reports whether the node is ready, and the controller manager has removed the taint of a
// new node.
func isReady(node *corev1.Node) bool {
	for _, t := range node.Spec.Taints {
		if t.Key == corev1.TaintNodeNotReady {
			return false
		}
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
