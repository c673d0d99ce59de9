package soak

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

// nodesOfTasks returns the node of each task.
func (w *World) nodesOfTasks() map[*cluster.Task]*cluster.Node {
	out := map[*cluster.Task]*cluster.Node{}
	for _, j := range w.State.Jobs() {
		for _, t := range j.Tasks() {
			out[t] = t.At()
		}
	}
	return out
}

// checkTopology checks that all tasks of a job or subgroup with a required topology
// are in one domain. It checks only those with a task that was placed since before:
// the labels of a node may change while tasks run on it.
func (w *World) checkTopology(before map[*cluster.Task]*cluster.Node) error {
	for _, j := range w.State.Jobs() {
		if j.Chosen < 0 {
			continue
		}
		alt := &j.Alternatives[j.Chosen]
		if err := oneDomain(alt.Tasks, alt.Topology.Required, before); err != nil {
			return err
		}
		for i := range alt.Subgroups {
			if err := oneDomain(tasksIn(alt, i+1), alt.Subgroups[i].Topology.Required, before); err != nil {
				return err
			}
		}
	}
	return nil
}

// tasksIn returns the tasks of the subgroup and of its children.
func tasksIn(alt *cluster.Alternative, sub int) []*cluster.Task {
	var out []*cluster.Task
	for _, t := range alt.Tasks {
		for k := t.Subgroup; k > 0; k = alt.Subgroups[k-1].Parent {
			if k == sub {
				out = append(out, t)
			}
		}
	}
	return out
}

func oneDomain(tasks []*cluster.Task, level string, before map[*cluster.Task]*cluster.Node) error {
	if level == "" {
		return nil
	}
	var placed []*cluster.Task
	changed := false
	for _, t := range tasks {
		if t.Placed() {
			placed = append(placed, t)
			changed = changed || before[t] != t.At()
		}
	}
	for _, t := range placed {
		v, ok := t.At().Labels[level]
		if changed && (!ok || v != placed[0].At().Labels[level]) {
			return fmt.Errorf("%s is in %s %q, and %s is in %q", t.ID, level, v, placed[0].ID, placed[0].At().Labels[level])
		}
	}
	return nil
}

// checkSubgroups counts the tasks of subgroups, and checks that as many subgroups as
// are needed have their minimum, both of tasks and of children.
func checkSubgroups(j *cluster.Job) error {
	if j.Placed() == 0 {
		return nil
	}
	alt := &j.Alternatives[j.Chosen]
	if have, all := countSatisfied(alt, 0); have < all && (alt.MinSubgroups == 0 || have < alt.MinSubgroups) {
		return fmt.Errorf("%s: %d of %d subgroups have their minimum, and %d are needed: %s", j.ID, have, all, alt.MinSubgroups, describe(j))
	}
	return nil
}

// countSatisfied counts the children of the subgroup, and those that have their minimum.
func countSatisfied(alt *cluster.Alternative, sub int) (have, all int) {
	for i, g := range alt.Subgroups {
		if g.Parent != sub {
			continue
		}
		all++
		members := 0
		for _, t := range alt.Tasks {
			if t.Subgroup == i+1 && (t.Placed() || t.Status == cluster.Succeeded) {
				members++
			}
		}
		inside, of := countSatisfied(alt, i+1)
		if members >= g.Min && (inside == of || g.MinSubgroups > 0 && inside >= g.MinSubgroups) {
			have++
		}
	}
	return have, all
}

// Agree runs a session on two copies of State, one with the index and one with the
// scan, and compares the results. A session with engine.Twin compares the two for each
// task; this also compares what the index reports about whole domains.
func (w *World) Agree() error {
	var first string
	for _, search := range []engine.Search{engine.Indexed, engine.Scan} {
		e, err := engine.New(standard.Registry(), standard.Profile())
		if err != nil {
			return err
		}
		state := w.State.Clone()
		s := e.Open(state, engine.Options{Now: w.clock, Search: search})
		out, err := s.Run()
		s.Close()
		if err != nil {
			return err
		}
		got := Dump(state) + fmt.Sprint(out.Rankings == nil)
		for _, r := range out.Refusals {
			got += fmt.Sprintf("refused %s %s permanent=%v surplus=%v\n", r.Job, r.Reason, r.Permanent, r.Surplus)
			for _, a := range r.Attempts {
				got += fmt.Sprintf("  %s %s %d/%d %v %v\n", a.Task.ID(), a.Subgroup, a.Placed, a.Min, a.Domains, a.Counts)
			}
		}
		if first == "" {
			first = got
		} else if got != first {
			return fmt.Errorf("index and scan have different results:\n%s\nand\n%s", first, got)
		}
	}
	return nil
}
