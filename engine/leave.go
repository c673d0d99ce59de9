package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// leaver makes victims leave for a job, as far as the hooks consent, and remembers which
// are protected.
type leaver struct {
	want         *want
	stmt         *Statement
	victims      *victims
	fault        *fault
	may          [purposes]func(*Victim) answer
	mightClasses [purposes]*narrowed // nil: any class may have victims
	reasons      [purposes]Reason
	spared       [purposes][]Protection
	counted      map[protected]bool
}

// exits are the ways in which victims leave in one search.
type exits struct {
	leaver *leaver
	way    way
	might  *narrowed // the classes that might have victims which leave in this way; nil: any
}

// leaveAll makes the victims leave, as they may in the order of the plan. Where some are
// reclaimed and others preempted, all are asked about again with those that are preempted
// first: what a queue loses by preemption may be what it was to keep. What is left of a
// job is evicted after its surplus, so both have the same purpose.
func (l *leaver) leaveAll(plan []*Victim) bool {
	mark := l.stmt.Checkpoint()
	if !l.leaveInOrder(plan) {
		return false
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
		l.stmt.Rollback(mark)
		for len(rest) > 0 { // one that may not leave yet may once others have
			left := slices.DeleteFunc(slices.Clone(rest), func(v *Victim) bool { return l.leaveFor(v, v.Purpose) })
			if len(left) == len(rest) {
				return false
			}
			rest = left
		}
	}
}

// leaveInOrder makes the victims leave one after the other, up to the first that may not.
func (l *leaver) leaveInOrder(plan []*Victim) bool {
	return !slices.ContainsFunc(plan, func(v *Victim) bool { return !l.leave(v) })
}

// leave makes the victim leave if it still may: those before it have changed what
// queues hold.
func (l *leaver) leave(v *Victim) bool { return l.leaveFor(v, Reclaim) }

// leaveFor is leave for one of the purposes from the given one on.
func (l *leaver) leaveFor(v *Victim, from Purpose) bool {
	if !v.stillOne() || slices.ContainsFunc(v.Tasks, func(t *cluster.Task) bool { return !l.victims.mayLeave(t, l.want.job) }) || !l.allows(v, from) {
		return false
	}
	if err := l.stmt.evictFor(l.want.job, v, l.reasons[v.Purpose]); err != nil {
		l.fault.fail("engine", "making room: %v", err)
		return false
	}
	return true
}

// allows reports whether the victim may leave as things are. One that is evicted gets
// the first purpose that its plugins consent to, from the one given on.
func (l *leaver) allows(v *Victim, from Purpose) bool {
	if v.Purpose == Move {
		return l.hooksAllow(v)
	}
	for p := from; p <= Preempt; p++ {
		if v.Purpose = p; l.hooksAllow(v) {
			return true
		}
	}
	v.Purpose = from
	return false
}

func (l *leaver) hooksAllow(v *Victim) bool {
	if l.may[v.Purpose] == nil {
		return false
	}
	a := l.may[v.Purpose](v)
	if a.spared != nil {
		l.noteProtected(v.Purpose, a.spared, v)
	}
	return a.spared == nil
}

// mightBeEvicted reports whether the victim may be evicted as things are, or once
// others have left.
func (l *leaver) mightBeEvicted(v *Victim) bool {
	for _, p := range [...]Purpose{Reclaim, Preempt} {
		if l.may[p] == nil {
			continue
		}
		if a := l.may[p](v); a.spared == nil || a.yet {
			return true
		}
	}
	return false
}

// mightLeave reports whether the task may be evicted as things are, or once others have
// left: a task that its job can spare may be too young alone, and old enough with the rest.
func (l *leaver) mightLeave(t *cluster.Task) bool {
	return l.mightBeEvicted(VictimOf(t)) || t.Job.Spares(t) && l.mightBeEvicted(wholeJob(t.Job, Reclaim))
}

// mightMove reports whether the task may move. A job that would have to move as a
// whole does so up to a bound.
func (l *leaver) mightMove(t *cluster.Task) bool {
	return l.may[Move] != nil && (t.Job.Spares(t) || len(t.Job.Tasks()) <= maxMoved) && l.may[Move](mover(t)).spared == nil
}

// protected is a job that was protected, for which purpose and why.
type protected struct {
	Spared
	purpose Purpose
	job     *cluster.Job
}

// note counts jobs that were protected.
func (l *leaver) noteProtected(p Purpose, s *Spared, v *Victim) {
	key := protected{*s, p, v.Job}
	if l.counted[key] {
		return
	}
	if l.counted == nil {
		l.counted = map[protected]bool{}
	}
	l.counted[key] = true
	l.spared[p] = protect(l.spared[p], s, v.Job.ID)
}

// prepare asks the hooks of each purpose for which something might leave.
func (l *leaver) prepare(means []Means, refusal *Refusal) {
	w := l.want
	tried := refusal.of(w.alternative)
	if tried == nil || tried.Never || !slices.ContainsFunc(tried.tallies(), func(c Tally) bool { return c.Cure&Evict != 0 }) {
		means = nil // room that others leave does not help
	}
	for _, m := range means {
		l.reasons[m.Purpose] = m.Reason
		if l.may[m.Purpose] = l.victims.may(m.Purpose, w.job, w.lacks, w.last); l.may[m.Purpose] != nil {
			l.mightClasses[m.Purpose] = l.victims.might(m.Purpose, w.job, w.lacks, w.last)
		} else if !w.last {
			refusal.spare(m.Purpose, true, nil)
		}
	}
	if w.limited = tried != nil && tried.Before != nil; w.limited && !l.can(evicting) {
		l.may[Move] = nil // moving others does not change what a queue may have
	}
}

// can reports whether victims may leave in one of the ways.
func (l *leaver) can(w way) bool {
	return w&moving != 0 && l.may[Move] != nil || w&evicting != 0 && (l.may[Reclaim] != nil || l.may[Preempt] != nil)
}

// mights says which classes might have victims that leave in the way; nil where that is
// not known.
func (l *leaver) mights(w way) *narrowed {
	var all []*narrowed
	for p := range purposes {
		if l.may[p] == nil || p == Move && w&moving == 0 || p != Move && w&evicting == 0 {
			continue
		}
		if l.mightClasses[p] == nil {
			return nil
		}
		all = append(all, l.mightClasses[p])
	}
	return either(all)
}

// anyOf reports whether a class runs that might have victims which leave in the way.
func (l *leaver) anyOf(w way) bool {
	might := l.mights(w)
	if might == nil {
		return true
	}
	found := false
	might.visit(l.victims.view.Classes(), func(cluster.Class) bool {
		found = true
		return false
	})
	return found
}

// first are the victims that leave if the first rivals do.
func (e *exits) first(line []rival, size int) []*Victim {
	mark := e.leaver.stmt.Checkpoint()
	defer e.leaver.stmt.Rollback(mark)
	var plan []*Victim
	for progress := true; progress; {
		progress = false
		for _, c := range line[:size] {
			if !c.task.Runs() {
				continue
			}
			v := mover(c.task)
			if e.way&evicting != 0 {
				v = VictimOf(c.task)
			}
			if e.leaver.leave(v) {
				plan = append(plan, v)
				progress = true
			}
		}
	}
	return plan
}

// leavable reports whether the task might leave in this way.
func (e *exits) leavable(t *cluster.Task) bool {
	return e.way&evicting != 0 && e.leaver.mightLeave(t) || e.way&moving != 0 && e.leaver.mightMove(t)
}

// rivalsOn are the tasks on the node that might leave in this way.
func (e *exits) rivalsOn(n *cluster.Node) []rival {
	var line []rival
	for _, o := range n.Tasks {
		if !e.leaver.victims.mayLeave(o, e.leaver.want.job) {
			continue
		}
		c := e.leaver.victims.rival(o)
		if c.evicts = e.way&evicting != 0; !c.evicts {
			c.cost = e.leaver.victims.costOfTask(o) // it moves alone
		}
		c.moves = e.way&moving != 0 && e.leaver.mightMove(o)
		if c.evicts || c.moves {
			line = append(line, c)
		}
	}
	return line
}
