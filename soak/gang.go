package soak

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

// standing says where each task is.
func (w *World) standing() map[*cluster.Task]*cluster.Node {
	out := map[*cluster.Task]*cluster.Node{}
	for _, j := range w.State.Jobs() {
		for _, t := range j.Tasks() {
			out[t] = t.At()
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
			fresh = fresh || before[t] != t.At()
		}
	}
	for _, t := range placed {
		v, ok := t.At().Labels[level]
		if fresh && (!ok || v != placed[0].At().Labels[level]) {
			return fmt.Errorf("%s is in %s %q, and %s is in %q", t.ID, level, v, placed[0].ID, placed[0].At().Labels[level])
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
			if t.Subgroup == i+1 && t.Placed() {
				members++
			}
		}
		if members < g.Min {
			return fmt.Errorf("%s: subgroup %s has %d tasks placed, its minimum is %d", j.ID, g.Name, members, g.Min)
		}
	}
	return nil
}

// Agree decides on two copies, by index and by scan, and compares the books. The
// twin checks the index task by task; this checks what it says of whole domains.
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
			return fmt.Errorf("index and scan come to different ends:\n%s\nand\n%s", first, got)
		}
	}
	return nil
}
