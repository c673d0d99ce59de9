package bench

import (
	"fmt"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

// BenchmarkModels places 1,000 replicas on 1,000 nodes in one session, the first
// that the engine opens: 50 models of 20 replicas, and 1,000 models of one. Their
// forms are memory of one device, a share of several that must add up, and layers.
func BenchmarkModels(b *testing.B) {
	for _, strategy := range []cluster.Strategy{cluster.Binpack, cluster.Spread} {
		for _, kinds := range []int{50, 1000} {
			b.Run(fmt.Sprintf("%s/models=%d", strategy, kinds), func(b *testing.B) {
				for range b.N {
					b.StopTimer()
					e, err := engine.New(standard.Registry(), standard.Profile())
					if err != nil {
						b.Fatal(err)
					}
					state := Cluster(1000)
					for i := range 1000 {
						job := Job(i, model(i%kinds, strategy))
						job.Set = cluster.Set{Name: fmt.Sprintf("model-%04d", i%kinds), Desired: 1000 / kinds}
						if err := state.AddJob(job); err != nil {
							b.Fatal(err)
						}
					}
					b.StartTimer()
					s := e.Open(state, engine.Options{})
					out, err := s.Run()
					s.Close()
					if err != nil || len(out.Decisions) != 1000 {
						b.Fatalf("%d decisions, error %v", len(out.Decisions), err)
					}
				}
			})
		}
	}
}

// model is the shape of one of many models.
func model(kind int, strategy cluster.Strategy) cluster.Shape {
	s := cluster.Shape{
		Resources: cluster.Resources{{Name: cluster.CPU, Value: 1000}, {Name: cluster.Memory, Value: int64(4+kind) << 30}},
		Need:      cluster.Need{Devices: 1, Types: []string{"cuda", "rocm"}, SameProduct: true},
		Strategy:  strategy, Backend: "vllm",
		Files:       cluster.Files{Main: fmt.Sprintf("model-%04d", kind)},
		Preemptible: kind%3 == 0,
	}
	s.Resources[1].Value = min(s.Resources[1].Value, 200<<30)
	switch gib := cluster.Bytes(4 + kind%17); kind % 3 {
	case 0:
		s.Need.Memory = gib<<30 + cluster.Bytes(kind)<<20
	case 1:
		s.Need.Devices = 1 << (kind % 3)
		s.Need.Share, s.Need.SumAtLeast = 900, gib<<30+cluster.Bytes(kind)<<20
	default:
		s.Need.Devices, s.Need.SameProduct = 0, false
		s.Need.Layers = &cluster.Layers{Total: 32, Bytes: gib<<25 + cluster.Bytes(kind)<<20, Fixed: 1 << 30}
	}
	return s
}
