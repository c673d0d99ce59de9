package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// evictor evicts and moves victims for a job in the statement, as far as the hooks allow it,
// and records which victims are protected.
type evictor struct {
	want         *want
	stmt         *Statement
	victims      *victims
	fault        *fault
	may          [purposes]bool           // victims may be evicted for the purpose
	judges       [purposes][]judge        // of each of these purposes
	mightClasses [purposes]purposeClasses // the classes that may have victims
	firstClasses [purposes]purposeClasses // those of them that may have a victim before others are evicted
	rules        []classRules             // the rules of both, one after the other
	memory       struct {                 // of judges and rules
		judges [6]judge
		rules  [6]classRules
	}
	reasons     [purposes]Reason
	protections [purposes][]Protection
	counted     map[protected]bool
	once        *staying // not nil while a victim is evicted that may stay evicted
}

// purposeClasses is the classes that may have victims for a purpose.
type purposeClasses struct {
	rules    []classRules
	any      bool // every class may; the rules do not count
	narrower bool // they may be fewer than those that may have victims after others
}

// evictionWays says in which ways victims are removed in one search: evicted, moved, or both.
type evictionWays struct {
	evictor *evictor
	way     way
	might   *narrowed   // the classes that may have victims in this way; nil means any
	firsts  *narrowed   // the classes that may have a victim before others are evicted
	memory  [2]narrowed // of both
}

// evictAll evicts the victims of the plan, and reports whether all of them may be evicted. It
// first judges them in the order of the plan. If at least one victim is preempted, it undoes
// the evictions and judges all victims again: first those that are preempted, then those that
// are reclaimed, then the moves. A queue may be reclaimed from only as long as it keeps its
// share, and a later preemption could take that. evictAll repeats this while more victims
// become preempted. If one victim of a job is preempted, all victims of the job that do not
// move are preempted. If evictAll returns false, some victims may be evicted; the caller rolls
// them back.
func (l *evictor) evictAll(plan []*Victim) bool {
	mark := l.stmt.Checkpoint()
	if !l.evictInOrder(plan) {
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
				if len(rest) == preempted { // none is preempted, or no more than in the last round
					return true
				}
				preempted = len(rest)
			}
		}
		l.stmt.Rollback(mark)
		for len(rest) > 0 { // a victim may become evictable after others were evicted
			left := slices.DeleteFunc(slices.Clone(rest), func(v *Victim) bool { return l.evictFor(v, v.Purpose) })
			if len(left) == len(rest) {
				return false
			}
			rest = left
		}
	}
}

// evictInOrder evicts the victims in order. It stops at the first that may not be evicted, and
// then returns false.
func (l *evictor) evictInOrder(plan []*Victim) bool {
	return !slices.ContainsFunc(plan, func(v *Victim) bool { return !l.evict(v) })
}

// evict evicts the victim if the hooks allow that now, which may depend on the evictions
// before it. It returns false if they do not.
func (l *evictor) evict(v *Victim) bool { return l.evictFor(v, Reclaim) }

// evictFor is like evict, and considers only the given purpose and those after it.
func (l *evictor) evictFor(v *Victim, from Purpose) bool {
	if !v.isValid() || slices.ContainsFunc(v.Tasks, func(t *cluster.Task) bool { return !l.victims.mayBeVictim(t, l.want.job) }) || !l.allows(v, from) {
		return false
	}
	if l.once != nil {
		l.once.begin(v)
	}
	if err := l.stmt.evictFor(l.want.job, v, l.reasons[v.Purpose]); err != nil {
		l.fault.fail("engine", "making room: %v", err)
		return false
	}
	return true
}

// allows reports whether the hooks allow the victim now. A victim that does not move gets the
// first purpose that the hooks allow, from the given one on.
func (l *evictor) allows(v *Victim, from Purpose) bool {
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

// ask returns what the hooks of the purpose decide about the victim.
func (l *evictor) ask(p Purpose, v *Victim) answer { return l.victims.ask(l.judges[p], v) }

func (l *evictor) hooksAllow(v *Victim) bool {
	if !l.may[v.Purpose] {
		return false
	}
	a := l.ask(v.Purpose, v)
	if a.protector != nil {
		l.noteProtected(v.Purpose, a.protector, v)
	}
	return a.protector == nil
}

// mightBeEvicted reports whether the victim may be evicted now, or perhaps after others.
func (l *evictor) mightBeEvicted(v *Victim) bool {
	for _, p := range [...]Purpose{Reclaim, Preempt} {
		if !l.may[p] {
			continue
		}
		if a := l.ask(p, v); a.protector == nil || a.yet {
			return true
		}
	}
	return false
}

// taskMightBeEvicted reports whether the task may be evicted now, or perhaps after others, alone or
// with its whole job. A surplus task may be protected alone, for example because it started
// too recently, and be allowed together with the rest of its job, which runs longer.
func (l *evictor) taskMightBeEvicted(t *cluster.Task) bool {
	return l.mightBeEvicted(VictimOf(t)) || t.Job.IsSurplus(t) && l.mightBeEvicted(wholeJob(t.Job, Reclaim))
}

// mightMove reports whether the task may be moved. A job that must move as a whole is not
// moved if it has more than maxMoved tasks.
func (l *evictor) mightMove(t *cluster.Task) bool {
	return l.may[Move] && (t.Job.IsSurplus(t) || len(t.Job.Tasks()) <= maxMoved) && l.ask(Move, mover(t)).protector == nil
}

// protected says that a job was protected, by which plugin, why, and for which purpose.
type protected struct {
	Protector
	purpose Purpose
	job     *cluster.Job
}

// noteProtected adds the victim's job to the protected jobs. Each job is counted once per
// plugin, reason and purpose.
func (l *evictor) noteProtected(p Purpose, s *Protector, v *Victim) {
	key := protected{*s, p, v.Job}
	if l.counted[key] {
		return
	}
	if l.counted == nil {
		l.counted = map[protected]bool{}
	}
	l.counted[key] = true
	l.protections[p] = protect(l.protections[p], s, v.Job.ID)
}

// prepare calls the VictimRule hooks of each purpose. If evictions cannot cure the refusal, it
// prepares no purpose.
func (l *evictor) prepare(allowed []EvictionPurpose, refusal *Refusal) {
	w := l.want
	tried := refusal.of(w.alternative)
	if tried == nil || tried.Never || !slices.ContainsFunc(tried.tallies(), func(c Tally) bool { return c.Cure&Evict != 0 }) {
		allowed = nil // the room of other tasks does not help
	}
	memory := l.memory.judges[:0]
	for _, m := range allowed {
		l.reasons[m.Purpose] = m.Reason
		judges, none := l.victims.judges(memory, m.Purpose, w.job, w.lacks, w.last)
		if memory = judges[len(judges):]; !none {
			l.may[m.Purpose], l.judges[m.Purpose] = true, judges
			l.mightClasses[m.Purpose] = l.classesFor(m.Purpose, false)
			if l.firstClasses[m.Purpose] = l.mightClasses[m.Purpose]; l.victims.narrowsFirst(m.Purpose, w.last) {
				l.firstClasses[m.Purpose] = l.classesFor(m.Purpose, true)
			}
		} else if !w.last {
			refusal.addProtected(m.Purpose, true, nil)
		}
	}
	if w.limited = tried != nil && tried.Before != nil; w.limited && !l.can(evicting) {
		l.may[Move] = false // moves do not change what a queue uses
	}
}

// classesFor returns the classes that may have victims for the purpose or, if first is set, that
// may have a first victim.
func (l *evictor) classesFor(p Purpose, first bool) purposeClasses {
	if l.rules == nil {
		l.rules = l.memory.rules[:0]
	}
	from, narrows := len(l.rules), false
	l.rules, narrows = l.victims.might(l.rules, p, l.want, first)
	return purposeClasses{rules: l.rules[from:], any: !narrows, narrower: first}
}

// can reports whether victims may be removed in at least one of the ways.
func (l *evictor) can(w way) bool {
	return w&moving != 0 && l.may[Move] || w&evicting != 0 && (l.may[Reclaim] || l.may[Preempt])
}

// mights returns the classes that may have victims in the given ways. If first is set, it
// leaves out classes that may have victims only after others are evicted. It returns nil if
// any class may.
func (l *evictor) mights(w way, first bool) *narrowed { return l.mightsIn(&narrowed{}, w, first) }

// mightsIn is mights, and uses the memory of out.
func (l *evictor) mightsIn(out *narrowed, w way, first bool) *narrowed {
	*out = narrowed{want: l.want}
	out.rules = out.memory[:0]
	for p := range purposes {
		if !l.uses(p, w) {
			continue
		}
		c := &l.mightClasses[p]
		if first {
			c = &l.firstClasses[p]
		}
		if c.any {
			return nil
		}
		out.rules = append(out.rules, c.rules...)
	}
	return out
}

// uses reports whether victims may be removed for the purpose in one of the given ways.
func (l *evictor) uses(p Purpose, w way) bool {
	return l.may[p] && (p == Move && w&moving != 0 || p != Move && w&evicting != 0)
}

// narrowsFirst reports whether, in the given ways, fewer classes may have a first victim than
// may have victims after others.
func (l *evictor) narrowsFirst(w way) bool {
	for p := range purposes {
		if l.uses(p, w) && l.firstClasses[p].narrower {
			return true
		}
	}
	return false
}

// anyOf reports whether tasks run of a class that may have victims in the given ways.
func (l *evictor) anyOf(w way) bool {
	might := l.mights(w, false)
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

// first returns the plan that evicts as many of the first size rivals as the hooks allow. It
// changes nothing.
func (e *evictionWays) first(line []rival, size int) []*Victim {
	mark := e.evictor.stmt.Checkpoint()
	defer e.evictor.stmt.Rollback(mark)
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
			if e.evictor.evict(v) {
				plan = append(plan, v)
				progress = true
			}
		}
	}
	return plan
}

// isRemovable reports whether the task might be removed in one of the ways.
func (e *evictionWays) isRemovable(t *cluster.Task) bool {
	return e.way&evicting != 0 && e.evictor.taskMightBeEvicted(t) || e.way&moving != 0 && e.evictor.mightMove(t)
}

// mayBeFirst reports whether the task may be removed in one of the ways as things are.
func (e *evictionWays) mayBeFirst(t *cluster.Task) bool {
	l := e.evictor
	if !l.victims.mayBeVictim(t, l.want.job) {
		return false
	}
	if e.way&moving != 0 && l.mightMove(t) {
		return true
	}
	for _, p := range [...]Purpose{Reclaim, Preempt} {
		if l.uses(p, e.way) && l.ask(p, VictimOf(t)).protector == nil {
			return true
		}
	}
	return false
}

// rivalsOn returns the tasks on the node that might be removed in one of the ways. It uses the
// memory of the given list.
func (e *evictionWays) rivalsOn(n *cluster.Node, memory []rival) []rival {
	line := memory[:0]
	for _, o := range n.Tasks {
		if !e.evictor.victims.mayBeVictim(o, e.evictor.want.job) {
			continue
		}
		c := e.evictor.victims.rival(o)
		if c.evicts = e.way&evicting != 0; !c.evicts {
			c.cost = e.evictor.victims.costOfTask(o) // the task moves alone
		}
		if c.moves = e.way&moving != 0 && e.evictor.mightMove(o); c.evicts || c.moves {
			line = append(line, c)
		}
	}
	return line
}
