package whatif

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/explain/explaintest"
	"github.com/berth-project/berth/internal/sim"
)

// crowded returns a cluster of nodes with eight devices and of 20 queues with equal quotas, in
// which nothing runs yet. The jobs request one to eight devices each, and two fifths of them find
// no room.
func crowded(nodes, jobs int) *cluster.State {
	const queues = 20
	var parts []enginetest.Part
	for i := range nodes {
		parts = append(parts, enginetest.Node(fmt.Sprintf("node-%05d", i)).CPU(96, "768Gi").GPUs(8, []string{"A100", "H100"}[i%2], "80Gi"))
	}
	for i := range queues {
		parts = append(parts, enginetest.Queue(fmt.Sprintf("team-%d", i)).Quota(gpu, int64(nodes)*8000/queues))
	}
	for i := range jobs {
		j := enginetest.Job(fmt.Sprintf("job-%05d", i)).Queue(fmt.Sprintf("team-%d", i%queues)).CPU(4000, "1Gi").Devices(1 << (i * 7 % 13 % 4)).Priority(int32(i % 3 / 2 * 5))
		if i%5 < 2 {
			j.Preemptible()
		}
		parts = append(parts, j)
	}
	return enginetest.State(parts...)
}

// BenchmarkWhyThousandsPending asks why a job is pending, in a cluster of 4,000 nodes with 20,000
// jobs. It reports how long it takes until a change is found that helps, including the first
// simulation, how long each further try takes, and how many changes are tried. In the first
// cluster all jobs are pending. In the other one the jobs that fit run.
func BenchmarkWhyThousandsPending(b *testing.B) {
	for _, settled := range []bool{false, true} {
		b.Run(fmt.Sprintf("settled=%t", settled), func(b *testing.B) {
			state, e := crowded(4_000, 20_000), explaintest.Engine(b)
			mark := state.Mark()
			simulation, err := sim.Simulate(e, state, sim.Options{Now: 1})
			if err != nil {
				b.Fatal(err)
			}
			lackRoom := slices.DeleteFunc(slices.Clone(simulation.Refusals), func(r *engine.Refusal) bool { return r.Attempts[0].Before != nil })
			if len(lackRoom) < 1000 {
				b.Fatalf("only %d of %d refused jobs lack room", len(lackRoom), len(simulation.Refusals))
			}
			job := lackRoom[len(lackRoom)/2].Job
			if !settled {
				state.Undo(mark)
			}
			state.Release(mark)
			var first, all time.Duration
			tries := 0
			for b.Loop() {
				again := state.Mark()
				begin, cured, at := time.Now(), time.Duration(0), 0
				r, err := Why(Question{Engine: e, State: state, Workload: job, Now: 1, Progress: func(p Progress) {
					if p.Helped > 0 && cured == 0 {
						cured, at = time.Since(begin), p.Tried
					}
				}})
				if err != nil || at == 0 {
					b.Fatalf("%d changes tried, none helps: %v", r.TriedChanges, err)
				}
				first, all, tries = first+cured, all+time.Since(begin)-cured, tries+r.TriedChanges-at
				state.Undo(again)
				state.Release(again)
			}
			b.ReportMetric(first.Seconds()*1000/float64(b.N), "ms/cure")
			b.ReportMetric(all.Seconds()*1000/float64(max(tries, 1)), "ms/try")
			b.ReportMetric(float64(tries)/float64(b.N), "tries")
		})
	}
}
