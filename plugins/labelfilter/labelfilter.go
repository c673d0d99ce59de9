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

var filter = selector.Filter{
	Plugin:  Name,
	Concern: concern,
	Doc: engine.ReasonDoc{
		Reason: LabelMismatch, Cure: engine.Grow | engine.Relax,
		Phrase:  "label {subject} missing",
		Meaning: "The node lacks a label that the task demands, or has another value for it. The subject is the first such label, key=value.",
	},
}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return &filter })

// concern is for all but models that take devices: theirs is LabelMatchingFilter.
func concern(s *cluster.Shape) bool { return !s.Served() || s.Need.WholeNode }
