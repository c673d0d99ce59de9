package ctl_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-project/berth/kube/internal/controlplane"
	corev1 "k8s.io/api/core/v1"
)

// TestAnswers checks the texts of all commands about one cluster: pods that are bound, pending
// and impossible, a gang, and pods that only a filter of Kubernetes rejects.
func TestAnswers(t *testing.T) {
	w := newWorld(t)
	w.addNodes(
		node("gpu-1", 4), node("gpu-2", 4),
		node("gpu-3", 4, func(n *controlplane.Node) {
			n.Taints = []corev1.Taint{{Key: "team", Value: "research", Effect: corev1.TaintEffectNoSchedule}}
		}),
	)
	w.create(pod("bound-1", 3, withHostPort(8080)))
	w.bind("bound-1", "gpu-1")
	w.create(pod("bound-2", 3, withHostPort(8080)))
	w.bind("bound-2", "gpu-2")
	w.create(pod("other", 1, func(p *corev1.Pod) { p.Spec.SchedulerName = "another" }))
	w.bind("other", "gpu-3")
	w.create(pod("foreign", 1, func(p *corev1.Pod) { p.Spec.SchedulerName = "another" }))
	w.create(pod("gated", 1, func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}} }))
	w.create(pod("impossible", 9))
	w.create(pod("port", 0, withHostPort(8080)))
	w.create(pod("selected", 1, withSelector("team", "research")))
	for i := range 3 {
		w.create(pod(fmt.Sprintf("train-%d", i), 2, inGang("train", 3)))
	}
	for _, c := range []struct{ file, args string }{
		{"why-bound.txt", "why bound-1"},
		{"why-impossible.txt", "why pod/impossible"},
		{"why-port.txt", "why port"},
		{"why-selected.txt", "why selected"},
		{"why-gang.txt", "why job/train"},
		{"whatif-add.txt", "whatif --add-nodes NVIDIA-L4=2"},
		{"whatif-remove.txt", "whatif --remove gpu-1"},
		{"whatif-set.txt", "whatif --set node/gpu-3.spec.taints=[]"},
		{"queues.txt", "queues"},
		{"simulate.txt", "simulate"},
		{"top.txt", "top"},
	} {
		t.Run(strings.TrimSuffix(c.file, ".txt"), func(t *testing.T) {
			w.TB = t
			golden(t, c.file, w.answer(strings.Fields(c.args)...))
		})
	}
}
