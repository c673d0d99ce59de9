// Package selector is the filter that LabelFilter and LabelMatchingFilter share. It
// compares the labels that a shape requires with those of a node, as text.
//
// The plugins decide to which shapes it applies and which reason it gives.
package selector

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Filter is a plugin that rejects nodes that lack a label that a shape requires.
type Filter struct {
	engine.FixedHooks
	Plugin    string                    // the name of the plugin in a profile
	Doc       engine.ReasonDoc          // the reason that the filter gives
	AppliesTo func(*cluster.Shape) bool // reports whether the filter applies to a shape with a selector

	matters func(*cluster.Shape) bool
	admit   engine.ShapeFilter
}

// Name returns the name of the plugin.
func (f *Filter) Name() string { return f.Plugin }

// Reasons documents the one reason that the filter gives.
func (f *Filter) Reasons() []engine.ReasonDoc { return []engine.ReasonDoc{f.Doc} }

// OnSessionOpen registers the filter. Its functions are made once, because each method value that
// is made allocates memory.
func (f *Filter) OnSessionOpen(s *engine.Session) {
	if f.matters == nil {
		f.matters, f.admit = f.Matters, f.Admit
	}
	s.Hooks.AddStaticFilter(f.matters, f.admit)
}

// Matters reports whether the filter is called for the shape: it has a selector, and
// AppliesTo returns true.
func (f *Filter) Matters(s *cluster.Shape) bool { return len(s.Selector) > 0 && f.AppliesTo(s) }

// Admit rejects the node for the first required label that is missing or has another value.
func (f *Filter) Admit(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	for i := range s.Selector {
		l := &s.Selector[i]
		// A label with an empty value is not the same as a missing label.
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
