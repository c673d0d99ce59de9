package standard_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/plugins/standard"
)

const (
	gpu    = cluster.DefaultDeviceResource
	second = int64(1_000_000_000)
)

// profile builds the default profile without the given plugins.
func profile(t *testing.T, without ...string) *engine.Engine {
	t.Helper()
	p := slices.DeleteFunc(standard.Profile(), func(c engine.PluginConfig) bool { return slices.Contains(without, c.Name) })
	e, err := engine.New(standard.Registry(), p)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// session runs one session, by default at a time when all tasks have run for a while.
func session(t *testing.T, e *engine.Engine, s *cluster.State, o engine.Options) engine.Outcome {
	t.Helper()
	if o.Now == 0 {
		o.Now = 1000 * second
	}
	ssn := e.Open(s, o)
	defer ssn.Close()
	out, err := ssn.Run()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// evictedTasks returns the IDs of the tasks that were evicted.
func evictedTasks(out engine.Outcome) []string {
	var ids []string
	for _, d := range out.Decisions {
		if d.Action == engine.EvictTask {
			ids = append(ids, d.Task.ID())
		}
	}
	slices.Sort(ids)
	return ids
}

func a100(name string, devices int) *enginetest.NodeBuilder {
	return enginetest.Node(name).CPU(64, "512Gi").GPUs(devices, "A100", "80Gi")
}

// low returns a job that may be evicted for any job of a higher priority.
func low(name string) *enginetest.JobBuilder { return enginetest.Job(name).Devices(1).Preemptible() }

// bystanders returns full nodes without possible victims. With 70 of them, a cluster is too
// large for all plans to be compared.
func bystanders(n int) []enginetest.Part {
	var out []enginetest.Part
	for i := range n {
		name := fmt.Sprintf("z%03d", i)
		out = append(out, a100(name, 1), enginetest.Job(name).Devices(1).On(name))
	}
	return out
}

// bound returns how many of the job's tasks run.
func bound(j *cluster.Job) int {
	n := 0
	for _, w := range j.Tasks() {
		if w.Runs() {
			n++
		}
	}
	return n
}

func cordon(t *testing.T, s *cluster.State, name string, cordoned bool) {
	t.Helper()
	spec := *s.Node(name)
	spec.Unschedulable = cordoned
	apply(t, s, cluster.NodePut{Node: spec})
}

// add adds a job or a node to the State.
func add(t *testing.T, s *cluster.State, part any) {
	t.Helper()
	switch p := part.(type) {
	case *enginetest.JobBuilder:
		apply(t, s, cluster.JobPut{Job: *p.Build()})
	case *enginetest.NodeBuilder:
		apply(t, s, cluster.NodePut{Node: *p.Build()})
	default:
		t.Fatalf("cannot add %T", part)
	}
}

// reportStopped reports that the task is on no node any more.
func reportStopped(t *testing.T, s *cluster.State, task *cluster.Task) {
	t.Helper()
	apply(t, s, cluster.TaskSeen{Task: task.Ref()})
}

func apply(t *testing.T, s *cluster.State, changes ...cluster.Change) {
	t.Helper()
	if err := s.ApplyAll(changes); err != nil {
		t.Fatal(err)
	}
}

// confirmBindings reports that the assigned tasks run on their nodes.
func confirmBindings(t *testing.T, s *cluster.State, out engine.Outcome) {
	t.Helper()
	if err := sim.ConfirmBindings(s, out.Decisions); err != nil {
		t.Fatal(err)
	}
}
