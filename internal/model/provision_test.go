package model_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/model"
)

// made returns a node of the instance type g5.xlarge.
func made(name string, labels ...string) *enginetest.NodeBuilder {
	n := a10s(name, 1).Label("node.kubernetes.io/instance-type", "g5.xlarge")
	for i := 0; i+1 < len(labels); i += 2 {
		n = n.Label(labels[i], labels[i+1])
	}
	return n
}

// typed returns a model with the instance type g5.xlarge and two nodes for each replica.
func typed(t *testing.T, id string, edit ...func(*model.Spec)) *model.Spec {
	s := spec(t, "vllm", "", append([]func(*model.Spec){total(30), wholeNodes}, edit...)...)
	s.ID, s.Place.InstanceType = id, "G5.xlarge"
	return s
}

func TestProvisions(t *testing.T) {
	mine := []string{"berth.dev/model", "ml_chat"}
	tests := map[string]struct {
		nodes []enginetest.Part
		specs []*model.Spec
		runs  map[string][]string // from a replica to the nodes that it runs on
		want  []string
	}{
		"no nodes": {
			nil, []*model.Spec{typed(t, "model/ml/chat", replicas(3))}, nil,
			[]string{"model/ml/chat needs 6 nodes of g5.xlarge, 2 for each replica; 0 ready: 6 NodeClaims to create."},
		},
		"some nodes exist": {
			[]enginetest.Part{made("a"), made("b"), made("c"), a10s("other", 1)}, []*model.Spec{typed(t, "model/ml/chat", replicas(2))}, nil,
			[]string{"model/ml/chat needs 4 nodes of g5.xlarge, 2 for each replica; 3 ready: 1 NodeClaim to create."},
		},
		"enough": {
			[]enginetest.Part{made("a"), made("b"), made("c")}, []*model.Spec{typed(t, "model/ml/chat")}, nil,
			[]string{"model/ml/chat needs 2 nodes of g5.xlarge, 2 for each replica; 2 ready."},
		},
		"more nodes than needed": {
			[]enginetest.Part{made("a", mine...), made("b", mine...), made("c", mine...), made("d", "berth.dev/model", "chat")},
			[]*model.Spec{typed(t, "model/ml/chat")}, map[string][]string{"model/ml/chat-0": {"b", "c"}},
			[]string{"model/ml/chat needs 2 nodes of g5.xlarge, 2 for each replica; 2 ready: 1 NodeClaim to remove, a."},
		},
		"each node is ready for one model": {
			[]enginetest.Part{made("a"), made("b"), made("c")}, []*model.Spec{typed(t, "model/x"), typed(t, "model/y")}, nil,
			[]string{
				"model/x needs 2 nodes of g5.xlarge, 2 for each replica; 2 ready.",
				"model/y needs 2 nodes of g5.xlarge, 2 for each replica; 1 ready: 1 NodeClaim to create.",
			},
		},
		"nodes are ready for the model that they were created for": {
			[]enginetest.Part{made("a", "berth.dev/model", "y"), made("b", "berth.dev/model", "y"), made("c", "berth.dev/model", "x")}, []*model.Spec{typed(t, "model/x"), typed(t, "model/y")}, nil,
			[]string{
				"model/x needs 2 nodes of g5.xlarge, 2 for each replica; 1 ready: 1 NodeClaim to create.",
				"model/y needs 2 nodes of g5.xlarge, 2 for each replica; 2 ready.",
			},
		},
		"nodes that one model does not need are ready for another": {
			[]enginetest.Part{made("a", "berth.dev/model", "x"), made("b", "berth.dev/model", "x"), made("c", "berth.dev/model", "x"), made("d", "berth.dev/model", "x")},
			[]*model.Spec{typed(t, "model/x", replicas(0)), typed(t, "model/y")}, nil,
			[]string{
				"model/x needs 0 nodes of g5.xlarge, 2 for each replica; 0 ready: 2 NodeClaims to remove, c, d.",
				"model/y needs 2 nodes of g5.xlarge, 2 for each replica; 2 ready.",
			},
		},
		"closed nodes and nodes without the label are not ready": {
			[]enginetest.Part{made("a"), made("b").Phase("MAINTENANCE"), made("c", "pool", "x")},
			[]*model.Spec{typed(t, "model/y", func(s *model.Spec) { s.Place.Selector = map[string]string{"pool": "x"} })}, nil,
			[]string{"model/y needs 2 nodes of g5.xlarge, 2 for each replica; 1 ready: 1 NodeClaim to create."},
		},
		"the group is chosen already": {
			[]enginetest.Part{made("a")}, []*model.Spec{typed(t, "model/x", kept("A10", 1, 5), replicas(2))}, nil,
			[]string{"model/x needs 10 nodes of g5.xlarge, 5 for each replica; 1 ready: 9 NodeClaims to create."},
		},
		"no instance type": {[]enginetest.Part{made("a")}, []*model.Spec{spec(t, "vllm", "", total(8), wholeNodes)}, nil, nil},
	}
	for name, tt := range tests {
		s := enginetest.State(tt.nodes...)
		var plans []*model.Result
		for _, x := range tt.specs {
			p := convert(t, x, s.View().Groups())
			plans = append(plans, p)
			for _, j := range p.Jobs {
				if err := s.Apply(cluster.JobPut{Job: *j}); err != nil {
					t.Fatal(err)
				}
				for i, on := range tt.runs[j.ID] {
					n := s.Node(on)
					claims := []cluster.Claim{{Device: 0, Milli: cluster.Whole, Memory: n.Devices[0].Memory}}
					if err := s.Apply(cluster.SeenOn(s.Job(j.ID).Alternatives[0].Tasks[i], n, claims, 0)); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		var got []string
		for _, v := range model.Provisions(model.NodeRequests(plans), s) {
			got = append(got, fmt.Sprint(v))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestNodeClaim(t *testing.T) {
	s := typed(t, "model/ml/chat", func(s *model.Spec) { s.Place.Selector = map[string]string{"pool": "x"} })
	state := enginetest.State(a10s("other", 1))
	p := convert(t, s, state.View().Groups())
	got := model.Provisions(model.NodeRequests([]*model.Result{p}), state)[0].NodeClaim
	want := &model.NodeClaim{
		Labels:       map[string]string{"karpenter.sh/nodepool": "berth", "berth.dev/model": "ml_chat", "pool": "x"},
		Annotations:  map[string]string{"karpenter.sh/do-not-disrupt": "true"},
		Taints:       []string{"sku=gpu:NoSchedule"},
		Requirements: map[string]string{"karpenter.sh/nodepool": "berth", "node.kubernetes.io/instance-type": "g5.xlarge", "kubernetes.io/os": "linux"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	shape := p.Jobs[0].Alternatives[0].Tasks[0].Shape
	taint := cluster.Toleration{Key: "sku", Operator: "Equal", Value: "gpu", Effect: cluster.NoSchedule}
	labels := cluster.SortLabels(map[string]string{"pool": "x", "node.kubernetes.io/instance-type": "g5.xlarge"})
	if diff := cmp.Diff([]any{[]cluster.Toleration{taint}, labels}, []any{shape.Tolerations, shape.Selector}); diff != "" {
		t.Errorf("the selector for such nodes (-want +got):\n%s", diff)
	}
}

func TestNodeLabel(t *testing.T) {
	long := "model/" + strings.Repeat("n", 40) + "/" + strings.Repeat("m", 40)
	for id, want := range map[string]string{
		"model/chat":    "chat",
		"model/ml/chat": "ml_chat",
		long:            strings.Repeat("n", 40) + "_" + strings.Repeat("m", 13) + ".8947f227",
		long + "m":      strings.Repeat("n", 40) + "_" + strings.Repeat("m", 13) + ".2415fe0a",
	} {
		if got := model.NodeLabel(id); got != want || len(got) > 63 {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
}
