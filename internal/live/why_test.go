package live

import (
	"fmt"
	"testing"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/verify/bench"
	"github.com/berth-project/berth/internal/whatif"
)

// backlog is a leader with nodes of which every device is held, and pending jobs of a
// hundred shapes.
func backlog(b *testing.B, nodes, pending int) *Leader {
	s := bench.Cluster(nodes)
	whole := cluster.Shape{Need: cluster.Need{Devices: 8}}
	for i, n := range s.Nodes() {
		if len(n.Devices) == 0 {
			continue
		}
		j := bench.Job(pending+i, whole)
		must(b, s.Apply(cluster.JobPut{Job: j}))
		t := s.Job(j.ID).Tasks()[0]
		claims, _ := n.Choose(t.Shape, nil)
		must(b, s.Apply(cluster.SeenOn(t, n, claims, 0)))
	}
	shapes := bench.Shapes(100)
	for i := range pending {
		shape := shapes[i%len(shapes)]
		if shape.Need.None() {
			shape = shapes[0] // it would fit
		}
		must(b, s.Apply(cluster.JobPut{Job: bench.Job(i, shape)}))
	}
	return NewLeader(Options{State: s, Engine: testEngine(b)})
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// session runs and times one session that is not patient, like those of a lab.
func session(b *testing.B, e *engine.Engine, s *cluster.State) time.Duration {
	b.Helper()
	begin := time.Now()
	ssn := e.Open(s, engine.Options{Now: 1})
	_, err := ssn.Run()
	ssn.Close()
	must(b, err)
	return time.Since(begin)
}

// afterChange times a session after a running job has ended, and undoes both.
func afterChange(b *testing.B, e *engine.Engine, s *cluster.State, running string) time.Duration {
	b.Helper()
	mark := s.Mark()
	must(b, s.Apply(cluster.JobGone{Job: running}))
	took := session(b, e, s)
	s.Undo(mark)
	s.Release(mark)
	return took
}

// BenchmarkWhy asks a loaded lab why the first job of the backlog is pending: how long
// it takes until a change is found that helps, and how long each further try takes. For
// comparison it times a session that decides nothing, and one after a job has ended.
func BenchmarkWhy(b *testing.B) {
	const first, more = 2, 4 // tries: the second one helps
	for _, size := range [][2]int{{1_000, 200}, {10_000, 2_000}, {100_000, 20_000}} {
		b.Run(fmt.Sprintf("nodes=%d/pending=%d", size[0], size[1]), func(b *testing.B) {
			b.StopTimer()
			leader := backlog(b, size[0], size[1])
			lab, err := leader.Follower().Lab()
			must(b, err)
			ask := func(tries int) time.Duration {
				begin := time.Now()
				r, _, err := lab.Why(whatif.Question{Workload: "job/0000000", Now: 1, Tries: tries})
				must(b, err)
				if len(r.Trials) == 0 || !r.Trials[0].Fits || r.TriedChanges != tries {
					b.Fatalf("after %d tries: %+v", r.TriedChanges, r.Trials)
				}
				return time.Since(begin)
			}
			b.ReportMetric(ask(first).Seconds()*1000, "ms/loading")
			var cure, all, sessions, changed time.Duration
			e := testEngine(b)
			session(b, e, leader.State()) // it decides nothing
			for i := range b.N {
				b.StartTimer()
				cure += ask(first)
				all += ask(more)
				b.StopTimer()
				sessions += session(b, e, leader.State())
				changed += afterChange(b, e, leader.State(), fmt.Sprintf("job/%07d", size[1]+i*50%size[0]))
			}
			each := func(d time.Duration, times int) float64 { return d.Seconds() * 1000 / float64(times*b.N) }
			b.ReportMetric(each(cure, 1), "ms/cure")
			b.ReportMetric(each(all-cure, more-first), "ms/try")
			b.ReportMetric(each(sessions, 1), "ms/session")
			b.ReportMetric(each(changed, 1), "ms/session-after-change")
		})
	}
}
