// Package modelfilelocalityscorer prefers nodes that have a model's files
// already, so that nobody has to fetch them:
//
//	5 × main
//	5 × (main + 0.5 × draft) ÷ 1.5   where there is a draft model
//
// each 1 where the file is READY on the node and 0 otherwise. The most is 5, not
// 100: a download is worth a little, and how a model is laid out counts more. Of a
// replica on several nodes each counts by itself. It says nothing where no file
// is named, and refuses to know how large files are.
package modelfilelocalityscorer

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "ModelFileLocalityScorer"

// most is the full score: a twentieth of PlacementScorer's.
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

// ready is 1 where the file can be used at once.
func ready(n *cluster.Node, file string) float64 {
	if file != "" && n.Artifacts[file] == cluster.Ready {
		return 1
	}
	return 0
}
