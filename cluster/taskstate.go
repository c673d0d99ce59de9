package cluster

import (
	"cmp"
	"fmt"
	"slices"
)

// taskState is the status of a task together with where it is and what it holds.
type taskState struct {
	status               Status
	node                 *Node
	claims               []Claim
	held                 *Shape // what the task was placed with, which may differ from what it requests now
	started, reservedAt  int64
	attempt              uint64
	protectedUntil       int64
	eviction             *eviction
	sent, devicesUnknown bool
}

// taskStates changes the states of tasks. Facts and decisions change them with set, which
// updates ledgers, lists, counts and the journal together. Undo and snapshots use
// setUnrecorded. inventory.rewrite changes only the indexes of devices in the claims.
type taskStates struct {
	journal  *journal
	fleet    *fleet
	roster   *roster
	shapes   *shapes
	classes  *classes
	workload *workload
	booking  *booking
	specs    *specs
	recounts []*Node // nodes on which recount has to choose devices again
}

func (t *Task) state() taskState {
	return taskState{t.Status, t.Node, t.Claims, t.held, t.Started, t.ReservedAt(), t.Attempt, t.ProtectedUntil(), t.eviction(), t.sent, t.devicesUnknown}
}

// unplaced returns the state of the task if it is pending and on no node.
func (t *Task) unplaced() taskState { return taskState{attempt: t.Attempt} }

// releasesRoom reports whether the room of the task is being released, so that it can be
// reserved for other tasks. The room of a task that is overdue counts as held.
func (p *taskState) releasesRoom() bool {
	return p.status == Releasing && (p.eviction == nil || !p.eviction.overdue)
}

// Held returns the shape that the task was placed with, by which its room is accounted
// for. It differs from Task.Shape if the job got another spec since. Held returns
// Task.Shape if the task is on no node.
func (t *Task) Held() *Shape {
	if t.held != nil {
		return t.held
	}
	return t.Shape
}

// releasesRoom is taskState.releasesRoom for the current state of the task.
func (t *Task) releasesRoom() bool {
	return t.Status == Releasing && (t.eviction() == nil || !t.eviction().overdue)
}

// set gives the task another state and records the old one in the journal.
func (p *taskStates) set(t *Task, to taskState) {
	n := t.Node
	if p.journal.recording() {
		r := record{task: t, was: t.state(), chosen: t.Job.Chosen}
		if n != nil {
			r.freed = n.freed
		} else if to.node != nil {
			r.freed = to.node.freed
		}
		p.journal.records = append(p.journal.records, r)
	}
	frees := n != nil && (to.node != n || to.releasesRoom() && !t.releasesRoom())
	p.setUnrecorded(t, to)
	if frees {
		n.freed = n.version
	}
	p.recountLater(n)
	p.recountLater(to.node)
	if t.notRequested && t.Node == nil && t.Landing() == nil {
		p.specs.dropNotRequested(t)
	}
}

// restore undoes a record of set: the task gets its old state again.
func (p *taskStates) restore(r *record) {
	n := r.was.node
	if n == nil {
		n = r.task.Node
	}
	p.setUnrecorded(r.task, r.was)
	if n != nil {
		n.freed = r.freed
	}
	if j := r.task.Job; j.Chosen != r.chosen {
		p.workload.setChosen(j, r.chosen)
	}
}

// setUnrecorded is set without the journal.
func (p *taskStates) setUnrecorded(t *Task, to taskState) {
	n, j, was, ended := t.Node, t.Job, t.Status, t.Ended()
	same := n == to.node && t.held == to.held && sameClaims(t.Claims, to.claims) && t.releasesRoom() == to.releasesRoom()
	if n != nil && !same {
		p.booking.rebook(t, -1)
	}
	reclassify := !same || t.Started != to.started || t.Status.runs() != to.status.runs()
	if reclassify {
		p.classes.list(t, -1)
	}
	if n != nil && n != to.node {
		n.Tasks = remove(n.Tasks, t, (*Task).compare)
		p.booking.count(t, -1)
	}
	if n != nil && t.devicesUnknown {
		n.unknownDeviceTasks--
	}
	if to.node != nil && to.devicesUnknown {
		to.node.unknownDeviceTasks++
	}
	if t.held != to.held {
		p.shapes.useHeld(to.held, t.Shape, +1)
		p.shapes.useHeld(t.held, t.Shape, -1)
	}
	t.Status, t.Node, t.Claims, t.held, t.Started = to.status, to.node, to.claims, to.held, to.started
	t.Attempt, t.sent, t.devicesUnknown = to.attempt, to.sent, to.devicesUnknown
	t.setTransit(transit{to.reservedAt, to.protectedUntil, to.eviction, t.Landing(), t.ShadowOf()})
	if t.Ended() != ended {
		j.recountEnded()
	}
	if to.node != nil && n != to.node {
		to.node.Tasks = insert(to.node.Tasks, t, (*Task).compare)
		p.booking.count(t, +1)
	}
	if reclassify {
		p.classes.list(t, +1)
	}
	if to.node != nil && !same {
		p.booking.rebook(t, +1)
	}
	p.roster.listNominated(t, was)
	if t.ShadowOf() == nil && (was == Releasing) != (to.status == Releasing) {
		p.roster.listReleasing(t)
	}
	if alternative := j.placedAlternative(t); alternative != j.Chosen {
		p.workload.setChosen(j, alternative)
	} else {
		p.workload.update(j)
	}
	if n != nil {
		p.fleet.touch(n)
		p.fleet.listAbsent(n)
	}
	if to.node != nil && to.node != n {
		p.fleet.touch(to.node)
		p.fleet.listAbsent(to.node)
	}
}

// recountLater schedules a recount of the node for the end of the change, if there are
// tasks on the node with unknown devices.
func (p *taskStates) recountLater(n *Node) {
	if n != nil && n.unknownDeviceTasks > 0 && !slices.Contains(p.recounts, n) {
		p.recounts = append(p.recounts, n)
	}
}

// placedAlternative returns the alternative that the job is placed in: the first one of
// which a task is on a node or has ended. It returns -1 if there is none. t is the task that
// just changed. Most results follow from t and j.Chosen alone, so that not all tasks have to
// be read.
func (j *Job) placedAlternative(t *Task) int {
	switch {
	case j.tasksOnNodes+j.landings+j.ended == 0:
		return -1 // no task is placed, so the job may take any alternative again
	case len(j.Alternatives) == 1 || t.ShadowOf() != nil && j.Chosen >= 0:
		return max(0, j.Chosen)
	case t.isPlacedOrEnded() && j.Chosen < 0:
		return t.Alternative
	case t.isPlacedOrEnded():
		return min(j.Chosen, t.Alternative)
	case t.Alternative != j.Chosen:
		return j.Chosen
	}
	for a := range j.Alternatives {
		if slices.ContainsFunc(j.Alternatives[a].Tasks, func(o *Task) bool { return o.isPlacedOrEnded() || o.Landing() != nil }) {
			return a
		}
	}
	return -1
}

// isPlacedOrEnded reports whether the task is on a node or has ended. In both cases its
// job can no longer take another alternative.
func (t *Task) isPlacedOrEnded() bool { return t.Node != nil || t.Ended() }

// recountEnded updates the number of tasks that have ended.
func (j *Job) recountEnded() {
	j.ended = 0
	for a := range j.Alternatives {
		j.ended += int32(count(j.Alternatives[a].Tasks, (*Task).Ended))
	}
}

// sameClaims reports whether both are the same slice, which is cheaper to test than
// whether they are equal.
func sameClaims(a, b []Claim) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// clear takes the task off its node, whatever its status is. The task is then pending,
// also if it had ended. Room that it was releasing becomes free. A task that moves is then
// nominated on the node of its landing.
func (p *taskStates) clear(t *Task) {
	if !t.isPlacedOrEnded() {
		return
	}
	shadow := t.Landing()
	if o := t.ShadowOf(); o != nil && o.Landing() == t {
		p.linkLanding(o, nil)
	}
	p.set(t, t.unplaced())
	if shadow != nil {
		p.takeLanding(t, shadow)
	}
}

// dropLanding releases the landing of the task, if it has one. The task stays evicted, and is
// pending after it has stopped.
func (p *taskStates) dropLanding(t *Task) {
	if t.Landing() != nil {
		p.clear(t.Landing())
	}
}

// recountAll calls recount for all nodes for which recountLater scheduled it.
func (p *taskStates) recountAll() {
	for len(p.recounts) > 0 {
		n := p.recounts[0]
		p.recounts = p.recounts[1:]
		p.recount(n)
	}
}

// recount chooses devices again for the tasks that were reported on the node without their
// devices. It chooses from the devices that no other task holds, task by task in the order
// of n.Tasks, so that the result does not depend on the order in which tasks were reported.
func (p *taskStates) recount(n *Node) {
	var unknown, leaving []*Task
	for _, t := range n.Tasks {
		switch {
		case t.devicesUnknown && !t.releasesRoom():
			unknown = append(unknown, t)
		case t.devicesUnknown && len(t.Claims) == 0:
			leaving = append(leaving, t) // a releasing task with devices keeps them until it has left
		}
	}
	was := make([][]Claim, len(unknown))
	for i, t := range unknown {
		was[i] = t.Claims
		p.setClaims(t, nil)
	}
	// Devices that a releasing task still holds are the last choice.
	still := func(d *Device) int64 { return int64(max(0, 1-d.Use.ReleasingLeases)) }
	for i, t := range unknown {
		claims, ok := n.Choose(t.held, still)
		if !ok {
			claims = nil // the node has too few devices: the task is accounted for without devices
		}
		if slices.Equal(claims, was[i]) {
			claims = was[i]
		}
		p.setClaims(t, claims)
	}
	for _, t := range leaving {
		if claims, ok := n.Choose(t.held, still); ok {
			p.setClaims(t, claims)
		}
	}
}

func (p *taskStates) setClaims(t *Task, claims []Claim) {
	if sameClaims(t.Claims, claims) {
		return
	}
	to := t.state()
	to.claims = claims
	p.set(t, to)
	p.recounts = slices.DeleteFunc(p.recounts, func(n *Node) bool { return n == t.Node }) // set scheduled a recount, which is what runs now
}

// withdrawBroken releases reservations on the node that the node cannot keep. It begins
// with the latest, until the node can keep the rest.
func (p *taskStates) withdrawBroken(n *Node) {
	var reserved []*Task
	for _, t := range n.Tasks {
		if t.Status == Nominated {
			reserved = append(reserved, t)
		}
	}
	slices.SortStableFunc(reserved, func(a, b *Task) int { return cmp.Or(cmp.Compare(b.ReservedAt(), a.ReservedAt()), b.compare(a)) })
	for _, t := range reserved {
		if !n.Keeps(t) {
			p.clear(t)
		}
	}
}

// evict changes the status of a running task to Releasing, for the job forJob, which
// may be "". It fails if the task does not run.
func (p *taskStates) evict(t *Task, forJob string, now int64) error {
	if !t.Runs() {
		return fmt.Errorf("task %s is %s, not running", t.ID, t.Status)
	}
	to := t.state()
	to.status, to.eviction, to.attempt = Releasing, &eviction{forJob: forJob, at: now}, t.Attempt+1
	p.set(t, to)
	if j := t.Job; j.PreemptionDelay > 0 && now > j.Evicted {
		status := j.status()
		status.evicted = now
		p.workload.changeStatus(j, status)
	}
	return nil
}

// setOverdue marks an evicted task that did not leave in time. From then on its room
// counts as held.
func (p *taskStates) setOverdue(t *Task) {
	if t.Status == Releasing && t.eviction() != nil && !t.eviction().overdue {
		to := t.state()
		late := *t.eviction()
		late.overdue = true
		to.eviction = &late
		p.set(t, to)
	}
}
