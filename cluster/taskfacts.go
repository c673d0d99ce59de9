package cluster

import (
	"fmt"
	"slices"
	"strings"
)

func (c TaskPut) apply(s *State) error {
	j := s.roster.jobs[c.Job]
	if c.Job == "" {
		return fmt.Errorf("task %q names no job", c.Task.Name)
	}
	if j != nil && !j.Open {
		return fmt.Errorf("%s is not open: its tasks are part of its spec", c.Job)
	}
	if err := c.Task.check(c.Task.Subgroup); err != nil { // the subgroup may be reported later, so any is accepted
		return fmt.Errorf("%s: %w", c.Job, err)
	}
	if j == nil { // the job is not reported yet: an absent job holds the task until then
		j = buildJob(&Job{ID: c.Job, Open: true, Alternatives: []Alternative{{}}}, 0)
		j.absent = true
		s.workload.add(j)
	}
	tasks := j.Alternatives[0].Tasks
	i := slices.IndexFunc(tasks, func(t *Task) bool { return t.Name == c.Task.Name })
	if i >= 0 && stale(c.Revision, tasks[i].revision) {
		return nil
	}
	if i >= 0 && uidsDiffer(tasks[i].UID, c.Task.UID) {
		s.specs.dropTask(tasks[i])
		i = -1
	}
	if i >= 0 {
		s.specs.respecTask(tasks[i], &c)
		return nil
	}
	t := &Task{Job: j, ID: j.ID + "/" + c.Task.Name, Name: c.Task.Name, UID: c.Task.UID, Role: c.Task.Role, Index: c.Task.Index, Shape: c.Task.Shape, subgroup: c.Task.Subgroup, revision: c.Revision}
	t.joinSubgroup(&j.Alternatives[0])
	s.workload.addTask(t)
	s.demand.arrive([]*Task{t})
	s.sightings.applyEarlyTo(t)
	return nil
}

func (c TaskGone) apply(s *State) error {
	if err := c.check(); err != nil {
		return err
	}
	t := s.roster.Task(c.Task)
	s.roster.forgetEarly(c.Task, c.UID)
	if t == nil || uidsDiffer(t.UID, c.UID) {
		return nil
	}
	if c.Rejected > 0 && t.Node != nil && !t.Node.absent {
		s.fleet.avoid(t.Node, t.Held(), c.Rejected)
	}
	if t.Job.Open && c.Ended == Pending {
		s.specs.removeTask(t)
		return nil
	}
	s.taskStates.dropLanding(t)
	if c.Ended == Pending || t.notRequested {
		s.taskStates.clear(t)
		return nil
	}
	if to := t.unplaced(); t.Status != c.Ended {
		to.status = c.Ended
		s.taskStates.set(t, to)
	}
	return nil
}

// check reports an error if Ended is not a way in which a task ends.
func (c *TaskGone) check() error {
	if c.Ended != Pending && c.Ended != Succeeded && c.Ended != Failed {
		return fmt.Errorf("task %s cannot end as %s; write Succeeded or Failed, or leave it out", c.Task.ID(), c.Ended)
	}
	return nil
}

func (c TaskSeen) apply(s *State) error {
	if err := checkHoldings(c.Devices); err != nil {
		return fmt.Errorf("task %s: %w", c.Task.ID(), err)
	}
	t := s.roster.Task(c.Task)
	switch {
	case t != nil && !uidsDiffer(t.UID, c.UID):
		s.sightings.applySeen(t, &c)
	case c.Node == "" && s.roster.earlySightings[c.Task].UID == c.UID:
		s.roster.forgetEarly(c.Task, c.UID)
	case c.Node == "":
	default: // the task is not known yet, or is known with another UID
		s.roster.keepEarly(c)
	}
	return nil
}

// sightings applies reports about where tasks are.
type sightings struct {
	fleet      *fleet
	roster     *roster
	taskStates *taskStates
	specs      *specs
}

// applySeen gives the task the state that was reported.
func (g *sightings) applySeen(t *Task, c *TaskSeen) {
	switch {
	case c.Node != "":
		g.placeWhereSeen(t, c)
	case c.Releasing && t.Runs():
		to := t.state()
		to.status, to.sent = Releasing, false
		g.taskStates.set(t, to)
	case c.Releasing && (t.Status == Releasing || t.Ended()):
	case c.Releasing && t.Job.Open:
		g.specs.removeTask(t) // the task was deleted before it was bound
	case (t.Status == Bound || t.Status == Releasing) && !t.sent:
		g.taskStates.clear(t)
	}
	// All other reports change nothing. A task that is pending, is nominated or has ended is
	// on no node anyway. An Assumed task keeps its node, whether its binding was sent or not,
	// until it is reported there or the binding is reported as failed. The same holds for a
	// task that was evicted after its binding was sent.
}

// placeWhereSeen puts the task on the node that was reported. The report is a fact: it is
// applied even if the task does not fit there.
func (g *sightings) placeWhereSeen(t *Task, c *TaskSeen) {
	n := g.fleet.find(c.Node)
	if n == nil { // the node is not reported yet: an absent node holds the task until then
		n = &Node{Name: c.Node, absent: true, unreported: true}
		n.normalize()
	}
	here := t.Node == n && t.Status != Nominated
	to := taskState{status: Bound, node: n, held: t.Shape, started: c.Started, attempt: t.Attempt, protectedUntil: t.ProtectedUntil()}
	if here {
		to = t.state()
		if to.sent = false; to.status == Assumed {
			to.status = Bound
			g.specs.workload.acceptBinding(t.Job)
		}
		if c.Started != 0 {
			to.started = c.Started
		}
	}
	if c.Releasing && to.status != Releasing {
		to.status = Releasing
	}
	switch {
	case len(c.Devices) > 0:
		to.claims, to.devicesUnknown = g.fleet.claimSeen(n, c.Devices), false
		if here && !t.devicesUnknown && slices.Equal(to.claims, t.Claims) {
			to.claims = t.Claims
		}
	case !here:
		to.claims, to.devicesUnknown = nil, !t.Shape.Need.None()
	}
	if here && to.sameAs(t) {
		return
	}
	if !here {
		g.taskStates.dropLanding(t)
	}
	g.taskStates.set(t, to)
}

// sameAs reports whether the state does not differ from the task's, for a task that
// stays on its node.
func (p *taskState) sameAs(t *Task) bool {
	return p.status == t.Status && p.started == t.Started && p.sent == t.sent && p.devicesUnknown == t.devicesUnknown && sameClaims(p.claims, t.Claims)
}

// claimSeen returns the claims that correspond to the reported holdings, sorted by device.
// A device that the node does not list is added to the node as a lost one.
func (f *fleet) claimSeen(n *Node, holdings []Holding) []Claim {
	out := make([]Claim, 0, len(holdings))
	for _, h := range holdings {
		i := slices.IndexFunc(n.Devices, func(d Device) bool { return d.UUID == h.Device })
		if i < 0 || n.Devices[i].Gone && n.Devices[i].Idle() {
			i = f.addUnlistedDevice(n, h, i, out)
		}
		out = append(out, Claim{i, h.Milli, h.Memory, h.Layers})
	}
	slices.SortFunc(out, func(a, b Claim) int { return a.Device - b.Device })
	return out
}

// addUnlistedDevice adds a device that the node does not list and returns its index. It
// uses the index place if that is not below 0, or else that of a device that is not listed
// any more and that no task holds, or else a new one. taken are claims that are not booked
// yet; their devices are not used.
func (f *fleet) addUnlistedDevice(n *Node, h Holding, place int, taken []Claim) int {
	var was *Device
	if place < 0 {
		place = slices.IndexFunc(n.Devices, func(d Device) bool {
			return d.Gone && d.Idle() && !slices.ContainsFunc(taken, func(c Claim) bool { return c.Device == int(d.Index) })
		})
	}
	if place < 0 {
		place = len(n.Devices)
		n.Devices = append(n.Devices, Device{})
	} else {
		old := n.Devices[place]
		was = &old
	}
	uniform, sample := n.uniform, n.sample
	n.uniform, n.sample = false, nil
	n.Devices[place] = Device{DeviceSpec: &DeviceSpec{Resource: n.DeviceResource, NUMA: -1, ProductResource: ProductResource(n.DeviceResource, "")}, UUID: h.Device, Lost: true, Gone: true, Index: int32(place)}
	if f.journal.recording() {
		f.journal.recordUndo(func() {
			n.uniform, n.sample = uniform, sample
			if was != nil {
				n.Devices[place] = *was
			} else {
				n.Devices = n.Devices[:place]
			}
		})
	}
	return place
}

// holdings returns the claims with the UUIDs of their devices instead of indexes.
func (n *Node) holdings(claims []Claim) []Holding {
	if len(claims) == 0 {
		return nil
	}
	out := make([]Holding, len(claims))
	for i, c := range claims {
		out[i] = Holding{n.Devices[c.Device].UUID, c.Milli, c.Memory, c.Layers}
	}
	slices.SortFunc(out, func(a, b Holding) int { return strings.Compare(a.Device, b.Device) })
	return out
}

func (c BindSent) apply(s *State) error {
	if t := s.roster.Task(c.Task); t != nil && !uidsDiffer(t.UID, c.UID) && t.Status == Assumed && t.Attempt == c.Attempt && !t.sent {
		to := t.state()
		to.sent = true
		s.taskStates.set(t, to)
	}
	return nil
}

func (c BindFailed) apply(s *State) error {
	t := s.roster.Task(c.Task)
	switch {
	case t == nil || uidsDiffer(t.UID, c.UID):
		return nil
	case t.Status == Releasing && t.sent && t.Attempt == c.Attempt+1: // the task was evicted before the failure was reported
		s.taskStates.clear(t)
		return nil
	case t.Status != Assumed || t.Attempt != c.Attempt:
		return nil // the report is about an earlier attempt
	}
	s.taskStates.clear(t)
	j := t.Job
	if c.RetryAt > 0 {
		s.workload.refuseBinding(j, c.RetryAt)
	}
	if j.HasMinimum() || slices.ContainsFunc(j.Tasks(), func(o *Task) bool { return o.Status == Bound }) {
		return nil // the job still has its minimum or runs already: only the failed task is pending again
	}
	for _, o := range j.Tasks() { // the minimum of a gang starts as a whole or not at all
		if o.Status == Assumed && !o.sent {
			s.taskStates.clear(o)
		}
	}
	return nil
}

func (c EvictionRefused) apply(s *State) error {
	t := s.roster.Task(c.Task)
	if t == nil || uidsDiffer(t.UID, c.UID) || t.Status != Releasing || t.eviction() == nil || t.Attempt != c.Attempt {
		return nil
	}
	if j := s.roster.jobs[t.eviction().forJob]; j != nil {
		for o := range j.each {
			if o.Status == Nominated {
				s.taskStates.clear(o)
			}
			s.taskStates.dropLanding(o)
		}
		if !slices.ContainsFunc(t.Job.Tasks(), func(o *Task) bool { return o != t && o.eviction() != nil && o.eviction().forJob == j.ID }) {
			s.workload.undisplace(j, t.Job.ID)
		}
	}
	s.taskStates.dropLanding(t)
	to := t.state()
	to.status, to.eviction, to.protectedUntil = Bound, nil, c.ProtectedUntil
	s.taskStates.set(t, to)
	s.taskStates.withdrawBroken(t.Node)
	return nil
}

// Avoided is a shape that a node rejected when a task of it was to start there. Until the
// time Until, in nanoseconds, no task of the shape is placed on the node.
type Avoided struct {
	Shape *Shape `json:"shape"`
	Until int64  `json:"until"`
}

// Avoided reports whether the node rejected a task of the shape recently, so that no task
// of the shape is to be placed on it.
func (n *Node) Avoided(s *Shape) bool {
	return len(n.Avoids) > 0 && slices.ContainsFunc(n.Avoids, func(a Avoided) bool { return a.Shape.same(s) })
}

// SeenOn returns the fact that the task runs on the node with these claims since started,
// in nanoseconds.
func SeenOn(t *Task, n *Node, claims []Claim, started int64) TaskSeen {
	return TaskSeen{Task: t.Ref(), UID: t.UID, Node: n.Name, Devices: n.holdings(claims), Started: started}
}

// CanRun returns an error if it is impossible that the task runs on the node with these
// claims, because its devices would be held twice. Cores and memory of the node are not
// checked, since a node may have shrunk below what runs on it.
func (s *State) CanRun(t *Task, n *Node, claims []Claim) error {
	if s.fleet.byName[n.Name] != n {
		return fmt.Errorf("task %s is reported to run on node %s, which is gone", t.ID, n.Name)
	}
	if err := n.holds(t.Shape, claims, true); err != nil {
		return fmt.Errorf("task %s is reported to run on node %s, where it does not fit: %w", t.ID, n.Name, err)
	}
	for _, c := range claims {
		d := &n.Devices[c.Device]
		if u := &d.Use; u.Milli+u.ReleasingMilli+c.Milli > Whole || u.Memory+u.ReleasingMemory+c.Memory > d.Memory {
			return fmt.Errorf("task %s is reported to run on device %d of node %s, which a releasing task still holds", t.ID, c.Device, n.Name)
		}
	}
	return nil
}

// applyEarly applies the reports that arrived before the tasks of the job were known.
func (g *sightings) applyEarly(j *Job) {
	if len(g.roster.earlySightings) == 0 {
		return
	}
	for a := range j.Alternatives {
		for _, t := range slices.Clone(j.Alternatives[a].Tasks) {
			g.applyEarlyTo(t)
		}
	}
}

func (g *sightings) applyEarlyTo(t *Task) {
	if seen, found := g.roster.earlySightings[t.Ref()]; found && !uidsDiffer(t.UID, seen.UID) {
		g.roster.forgetEarly(t.Ref(), seen.UID)
		g.applySeen(t, &seen)
	}
}
