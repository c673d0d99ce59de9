package enginetest

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Fit returns a plugin that rejects nodes without enough free resources and devices, with
// the reason NoRoom. Every profile needs such a filter. Tests use this one together with
// plugins that do not check for room themselves.
func Fit() engine.Plugin { return fit{} }

type fit struct{ engine.FixedHooks }

func (fit) Name() string { return "Fit" }

func (fit) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddShapeFilter(nil, func(shape *cluster.Shape, n *cluster.Node) *engine.Rejection {
		for _, a := range shape.Resources {
			if l := n.Ledger(a.Name); a.Value > 0 && (l == nil || l.Free() < a.Value) {
				return &engine.Rejection{Reason: "NoRoom", Cure: engine.Wait | engine.Evict, Subject: a.Name}
			}
		}
		if !n.Feasible(shape) {
			return &engine.Rejection{Reason: "NoRoom", Cure: engine.Wait | engine.Evict}
		}
		return nil
	})
	engine.EqualNodes(s.Hooks)
}
