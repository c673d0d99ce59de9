package ctl_test

import (
	"fmt"
	"testing"

	"github.com/berth-project/berth/kube/internal/controlplane"
	corev1 "k8s.io/api/core/v1"
)

// BenchmarkCommands measures the commands on 1,000 nodes with 8 GPUs and 2,000 pods that hold
// 4 of them each, so that the cluster is full. Another pod and a gang of 8 pods are pending.
func BenchmarkCommands(b *testing.B) {
	const nodes = 1000
	w := newWorld(b)
	var list []controlplane.Node
	for i := range nodes {
		list = append(list, node(fmt.Sprintf("node-%04d", i), 8))
	}
	w.addNodes(list...)
	w.CreateMany(2*nodes, func(i int) *corev1.Pod {
		return pod(fmt.Sprintf("p%05d", i), 4, func(p *corev1.Pod) { p.Spec.NodeName = list[i/2].Name })
	})
	w.create(pod("pending", 1), pod("impossible", 9))
	for i := range 8 {
		w.create(pod(fmt.Sprintf("gang-%d", i), 8, inGang("gang", 8)))
	}
	for _, args := range [][]string{{"why", "p00000"}, {"why", "pending"}, {"why", "impossible"}, {"why", "group/gang"}, {"simulate"}, {"whatif", "--remove", "node-0001"}, {"queues"}, {"snapshot"}, {"top"}} {
		b.Run(fmt.Sprint(args), func(b *testing.B) {
			w.TB = b
			for range b.N {
				w.answer(args...)
			}
		})
	}
}
