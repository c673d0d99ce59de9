package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/berth-project/berth/cluster"
)

// BenchmarkQueues measures one session with one job in each queue. The queues are all
// roots, or ten of them have a common parent.
func BenchmarkQueues(b *testing.B) {
	for _, kind := range []string{"flat", "departments"} {
		for _, queues := range []int{500, 1000, 2000} {
			b.Run(fmt.Sprintf("%s/queues=%d", kind, queues), func(b *testing.B) {
				var total time.Duration
				for range b.N {
					b.StopTimer()
					s := machines(b, queues/8)
					for i := range queues {
						q := &cluster.Queue{Name: fmt.Sprintf("q-%05d", i)}
						if kind == "departments" {
							if q.Parent = fmt.Sprintf("d-%05d", i/10); i%10 == 0 {
								must(b, s.Apply(cluster.QueuePut{Queue: cluster.Queue{Name: q.Parent}}))
							}
						}
						must(b, s.Apply(cluster.QueuePut{Queue: *q}))
						must(b, s.Apply(cluster.JobPut{Job: gang(fmt.Sprintf("j-%05d", i), q.Name, 1, 1, false)}))
					}
					out, took := runSession(b, standardEngine(b), s)
					if len(out.Decisions) != queues/8*8 {
						b.Fatalf("%d decisions", len(out.Decisions))
					}
					total += took
					b.StartTimer()
				}
				b.ReportMetric(total.Seconds()*1000/float64(b.N), "ms/session")
			})
		}
	}
}
