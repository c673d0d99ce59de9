package statusfilter_test

import (
	"fmt"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/noderesourcesfit"
	"github.com/berth-project/berth/plugins/statusfilter"
)

// TestNodeAvoidsSeveralShapes: a node rejects a task of one shape and then one of another. No answer
// that was kept for the node when it avoided only the first shape is used for the second.
func TestNodeAvoidsSeveralShapes(t *testing.T) {
	for _, search := range []engine.Search{engine.Indexed, engine.Scan, engine.Twin} {
		t.Run(fmt.Sprint(search), func(t *testing.T) {
			parts := []enginetest.Part{enginetest.Node("a").CPU(64, "256Gi").GPUs(4, "A100", "40Gi"), enginetest.Job("x").Devices(1)}
			other := func(i, version int) *enginetest.NodeBuilder {
				return enginetest.Node(fmt.Sprintf("other%02d", i)).CPU(1, "1Gi").Label("version", fmt.Sprint(version))
			}
			for i := range 12 {
				parts = append(parts, other(i, 0))
			}
			state := enginetest.State(parts...)
			apply := func(c cluster.Change) {
				t.Helper()
				if err := state.Apply(c); err != nil {
					t.Fatal(err)
				}
			}
			status, err := statusfilter.New(engine.NoArguments{})
			if err != nil {
				t.Fatal(err)
			}
			fit, err := noderesourcesfit.New(engine.NoArguments{})
			if err != nil {
				t.Fatal(err)
			}
			e := enginetest.Engine(status, fit)
			session := func(now int64) []engine.Decision {
				t.Helper()
				s := e.Open(state, engine.Options{Now: now, Search: search})
				defer s.Close()
				out, err := s.Run()
				if err != nil {
					t.Fatal(err)
				}
				return out.Decisions
			}
			reject := func(d engine.Decision, now int64) {
				apply(cluster.TaskGone{Task: d.Task, UID: state.Task(d.Task).UID, Rejected: now + 300e9})
				for i := range 12 { // so many changes that equal nodes are looked for
					apply(cluster.NodePut{Node: *other(i, int(now)).Build()})
				}
			}
			x := session(1e9)
			if len(x) != 1 || x[0].Node != "a" {
				t.Fatal(x)
			}
			reject(x[0], 1e9)
			apply(cluster.JobPut{Job: *enginetest.Job("y").Devices(2).Build()})
			y := session(2e9)
			if len(y) != 1 || y[0].Task.Job != "job/y" {
				t.Fatal(y)
			}
			reject(y[0], 2e9)
			if again := session(3e9); len(again) > 0 {
				t.Errorf("%s is placed on %s, which rejected it", again[0].Task.Job, again[0].Node)
			}
		})
	}
}
