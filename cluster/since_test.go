package cluster_test

import (
	"fmt"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// TestSince: Since reports what changed, also by an undo, and starts again from the beginning
// with another State and after a change of queues.
func TestSince(t *testing.T) {
	gpus := func(name string) *enginetest.NodeBuilder { return enginetest.Node(name).GPUs(1, "A100", "80Gi") }
	state := enginetest.State(enginetest.Queue("q"), gpus("a"), enginetest.Job("x").Queue("q").Devices(1))
	v := state.View()
	var nodes, jobs, queues cluster.Since
	expect := func(step, want string) {
		t.Helper()
		got := ""
		begin := func() { got += "begin " }
		nodes.Nodes(v, begin, func(slot int) { got += fmt.Sprint("node ", slot, v.At(slot) != nil, " ") })
		jobs.Jobs(v, begin, func(slot int) { got += fmt.Sprint("job ", slot, v.JobAt(slot) != nil, " ") })
		queues.Queues(v, begin, func(q *cluster.Queue) { got += "queue " + q.Name + " " })
		if got != want {
			t.Errorf("%s: %q, want %q", step, got, want)
		}
	}
	apply := func(c cluster.Change) {
		t.Helper()
		if err := state.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	expect("at first", "begin node 0 true begin job 0 true begin queue q queue default ")
	expect("again", "")
	mark := state.Mark()
	apply(cluster.NodePut{Node: *gpus("b").Build()})
	apply(cluster.JobPut{Job: *enginetest.Job("y").Devices(1).Build()})
	expect("after two facts", "node 1 true job 1 true ")
	state.Undo(mark)
	state.Release(mark)
	expect("after their undo", "node 1 false job 1 false ")
	apply(cluster.QueueGone{Name: "q"})
	expect("without the queue", "job 0 true begin queue default ")
	v = state.Clone().View()
	expect("of a copy", "begin node 1 false node 0 true begin job 0 true job 1 false begin queue default ")
}
