// Package localpathfilter rejects nodes that do not have the path that a model is loaded
// from. It applies only if the model's devices were selected by hand. Without a selection,
// the server of the model is responsible for the path.
//
// A node has a path if the path is among the node's artifacts. The path can be loaded when
// its state is READY; before that, waiting helps. The plugin does not know how files get
// onto nodes or what is in them.
package localpathfilter

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "LocalPathFilter"

// The reasons.
const (
	LocalPathMissing  engine.Reason = "LocalPathMissing"  // the path is not on the node
	LocalPathNotReady engine.Reason = "LocalPathNotReady" // it is on the node, but cannot be loaded yet
)

// reasons documents the reasons that the plugin gives.
var reasons = []engine.ReasonDoc{
	{Reason: LocalPathMissing, Cure: engine.Grow | engine.Relax, Phrase: "path {subject} is not on the node", Meaning: "The model is loaded from a path that the node does not have. The subject is the path."},
	{Reason: LocalPathNotReady, Cure: engine.Wait, Phrase: "not ready to be loaded: {subject}", Meaning: "The path that the model is loaded from is on the node, but not READY yet. The subject is the path and its state."},
}

type plugin struct{ engine.FixedHooks }

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string                    { return Name }
func (plugin) Reasons() []engine.ReasonDoc     { return reasons }
func (plugin) OnSessionOpen(s *engine.Session) { s.Hooks.AddStaticFilter(matters, admit) }

func matters(s *cluster.Shape) bool { return s.Files.Path != "" && len(s.Need.Selected) > 0 }

func admit(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	switch state, there := n.Artifacts[s.Files.Path]; {
	case !there:
		return &engine.Rejection{Reason: LocalPathMissing, Cure: engine.Grow | engine.Relax, Subject: s.Files.Path}
	case state != cluster.Ready:
		return &engine.Rejection{Reason: LocalPathNotReady, Cure: engine.Wait, Subject: s.Files.Path + " (" + string(state) + ")"}
	}
	return nil
}
