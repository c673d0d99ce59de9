package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

// These benchmarks use the workloads for which other schedulers publish results: equal
// nodes with eight devices, and jobs that request one device or a whole node.

// machines returns n equal nodes with eight devices, in racks of 16.
func machines(b *testing.B, n int) *cluster.State {
	s := cluster.NewState()
	for i := range n {
		node := cluster.Node{
			Name:      fmt.Sprintf("node-%05d", i),
			Labels:    map[string]string{"rack": fmt.Sprintf("r%d", i/16)},
			Resources: []cluster.Ledger{{Name: cluster.CPU, Capacity: 128_000}, {Name: cluster.Memory, Capacity: 1 << 40}},
		}
		for d := range 8 {
			node.Devices = append(node.Devices, cluster.Device{DeviceSpec: &cluster.DeviceSpec{Product: "H100", Type: "cuda", Memory: 80 << 30}, UUID: fmt.Sprintf("GPU-%05d-%d", i, d)})
		}
		must(b, s.Apply(cluster.NodePut{Node: node}))
	}
	return s
}

func must(b *testing.B, err error) {
	if err != nil {
		b.Fatal(err)
	}
}

// gang returns a job with the given number of tasks and of devices per task, which also
// requests cores and memory.
func gang(name, queue string, tasks, devices int, preemptible bool) cluster.Job {
	shape := &cluster.Shape{
		Resources:   cluster.Resources{{Name: cluster.CPU, Value: int64(devices) * 4000}, {Name: cluster.Memory, Value: int64(devices) * 16 << 30}},
		Need:        cluster.Need{Devices: devices},
		Preemptible: preemptible,
	}
	j := cluster.Job{ID: "job/" + name, Queue: queue, Preemptible: preemptible}
	alt := cluster.Alternative{Min: tasks}
	for i := range tasks {
		alt.Tasks = append(alt.Tasks, &cluster.Task{Name: fmt.Sprintf("w-%d", i), Role: "w", Index: i, Shape: shape})
	}
	j.Alternatives = []cluster.Alternative{alt}
	return j
}

func quotaQueue(name string, quota int64) cluster.Change {
	return cluster.QueuePut{Queue: cluster.Queue{Name: name, Quota: cluster.Resources{{Name: cluster.DefaultDeviceResource, Value: quota}}}}
}

func limitedQueue(name string, limit int64) cluster.Change {
	return cluster.QueuePut{Queue: cluster.Queue{Name: name, Limits: cluster.Resources{{Name: cluster.DefaultDeviceResource, Value: limit}}}}
}

// add adds the job and returns it as State has it.
func add(b *testing.B, s *cluster.State, j cluster.Job) *cluster.Job {
	must(b, s.Apply(cluster.JobPut{Job: j}))
	return s.Job(j.ID)
}

// addRunning adds a job with one task that runs on the node.
func addRunning(b *testing.B, s *cluster.State, j cluster.Job, node string) {
	t, n := add(b, s, j).Tasks()[0], s.Node(node)
	claims, _ := n.Choose(t.Shape, nil)
	must(b, s.Apply(cluster.SeenOn(t, n, claims, 0)))
}

// fullCluster returns a cluster in which a preemptible job runs on every device, in a
// queue without a quota.
func fullCluster(b *testing.B, nodes int) *cluster.State {
	s := machines(b, nodes)
	gpus := int64(nodes) * 8 * int64(cluster.Whole)
	must(b, s.Apply(quotaQueue("guests", 0)))
	must(b, s.Apply(quotaQueue("owners", gpus)))
	for i := range 8 * nodes {
		j := gang(fmt.Sprintf("guest-%06d", i), "guests", 1, 1, true)
		addRunning(b, s, j, fmt.Sprintf("node-%05d", i/8))
	}
	return s
}

// runSession runs a session, and measures only that.
func runSession(b *testing.B, e *engine.Engine, s *cluster.State) (engine.Outcome, time.Duration) {
	b.Helper()
	begin := time.Now()
	ssn := e.Open(s, engine.Options{})
	out, err := ssn.Run()
	ssn.Close()
	took := time.Since(begin)
	must(b, err)
	return out, took
}

// standardEngine returns an engine with the standard profile.
func standardEngine(b *testing.B) *engine.Engine {
	e, err := engine.New(standard.Registry(), standard.Profile())
	must(b, err)
	return e
}

// each runs the benchmark with each of the sizes, so that the growth can be seen.
func each(b *testing.B, sizes []int, run func(b *testing.B, nodes int) time.Duration) {
	for _, nodes := range sizes {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			var total time.Duration
			for range b.N {
				b.StopTimer()
				total += run(b, nodes)
				b.StartTimer()
			}
			b.ReportMetric(total.Seconds()*1000/float64(b.N), "ms/session")
		})
	}
}

// BenchmarkAllocate fills an empty cluster with jobs of one device in one session.
func BenchmarkAllocate(b *testing.B) {
	each(b, []int{500, 1000, 1250, 2500, 5000}, func(b *testing.B, nodes int) time.Duration {
		s := machines(b, nodes)
		for i := range 8 * nodes {
			add(b, s, gang(fmt.Sprintf("j-%06d", i), "", 1, 1, false))
		}
		out, took := runSession(b, standardEngine(b), s)
		if len(out.Decisions) != 8*nodes {
			b.Fatalf("%d decisions", len(out.Decisions))
		}
		b.ReportMetric(float64(8*nodes)/took.Seconds(), "jobs/s")
		return took
	})
}

// BenchmarkGang places a gang of 512 tasks.
func BenchmarkGang(b *testing.B) {
	each(b, []int{500, 1000, 2000}, func(b *testing.B, nodes int) time.Duration {
		s := machines(b, nodes)
		add(b, s, gang("gang", "", 512, 1, false))
		out, took := runSession(b, standardEngine(b), s)
		if len(out.Decisions) != 512 {
			b.Fatalf("%d decisions", len(out.Decisions))
		}
		return took
	})
}

// BenchmarkLargeReclaim evicts for one job that requests half of the nodes as a whole. The
// quota of its queue is the whole cluster.
func BenchmarkLargeReclaim(b *testing.B) {
	each(b, []int{100, 250, 500, 1000, 2000}, func(b *testing.B, nodes int) time.Duration {
		s := fullCluster(b, nodes)
		add(b, s, gang("owner", "owners", nodes/2, 8, true))
		out, took := runSession(b, standardEngine(b), s)
		if want := nodes/2*8 + nodes/2; len(out.Decisions) != want {
			b.Fatalf("%d decisions, want %d evictions and nominations", len(out.Decisions), want)
		}
		return took
	})
}

// BenchmarkSmallReclaims evicts for as many jobs of one device as are running. The quota of
// their queue is the whole cluster.
func BenchmarkSmallReclaims(b *testing.B) {
	each(b, []int{50, 100, 125, 250, 500, 1000}, func(b *testing.B, nodes int) time.Duration {
		s := fullCluster(b, nodes)
		for i := range 8 * nodes {
			add(b, s, gang(fmt.Sprintf("owner-%06d", i), "owners", 1, 1, true))
		}
		out, took := runSession(b, standardEngine(b), s)
		if want := 2 * 8 * nodes; len(out.Decisions) != want {
			b.Fatalf("%d decisions, want %d evictions and nominations", len(out.Decisions), want)
		}
		return took
	})
}

// BenchmarkImpossible refuses a job with ten tasks of eight devices, in a scheduler that
// has been running. The kinds are: a refusal by sums, a shape that is known, a shape that
// is new, and a search for victims that finds none, because every node has seven jobs
// that may be evicted and one that may not.
func BenchmarkImpossible(b *testing.B) {
	for _, kind := range []string{"sums", "warm", "cold", "adapters"} {
		for _, nodes := range []int{1250, 2500, 5000} {
			b.Run(fmt.Sprintf("%s/nodes=%d", kind, nodes), func(b *testing.B) {
				var total time.Duration
				for range b.N {
					b.StopTimer()
					total += impossible(b, kind, nodes)
					b.StartTimer()
				}
				b.ReportMetric(total.Seconds()*1000/float64(b.N), "ms/refusal")
			})
		}
	}
}

func impossible(b *testing.B, kind string, nodes int) time.Duration {
	s := machines(b, nodes)
	must(b, s.Apply(limitedQueue("small", 8000)))
	for i := range 8 * nodes {
		j := gang(fmt.Sprintf("busy-%06d", i), "", 1, 1, kind == "adapters" && i%8 > 0)
		addRunning(b, s, j, fmt.Sprintf("node-%05d", i/8))
	}
	e := standardEngine(b)
	queue := ""
	if kind == "sums" {
		queue = "small"
	}
	before := gang("before", "", 10, 8, false)
	if kind == "cold" {
		before = gang("before", "", 10, 7, false)
	}
	add(b, s, before)
	runSession(b, e, s)
	must(b, s.Apply(cluster.JobGone{Job: "job/before"}))
	late := gang("late", queue, 10, 8, false)
	late.Priority = 1
	add(b, s, late)
	out, took := runSession(b, e, s)
	if len(out.Decisions) != 0 || len(out.Refusals) != 1 {
		b.Fatalf("%d decisions, %d refusals", len(out.Decisions), len(out.Refusals))
	}
	return took
}
