package cluster

import "slices"

// standing is where a task stands. State.stand is the one place where it changes:
// it keeps ledgers, lists, counts and the journal in step.
type standing struct {
	status            Status
	node              *Node
	claims            []Claim
	held              *Shape // what its room is booked with, which may not be what it requests now
	started, promised int64
	attempt           uint64
	spared            int64
	eviction          *eviction
	sent, counted     bool
}

func (t *Task) standing() standing {
	return standing{t.Status, t.Node, t.Claims, t.held, t.Started, t.Promised, t.Attempt, t.Spared, t.eviction, t.sent, t.counted}
}

// nowhere is the standing of the task when it is on no node.
func (t *Task) nowhere() standing { return standing{attempt: t.Attempt} }

// leaves reports whether a task that stands so gives its room back: reservations
// on it are allowed. One that does not leave in time holds it.
func (p *standing) leaves() bool {
	return p.status == Releasing && (p.eviction == nil || !p.eviction.overdue)
}

// Held is the shape that the task's room is booked with: the one it was placed with.
func (t *Task) Held() *Shape {
	if t.held != nil {
		return t.held
	}
	return t.Shape
}

// leaves is that of the task's standing.
func (t *Task) leaves() bool {
	return t.Status == Releasing && (t.eviction == nil || !t.eviction.overdue)
}

// stand moves the task from where it stands to where it is to stand.
func (s *State) stand(t *Task, to standing) {
	n := t.Node
	if s.journal.recording() {
		r := record{task: t, was: t.standing(), chosen: t.Job.Chosen}
		if n != nil {
			r.freed = n.freed
		} else if to.node != nil {
			r.freed = to.node.freed
		}
		s.journal.records = append(s.journal.records, r)
	}
	frees := n != nil && (to.node != n || to.leaves() && !t.leaves())
	s.shift(t, to)
	if frees {
		n.freed = n.version
	}
	s.unsettle(n)
	s.unsettle(to.node)
	if t.extra && t.Node == nil && t.landing == nil {
		s.dropExtra(t)
	}
}

// restand gives the task of the record its standing back.
func (s *State) restand(r *record) {
	n := r.was.node
	if n == nil {
		n = r.task.Node
	}
	s.shift(r.task, r.was)
	if n != nil {
		n.freed = r.freed
	}
	if j := r.task.Job; j.Chosen != r.chosen {
		s.choose(j, r.chosen)
	}
}

// shift is stand without the journal.
func (s *State) shift(t *Task, to standing) {
	n, j, was, ended := t.Node, t.Job, t.Status, t.Ended()
	same := n == to.node && t.held == to.held && sameClaims(t.Claims, to.claims) && t.leaves() == to.leaves()
	if n != nil && !same {
		s.rebook(t, -1)
	}
	reclassify := !same || t.Started != to.started || t.Status.runs() != to.status.runs()
	if reclassify {
		s.classes.list(t, -1)
	}
	if n != nil && n != to.node {
		n.removeTask(t)
		s.count(t, -1)
	}
	if n != nil && t.counted {
		n.counted--
	}
	if to.node != nil && to.counted {
		to.node.counted++
	}
	if t.held != to.held {
		s.swapHeld(t, to.held)
	}
	t.Status, t.Node, t.Claims, t.held, t.Started, t.Promised = to.status, to.node, to.claims, to.held, to.started, to.promised
	t.Attempt, t.Spared, t.eviction, t.sent, t.counted = to.attempt, to.spared, to.eviction, to.sent, to.counted
	if t.Ended() != ended {
		j.recountEnded()
	}
	if to.node != nil && n != to.node {
		to.node.addTask(t)
		s.count(t, +1)
	}
	if reclassify {
		s.classes.list(t, +1)
	}
	if to.node != nil && !same {
		s.rebook(t, +1)
	}
	switch {
	case to.status == Nominated && t.shadows == nil:
		s.roster.nominated[t] = true
	case was == Nominated:
		delete(s.roster.nominated, t)
	}
	if t.shadows == nil && (was == Releasing) != (to.status == Releasing) {
		s.roster.listReleasing(t)
	}
	if form := j.form(t); form != j.Chosen {
		s.choose(j, form)
	} else {
		s.settle(j)
	}
	if n != nil {
		s.fleet.touch(n)
		s.fleet.listAbsent(n)
	}
	if to.node != nil && to.node != n {
		s.fleet.touch(to.node)
		s.fleet.listAbsent(to.node)
	}
}

// swapHeld counts the uses of shapes that are held and not requested any more.
func (s *State) swapHeld(t *Task, held *Shape) {
	if held != nil && !held.alike(t.Shape) {
		s.Intern(*held)
	}
	if t.held != nil && !t.held.alike(t.Shape) {
		s.shapes.drop(t.held)
	}
}

// unsettle has devices chosen again, at the end of the change, for the tasks on the
// node whose devices are not known.
func (s *State) unsettle(n *Node) {
	if n != nil && n.counted > 0 && !slices.Contains(s.unsettled, n) {
		s.unsettled = append(s.unsettled, n)
	}
}

// form is the alternative that the job is placed in, -1 if in none: the first of
// which a task is on a node, or has ended. The task is the one that stands elsewhere now.
func (j *Job) form(t *Task) int {
	switch {
	case j.attached+j.expected+j.ended == 0:
		return -1 // nothing of it is placed: it may take any form again
	case len(j.Alternatives) == 1 || t.shadows != nil && j.Chosen >= 0:
		return max(0, j.Chosen)
	case t.started() && j.Chosen < 0:
		return t.Alternative
	case t.started():
		return min(j.Chosen, t.Alternative)
	case t.Alternative != j.Chosen:
		return j.Chosen
	}
	for a := range j.Alternatives {
		if slices.ContainsFunc(j.Alternatives[a].Tasks, func(o *Task) bool { return o.started() || o.landing != nil }) {
			return a
		}
	}
	return -1
}

// started reports whether the task is on a node or has ended: its job has its form.
func (t *Task) started() bool { return t.Node != nil || t.Ended() }

// recountEnded counts the tasks that have ended.
func (j *Job) recountEnded() {
	j.ended = 0
	for a := range j.Alternatives {
		j.ended += count(j.Alternatives[a].Tasks, (*Task).Ended)
	}
}

func sameClaims(a, b []Claim) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// count adds (by +1) or takes away (-1) a task that is on a node, or a landing.
func (s *State) count(t *Task, by int) {
	if t.shadows != nil {
		t.Job.expected += by
	} else {
		t.Job.attached += by
	}
	if t.Job.Preemptible {
		s.classes.preemptible += by
	}
}

// choose fixes the alternative that the job's tasks are placed from; -1: none.
func (s *State) choose(j *Job, alternative int) {
	j.Chosen = alternative
	if s.roster.knows(j) {
		s.sets.gather(j)
	}
	s.settle(j)
}

// rebook adds (sign +1) or takes back (-1) what the task holds, as it stands.
func (s *State) rebook(t *Task, sign int64) {
	if t.leaves() {
		s.bookReleasing(t, sign)
	} else {
		s.book(t, sign)
	}
}

// clear takes the task off its node, however it stands there: it is pending again,
// as is one that had ended. Room that it was releasing is then free. A task that
// moves is then nominated where it has a landing.
func (s *State) clear(t *Task) {
	if !t.started() {
		return
	}
	shadow := t.landing
	if o := t.shadows; o != nil && o.landing == t {
		s.link(o, nil)
	}
	s.stand(t, t.nowhere())
	if shadow != nil {
		s.arrive(t, shadow)
	}
}

// strand releases the landing of the task, if it has one.
func (s *State) strand(t *Task) {
	if t.landing != nil {
		s.clear(t.landing)
	}
}

// Releasing are the tasks that are evicted and still on their node, by ID.
func (s *State) Releasing() []*Task {
	return slices.SortedFunc(slices.Values(s.roster.releasing), (*Task).compare)
}
