package engine_test

import (
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// fataler is a *testing.T or a *rapid.T.
type fataler interface {
	Helper()
	Fatal(...any)
}

func apply(t fataler, s *cluster.State, changes ...cluster.Change) {
	t.Helper()
	if err := s.ApplyAll(changes); err != nil {
		t.Fatal(err)
	}
}

func jobPut(b *enginetest.JobBuilder) cluster.Change { return cluster.JobPut{Job: *b.Build()} }

func jobGone(id string) cluster.Change { return cluster.JobGone{Job: id} }

func nodePut(b *enginetest.NodeBuilder) cluster.Change { return cluster.NodePut{Node: *b.Build()} }

// respecified returns the fact that the spec of the node changed.
func respecified(n *cluster.Node, change func(*cluster.Node)) cluster.Change {
	spec := *n
	spec.Labels, spec.Devices = maps.Clone(n.Labels), slices.Clone(n.Devices)
	change(&spec)
	return cluster.NodePut{Node: spec}
}

// evicts returns the decision to evict the first task of the job.
func evicts(s *cluster.State, job string) cluster.Change {
	t := s.Job(job).Tasks()[0]
	return cluster.Decided{Changes: []cluster.Change{cluster.Evict{Task: t.Ref(), Attempt: t.Attempt + 1}}}
}

// left returns the fact that the task is on no node.
func left(t *cluster.Task) cluster.Change { return cluster.TaskSeen{Task: t.Ref()} }

// runsOn returns the fact that the task runs on the node, on the devices that the node chooses for it.
func runsOn(t *cluster.Task, n *cluster.Node) cluster.Change {
	claims, _ := n.Choose(t.Shape, nil)
	return cluster.SeenOn(t, n, claims, 0)
}
