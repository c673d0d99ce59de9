package cluster

import (
	"errors"
	"fmt"
	"slices"
)

// Apply makes the change. It returns an error and changes nothing if a fact has a wrong
// structure, such as a missing name or a minimum above the number of tasks, or if a
// decision contradicts State. Apply does not check all amounts: negative capacities,
// quotas, requests and durations are not rejected. Decode rejects them in JSON, and
// package internal/convert checks API objects. Facts that are built in Go must be valid.
func (s *State) Apply(c Change) error {
	if c == nil {
		return errors.New("no change")
	}
	err := c.apply(s)
	s.taskStates.recountAll()
	if _, opened := c.(SessionOpened); err == nil && !opened {
		s.journal.commits++
	}
	return err
}

// ApplyAll makes the changes in order. It stops at the first that fails and returns
// its error; the changes before it stay made. Consecutive changes that add nodes are
// made together, which is faster because the nodes are sorted once.
func (s *State) ApplyAll(changes []Change) error {
	for i := 0; i < len(changes); i++ {
		if k := s.inventory.newNodes(changes[i:]); k > 1 {
			added, err := s.inventory.addNodes(changes[i : i+k])
			if added > 0 {
				s.journal.commits++
			}
			if err != nil {
				return err
			}
			i += k - 1
			continue
		}
		if err := s.Apply(changes[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c Decided) apply(s *State) error {
	mark := s.Mark()
	defer func() {
		s.taskStates.recounts = nil
		s.Release(mark)
	}()
	for _, d := range c.Changes {
		if d == nil {
			s.Undo(mark)
			return errors.New("a decision is nil")
		}
		if err := applyDecision(s, d); err != nil {
			s.Undo(mark)
			return fmt.Errorf("%s: %w", d.Kind(), err)
		}
	}
	return nil
}

// applyDecision applies one change of a Decided. It returns an error if the change is a
// fact.
func applyDecision(s *State, c Change) error {
	switch c.(type) {
	case Assign, Nominate, Evict, Move, Withdraw, Overdue, Retire, ChooseGroup, Displace, Tear, Park, Earmark:
		return c.apply(s)
	}
	return errors.New("this kind of change is not a decision")
}

func (c Assign) apply(s *State) error {
	t, err := s.roster.task(c.Task, c.UID)
	if err != nil {
		return err
	}
	if c.Attempt != t.Attempt+1 {
		return fmt.Errorf("task %s: attempt %d cannot follow attempt %d", t.ID, c.Attempt, t.Attempt)
	}
	n, claims, err := s.fleet.checkRoom(t, c.Node, c.Devices)
	if err != nil {
		return err
	}
	if !s.roster.canStartNow(t, n, claims) {
		return fmt.Errorf("task %s: its room on node %s is not free yet", t.ID, n.Name)
	}
	// A nominated task is booked with the shape that its room was reserved for, even if
	// the spec of its job has changed since then.
	s.taskStates.set(t, taskState{status: Assumed, node: n, claims: claims, held: t.Held(), started: c.At, attempt: c.Attempt})
	return nil
}

func (c Nominate) apply(s *State) error {
	t, err := s.roster.task(c.Task, c.UID)
	if err != nil {
		return err
	}
	n, claims, err := s.fleet.checkRoom(t, c.Node, c.Devices)
	if err != nil {
		return err
	}
	s.taskStates.set(t, taskState{status: Nominated, node: n, claims: claims, held: t.Held(), reservedAt: c.At, attempt: t.Attempt})
	return nil
}

// CheckClaims returns an error if the claims are not of as many devices as the
// shape requests, or if one of them claims nothing.
func (s *Shape) CheckClaims(claims []Claim) error {
	need := &s.Need
	switch {
	case need.None() && len(claims) > 0:
		return fmt.Errorf("%d devices are assigned, and the task requests none", len(claims))
	case !need.None() && need.Layers == nil && len(claims) == 0,
		need.Devices > 0 && !need.WholeNode && need.Layers == nil && len(claims) != need.Devices:
		return fmt.Errorf("%d devices are assigned, and the task requests %d", len(claims), need.Devices)
	case slices.ContainsFunc(claims, func(c Claim) bool { return c.Milli <= 0 }):
		return errors.New("a device is assigned with no part of it")
	}
	return nil
}

// Resolve converts holdings, which name devices by UUID, into claims, which name them
// by index. It returns an error if the node does not list a device.
func (n *Node) Resolve(holdings []Holding) ([]Claim, error) {
	if err := checkHoldings(holdings); err != nil {
		return nil, err
	}
	var out []Claim
	for _, h := range holdings {
		i := slices.IndexFunc(n.Devices, func(d Device) bool { return d.UUID == h.Device })
		if i < 0 {
			return nil, fmt.Errorf("node %q has no device %q", n.Name, h.Device)
		}
		out = append(out, Claim{i, h.Milli, h.Memory, h.Layers})
	}
	slices.SortFunc(out, func(a, b Claim) int { return a.Device - b.Device })
	return out, nil
}

func (c Evict) apply(s *State) error {
	t, err := s.roster.task(c.Task, c.UID)
	if err != nil {
		return err
	}
	if c.Attempt != t.Attempt+1 {
		return fmt.Errorf("task %s: attempt %d cannot follow attempt %d", t.ID, c.Attempt, t.Attempt)
	}
	return s.taskStates.evict(t, c.For, c.At)
}

func (c Move) apply(s *State) error {
	t, err := s.roster.task(c.Task, "")
	if err != nil {
		return err
	}
	if t.Status != Releasing || t.Landing() != nil {
		return fmt.Errorf("task %s is not releasing, or room on another node is reserved for it already", t.ID)
	}
	shadow := t.shadow(t.Job)
	n, claims, err := s.fleet.checkRoom(shadow, c.Node, c.Devices)
	if err != nil {
		return err
	}
	aside := *t.Job // a copy, so that set does not count the shadow for the job; addLanding does
	shadow.Job = &aside
	s.taskStates.set(shadow, taskState{status: Nominated, node: n, claims: claims, held: shadow.Shape, reservedAt: c.At})
	s.taskStates.addLanding(shadow)
	return nil
}

func (c Withdraw) apply(s *State) error {
	t, err := s.roster.task(c.Task, "")
	switch {
	case err != nil:
		return err
	case c.Landing && t.Landing() == nil:
		return fmt.Errorf("task %s does not move: no room on another node is reserved for it", t.ID)
	case c.Landing:
		s.taskStates.dropLanding(t)
	case t.Status != Nominated:
		return fmt.Errorf("task %s is %s, not nominated", t.ID, t.Status)
	default:
		s.taskStates.clear(t)
	}
	return nil
}

func (c Overdue) apply(s *State) error {
	t, err := s.roster.task(c.Task, "")
	if err == nil {
		s.taskStates.setOverdue(t)
	}
	return err
}

func (c Retire) apply(s *State) error {
	return s.roster.withJob(c.Job, func(j *Job) {
		if !j.Retired {
			s.workload.retire(j)
		}
	})
}

func (c ChooseGroup) apply(s *State) error {
	set := s.sets.byName[c.Set]
	if set == nil {
		return fmt.Errorf("no set %q", c.Set)
	}
	s.sets.setGroup(set, &c.Group)
	return nil
}

func (c Displace) apply(s *State) error {
	return s.roster.withJob(c.Job, func(j *Job) { s.workload.displace(j, c.Victims) })
}

func (c Tear) apply(s *State) error {
	return s.roster.withJob(c.Job, func(j *Job) { s.workload.setBelowMinimum(j, c.Since) })
}

func (c Park) apply(s *State) error {
	return s.roster.withJob(c.Job, func(j *Job) {
		p := &c.Parked
		if *p == (Parked{}) {
			p = nil
		}
		s.workload.park(j, p)
	})
}

func (c Earmark) apply(s *State) error {
	j := s.roster.jobs[c.Job]
	switch {
	case j == nil:
		return fmt.Errorf("no job %q", c.Job)
	case len(c.Rooms) == 0:
		s.workload.earmark(j, nil)
		return nil
	}
	if err := s.workload.checkEarmark(j, &c.Earmarked); err != nil {
		return fmt.Errorf("%s: %w", c.Job, err)
	}
	s.workload.earmark(j, c.Earmarked.clone())
	return nil
}

func (c SessionOpened) apply(s *State) error {
	if c.Now <= s.tree.now {
		return nil
	}
	ending := s.workload.endingBackOffs(c.Now)
	s.tree.advance(c.Now)
	s.fleet.expire(c.Now)
	for _, j := range ending {
		s.workload.update(j)
	}
	return nil
}
