package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
	"github.com/berth-project/berth/internal/model"
)

// weights returns a model of 2 to 130 GiB. Each kind has its own number of layers and
// size of the KV cache.
func weights(kind int) *estimate.Model {
	layers, hidden := 24+kind%57, 2048+256*(kind%25)
	arch := &estimate.Architecture{
		Name: "LlamaForCausalLM", Layers: layers, Hidden: hidden, Intermediate: 4*hidden + 64*kind,
		Heads: 32, KVHeads: 8, HeadDim: 128, Vocab: 128256, MaxContext: 131072,
	}
	one := cluster.Bytes(2 * (4*hidden*hidden/2 + 3*hidden*arch.Intermediate))
	ends := cluster.Bytes(2 * hidden * arch.Vocab)
	return &estimate.Model{
		Name: fmt.Sprintf("kind-%d", kind), Format: "safetensors", Architecture: arch,
		Weights: estimate.Weights{Layers: one * cluster.Bytes(layers), Embedding: ends, Head: ends, Bits: 1600},
	}
}

// specs returns count models of the given number of kinds, with one replica each.
func specs(b *testing.B, strategy cluster.Strategy, kinds, count int) []*model.Spec {
	vllm, err := backend.Find("vllm")
	must(b, err)
	known := make([]*estimate.Model, kinds)
	for k := range known {
		known[k] = weights(k)
	}
	specs := make([]*model.Spec, count)
	for i := range specs {
		specs[i] = &model.Spec{
			ID: fmt.Sprintf("model/m-%04d", i), Replicas: 1, Backend: vllm, Source: known[i%kinds], Created: int64(i),
			Serving: estimate.Serving{Context: 8192}, Place: model.Place{Strategy: strategy, Distributed: true},
			Files: cluster.Files{Main: known[i%kinds].Name},
		}
	}
	return specs
}

// BenchmarkModels plans 1,000 models on 1,000 nodes: it estimates their needs, makes
// their alternatives, and runs one session that places them. Reading headers is not
// measured.
func BenchmarkModels(b *testing.B) {
	for _, c := range []struct {
		strategy cluster.Strategy
		kinds    int
	}{{cluster.Binpack, 50}, {cluster.Spread, 50}, {cluster.Binpack, 1000}, {cluster.Spread, 1000}} {
		b.Run(fmt.Sprintf("%s/kinds=%d", c.strategy, c.kinds), func(b *testing.B) {
			specs := specs(b, c.strategy, c.kinds, 1000)
			e := standardEngine(b)
			var took time.Duration
			placed := 0
			for range b.N {
				b.StopTimer()
				s := Cluster(1000)
				b.StartTimer()
				start := time.Now()
				fleet := model.NewFleet(s.View().Groups())
				for _, spec := range specs {
					plan, err := fleet.Convert(spec)
					must(b, err)
					for _, j := range plan.Jobs {
						add(b, s, *j)
					}
				}
				out, _ := runSession(b, e, s)
				took += time.Since(start)
				placed = len(out.Decisions)
			}
			b.ReportMetric(took.Seconds()/float64(b.N), "s/plan")
			b.ReportMetric(float64(placed), "tasks")
		})
	}
}
