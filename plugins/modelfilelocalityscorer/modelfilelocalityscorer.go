// Package modelfilelocalityscorer prefers nodes that already have the files of a model, so
// that they need not be downloaded:
//
//	5 × main
//	5 × (main + 0.5 × draft) ÷ 1.5   if there is a draft model
//
// Each is 1 if the file is READY on the node, and 0 otherwise. The maximum is 5, not 100,
// because a download matters less than how a model is placed. The nodes of a
// replica on several nodes are scored separately. The plugin does not apply to tasks
// without files, and does not consider the size of files.
package modelfilelocalityscorer

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "ModelFileLocalityScorer"

// most is the maximum score: a twentieth of that of PlacementScorer.
const most = 5

type plugin struct{}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string                    { return Name }
func (plugin) OnSessionOpen(s *engine.Session) { s.Hooks.AddStaticScore(matters, score) }

func matters(s *cluster.Shape) bool { return s.Files.Main != "" || s.Files.Draft != "" }

func score(s *cluster.Shape, n *cluster.Node) float64 {
	main := ready(n, s.Files.Main)
	if s.Files.Draft == "" {
		return most * main
	}
	return most * (main + 0.5*ready(n, s.Files.Draft)) / 1.5
}

// ready returns 1 if the file is READY on the node, and 0 otherwise.
func ready(n *cluster.Node, file string) float64 {
	if file != "" && n.Artifacts[file] == cluster.Ready {
		return 1
	}
	return 0
}
