package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

// BenchmarkAnswer measures placing and refusing several kinds of jobs with shapes that the
// index already knows. It shows the cost of an answer without that of taking in changes.
func BenchmarkAnswer(b *testing.B) {
	for _, nodes := range []int{10_000, 100_000} {
		e, err := engine.New(standard.Registry(), standard.Profile())
		if err != nil {
			b.Fatal(err)
		}
		state := Cluster(nodes)
		must(b, state.Apply(limitedQueue("limited", 1<<40)))
		session := e.Open(state, engine.Options{})
		for _, a := range answers {
			b.Run(fmt.Sprintf("%s/nodes=%d", a.name, nodes), func(b *testing.B) {
				job := add(b, state, a.job())
				ask := func() {
					stmt := session.Begin()
					if placed := session.Place(stmt, job) == nil; placed != a.yes {
						b.Fatalf("placed: %v", placed)
					}
					stmt.Discard()
				}
				ask()
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N {
					ask()
				}
				b.StopTimer()
				must(b, state.Apply(cluster.JobGone{Job: job.ID}))
			})
		}
	}
}

var answers = []struct {
	name string
	yes  bool
	job  func() cluster.Job
}{
	{"yes", true, func() cluster.Job { return devices(1) }},
	{"no", false, func() cluster.Job { return devices(9) }},
	{"no,gang", false, func() cluster.Job { return devices(9, 9) }},
	{"yes,limited-queue", true, func() cluster.Job { return limited(devices(1)) }},
	{"no,limited-queue", false, func() cluster.Job { return limited(devices(9)) }},
	{"yes,memory-in-limited-queue", true, func() cluster.Job {
		j := limited(devices(1))
		j.Tasks()[0].Shape.Need.Memory = 10 << 30
		return j
	}},
	{"yes,whole-node", true, wholeNode},
	{"yes,away-from-others", true, func() cluster.Job { return beside(devices(1), cluster.JobTerm{Anti: true}) }},
	{"no,beside-a-job-that-is-nowhere", false, func() cluster.Job { return beside(devices(1), cluster.JobTerm{}) }},
}

// wholeNode returns a job that requests a whole node with 100 GiB of device memory.
func wholeNode() cluster.Job {
	j := devices(0)
	j.Tasks()[0].Shape.Need.WholeNode = true
	j.Alternatives[0].Whole = &cluster.WholeNodes{Replicas: 1, NodesPerReplica: 1, Memory: 100 << 30}
	return j
}

// BenchmarkWholeNode places a job that requests a whole node, and ends the one that was placed
// 100 jobs before, so that nodes change between any two decisions.
func BenchmarkWholeNode(b *testing.B) {
	for _, nodes := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			c := &churn{engine: standardEngine(b), state: Cluster(nodes), search: engine.Indexed}
			place := func() time.Duration {
				job := wholeNode()
				job.ID = fmt.Sprintf("job/whole-%d", c.arrived)
				return c.add(b, job)
			}
			for range 100 {
				place()
			}
			took := make([]time.Duration, b.N)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range took {
				took[i] = place()
				c.end(b)
			}
			b.StopTimer()
			report(b, took)
		})
	}
}

// devices returns a job with a task for each count, which requests that many devices.
func devices(counts ...int) cluster.Job {
	job := Job(-1, Shapes(1)[0])
	alt := &job.Alternatives[0]
	alt.Tasks, alt.Min = nil, len(counts)
	for i, n := range counts {
		shape := Shapes(1)[0]
		shape.Need.Devices = n
		alt.Tasks = append(alt.Tasks, &cluster.Task{Name: fmt.Sprint(i), Shape: &shape})
	}
	return job
}

func limited(job cluster.Job) cluster.Job {
	job.Queue = "limited"
	return job
}

func beside(job cluster.Job, term cluster.JobTerm) cluster.Job {
	term.Within = "rack"
	term.Selector = cluster.Term{{Key: "app", Operator: cluster.In, Values: []string{"none"}}}
	job.OwnDetails().Affinity = []cluster.JobTerm{term}
	return job
}
