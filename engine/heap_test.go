package engine_test

import (
	"fmt"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// above allows evictions from queues that hold more devices than their bound.
type above map[string]int64

func (above) Name() string { return "Above" }
func (a above) OnSessionOpen(s *engine.Session) {
	may := func(queue string) bool {
		bound, known := a[queue]
		return known && s.View.Queue(queue).Used.Of(cluster.DefaultDeviceResource) > bound*1000
	}
	s.Hooks.AddReclaimable(func(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Verdict {
		return func(v *engine.Victim) engine.Verdict {
			if may(v.Job.Queue) {
				return engine.Allow
			}
			return engine.Protect("NotAbove")
		}
	})
	s.Hooks.NarrowVictims(engine.Reclaim, func(*cluster.Job, []*cluster.Task) func(cluster.Class) bool {
		return func(c cluster.Class) bool { return may(c.Queue) }
	})
	s.Hooks.AddEvictionPurpose(engine.Reclaim, "Reclaimed")
	s.Hooks.AddQueueOrder(func(l, r *cluster.Queue) int { // the first turn is that of queue a, and the next that of another queue
		turn := func(q *cluster.Queue) int {
			switch _, bounded := a[q.Name]; {
			case bounded:
				return 1
			case q.Used.Of(cluster.DefaultDeviceResource) > 0:
				return 2
			}
			return 0
		}
		return turn(l) - turn(r)
	})
}

// TestHeapsFollowQueues: a queue is at its bound when room is made for the first job, and
// above it later. It then has victims for the next job with the same request.
func TestHeapsFollowQueues(t *testing.T) {
	parts := []enginetest.Part{enginetest.Queue("a"), enginetest.Queue("b"), enginetest.Queue("c"), enginetest.Node("other").GPUs(1, "L4", "24Gi")}
	for i := range 70 { // too many for all plans to be compared
		node := fmt.Sprintf("n%02d", i)
		queue := "c"
		if i < 5 {
			queue = "b"
		}
		parts = append(parts, enginetest.Node(node).GPUs(1, "A100", "80Gi"), enginetest.Job("r"+node).Queue(queue).Devices(1).Preemptible().On(node))
	}
	want := func(name, queue, product string) enginetest.Part {
		return enginetest.Job(name).Queue(queue).Devices(1).Preemptible().Shape(func(s *cluster.Shape) { s.Need.Products = []string{product} })
	}
	parts = append(parts, want("1", "a", "A100"), want("2", "c", "L4"), want("3", "a", "A100"))
	s := enginetest.Engine(fit(), above{"b": 4, "c": 65}).Open(enginetest.State(parts...), engine.Options{})
	defer s.Close()
	out, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, d := range out.Decisions {
		if d.Action == engine.EvictTask {
			got[d.For] = d.Task.Job
		}
	}
	if len(out.Refusals) > 0 || got["job/1"] != "job/rn00" || got["job/3"] != "job/rn05" {
		t.Errorf("evicted: %v, refused: %d", got, len(out.Refusals))
	}
}
