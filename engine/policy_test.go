package engine_test

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// policy is a plugin that consists of one function.
type policy struct {
	name  string
	open  func(*engine.Session)
	close func(*engine.Session)
}

func (p *policy) Name() string                    { return p.name }
func (p *policy) OnSessionOpen(s *engine.Session) { p.open(s) }
func (p *policy) OnSessionClose(s *engine.Session) {
	if p.close != nil {
		p.close(s)
	}
}

// fit rejects nodes without enough room. Every profile needs a plugin that does.
func fit() *policy {
	return &policy{name: "Fit", open: func(s *engine.Session) {
		s.Hooks.AddShapeFilter(nil, func(shape *cluster.Shape, n *cluster.Node) *engine.Rejection {
			for _, a := range shape.Resources {
				if l := n.Ledger(a.Name); a.Value > 0 && (l == nil || l.Free() < a.Value) {
					have := engine.Quantity{Unit: engine.Cores}
					if l != nil {
						have.Value = l.Free()
					}
					return &engine.Rejection{Reason: "Full", Cure: engine.Wait | engine.Evict, Subject: a.Name, Want: engine.Quantity{Value: a.Value, Unit: engine.Cores}, Have: have}
				}
			}
			if !n.Feasible(shape) {
				want, have := int64(shape.Need.Devices), int64(0)
				for i := range n.Devices {
					if shape.Takes(&n.Devices[i]) {
						have++
					}
				}
				cure := engine.Wait | engine.Evict
				if n.Usable(shape) < shape.Need.Devices {
					cure = engine.Grow
				}
				return &engine.Rejection{Reason: "NoDevices", Cure: cure, Want: engine.Quantity{Value: want, Unit: engine.Count}, Have: engine.Quantity{Value: have, Unit: engine.Count}}
			}
			return nil
		})
		engine.EqualNodes(s.Hooks)
	}}
}

// prefer gives each node the score in the map.
func prefer(name string, points map[string]float64) *policy {
	return &policy{name: name, open: func(s *engine.Session) {
		s.Hooks.AddShapeScore(nil, func(_ *cluster.Shape, n *cluster.Node) float64 { return points[n.Name] })
	}}
}

// run runs a twin session, in which the index is checked against a scan.
func run(t *testing.T, e *engine.Engine, s *cluster.State) engine.Outcome {
	t.Helper()
	ssn := e.Open(s, engine.Options{Search: engine.Twin})
	defer ssn.Close()
	out, err := ssn.Run()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// where returns the node of each placed task.
func where(out engine.Outcome) map[string]string {
	m := map[string]string{}
	for _, d := range out.Decisions {
		if d.Action != engine.EvictTask {
			m[d.Task.ID()] = d.Node
		}
	}
	return m
}

func twoNodes() []enginetest.Part {
	return []enginetest.Part{
		enginetest.Node("a").CPU(8, "64Gi").GPUs(2, "A100", "80Gi"),
		enginetest.Node("b").CPU(8, "64Gi").GPUs(2, "A100", "80Gi"),
	}
}

func with(parts []enginetest.Part, more ...enginetest.Part) *cluster.State {
	return enginetest.State(append(parts, more...)...)
}
