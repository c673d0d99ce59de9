package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

// The shapes of these benchmarks are those that other schedulers publish figures
// for: uniform nodes of eight devices, jobs of one device or of a whole machine.

// machines builds n equal nodes of eight devices, in racks of 16.
func machines(b *testing.B, n int) *cluster.State {
	s := cluster.NewState()
	for i := range n {
		node := cluster.Node{
			Name:      fmt.Sprintf("node-%05d", i),
			Labels:    map[string]string{"rack": fmt.Sprintf("r%d", i/16)},
			Resources: []cluster.Ledger{{Name: cluster.CPU, Capacity: 128_000}, {Name: cluster.Memory, Capacity: 1 << 40}},
		}
		for d := range 8 {
			node.Devices = append(node.Devices, cluster.Device{UUID: fmt.Sprintf("GPU-%05d-%d", i, d), Product: "H100", Type: "cuda", Memory: 80 << 30})
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

// gang is a job of so many tasks of so many devices each, with cores and memory beside.
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

// runs adds a job of one task that runs on the node.
func runs(b *testing.B, s *cluster.State, j cluster.Job, node string) {
	t, n := add(b, s, j).Tasks()[0], s.Node(node)
	claims, _ := n.Choose(t.Shape, nil)
	must(b, s.Apply(cluster.SeenOn(t, n, claims, 0)))
}

// full fills every device with a preemptible job of one device, in a queue that deserves nothing.
func full(b *testing.B, nodes int) *cluster.State {
	s := machines(b, nodes)
	gpus := int64(nodes) * 8 * int64(cluster.Whole)
	must(b, s.Apply(quotaQueue("guests", 0)))
	must(b, s.Apply(quotaQueue("owners", gpus)))
	for i := range 8 * nodes {
		j := gang(fmt.Sprintf("guest-%06d", i), "guests", 1, 1, true)
		runs(b, s, j, fmt.Sprintf("node-%05d", i/8))
	}
	return s
}

// session runs one, and times it alone.
func session(b *testing.B, e *engine.Engine, s *cluster.State) (engine.Outcome, time.Duration) {
	b.Helper()
	begin := time.Now()
	ssn := e.Open(s, engine.Options{})
	out, err := ssn.Run()
	ssn.Close()
	took := time.Since(begin)
	must(b, err)
	return out, took
}

func shipped(b *testing.B) *engine.Engine {
	e, err := engine.New(standard.Registry(), standard.Profile())
	must(b, err)
	return e
}

// each runs the benchmark at N, 2N and 4N, so that growth shows.
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

// BenchmarkAllocate places one-device jobs onto an empty cluster until it is full, one session.
func BenchmarkAllocate(b *testing.B) {
	each(b, []int{500, 1000, 1250, 2500, 5000}, func(b *testing.B, nodes int) time.Duration {
		s := machines(b, nodes)
		for i := range 8 * nodes {
			add(b, s, gang(fmt.Sprintf("j-%06d", i), "", 1, 1, false))
		}
		out, took := session(b, shipped(b), s)
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
		out, took := session(b, shipped(b), s)
		if len(out.Decisions) != 512 {
			b.Fatalf("%d decisions", len(out.Decisions))
		}
		return took
	})
}

// BenchmarkLargeReclaim: one job of half the nodes, all of each, in a queue that deserves everything.
func BenchmarkLargeReclaim(b *testing.B) {
	each(b, []int{100, 250, 500, 1000, 2000}, func(b *testing.B, nodes int) time.Duration {
		s := full(b, nodes)
		add(b, s, gang("owner", "owners", nodes/2, 8, true))
		out, took := session(b, shipped(b), s)
		if want := nodes/2*8 + nodes/2; len(out.Decisions) != want {
			b.Fatalf("%d decisions, want %d evictions and nominations", len(out.Decisions), want)
		}
		return took
	})
}

// BenchmarkSmallReclaims: as many one-device jobs as run, in a queue that deserves everything.
func BenchmarkSmallReclaims(b *testing.B) {
	each(b, []int{50, 100, 125, 250, 500, 1000}, func(b *testing.B, nodes int) time.Duration {
		s := full(b, nodes)
		for i := range 8 * nodes {
			add(b, s, gang(fmt.Sprintf("owner-%06d", i), "owners", 1, 1, true))
		}
		out, took := session(b, shipped(b), s)
		if want := 2 * 8 * nodes; len(out.Decisions) != want {
			b.Fatalf("%d decisions, want %d evictions and nominations", len(out.Decisions), want)
		}
		return took
	})
}

// BenchmarkImpossible refuses a job of ten tasks of eight devices in a scheduler
// that has been running: at once by the sums, with a shape that is known, with one
// that is new, and after a search for room that finds none: every node has
// seven jobs that may be evicted and one that may not.
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
		runs(b, s, j, fmt.Sprintf("node-%05d", i/8))
	}
	e := shipped(b)
	queue := ""
	if kind == "sums" {
		queue = "small"
	}
	before := gang("before", "", 10, 8, false)
	if kind == "cold" {
		before = gang("before", "", 10, 7, false)
	}
	add(b, s, before)
	session(b, e, s)
	must(b, s.Apply(cluster.JobGone{Job: "job/before"}))
	late := gang("late", queue, 10, 8, false)
	late.Priority = 1
	add(b, s, late)
	out, took := session(b, e, s)
	if len(out.Decisions) != 0 || len(out.Refusals) != 1 {
		b.Fatalf("%d decisions, %d refusals", len(out.Decisions), len(out.Refusals))
	}
	return took
}
