// Package labelmatchingfilter rejects nodes that lack a label that a model requires of the
// nodes that serve it.
//
// It compares keys and values as text. It applies to models that take devices. LabelFilter
// does the same for models that take whole nodes and for all other tasks.
package labelmatchingfilter

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/internal/selector"
)

// Name is the plugin's name in a profile.
const Name = "LabelMatchingFilter"

// ModelLabelMismatch is given for a node that lacks a required label or has another value for it.
const ModelLabelMismatch engine.Reason = "ModelLabelMismatch"

var filter = selector.Filter{
	Plugin:    Name,
	AppliesTo: appliesTo,
	Doc: engine.ReasonDoc{
		Reason: ModelLabelMismatch, Cure: engine.Grow | engine.Relax,
		Phrase:  "label {subject} missing",
		Meaning: "The node lacks a label that the model requires, or has another value for it. The subject is the first such label, key=value.",
	},
}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return &filter })

// appliesTo excludes models that take whole nodes, which LabelFilter checks, and all tasks
// that do not serve a model.
func appliesTo(s *cluster.Shape) bool { return s.ServesModel() && !s.Need.WholeNode }
