package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/berth-project/berth/cluster"
)

// gangs returns a cluster in which every device is held by a preemptible gang of tasks of
// one device, in a queue without a quota. If apart is set, each task of a gang is on
// another node.
func gangs(b *testing.B, nodes, tasks int, apart bool) *cluster.State {
	s := machines(b, nodes)
	must(b, s.Apply(quotaQueue("guests", 0)))
	must(b, s.Apply(quotaQueue("owners", int64(nodes)*8*int64(cluster.Whole))))
	for g := range 8 * nodes / tasks {
		j := add(b, s, gang(fmt.Sprintf("guest-%05d", g), "guests", tasks, 1, true))
		for i, t := range j.Tasks() {
			at := (g*tasks + i) / 8
			if apart {
				at = (g/8*tasks + i) % nodes
			}
			n := s.Node(fmt.Sprintf("node-%05d", at))
			claims, ok := n.Choose(t.Shape, nil)
			if !ok {
				b.Fatalf("node %s has no room for %s", n.Name, t.ID)
			}
			must(b, s.Apply(cluster.SeenOn(t, n, claims, 0)))
		}
	}
	return s
}

// BenchmarkGangVictims evicts gangs of 64 tasks, each on eight nodes or on 64, for 20
// gangs of eight whole nodes, in one session.
func BenchmarkGangVictims(b *testing.B) {
	for _, apart := range []bool{false, true} {
		b.Run(fmt.Sprintf("apart=%t", apart), func(b *testing.B) {
			each(b, []int{256, 512, 1024}, func(b *testing.B, nodes int) time.Duration {
				s := gangs(b, nodes, 64, apart)
				for i := range 20 {
					add(b, s, gang(fmt.Sprintf("owner-%02d", i), "owners", 8, 8, true))
				}
				out, took := runSession(b, standardEngine(b), s)
				if len(out.Refusals) > 0 {
					b.Fatalf("%d of 20 gangs are refused", len(out.Refusals))
				}
				return took
			})
		})
	}
}

// BenchmarkManyGangs runs one session with 2,000 pending gangs, all different, while
// gangs of eight tasks hold all room.
func BenchmarkManyGangs(b *testing.B) {
	each(b, []int{1250, 2500, 5000}, func(b *testing.B, nodes int) time.Duration {
		s := gangs(b, nodes, 8, false)
		for i := range 2000 {
			j := gang(fmt.Sprintf("owner-%04d", i), "owners", 1+i%4, 1+i%8, true)
			shape := *j.Alternatives[0].Tasks[0].Shape
			shape.Resources = cluster.Resources{{Name: cluster.CPU, Value: 1000 + int64(i)}, {Name: cluster.Memory, Value: 16 << 30}}
			for _, t := range j.Alternatives[0].Tasks {
				t.Shape = &shape
			}
			add(b, s, j)
		}
		_, took := runSession(b, standardEngine(b), s)
		return took
	})
}
