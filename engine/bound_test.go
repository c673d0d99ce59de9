package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// bounded scores a node 10 if it has a task of the job's set, and 50 otherwise. It counts
// its calls in asked.
func bounded(asked *int, bound float64) *policy {
	return &policy{name: "Bounded", open: func(s *engine.Session) {
		s.Hooks.AddBoundedScore(nil, func(*cluster.Shape, *cluster.Node) float64 { return bound },
			func(_ *cluster.Task, j *cluster.Job, n *cluster.Node) float64 {
				*asked++
				for _, t := range n.Tasks {
					if t.Job.Set.Name == j.Set.Name {
						return 10
					}
				}
				return 50
			})
	}}
}

// TestBoundsEndTheWalk: the score is not called for nodes that cannot win.
func TestBoundsEndTheWalk(t *testing.T) {
	asked := 0
	s := with(manyNodes(1000))
	for i := range 5 {
		apply(t, s, jobPut(enginetest.Job(fmt.Sprint("m-", i)).Set("m", 12).Devices(1)))
	}
	out, err := enginetest.Engine(bounded(&asked, 50), fit()).Open(s, engine.Options{}).Run()
	if err != nil || len(out.Decisions) != 5 {
		t.Fatalf("%v %+v", err, out)
	}
	for i, d := range out.Decisions {
		if want := fmt.Sprintf("n%04d", i); d.Node != want || d.Score.Total != 50_000 {
			t.Errorf("decision %d: %s with %d, want %s with 50000", i, d.Node, d.Score.Total, want)
		}
	}
	if asked > 100 {
		t.Errorf("the score was called %d times for 1000 nodes that are nearly all equal", asked)
	}
}

func TestBoundsAreExact(t *testing.T) {
	asked := 0
	s := with(manyNodes(5))
	for i := range 12 {
		apply(t, s, jobPut(enginetest.Job(fmt.Sprint("m-", i)).Set("m", 12).Devices(1)))
	}
	if out, err := enginetest.Engine(bounded(&asked, 70), fit()).Open(s, engine.Options{Search: engine.Twin}).Run(); err != nil || len(out.Decisions) != 12 {
		t.Errorf("%v %+v", err, out)
	}
}

func TestScoresStayWithinTheirBound(t *testing.T) {
	asked := 0
	s := with(manyNodes(2))
	apply(t, s, jobPut(enginetest.Job("m").Devices(1)))
	_, err := enginetest.Engine(bounded(&asked, 40), fit()).Open(s, engine.Options{}).Run()
	if err == nil || !strings.Contains(err.Error(), "above its bound") || !strings.Contains(err.Error(), "Bounded") {
		t.Errorf("error %v, want one that names the plugin and the bound", err)
	}
}
