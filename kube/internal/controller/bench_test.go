package controller

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/estimate/preset"
	"github.com/berth-project/berth/kube/internal/workload"
	"github.com/berth-project/berth/plugins/standard"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func newWorld(t testing.TB) *World {
	t.Helper()
	e, err := engine.New(standard.Registry(), standard.Profile())
	if err != nil {
		t.Fatal(err)
	}
	return NewWorld(WorldOptions{Engine: e, SchedulerNames: []string{"berth-scheduler"}, Workload: workload.Options{SchedulerName: "berth-scheduler", DevicesEnforced: true}, Clock: func() time.Time { return time.Unix(0, 0) }})
}

// gpuNode returns a node as GPU Feature Discovery labels it.
func gpuNode(name, product string, count, mib int) *corev1.Node {
	amounts := corev1.ResourceList{"cpu": resource.MustParse("96"), "memory": resource.MustParse("1Ti"), "pods": resource.MustParse("110"), "nvidia.com/gpu": *resource.NewQuantity(int64(count), resource.DecimalSI)}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: "1", Labels: map[string]string{
			"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": fmt.Sprint(count), "nvidia.com/gpu.memory": fmt.Sprint(mib),
		}},
		Status: corev1.NodeStatus{Allocatable: amounts, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

// kinds are the sorts of nodes of a large cluster.
var kinds = []struct {
	product    string
	count, mib int
}{{"NVIDIA-H100-80GB-HBM3", 8, 81559}, {"NVIDIA-A100-SXM4-40GB", 8, 40960}, {"NVIDIA-L4", 4, 23034}, {"NVIDIA-A10", 1, 23028}, {"NVIDIA-H200", 8, 143771}}

// randomModel returns a model with a random preset and settings.
func randomModel(r *rand.Rand) *v1alpha1.Model {
	presets := preset.All()
	m := &v1alpha1.Model{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m"}}
	s := &m.Spec
	s.Source.Preset = presets[r.IntN(len(presets))].Name
	s.Replicas = new(1 + r.IntN(8))
	if r.IntN(2) == 0 {
		s.Placement.Unit = "Node"
	}
	if r.IntN(2) == 0 {
		s.Context = 1 << (10 + r.IntN(8))
	}
	if r.IntN(4) == 0 {
		s.Placement.NodeSelector = map[string]string{"pool": "missing"}
	}
	if r.IntN(4) == 0 && s.Placement.Unit == "" {
		s.Parallelism = &v1alpha1.Parallelism{Tensor: 1 << r.IntN(4)}
	}
	if r.IntN(4) == 0 {
		s.Placement.Strategy = "Spread"
	}
	return m
}

// BenchmarkTurn measures how long it takes to plan the objects of 500 models with 2,000 replicas.
func BenchmarkTurn(b *testing.B) {
	const models, replicas = 500, 4
	w := newClaimWorld(b)
	for i := range models * replicas / 8 {
		w.put(gpuNode(fmt.Sprintf("l4-%04d", i), "NVIDIA-L4", 8, 23034))
	}
	for i := range models {
		w.put(object(fmt.Sprintf("apiVersion: berth.dev/v1alpha1\nkind: Model\nmetadata: {namespace: ml, name: m%03d, uid: m%03d}\nspec: {replicas: %d, backend: vllm, source: {repository: example/m}, memory: {device: 10Gi}, placement: {distributed: false}}\n", i, i, replicas)))
	}
	turn := func(b *testing.B) []*plan {
		plans, err := w.plans()
		if err != nil {
			b.Fatal(err)
		}
		return plans
	}
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			turn(b)
		}
	})
	for i, p := range turn(b) {
		w.carryOut(p, fmt.Sprintf("l4-%04d", i/2))
	}
	b.Run("placed", func(b *testing.B) {
		for b.Loop() {
			turn(b)
		}
	})
}
