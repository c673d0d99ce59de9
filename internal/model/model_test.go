package model_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
	"github.com/berth-project/berth/internal/estimate/preset"
	"github.com/berth-project/berth/internal/model"
)

const gi = cluster.Bytes(1) << 30

// spec returns a model with one replica. If name is empty, it has no source; otherwise
// it is the preset with that name.
func spec(t *testing.T, server, name string, edit ...func(*model.Spec)) *model.Spec {
	t.Helper()
	b, err := backend.Find(server)
	if err != nil {
		t.Fatal(err)
	}
	s := &model.Spec{ID: "model/chat", Replicas: 1, Backend: b, Place: model.Place{Strategy: cluster.Binpack}}
	if name != "" {
		p, err := preset.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		s.Source = p.Model()
	}
	for _, e := range edit {
		e(s)
	}
	return s
}

// toy returns a model of 4 GiB with 4 layers and 8 attention heads, 4 of which are key
// heads.
func toy() *estimate.Model {
	return &estimate.Model{
		Name: "toy", Weights: estimate.Weights{Layers: 4 * gi},
		Architecture: &estimate.Architecture{
			Layers: 4, Hidden: 1024, Intermediate: 4096, Heads: 8, KVHeads: 4, HeadDim: 128, Vocab: 32000, MaxContext: 4096,
		},
	}
}

func groups(nodes ...enginetest.Part) []*cluster.Group {
	return enginetest.State(nodes...).View().Groups()
}

func a10s(name string, count int) *enginetest.NodeBuilder {
	return enginetest.Node(name).GPUs(count, "A10", "24Gi")
}

// npus returns a node with devices of the type cann.
func npus(name string, count int) *enginetest.NodeBuilder {
	return enginetest.Node(name).GPUs(count, "910B", "64Gi").With(func(n *cluster.Node) {
		for i := range n.Devices {
			n.Devices[i].OwnSpec().Type = "cann"
		}
	})
}

func convert(t *testing.T, s *model.Spec, groups []*cluster.Group) *model.Result {
	t.Helper()
	p, err := model.Convert(s, groups)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// forms writes one form per line: its layout, or its problem.
func forms(p *model.Result) string {
	var out strings.Builder
	for _, f := range p.Forms {
		if f.Problem != "" {
			fmt.Fprintf(&out, "- %s: %s\n", f.Name, f.Problem)
			continue
		}
		fmt.Fprintf(&out, "%s: %d × %d, nodes %d, devices %d\n", f.Name, f.Tensor, f.Pipeline, f.Nodes, f.Devices)
	}
	return out.String()
}

// alternatives returns the names of the job's alternatives, in order.
func alternatives(j *cluster.Job) []string {
	var out []string
	for _, a := range j.Alternatives {
		out = append(out, a.Name)
	}
	return out
}

func ids(p *model.Result) []string {
	var out []string
	for _, j := range p.Jobs {
		out = append(out, j.ID)
	}
	return out
}
