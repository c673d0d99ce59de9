// Package modelfilelocalityscorer prefers nodes that already have the files of a model, so
// that they need not be downloaded:
//
//	5 × main
//	5 × (main + 0.5 × draft) ÷ 1.5   if there is a draft model
//
// Each is 1 if the file is READY on the node, and 0 otherwise. The maximum is 5, not 100,
// because a download matters less than how a model is placed. The nodes of a
// replica on several nodes are scored separately. If a replica takes whole nodes of one
// group, the score of a group is the mean of the best nodes that the replica could take
// there. The plugin does not apply to tasks without files, and does not consider the size of
// files.
package modelfilelocalityscorer

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "ModelFileLocalityScorer"

// most is the maximum score: a twentieth of that of PlacementScorer.
const most = 5

type plugin struct{ engine.FixedHooks }

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string { return Name }

func (plugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddStaticScore(matters, score)
	engine.AddShapeGroupScore(s.Hooks, matters, groupScore)
}

// groupScore returns the mean score of the nodes with the files, as many as a replica takes.
func groupScore(j *cluster.Job, w *cluster.WholeNodes, _ *cluster.Group, nodes []*cluster.Node) float64 {
	s := shapeOf(j)
	if s == nil || !matters(s) || w.NodesPerReplica < 1 {
		return 0
	}
	scores := make([]float64, len(nodes))
	for i, n := range nodes {
		scores[i] = score(s, n)
	}
	slices.SortFunc(scores, func(a, b float64) int { return cmp.Compare(b, a) })
	sum := 0.0
	for _, x := range scores[:min(len(scores), w.NodesPerReplica)] {
		sum += x
	}
	return sum / float64(w.NodesPerReplica)
}

// shapeOf returns the shape of a task of the job; nil if it has none. All forms of a replica
// have the same files.
func shapeOf(j *cluster.Job) *cluster.Shape {
	for i := range j.Alternatives {
		if tasks := j.Alternatives[i].Tasks; len(tasks) > 0 {
			return tasks[0].Shape
		}
	}
	return nil
}

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
