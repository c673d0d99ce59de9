// Package labelfilter turns down nodes that lack a label the task demands: its
// node selector, and the instance type where one is asked for.
//
// It compares text and refuses to know what any label means. Conditions other
// than equality are AffinityRequiredFilter's, and the labels that models demand
// are LabelMatchingFilter's.
package labelfilter

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/internal/selector"
)

// Name is the plugin's name in a profile.
const Name = "LabelFilter"

// LabelMismatch is a demanded label that the node lacks or has another value for.
const LabelMismatch engine.Reason = "LabelMismatch"

// Reasons documents what the plugin gives as reasons.
var Reasons = []engine.ReasonDoc{
	{Reason: LabelMismatch, Cure: engine.Grow | engine.Relax, Meaning: "The node lacks a label that the task demands, or has another value for it. The subject is the first such label, key=value."},
}

type plugin struct{}

// New builds the plugin. It has no arguments.
func New(args engine.Arguments) (engine.Plugin, error) {
	if err := args.Decode(&struct{}{}); err != nil {
		return nil, err
	}
	return plugin{}, nil
}

func (plugin) Name() string                    { return Name }
func (plugin) OnSessionOpen(s *engine.Session) { s.AddStaticPredicateFn(matters, admit) }
func (plugin) OnSessionClose(*engine.Session)  {}

// matters leaves models to LabelMatchingFilter.
// matters for all but models that take devices: theirs is LabelMatchingFilter.
func matters(s *cluster.Shape) bool {
	return len(s.Selector) > 0 && (!s.Served() || s.Need.WholeNode)
}

func admit(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	l := selector.Unmet(s, n)
	if l == nil {
		return nil
	}
	return &engine.Rejection{
		Precedence: engine.OtherKind,
		Reason:     LabelMismatch,
		Cure:       engine.Grow | engine.Relax,
		Subject:    l.Key + "=" + l.Value,
	}
}
