package model_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/model"
)

func there(numbers ...int) func(*model.Spec) {
	return func(s *model.Spec) {
		for _, n := range numbers {
			s.Existing = append(s.Existing, model.Replica{Number: n, Created: int64(100 + n)})
		}
	}
}

func replicas(n int) func(*model.Spec) { return func(s *model.Spec) { s.Replicas = n } }

func TestReplicasAreNumbered(t *testing.T) {
	tests := map[string]struct {
		spec *model.Spec
		want []string
	}{
		"none":                        {spec(t, "vllm", "", each(1), replicas(0)), nil},
		"new replicas":                {spec(t, "vllm", "", each(1), replicas(2)), []string{"model/chat-0", "model/chat-1"}},
		"gaps are filled":             {spec(t, "vllm", "", each(1), replicas(4), there(3, 1)), []string{"model/chat-0", "model/chat-1", "model/chat-2", "model/chat-3"}},
		"more exist than are desired": {spec(t, "vllm", "", each(1), there(0, 2, 7)), []string{"model/chat-0", "model/chat-2", "model/chat-7"}},
		"none is desired":             {spec(t, "vllm", "", each(1), replicas(0), there(0)), []string{"model/chat-0"}},
	}
	for name, tt := range tests {
		p := convert(t, tt.spec, groups(a10s("a", 1)))
		if diff := cmp.Diff(tt.want, ids(p)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for _, j := range p.Jobs {
			if j.Set.Name != "model/chat" || j.Set.Desired != tt.spec.Replicas || j.Chosen != -1 {
				t.Errorf("%s: %s is %+v of %+v", name, j.ID, j.Chosen, j.Set)
			}
		}
	}
}

func TestJobHasTheFieldsOfTheSpec(t *testing.T) {
	iso := cluster.Isolation{GPU: cluster.GPUDeviceExclusive}
	bears := []cluster.Toleration{{Key: "k", Operator: "Exists"}}
	s := spec(t, "vllm", "", each(1), func(s *model.Spec) {
		s.Namespace, s.Queue, s.Priority, s.Preemptible, s.Created = "ml", "q", 7, true, 5
		s.Labels, s.Isolation, s.Tolerations = map[string]string{"a": "b"}, iso, bears
		s.Files = cluster.Files{Main: "main", Draft: "draft"}
		s.Place.Strategy, s.Place.Selector = cluster.Spread, map[string]string{"pool": "x"}
		s.Existing = []model.Replica{{Number: 0, Created: 9, Health: cluster.HealthStarting, Offload: cluster.Offload{Layers: 3, Total: 4}}}
	})
	j := convert(t, s, groups(a10s("a", 1))).Jobs[0]
	shape := j.Alternatives[0].Tasks[0].Shape
	got := []any{j.Namespace, j.Queue, j.Priority, j.Preemptible, j.Created, j.Labels, j.Health, j.Offload, shape.Isolation, shape.Tolerations, shape.Files, shape.Strategy, shape.Backend, shape.Preemptible, shape.Selector}
	want := []any{"ml", "q", int32(7), true, int64(9), map[string]string{"a": "b"}, cluster.HealthStarting, cluster.Offload{Layers: 3, Total: 4}, iso, bears, s.Files, cluster.Spread, "vllm", true, cluster.SortLabels(map[string]string{"pool": "x"})}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Each form is tried in every cell before the next form is tried.
func TestCells(t *testing.T) {
	s := spec(t, "custom", "", total(8), func(s *model.Spec) { s.Place.Cells = []string{"west", "east"} })
	j := convert(t, s, groups(a10s("a", 2))).Jobs[0]
	want := []string{"1 device in west", "1 device in east", "2 devices (tp 2) in west", "2 devices (tp 2) in east"}
	if diff := cmp.Diff(want, alternatives(j)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if cell := j.Alternatives[1].Tasks[0].Shape.Cell; cell != "east" {
		t.Errorf("the second is in %q", cell)
	}
}

// kept sets a group that was chosen earlier.
func kept(product string, count, perReplica int) func(*model.Spec) {
	return func(s *model.Spec) {
		s.Group = &cluster.GroupKey{Product: product, Count: count, Memory: 16384, Resource: cluster.DefaultDeviceResource}
		s.NodesPerReplica = perReplica
	}
}

func TestProblems(t *testing.T) {
	instance := func(name string) func(*model.Spec) {
		return func(s *model.Spec) { s.Place.WholeNodes, s.Place.InstanceType = true, name }
	}
	tests := map[string]struct {
		spec    *model.Spec
		field   []any
		message string
	}{
		"memory is not known": {
			spec(t, "vllm", ""), []any{"spec", "source"},
			"1 device: the memory that it needs is not known; set memory.device or memory.total, or a source that can be read",
		},
		"memory is not known, whole nodes": {
			spec(t, "vllm", "", wholeNodes), []any{"spec", "source"},
			"whole nodes of 910B × 4: the memory that it needs is not known; set memory.total, or a source that can be read",
		},
		"heads": {
			spec(t, "vllm", "", use(toy()), func(s *model.Spec) { s.Serving.Tensor = 3 }), []any{"spec", "parallelism", "tensor"},
			"3 devices (tp 3): the 8 attention heads of model toy do not divide over 3 devices",
		},
		"context": {
			spec(t, "vllm", "", use(toy()), tokens(4097)), []any{"spec", "context"}, "toy takes at most 4,096 tokens, have 4,097",
		},
		"tasks": {
			spec(t, "custom", "", total(8), replicas(10_000), func(s *model.Spec) { s.Place.Cells = make([]string, 50) }), []any{"spec", "replicas"},
			"10000 replicas in 3 forms make 1,500,000 tasks, and at most 1,000,000 are allowed; set fewer replicas, or fix the parallelism",
		},
		"powers of two": {
			spec(t, "mindie", "", total(8), func(s *model.Spec) { s.Serving.Tensor = 3 }), []any{"spec", "parallelism", "tensor"},
			"3 devices (tp 3): mindie divides over 1, 2, 4, 8, … devices, not over 3",
		},
		"draft": {
			spec(t, "vllm", "", use(toy()), func(s *model.Spec) { s.Draft = &estimate.Model{Name: "raw", Format: "gguf"} }), []any{"spec"},
			"1 device: draft: the weights of model raw are not known; set its memory",
		},
		"version": {
			spec(t, "vllm", "", total(8), func(s *model.Spec) { s.Version = "x" }), []any{"spec", "backendVersion"}, "",
		},
		"instance type": {
			spec(t, "vllm", "", total(8), instance("g5.hugelarge")), []any{"spec", "placement", "instanceType"}, "",
		},
		"instance type with a chosen group": {
			spec(t, "vllm", "", total(8), instance("nonsense"), kept("A10", 1, 1)), []any{"spec", "placement", "instanceType"},
			`no instance type is called "nonsense"`,
		},
		"instance type too small": {
			spec(t, "vllm", "", use(toy()), instance("g6.xlarge"), func(s *model.Spec) { s.Serving.Context, s.Serving.Sequences = 4096, 1000 }),
			[]any{"spec", "placement", "instanceType"},
			"g6.xlarge is too small for the model: a L4 gives a model 20.16 GiB, but 4096 tokens and the runtime take 33.55 GiB of each; set a shorter context, or use devices with more memory",
		},
		"instance type that would need too many nodes": {
			spec(t, "vllm", "", total(8000), instance("g6.xlarge")), []any{"spec", "placement", "instanceType"},
			"g6.xlarge is too small for the model: one replica would take 334 nodes, and is divided over 64 at most",
		},
	}
	for name, tt := range tests {
		_, err := model.Convert(tt.spec, groups(a10s("a", 4), npus("b", 4)))
		var p *model.Problem
		if !errors.As(err, &p) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(tt.field, p.Field); diff != "" || p.Error() == "" || tt.message != "" && p.Error() != tt.message {
			t.Errorf("%s: %s\n%s", name, p, diff)
		}
	}
}
