// Package team reserves nodes with the label "team" for the namespace that is its value.
package team

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "TeamNodes"

// NodeOfAnotherTeam is given for a node that is reserved for another namespace.
const NodeOfAnotherTeam engine.Reason = "NodeOfAnotherTeam"

// New builds the plugin.
var New = engine.Policy(Name, func(s *engine.Session) {
	s.Hooks.AddTaskFilter(nil, func(_ *cluster.Task, job *cluster.Job, node *cluster.Node) *engine.Rejection {
		team, reserved := node.Labels["team"]
		if !reserved || team == job.Namespace {
			return nil
		}
		return &engine.Rejection{Reason: NodeOfAnotherTeam, Cure: engine.Grow, Subject: team}
	})
})
