package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// land reserves room elsewhere for all of the plan that moves, the largest first.
func (x *trial) land(plan []*Victim) bool {
	moving := shadows(plan)
	if moving == nil {
		return false
	}
	for _, shadow := range moving {
		if left := x.placer.place(shadow); left != nil || x.fault.err != nil {
			return false
		}
		x.stmt.land(shadow)
	}
	return true
}

// shadows are the jobs of the plan that move as they would be placed again, the
// largest first; nil where one runs below its minimum, so that the move would be of no
// use, or in a form that nothing is placed in any more.
func shadows(plan []*Victim) []*cluster.Job {
	leaving := map[*cluster.Job][]*cluster.Task{}
	var jobs []*cluster.Job
	for _, v := range plan {
		if v.Purpose != Move {
			continue
		}
		if leaving[v.Job] == nil {
			jobs = append(jobs, v.Job)
		}
		leaving[v.Job] = append(leaving[v.Job], v.Tasks...)
	}
	slices.SortStableFunc(jobs, func(a, b *cluster.Job) int { return size(leaving[b]...) - size(leaving[a]...) })
	out := make([]*cluster.Job, len(jobs))
	for i, j := range jobs {
		form := &j.Alternatives[max(j.Chosen, 0)]
		if out[i] = j.Shadow(leaving[j]); form.Running || len(out[i].Tasks()) < form.Min {
			return nil
		}
	}
	return out
}

// landsBack reports whether the victim moves to where it is: it can stay.
func landsBack(v *Victim) bool {
	return v.Purpose == Move && slices.ContainsFunc(v.Tasks, func(t *cluster.Task) bool {
		to := t.Landing()
		return to != nil && to.Node == t.Node && slices.Equal(to.Claims, t.Claims)
	})
}

// size is how much room tasks take: of devices, then of cores.
func size(tasks ...*cluster.Task) int {
	milli := int64(0)
	for _, t := range tasks {
		for _, c := range t.Claims {
			milli += 64 * int64(c.Milli)
		}
		milli += t.Shape.Resources.Of(cluster.CPU)
	}
	return int(milli)
}

// together places the job and lands what moves as if they were one gang, where one
// after the other does not work: the best place for the job may be the only one for a
// task that moves. Where that does not work, as with a topology, what moves lands first.
func (x *trial) together(plan []*Victim) (*Refusal, bool) {
	if x.fault.err != nil || !small(x.placer.finder.view) {
		return &Refusal{}, false
	}
	moving := shadows(plan)
	if moving == nil {
		return &Refusal{}, false
	}
	mark := x.stmt.Checkpoint()
	if x.seat(moving) {
		for _, j := range moving {
			x.stmt.land(j)
		}
	} else if x.stmt.Rollback(mark); x.fault.err != nil || !x.land(plan) {
		return &Refusal{}, false
	}
	left := x.place() // the rest of it, if there is room
	return left, x.placer.aim.met(x.want.job, left) && x.fault.err == nil
}

// seat places exactly the tasks that are lacking and those that move, as one gang.
func (x *trial) seat(moving []*cluster.Job) bool {
	all := cluster.Alternative{Name: x.want.alt().Name, Tasks: slices.Clone(x.want.lacks)}
	alternatives := []*cluster.Alternative{x.want.alt()}
	for _, j := range moving {
		alternatives = append(alternatives, &j.Alternatives[0]) // what moves has one form
	}
	for _, alt := range alternatives {
		if alt.Whole != nil || !alt.Topology.None() || slices.ContainsFunc(alt.Subgroups, func(g cluster.Subgroup) bool { return !g.Topology.None() }) {
			return false
		}
	}
	// All of them must be placed, so that subgroups have nothing to add.
	all.Subgroups = make([]cluster.Subgroup, len(x.want.alt().Subgroups))
	for _, j := range moving {
		for _, t := range j.Tasks() {
			if t.Shadows() != nil {
				t.Subgroup = 0
				all.Tasks = append(all.Tasks, t)
			}
		}
	}
	all.Min = len(all.Tasks)
	mark := x.stmt.Checkpoint()
	if x.placer.gang(&all, nil).arrange() != nil {
		x.stmt.Rollback(mark)
		if x.fault.err != nil || !x.placer.gang(&all, nil).exact() {
			return false
		}
	}
	if !startable(x.want.alt()) {
		x.stmt.hold(x.want.job, mark)
	}
	return x.fault.err == nil
}

// landed reports whether all of the plan that moves finds room now.
func (x *trial) landed(plan []*Victim) bool {
	mark := x.stmt.Checkpoint()
	ok := x.land(plan)
	x.stmt.Rollback(mark)
	return ok
}
