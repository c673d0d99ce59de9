package bench

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/berth-project/berth/cluster"
)

// BenchmarkAddNodes adds nodes to an empty State, in random order: one at a time, and all
// at once.
func BenchmarkAddNodes(b *testing.B) {
	for _, nodes := range []int{1_000, 10_000, 100_000} {
		add := map[string]func(*cluster.State, []cluster.Change) error{
			"bulk": (*cluster.State).ApplyAll,
			"single": func(s *cluster.State, changes []cluster.Change) error {
				for _, c := range changes {
					if err := s.Apply(c); err != nil {
						return err
					}
				}
				return nil
			},
		}
		for _, how := range []string{"single", "bulk"} {
			b.Run(fmt.Sprintf("%s/nodes=%d", how, nodes), func(b *testing.B) {
				for range b.N {
					b.StopTimer()
					list := Nodes(nodes)
					rand.New(rand.NewPCG(1, 2)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
					s := cluster.NewState()
					b.StartTimer()
					must(b, add[how](s, list))
				}
				b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N), "ms/cluster")
			})
		}
	}
}
