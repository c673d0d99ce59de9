package cluster

import "fmt"

// standing is where a task stands. State.stand is the one place where it changes:
// it keeps ledgers, lists, counts and the journal in step.
type standing struct {
	status            Status
	node              *Node
	claims            []Claim
	held              *Shape // what its room is booked with, which may not be what it requests now
	started, promised int64
}

func (t *Task) standing() standing {
	return standing{t.Status, t.Node, t.Claims, t.held, t.Started, t.Promised}
}

// Held is the shape that the task's room is booked with: the one it was placed with.
func (t *Task) Held() *Shape {
	if t.held != nil {
		return t.held
	}
	return t.Shape
}

// stand moves the task from where it stands to where it is to stand.
func (s *State) stand(t *Task, to standing) {
	n := t.Node
	if s.marks > 0 {
		r := record{task: t, was: t.standing(), chosen: t.Job.Chosen}
		if n != nil {
			r.freed = n.freed
		} else if to.node != nil {
			r.freed = to.node.freed
		}
		s.journal = append(s.journal, r)
	}
	frees := n != nil && (to.node != n || to.status == Releasing && t.Status != Releasing)
	s.shift(t, to)
	if frees {
		n.freed = n.version
	}
}

// shift is stand without the journal.
func (s *State) shift(t *Task, to standing) {
	n, j, was := t.Node, t.Job, t.Status
	same := n == to.node && t.held == to.held && sameClaims(t.Claims, to.claims) && (was == Releasing) == (to.status == Releasing)
	if n != nil && !same {
		s.rebook(t, -1)
	}
	if n != nil && n != to.node {
		n.removeTask(t)
		s.count(t, -1)
	}
	t.Status, t.Node, t.Claims, t.held, t.Started, t.Promised = to.status, to.node, to.claims, to.held, to.started, to.promised
	if to.node != nil && n != to.node {
		to.node.addTask(t)
		s.count(t, +1)
	}
	if to.node != nil && !same {
		s.rebook(t, +1)
	}
	switch {
	case to.status == Nominated && t.shadows == nil:
		s.nominated[t.ID] = t
	case was == Nominated:
		delete(s.nominated, t.ID)
	}
	switch {
	case to.node != nil && j.Chosen < 0:
		s.choose(j, t.Alternative)
	case to.node == nil && j.attached+j.expected == 0 && j.Chosen >= 0:
		s.choose(j, -1) // nothing of it is placed: it may take any form again
	default:
		s.settle(j)
	}
	if n != nil {
		s.touch(n)
	}
	if to.node != nil && to.node != n {
		s.touch(to.node)
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
		s.preemptible += by
		s.classify(t, by)
	}
}

// choose fixes the alternative that the job's tasks are placed from; -1: none.
func (s *State) choose(j *Job, alternative int) {
	j.Chosen = alternative
	s.gather(j)
	s.settle(j)
}

// rebook adds (sign +1) or takes back (-1) what the task holds, as it stands.
func (s *State) rebook(t *Task, sign int64) {
	if t.Status == Releasing {
		s.bookReleasing(t, sign)
	} else {
		s.book(t, sign)
	}
}

// Place books the claims of a pending task on the node: it is then Bound, or
// Nominated where part of the room is still releasing. The caller has checked
// that it fits; Place checks again and changes nothing if it does not, because
// no caller's mistake may ever book a device twice.
func (s *State) Place(t *Task, n *Node, claims []Claim, now int64) error {
	if t.Status != Pending {
		return fmt.Errorf("task %s is %s, not pending", t.ID, t.Status)
	}
	if err := s.fits(t, n, claims); err != nil {
		return fmt.Errorf("task %s does not fit node %s: %w", t.ID, n.Name, err)
	}
	to := standing{status: Bound, node: n, claims: claims, held: t.Shape, started: now}
	if t.shadows != nil || !n.present(t, claims) { // what a landing stands for is still elsewhere
		to.status, to.started, to.promised = Nominated, 0, now
	}
	s.stand(t, to)
	return nil
}

// Restore books a task that is known to run on the node. A node may have shrunk
// below what runs on it, so cores and memory are booked as they are, and the node
// then takes nothing new; a device is never booked beyond what it has.
func (s *State) Restore(t *Task, n *Node, claims []Claim, started int64) error {
	if t.Status != Pending {
		return fmt.Errorf("task %s is %s, not pending", t.ID, t.Status)
	}
	if s.byName[n.Name] != n {
		return fmt.Errorf("task %s is said to run on node %s, which is gone", t.ID, n.Name)
	}
	if err := n.holds(t.Shape, claims, true); err != nil {
		return fmt.Errorf("task %s is said to run on node %s, where it does not fit: %w", t.ID, n.Name, err)
	}
	for _, c := range claims {
		d := &n.Devices[c.Device]
		if u := &d.Use; u.Milli+u.ReleasingMilli+c.Milli > Whole || u.Memory+u.ReleasingMemory+c.Memory > d.Memory {
			return fmt.Errorf("task %s is said to run on device %d of node %s, which a task that is leaving still holds", t.ID, c.Device, n.Name)
		}
	}
	s.stand(t, standing{status: Bound, node: n, claims: claims, held: t.Shape, started: started})
	return nil
}

// Evict turns a bound task's room into releasing room: it can be reserved, and is not free yet.
func (s *State) Evict(t *Task) error {
	if t.Status != Bound {
		return fmt.Errorf("task %s is %s, not bound", t.ID, t.Status)
	}
	to := t.standing()
	to.status = Releasing
	s.stand(t, to)
	return nil
}

// Clear takes the task off its node, however it stands there: it has ended, or is
// pending again. Room that it was releasing is then free. A task that moves is
// then nominated where it has a landing.
func (s *State) Clear(t *Task) {
	if t.Node == nil {
		return
	}
	shadow := t.landing
	if o := t.shadows; o != nil && o.landing == t {
		s.link(o, nil)
	}
	s.stand(t, standing{})
	if shadow != nil {
		s.arrive(t, shadow)
	}
}

// Bind turns a nominated task into a bound one if its reserved room is free by
// now, and reports whether it did.
func (s *State) Bind(t *Task, now int64) bool {
	if t.Status != Nominated || !t.Node.Keeps(t) || !t.Node.present(t, t.Claims) {
		return false
	}
	to := t.standing()
	to.status, to.started = Bound, now
	s.stand(t, to)
	return true
}

// Hold turns a task that was just bound into a nominated one: a gang of which one
// member waits for its room waits as a whole.
func (s *State) Hold(t *Task, now int64) {
	to := t.standing()
	to.status, to.started, to.promised = Nominated, 0, now
	s.stand(t, to)
}
