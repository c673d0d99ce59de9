package bench

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

// BenchmarkDecide measures one decision at a time on a cluster that is kept half full: a
// job arrives, is placed, and the oldest job ends. decisions/s includes all of these
// steps; the percentiles are of placing alone. The policy is per-resource, which the default profile had
// before, so that versions can be compared.
func BenchmarkDecide(b *testing.B) { decide(b, "per-resource") }

// BenchmarkDecideFillValue is BenchmarkDecide with the policy of the default profile, which learns
// prices. A session learns before its first turn, so each job is placed in a session of its own, and the
// percentiles are of the whole session.
func BenchmarkDecideFillValue(b *testing.B) { decide(b, "fill-value") }

func decide(b *testing.B, policy string) {
	for _, shapes := range []int{1, 100} {
		for _, nodes := range []int{1_000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("shapes=%d/nodes=%d", shapes, nodes), func(b *testing.B) {
				c := newChurn(b, policy, nodes, shapes, engine.Indexed)
				took := make([]time.Duration, b.N)
				b.ReportAllocs()
				b.ResetTimer()
				for i := range b.N {
					took[i] = c.step(b)
				}
				b.StopTimer()
				report(b, took)
				reportLive(b)
				runtime.KeepAlive(c)
			})
		}
	}
}

// reportLive reports the memory that is still in use after a collection. In contrast,
// heap-MiB of report includes what the collector has not freed yet, which is up to as much again.
func reportLive(b *testing.B) {
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	b.ReportMetric(float64(memory.HeapAlloc>>20), "live-MiB")
}

// BenchmarkIndexAgainstScan makes the same decisions alternately with the index and with
// a scan of all nodes, and reports how many times faster the index is.
func BenchmarkIndexAgainstScan(b *testing.B) {
	for _, shapes := range []int{1, 100} {
		b.Run(fmt.Sprintf("shapes=%d/nodes=10000", shapes), func(b *testing.B) {
			fast, slow := newChurn(b, "per-resource", 10_000, shapes, engine.Indexed), newChurn(b, "per-resource", 10_000, shapes, engine.Scan)
			var index, scan time.Duration
			b.ResetTimer()
			for range b.N {
				index += fast.step(b)
				scan += slow.step(b)
			}
			b.StopTimer()
			b.ReportMetric(float64(scan)/float64(index), "times-faster")
			b.ReportMetric(float64(index.Nanoseconds())/float64(b.N), "index-ns/decision")
			b.ReportMetric(float64(scan.Nanoseconds())/float64(b.N), "scan-ns/decision")
		})
	}
}

// BenchmarkManyShapes requests many shapes in turn, so that a shape is requested again only after
// many nodes have changed. The same decisions are made with the index and with a scan.
// new-ns/decision is the index at the first request of a shape.
func BenchmarkManyShapes(b *testing.B) {
	for _, shapes := range []int{100, 500, 2_000, 10_000} {
		b.Run(fmt.Sprintf("shapes=%d/nodes=10000", shapes), func(b *testing.B) {
			b.StopTimer()
			c, anew := newChurn(b, "per-resource", 10_000, 100, engine.Indexed), time.Duration(0)
			c.shapes = distinctShapes(shapes)
			for range shapes {
				anew += c.step(b)
			}
			took := map[engine.Search]time.Duration{}
			b.StartTimer()
			for i := range b.N {
				search := engine.Indexed
				if i%8 == 7 { // few, because a scan takes long and leaves the rankings as they are
					search = engine.Scan
				}
				if c.search != search {
					c.search, c.session = search, nil
				}
				took[search] += c.step(b)
			}
			b.StopTimer()
			scans := b.N / 8
			b.ReportMetric(float64(anew.Nanoseconds())/float64(shapes), "new-ns/decision")
			b.ReportMetric(float64(took[engine.Indexed].Nanoseconds())/float64(b.N-scans), "index-ns/decision")
			if scans > 0 {
				b.ReportMetric(float64(took[engine.Scan].Nanoseconds())/float64(scans), "scan-ns/decision")
			}
		})
	}
}

// distinctShapes returns n shapes, no two of which are equal.
func distinctShapes(n int) []cluster.Shape {
	out := Shapes(n)
	for i := range out {
		out[i].Resources = out[i].Resources.With(cluster.CPU, out[i].Resources.Of(cluster.CPU)+int64(i))
	}
	return out
}

// BenchmarkRank measures the first decision for a new shape, for which all nodes are
// filtered and scored.
func BenchmarkRank(b *testing.B) {
	for _, nodes := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			c := newChurn(b, "per-resource", nodes, 1, engine.Indexed)
			c.addJob(b)
			shape := Shapes(1)[0]
			b.ResetTimer()
			for i := range b.N {
				shape.Resources = shape.Resources.With(cluster.CPU, int64(100+i)) // a shape that the index does not know
				job := add(b, c.state, Job(1_000_000+i, shape))
				stmt := c.session.Begin()
				if c.session.Place(stmt, job) != nil {
					b.Fatal("the task was not placed")
				}
				stmt.Discard()
				b.StopTimer()
				must(b, c.state.Apply(cluster.JobGone{Job: job.ID}))
				b.StartTimer()
			}
		})
	}
}

// churn is a cluster in which jobs arrive and end at the same rate.
type churn struct {
	engine  *engine.Engine
	search  engine.Search
	state   *cluster.State
	session *engine.Session
	single  bool // whether each job has a session of its own
	shapes  []cluster.Shape
	running []*cluster.Job
	arrived int
}

// packed returns an engine of the standard plugins with the policy.
func packed(t testing.TB, policy string) *engine.Engine {
	t.Helper()
	profile, err := standard.Pack(standard.Profile(), policy)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(standard.Registry(), profile)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func newChurn(b *testing.B, policy string, nodes, shapes int, search engine.Search) *churn {
	b.Helper()
	// The cluster is always filled with the index, because filling is not measured.
	c := &churn{engine: packed(b, policy), state: Cluster(nodes), single: policy == "fill-value", shapes: Shapes(shapes)}
	devices := int64(nodes) * 8 / 2 * int64(cluster.Whole)
	for c.state.Queue(cluster.DefaultQueue).Used.Of(cluster.DefaultDeviceResource) < devices {
		c.addJob(b)
	}
	c.search, c.session = search, nil
	return c
}

// addJob adds a job of the next shape, places it, and returns how long placing took.
func (c *churn) addJob(b *testing.B) time.Duration {
	return c.add(b, Job(c.arrived, c.shapes[c.arrived%len(c.shapes)]))
}

// add adds the job, places it, and returns how long placing took.
func (c *churn) add(b *testing.B, j cluster.Job) time.Duration {
	job := add(b, c.state, j)
	c.arrived++
	if !c.single && (c.session == nil || c.arrived%1000 == 0) { // the index is kept from session to session
		c.session = c.engine.Open(c.state, engine.Options{Search: c.search})
	}
	begin := time.Now()
	ok := c.place(job)
	took := time.Since(begin)
	if !ok {
		b.Fatalf("%s was not placed", job.ID)
	}
	c.running = append(c.running, job)
	return took
}

func (c *churn) place(job *cluster.Job) bool {
	if c.single {
		s := c.engine.Open(c.state, engine.Options{Search: c.search})
		if _, err := s.Run(); err != nil {
			panic(err)
		}
		return s.Close() == nil && job.Tasks()[0].Node != nil
	}
	stmt := c.session.Begin()
	if c.session.Place(stmt, job) != nil {
		stmt.Discard()
		return false
	}
	stmt.Commit()
	return true
}

// step adds and places a job, ends the oldest one, and returns how long placing took.
func (c *churn) step(b *testing.B) time.Duration {
	took := c.addJob(b)
	c.end(b)
	return took
}

// end ends the oldest job.
func (c *churn) end(b *testing.B) {
	must(b, c.state.Apply(cluster.JobGone{Job: c.running[0].ID}))
	c.running = c.running[1:]
}

func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	at := func(q float64) float64 { return float64(took[int(q*float64(len(took)-1))].Nanoseconds()) }
	b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "decisions/s")
	b.ReportMetric(at(0.5), "p50-ns")
	b.ReportMetric(at(0.99), "p99-ns")
	b.ReportMetric(at(0.999), "p99.9-ns")
	b.ReportMetric(at(1), "max-ns")
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	b.ReportMetric(float64(memory.HeapInuse>>20), "heap-MiB")
}
