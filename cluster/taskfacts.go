package cluster

import (
	"fmt"
	"slices"
	"strings"
)

func (c TaskPut) apply(s *State) error {
	j := s.roster.jobs[c.Job]
	if c.Job == "" {
		return fmt.Errorf("task %q is of no job", c.Task.Name)
	}
	if j != nil && !j.Open {
		return fmt.Errorf("%s is not open: its tasks come with it", c.Job)
	}
	if err := c.Task.check(c.Task.Subgroup); err != nil { // its subgroup may be known later
		return fmt.Errorf("%s: %w", c.Job, err)
	}
	if j == nil { // it waits for its job
		j = build(&Job{ID: c.Job, Open: true, Alternatives: []Alternative{{}}}, 0)
		j.absent = true
		s.workload.add(j)
	}
	tasks := j.Alternatives[0].Tasks
	i := slices.IndexFunc(tasks, func(t *Task) bool { return t.Name == c.Task.Name })
	if i >= 0 && stale(c.Revision, tasks[i].revision) {
		return nil
	}
	if i >= 0 && differ(tasks[i].UID, c.Task.UID) {
		s.specs.dropTask(tasks[i])
		i = -1
	}
	if i >= 0 {
		s.specs.respecTask(tasks[i], &c)
		return nil
	}
	t := &Task{Job: j, ID: j.ID + "/" + c.Task.Name, Name: c.Task.Name, UID: c.Task.UID, Role: c.Task.Role, Index: c.Task.Index, Shape: c.Task.Shape, subgroup: c.Task.Subgroup, revision: c.Revision}
	t.join(&j.Alternatives[0])
	s.workload.addTask(t)
	s.sightings.applyEarlyTo(t)
	return nil
}

func (c TaskGone) apply(s *State) error {
	if err := c.check(); err != nil {
		return err
	}
	t := s.roster.Task(c.Task)
	s.roster.forgetEarly(c.Task, c.UID)
	if t == nil || differ(t.UID, c.UID) {
		return nil
	}
	if c.Rejected > 0 && t.Node != nil && !t.Node.absent {
		s.fleet.avoid(t.Node, t.Held(), c.Rejected)
	}
	if t.Job.Open && c.Ended == Pending {
		s.specs.removeTask(t)
		return nil
	}
	s.standings.strand(t)
	if c.Ended == Pending || t.extra {
		s.standings.clear(t)
		return nil
	}
	if to := t.unplaced(); t.Status != c.Ended {
		to.status = c.Ended
		s.standings.stand(t, to)
	}
	return nil
}

// check reports an end that no task has.
func (c *TaskGone) check() error {
	if c.Ended != Pending && c.Ended != Succeeded && c.Ended != Failed {
		return fmt.Errorf("task %s has ended as %s; it is Succeeded, Failed or left out", c.Task.ID(), c.Ended)
	}
	return nil
}

func (c TaskSeen) apply(s *State) error {
	if err := checkHoldings(c.Devices); err != nil {
		return fmt.Errorf("task %s: %w", c.Task.ID(), err)
	}
	t := s.roster.Task(c.Task)
	switch {
	case t != nil && !differ(t.UID, c.UID):
		s.sightings.applySeen(t, &c)
	case c.Node == "" && s.roster.earlySightings[c.Task].UID == c.UID:
		s.roster.forgetEarly(c.Task, c.UID)
	case c.Node == "":
	default: // it is not known yet, or another of the same name is
		s.roster.keepEarly(c)
	}
	return nil
}

// sightings is how tasks come to be where they were seen.
type sightings struct {
	fleet     *fleet
	roster    *roster
	standings *standings
	specs     *specs
}

// see brings the task to where it was seen.
func (g *sightings) applySeen(t *Task, c *TaskSeen) {
	switch {
	case c.Node != "":
		g.placeWhereSeen(t, c)
	case c.Leaving && t.Runs():
		to := t.standing()
		to.status, to.sent = Releasing, false
		g.standings.stand(t, to)
	case c.Leaving && (t.Status == Releasing || t.Ended()):
	case c.Leaving && t.Job.Open:
		g.specs.removeTask(t) // it was deleted before it was bound
	case (t.Status == Bound || t.Status == Releasing) && !t.sent:
		g.standings.clear(t)
	}
	// A pending or nominated task is on no node anyway. One whose binding may be made by
	// now stays until it is seen or has failed.
}

// seeOn has the task be on the node that it was seen on.
func (g *sightings) placeWhereSeen(t *Task, c *TaskSeen) {
	n := g.fleet.find(c.Node)
	if n == nil { // it is not known: an absent node stands for it
		n = &Node{Name: c.Node, absent: true, unreported: true}
		n.normalize()
	}
	here := t.Node == n && t.Status != Nominated
	to := standing{status: Bound, node: n, held: t.Shape, started: c.Started, attempt: t.Attempt, spared: t.Spared}
	if here {
		to = t.standing()
		if to.sent = false; to.status == Assumed {
			to.status = Bound
		}
		if c.Started != 0 {
			to.started = c.Started
		}
	}
	if c.Leaving && to.status != Releasing {
		to.status = Releasing
	}
	switch {
	case len(c.Devices) > 0:
		to.claims, to.counted = g.fleet.claimSeen(n, c.Devices), false
		if here && !t.counted && slices.Equal(to.claims, t.Claims) {
			to.claims = t.Claims
		}
	case !here:
		to.claims, to.counted = nil, !t.Shape.Need.None()
	}
	if here && to.sameAs(t) {
		return
	}
	if !here {
		g.standings.strand(t)
	}
	g.standings.stand(t, to)
}

func (p *standing) sameAs(t *Task) bool {
	return p.status == t.Status && p.started == t.Started && p.sent == t.sent && p.counted == t.counted && sameClaims(p.claims, t.Claims)
}

// claim turns holdings into claims of the node's devices, in order. A device that
// the node does not list is added as a lost one.
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

// addDevice adds a device that is not listed, in the place of one that was listed
// before and is not held, if there is one.
func (f *fleet) addUnlistedDevice(n *Node, h Holding, place int, taken []Claim) int {
	var was *Device
	if place < 0 {
		place = slices.IndexFunc(n.Devices, func(d Device) bool {
			return d.Gone && d.Idle() && !slices.ContainsFunc(taken, func(c Claim) bool { return c.Device == d.Index })
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
	n.Devices[place] = Device{UUID: h.Device, Lost: true, Gone: true, Index: place, Resource: n.DeviceResource, NUMA: -1, ProductResource: ProductResource(n.DeviceResource, "")}
	if f.journal.recording() {
		f.journal.cold(func() {
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

// holdings names the devices that the claims are of.
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
	if t := s.roster.Task(c.Task); t != nil && !differ(t.UID, c.UID) && t.Status == Assumed && t.Attempt == c.Attempt && !t.sent {
		to := t.standing()
		to.sent = true
		s.standings.stand(t, to)
	}
	return nil
}

func (c BindFailed) apply(s *State) error {
	t := s.roster.Task(c.Task)
	switch {
	case t == nil || differ(t.UID, c.UID):
		return nil
	case t.Status == Releasing && t.sent && t.Attempt == c.Attempt+1: // it was evicted before the answer came
		s.standings.clear(t)
		return nil
	case t.Status != Assumed || t.Attempt != c.Attempt:
		return nil // a late answer to an earlier attempt
	}
	s.standings.clear(t)
	j := t.Job
	if j.Stands() || slices.ContainsFunc(j.Tasks(), func(o *Task) bool { return o.Status == Bound }) {
		return nil // the rest is tried again
	}
	for _, o := range j.Tasks() { // the gang starts as a whole or not at all
		if o.Status == Assumed && !o.sent {
			s.standings.clear(o)
		}
	}
	return nil
}

func (c EvictionRefused) apply(s *State) error {
	t := s.roster.Task(c.Task)
	if t == nil || differ(t.UID, c.UID) || t.Status != Releasing || t.eviction == nil || t.Attempt != c.Attempt {
		return nil
	}
	if j := s.roster.jobs[t.eviction.forJob]; j != nil {
		for o := range j.each {
			if o.Status == Nominated {
				s.standings.clear(o)
			}
			s.standings.strand(o)
		}
		if !slices.ContainsFunc(t.Job.Tasks(), func(o *Task) bool { return o != t && o.eviction != nil && o.eviction.forJob == j.ID }) {
			s.workload.undisplace(j, t.Job.ID)
		}
	}
	s.standings.strand(t)
	to := t.standing()
	to.status, to.eviction, to.spared = Bound, nil, c.Spared
	s.standings.stand(t, to)
	s.standings.withdrawBroken(t.Node)
	return nil
}

// Avoided is a shape that a node turned down, and until when it is not offered it.
type Avoided struct {
	Shape *Shape `json:"shape"`
	Until int64  `json:"until"`
}

// Avoided reports whether the node turned down a task of the shape a short while ago.
func (n *Node) Avoided(s *Shape) bool {
	return len(n.Avoids) > 0 && slices.ContainsFunc(n.Avoids, func(a Avoided) bool { return a.Shape.same(s) })
}

// SeenOn is the fact that the task runs on the node, with these claims.
func SeenOn(t *Task, n *Node, claims []Claim, started int64) TaskSeen {
	return TaskSeen{Task: t.Ref(), UID: t.UID, Node: n.Name, Devices: n.holdings(claims), Started: started}
}

// CanRun reports why the task cannot be running on the node with these claims. A
// node may have shrunk below what runs on it, so cores and memory are taken as they
// are; a device is never held beyond what it has.
func (s *State) CanRun(t *Task, n *Node, claims []Claim) error {
	if s.fleet.byName[n.Name] != n {
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
	return nil
}

// recall applies what was seen of the job's tasks before they were known.
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
	if seen, waits := g.roster.earlySightings[t.Ref()]; waits && !differ(t.UID, seen.UID) {
		g.roster.forgetEarly(t.Ref(), seen.UID)
		g.applySeen(t, &seen)
	}
}
