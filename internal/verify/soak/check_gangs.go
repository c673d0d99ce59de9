package soak

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// defaultStaleGrace is how long a gang may run below its minimum in the standard
// profile.
const defaultStaleGrace = 60 * second

// checkGangs checks that a session leaves no gang below its minimum, and that gangs
// that fell below it because of reported facts are completed or evicted in time.
func (c *sessionCheck) checkGangs() error {
	for _, e := range c.out.Events {
		if e.Kind == engine.Withdrawn && !c.before.running[c.state.Job(e.Job)] {
			c.history.addGang(e.Job) // a reservation was part of its minimum
		}
	}
	now := c.options.Now
	for _, j := range c.state.Jobs() {
		if j.Placed() == 0 || j.HasMinimum() {
			if err := checkSubgroups(j); err != nil {
				return err
			}
			c.history.forgetGang(j.ID)
			continue
		}
		since, known := c.history.belowMinimum[j.ID]
		if !known || !j.Running() {
			return fmt.Errorf("%s: %d tasks hold room, the minimum is %d: %s", j.ID, j.Placed(), j.Alternatives[j.Chosen].Min, describeTasks(j))
		}
		switch pending := hasPending(j); {
		case pending && since == 0:
			c.history.belowMinimum[j.ID] = now
		case pending && now-since >= staleGrace(j):
			return fmt.Errorf("%s has been running below its minimum since %d, and now is %d: %s", j.ID, since, now, describeTasks(j))
		}
	}
	return nil
}

// staleGrace returns how long the gang may run below its minimum.
func staleGrace(j *cluster.Job) int64 {
	if j.StaleGrace != nil {
		return *j.StaleGrace
	}
	return defaultStaleGrace
}

// checkBindings checks that a task is bound only together with the minimum of its job,
// unless a task of the job was evicted afterwards, and that no task is bound to a node
// that is not ready.
func (c *sessionCheck) checkBindings() error {
	evicted := map[string]bool{}
	for i := range c.out.Decisions {
		if d := &c.out.Decisions[i]; d.Action == engine.EvictTask {
			evicted[d.Task.Job] = true
		}
	}
	for i := range c.out.Decisions {
		d := &c.out.Decisions[i]
		if d.Action != engine.Bind {
			continue
		}
		t := c.state.Task(d.Task)
		if !evicted[t.Job.ID] && !minimumRuns(t.Job) {
			return fmt.Errorf("%s was started, and the minimum of its job was not: %s", t.ID, describeTasks(t.Job))
		}
		if t.Node != nil && t.Node.Name == d.Node && !t.Node.Ready() {
			return fmt.Errorf("%s was started on %s, which is %s", t.ID, d.Node, t.Node.Phase)
		}
	}
	return nil
}

// hasPending reports whether a task of the job is pending. The engine looks for stale
// gangs only among such jobs.
func hasPending(j *cluster.Job) bool {
	return slices.ContainsFunc(j.Tasks(), func(t *cluster.Task) bool { return t.Status == cluster.Pending })
}

// checkTopology checks that all tasks of a job or subgroup with a required topology
// are in one domain. before has the node that each task had. A job or subgroup of which
// no task was placed since then is not checked, because the labels of a node may change
// while tasks run on it.
func checkTopology(state *cluster.State, before map[*cluster.Task]*cluster.Node) error {
	for _, j := range state.Jobs() {
		if j.Chosen < 0 {
			continue
		}
		alt := &j.Alternatives[j.Chosen]
		if err := checkDomain(alt.Tasks, alt.Topology.Required, before); err != nil {
			return err
		}
		for i := range alt.Subgroups {
			if err := checkDomain(tasksOf(alt, i+1), alt.Subgroups[i].Topology.Required, before); err != nil {
				return err
			}
		}
	}
	return nil
}

// tasksOf returns the tasks of the subgroup and of its children.
func tasksOf(alt *cluster.Alternative, sub int) []*cluster.Task {
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

// checkDomain checks that the tasks are on nodes with the same value of the label, if
// one of them was placed since before.
func checkDomain(tasks []*cluster.Task, label string, before map[*cluster.Task]*cluster.Node) error {
	if label == "" {
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
		v, ok := t.At().Labels[label]
		if changed && (!ok || v != placed[0].At().Labels[label]) {
			return fmt.Errorf("%s is in %s %q, and %s is in %q", t.ID, label, v, placed[0].ID, placed[0].At().Labels[label])
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
	if have, all := countChildren(alt, 0); have < all && (alt.MinSubgroups == 0 || have < alt.MinSubgroups) {
		return fmt.Errorf("%s: %d of %d subgroups have their minimum, and %d are needed: %s", j.ID, have, all, alt.MinSubgroups, describeTasks(j))
	}
	return nil
}

// countChildren returns how many children the subgroup has, and how many of them have
// their minimum. Subgroup 0 is the job.
func countChildren(alt *cluster.Alternative, sub int) (have, all int) {
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
		inner, allInner := countChildren(alt, i+1)
		if members >= g.Min && (inner == allInner || g.MinSubgroups > 0 && inner >= g.MinSubgroups) {
			have++
		}
	}
	return have, all
}
