// Package localpathfilter turns down nodes that do not have the path which a
// model is loaded from, where its devices were selected by hand. Without a
// selection the path does not bind anybody: whoever serves the model sees to it.
//
// A path is there if the node lists it among its artifacts, and it can be loaded
// once it is READY; before that there is something to wait for. It refuses to
// know how files get onto nodes and what is in them.
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
	LocalPathNotReady engine.Reason = "LocalPathNotReady" // it is, but cannot be loaded yet
)

// reasons documents what the plugin gives as reasons.
var reasons = []engine.ReasonDoc{
	{Reason: LocalPathMissing, Cure: engine.Grow | engine.Relax, Phrase: "no {subject} there", Meaning: "The model is loaded from a path that the node does not have. The subject is the path."},
	{Reason: LocalPathNotReady, Cure: engine.Wait, Phrase: "not ready to be loaded: {subject}", Meaning: "The path that the model is loaded from is on the node, but not READY yet. The subject is the path and its state."},
}

type plugin struct{}

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
