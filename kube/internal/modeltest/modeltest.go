// Package modeltest makes models for tests.
package modeltest

import (
	"math/rand/v2"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/estimate/preset"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Random returns a model with random settings, some of which contradict each other. nodes are the
// names of nodes of which it may select devices.
func Random(r *rand.Rand, name string, nodes []string) *v1alpha1.Model {
	m := &v1alpha1.Model{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindModel}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	s := &m.Spec
	one := func(of int) bool { return r.IntN(of) == 0 }
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	presets := preset.All()
	s.Replicas = new(r.IntN(7))
	s.Source.Preset = presets[r.IntN(len(presets))].Name
	if one(2) {
		s.Placement.Unit = "Node"
	}
	if one(3) {
		s.Backend = pick("vllm", "sglang", "mindie", "custom", "llamacpp")
	}
	if one(2) {
		s.Context = 1 << (9 + r.IntN(10))
	}
	if one(5) {
		s.Sequences = 1 + r.IntN(16)
	}
	if one(6) {
		s.KVCacheBits = []int{16, 8, 4}[r.IntN(3)]
	}
	if one(4) {
		s.Placement.NodeSelector = map[string]string{"pool": pick("0", "1", "2")}
	}
	if one(6) {
		s.Placement.Cells = []string{pick("edge", "core")}
	}
	if one(4) {
		s.Parallelism = &v1alpha1.Parallelism{Tensor: r.IntN(9), Pipeline: r.IntN(3)}
	}
	if one(6) {
		s.Placement.Distributed = new(one(2))
	}
	if one(8) {
		s.Placement.CPUOffload = true
	}
	if one(8) {
		node := pick(nodes...)
		s.Placement.Devices = []string{node + ":cuda:0"}
		if one(2) {
			s.Placement.Devices = append(s.Placement.Devices, node+":cuda:1")
		}
	}
	if one(8) {
		s.Placement.DevicesPerReplica = 1 + r.IntN(8)
	}
	if one(8) {
		s.Placement.InstanceType = pick("Standard_NC24ads_A100_v4", "p4d.24xlarge", "Standard_ND96isr_H100_v5")
		s.Placement.Unit = "Node"
	}
	if one(6) {
		s.Placement.Strategy = pick("Spread", "Pack")
	}
	if one(8) {
		s.Preemptible = new(one(2))
	}
	if one(8) {
		s.Resources = corev1.ResourceList{"cpu": quantityOf(r, 64), "memory": quantityOf(r, 256<<30)}
	}
	return m
}

// quantityOf returns a random amount.
func quantityOf(r *rand.Rand, most int64) resource.Quantity {
	return *resource.NewQuantity(1+r.Int64N(most), resource.DecimalSI)
}
