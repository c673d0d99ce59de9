package sim

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// RemoveNode removes a node permanently. The tasks on it are pending again. If a gang is then
// below its minimum, all its tasks are stopped, so that it is placed again as a whole.
func RemoveNode(state *cluster.State, name string) error {
	n := state.Node(name)
	if n == nil {
		return fmt.Errorf("no node %q", name)
	}
	tasks := slices.Clone(n.Tasks)
	if err := state.Apply(cluster.NodeGone{Name: name}); err != nil {
		return err
	}
	for _, t := range tasks {
		// TaskSeen without a node makes a task pending, or nominated if it was moving to another node.
		if t.Node != nil && t.ShadowOf() == nil {
			if err := state.Apply(cluster.TaskSeen{Task: t.Ref()}); err != nil {
				return err
			}
		}
	}
	for _, t := range tasks {
		if j := t.Job; j.Chosen >= 0 && !j.HasMinimum() {
			for _, o := range slices.Clone(j.Tasks()) {
				if err := stop(state, o); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// stop takes a task off its node, and releases the room that is reserved for it.
func stop(state *cluster.State, t *cluster.Task) error {
	if t.Node == nil || t.ShadowOf() != nil {
		return nil
	}
	if t.Status == cluster.Nominated {
		return state.Apply(cluster.Decided{Changes: []cluster.Change{cluster.Withdraw{Task: t.Ref()}}})
	}
	if t.Landing() != nil {
		if err := state.Apply(cluster.Decided{Changes: []cluster.Change{cluster.Withdraw{Task: t.Ref(), Landing: true}}}); err != nil {
			return err
		}
	}
	return state.Apply(cluster.TaskGone{Task: t.Ref()})
}
