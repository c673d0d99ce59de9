// Package labelfilter rejects nodes that lack a label that the task requires: those of its
// node selector, and the instance type if one is requested.
//
// It compares keys and values as text. AffinityRequiredFilter checks conditions other than
// equality, and LabelMatchingFilter the labels that models require.
package labelfilter

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/internal/selector"
)

// Name is the plugin's name in a profile.
const Name = "LabelFilter"

// LabelMismatch is given for a node that lacks a required label or has another value for it.
const LabelMismatch engine.Reason = "LabelMismatch"

var filter = selector.Filter{
	Plugin:    Name,
	AppliesTo: appliesTo,
	Doc: engine.ReasonDoc{
		Reason: LabelMismatch, Cure: engine.Grow | engine.Relax,
		Phrase:  "label {subject} missing",
		Meaning: "The node lacks a label that the task requires, or has another value for it. The subject is the first such label, key=value.",
	},
}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return &filter })

// appliesTo excludes models that take single devices, which LabelMatchingFilter checks.
func appliesTo(s *cluster.Shape) bool { return !s.ServesModel() || s.Need.WholeNode }
