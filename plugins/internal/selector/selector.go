// Package selector is the filter behind the plugins that compare the labels a
// shape demands with those of a node: text with text, all of them equal.
//
// It does not know what a label means. The plugins say which shapes they are
// for and which reason they give.
package selector

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Filter rejects nodes that lack a label which a shape demands.
type Filter struct {
	Plugin  string                    // its name in a profile
	Doc     engine.ReasonDoc          // of the reason that it gives
	Concern func(*cluster.Shape) bool // which shapes with a selector it is for
}

// Name is the plugin's name.
func (f *Filter) Name() string { return f.Plugin }

// Reasons documents the one that the plugin gives.
func (f *Filter) Reasons() []engine.ReasonDoc { return []engine.ReasonDoc{f.Doc} }

// OnSessionOpen registers the filter.
func (f *Filter) OnSessionOpen(s *engine.Session) { s.Hooks.AddStaticFilter(f.Matters, f.Admit) }

// Matters reports whether the filter is for the shape.
func (f *Filter) Matters(s *cluster.Shape) bool { return len(s.Selector) > 0 && f.Concern(s) }

// Admit rejects the node for the first label that it lacks or has another value for.
func (f *Filter) Admit(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	for i := range s.Selector {
		l := &s.Selector[i]
		// An empty value is a value: the label itself must be there.
		if v, ok := n.Labels[l.Key]; !ok || v != l.Value {
			return &engine.Rejection{
				Precedence: engine.OtherKind,
				Reason:     f.Doc.Reason,
				Cure:       f.Doc.Cure,
				Subject:    l.Key + "=" + l.Value,
			}
		}
	}
	return nil
}
