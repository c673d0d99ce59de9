package soak

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
)

// standing says where each task is.
func (w *World) standing() map[*cluster.Task]*cluster.Node {
	out := map[*cluster.Task]*cluster.Node{}
	for _, j := range w.State.Jobs() {
		for _, t := range j.Tasks() {
			out[t] = t.Node
		}
	}
	return out
}

// checkTopology makes sure that whoever was placed since is in one domain with
// all others of its job or subgroup, where that is required. Nodes change their
// labels under those who run, so only what was decided is held against it.
func (w *World) checkTopology(before map[*cluster.Task]*cluster.Node) error {
	for _, j := range w.State.Jobs() {
		if j.Chosen < 0 {
			continue
		}
		alt := &j.Alternatives[j.Chosen]
		if err := oneDomain(alt.Tasks, 0, alt.Topology.Required, before); err != nil {
			return err
		}
		for i := range alt.Subgroups {
			if err := oneDomain(alt.Tasks, i+1, alt.Subgroups[i].Topology.Required, before); err != nil {
				return err
			}
		}
	}
	return nil
}

func oneDomain(tasks []*cluster.Task, sub int, level string, before map[*cluster.Task]*cluster.Node) error {
	if level == "" {
		return nil
	}
	var placed []*cluster.Task
	fresh := false
	for _, t := range tasks {
		if t.Placed() && (sub == 0 || t.Subgroup == sub) {
			placed = append(placed, t)
			fresh = fresh || before[t] != t.Node
		}
	}
	for _, t := range placed {
		v, ok := t.Node.Labels[level]
		if fresh && (!ok || v != placed[0].Node.Labels[level]) {
			return fmt.Errorf("%s is in %s %q, and %s is in %q", t.ID, level, v, placed[0].ID, placed[0].Node.Labels[level])
		}
	}
	return nil
}

// checkSubgroups counts members anew.
func checkSubgroups(j *cluster.Job) error {
	if j.Placed() == 0 {
		return nil
	}
	for i, g := range j.Alternatives[j.Chosen].Subgroups {
		members := 0
		for _, t := range j.Tasks() {
			if t.Subgroup == i+1 && (t.Status == cluster.Bound || t.Status == cluster.Nominated) {
				members++
			}
		}
		if members < g.Min {
			return fmt.Errorf("%s: subgroup %s has %d tasks placed, its minimum is %d", j.ID, g.Name, members, g.Min)
		}
	}
	return nil
}
