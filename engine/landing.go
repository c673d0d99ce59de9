package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// reserveMoves reserves room on other nodes for all victims of the plan that move, the largest job
// first. It returns false if there is no room for one of them.
func (x *trial) reserveMoves(plan []*Victim) bool {
	moving := shadows(plan)
	if moving == nil {
		return false
	}
	for _, shadow := range moving {
		if left := x.placer.place(shadow); left != nil || x.fault.err != nil {
			return false
		}
		x.stmt.reserveMove(shadow)
	}
	return true
}

// shadows returns the jobs of the plan that move, as shadow jobs (see cluster.Job.Shadow) that
// can be placed like pending jobs, the largest first. It returns nil if one of them runs
// below its minimum, so that moving it is useless, or in an alternative that its present spec
// does not have.
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

// landsBack reports whether room was reserved for the victim exactly where it is now, so that
// it need not move.
func landsBack(v *Victim) bool {
	return v.Purpose == Move && slices.ContainsFunc(v.Tasks, func(t *cluster.Task) bool {
		to := t.Landing()
		return to != nil && to.Node == t.Node && slices.Equal(to.Claims, t.Claims)
	})
}

// size returns a number that orders tasks by what they hold of devices, and then by the CPU
// that they request.
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

// together places the job and the tasks that move as if they were one gang. It is used if
// placing one after the other does not work, because the best node for the job may be the
// only node for a task that moves. If that is not possible, as with a topology, room for the
// tasks that move is reserved first.
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
			x.stmt.reserveMove(j)
		}
	} else if x.stmt.Rollback(mark); x.fault.err != nil || !x.reserveMoves(plan) {
		return &Refusal{}, false
	}
	left := x.place() // the tasks of the job that are not placed yet, if there is room
	return left, x.placer.aim.met(x.want.job, left) && x.fault.err == nil
}

// seat places exactly the lacking tasks and those that move, as one gang.
func (x *trial) seat(moving []*cluster.Job) bool {
	all := cluster.Alternative{Name: x.want.alt().Name, Tasks: slices.Clone(x.want.lacks)}
	alternatives := []*cluster.Alternative{x.want.alt()}
	for _, j := range moving {
		alternatives = append(alternatives, &j.Alternatives[0]) // a shadow job has one alternative
	}
	for _, alt := range alternatives {
		if alt.Whole != nil || !alt.Topology.None() || slices.ContainsFunc(alt.Subgroups, func(g cluster.Subgroup) bool { return !g.Topology.None() }) {
			return false
		}
	}
	// All tasks must be placed, so the minima of subgroups need not be checked.
	all.Subgroups = make([]cluster.Subgroup, len(x.want.alt().Subgroups))
	for _, j := range moving {
		for _, t := range j.Tasks() {
			if t.ShadowOf() != nil {
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
	if !canStart(x.want.alt()) {
		x.stmt.hold(x.want.job, mark)
	}
	return x.fault.err == nil
}

// canReserveMoves reports whether there is room for all victims of the plan that move. It changes
// nothing.
func (x *trial) canReserveMoves(plan []*Victim) bool {
	mark := x.stmt.Checkpoint()
	ok := x.reserveMoves(plan)
	x.stmt.Rollback(mark)
	return ok
}
