package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// leaveAll makes the victims leave, as they may in the order of the plan. Where some are
// reclaimed and others preempted, all are asked about again with those that are preempted
// first: what a queue loses by preemption may be what it was to keep. What is left of a
// job is evicted after its surplus, so both have the same purpose.
func (r *room) leaveAll(plan []*Victim) bool {
	mark := r.stmt.Checkpoint()
	for _, v := range plan {
		if !r.leave(v) {
			return false
		}
	}
	for preempted := 0; ; {
		preempts := map[*cluster.Job]bool{}
		for _, v := range plan {
			if v.Purpose == Preempt {
				preempts[v.Job] = true
			}
		}
		for _, v := range plan {
			if v.Purpose == Reclaim && preempts[v.Job] {
				v.Purpose = Preempt
			}
		}
		var rest []*Victim
		for _, p := range [...]Purpose{Preempt, Reclaim, Move} {
			for _, v := range plan {
				if v.Purpose == p {
					rest = append(rest, v)
				}
			}
			if p == Preempt {
				if len(rest) == preempted { // none at first, or no more than the last time
					return true
				}
				preempted = len(rest)
			}
		}
		r.stmt.Rollback(mark)
		for len(rest) > 0 { // one that may not leave yet may once others have
			left := slices.DeleteFunc(slices.Clone(rest), func(v *Victim) bool { return r.leaveFor(v, v.Purpose) })
			if len(left) == len(rest) {
				return false
			}
			rest = left
		}
	}
}

// leave makes the victim leave if it still may: those before it have changed what
// queues hold.
func (r *room) leave(v *Victim) bool { return r.leaveFor(v, Reclaim) }

// leaveFor is leave for one of the purposes from the given one on.
func (r *room) leaveFor(v *Victim, from Purpose) bool {
	if !v.stillOne() || slices.ContainsFunc(v.Tasks, func(t *cluster.Task) bool { return !r.mayLeave(t, r.job) }) || !r.allows(v, from) {
		return false
	}
	if err := r.stmt.evictFor(r.job, v, r.reasons[v.Purpose]); err != nil {
		r.fail("engine", "making room: %v", err)
		return false
	}
	return true
}

// allows reports whether the victim may leave as things are. One that is evicted gets
// the first purpose that its plugins consent to, from the one given on.
func (r *room) allows(v *Victim, from Purpose) bool {
	if v.Purpose == Move {
		return r.consents(v)
	}
	for p := from; p <= Preempt; p++ {
		if v.Purpose = p; r.consents(v) {
			return true
		}
	}
	v.Purpose = from
	return false
}

func (r *room) consents(v *Victim) bool {
	if r.may[v.Purpose] == nil {
		return false
	}
	a := r.may[v.Purpose](v)
	if a.spared != nil {
		r.note(v.Purpose, a.spared, v)
	}
	return a.spared == nil
}

// mightBeEvicted reports whether the victim may be evicted as things are, or once
// others have left.
func (r *room) mightBeEvicted(v *Victim) bool {
	for _, p := range [...]Purpose{Reclaim, Preempt} {
		if r.may[p] == nil {
			continue
		}
		if a := r.may[p](v); a.spared == nil || a.yet {
			return true
		}
	}
	return false
}

// mightLeave reports whether the task may be evicted as things are, or once others have
// left: a task that its job can spare may be too young alone, and old enough with the rest.
func (r *room) mightLeave(t *cluster.Task) bool {
	return r.mightBeEvicted(VictimOf(t)) || t.Job.Spares(t) && r.mightBeEvicted(wholeJob(t.Job, Reclaim))
}

// mightMove reports whether the task may move. A job that would have to move as a
// whole does so up to a bound.
func (r *room) mightMove(t *cluster.Task) bool {
	return r.may[Move] != nil && (t.Job.Spares(t) || len(t.Job.Tasks()) <= maxMoved) && r.may[Move](mover(t)).spared == nil
}

// protected is a job that was protected, for which purpose and why.
type protected struct {
	Spared
	purpose Purpose
	job     *cluster.Job
}

// note counts jobs that were protected.
func (r *room) note(p Purpose, s *Spared, v *Victim) {
	key := protected{*s, p, v.Job}
	if r.counted[key] {
		return
	}
	if r.counted == nil {
		r.counted = map[protected]bool{}
	}
	r.counted[key] = true
	r.spared[p] = protect(r.spared[p], s, v.Job.ID)
}
