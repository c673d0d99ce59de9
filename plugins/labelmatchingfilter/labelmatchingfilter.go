// Package labelmatchingfilter turns down nodes that lack a label which a model
// demands of the nodes that serve it: all of them must be there, and equal.
//
// It compares text and refuses to know what any label means. It is for models
// that take devices; what others demand, and models that take whole nodes, is
// LabelFilter's.
package labelmatchingfilter

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/internal/selector"
)

// Name is the plugin's name in a profile.
const Name = "LabelMatchingFilter"

// ModelLabelMismatch is a demanded label that the node lacks or has another value for.
const ModelLabelMismatch engine.Reason = "ModelLabelMismatch"

var filter = selector.Filter{
	Plugin:  Name,
	Concern: concern,
	Doc: engine.ReasonDoc{
		Reason: ModelLabelMismatch, Cure: engine.Grow | engine.Relax,
		Phrase:  "label {subject} missing",
		Meaning: "The node lacks a label that the model demands, or has another value for it. The subject is the first such label, key=value.",
	},
}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return &filter })

// concern is for models that take devices; those that take whole nodes are LabelFilter's.
func concern(s *cluster.Shape) bool { return s.Served() && !s.Need.WholeNode }
