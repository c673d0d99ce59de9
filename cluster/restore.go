package cluster

import (
	"errors"
	"fmt"
)

// State returns a new State with the content of the snapshot. It fails if the snapshot
// contradicts itself. It also fails if a queue is deeper in the tree than maxQueueDepth, or
// if the sum of a resource over all nodes or requests overflows. Apply does not check
// these two conditions.
func (sn *Snapshot) State() (*State, error) {
	if err := sn.check(); err != nil {
		return nil, err
	}
	s := NewState()
	s.tree.now = sn.Now
	for i := range sn.Queues {
		sn.Queues[i].restore(s)
	}
	s.tree.build()
	s.accounts.updateProducts()
	if err := sn.restoreNodes(s); err != nil {
		return nil, err
	}
	for i := range sn.Budgets {
		if err := s.Apply(BudgetPut{sn.Budgets[i]}); err != nil {
			return nil, err
		}
	}
	for i := range sn.Jobs {
		sn.Jobs[i].restore(s)
	}
	for _, r := range sn.Sets {
		set := s.sets.findOrAdd(r.Name)
		if set.group = r.Group; r.Scaled != nil {
			s.sets.rescale(set, *r.Scaled)
		}
	}
	if err := sn.restoreTasks(s); err != nil {
		return nil, err
	}
	for _, seen := range sn.Unseen {
		if t := s.roster.Task(seen.Task); t != nil && !uidsDiffer(t.UID, seen.UID) {
			return nil, fmt.Errorf("task %s is listed as unknown, but it is known", seen.Task.ID())
		}
		s.roster.earlySightings[seen.Task] = seen
	}
	s.demand.restore(sn.Demand.copied())
	for _, r := range sn.Learnt {
		if s.parameters.byPlugin[r.Plugin] != nil {
			return nil, fmt.Errorf("the parameters of plugin %q are listed twice", r.Plugin)
		}
		if err := r.apply(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (r *QueueRecord) restore(s *State) {
	q := r.Queue
	q.Used, q.UsedByFirm, q.children, q.quotas = nil, nil, nil, nil
	q.revision, q.current = r.Revision, currentUse{r.Since, r.Held}
	old := s.tree.byName[q.Name]
	s.tree.countTerms(old, -1)
	s.tree.countTerms(&q, +1)
	s.tree.listByParent(&q, true)
	s.tree.enter(&q, old)
}

func (sn *Snapshot) restoreNodes(s *State) error {
	var nodes []*Node
	for i := range sn.Nodes {
		r := &sn.Nodes[i]
		n := r.Node.clone()
		if err := n.prepare(); err != nil {
			return fmt.Errorf("node %q: %w", n.Name, err)
		}
		n.revision, n.unreported = r.Revision, r.Unknown
		for k := range n.Devices {
			n.Devices[k].Gone = r.Node.Devices[k].Gone
		}
		if r.Absent {
			n.absent = true
			n.normalize()
			s.fleet.absent[n.Name] = n
		} else {
			nodes = append(nodes, n)
		}
	}
	s.fleet.addAll(nodes)
	return nil
}

func (r *JobRecord) restore(s *State) {
	spec := r.Job
	spec.Open = false // buildJob creates the tasks of a spec only if it is not open
	j := buildJob(&spec, r.Revision)
	j.Open, j.absent = r.Job.Open, r.Absent
	if r.Absent {
		j.Queue = r.Job.Queue
	}
	for t := range j.each {
		t.revision = r.Tasks[t.Name]
	}
	s.workload.insert(j)
}

// restoreTasks places the tasks as they are recorded. It then checks that every absent
// node has a task on it, since State keeps an absent node only for its tasks.
func (sn *Snapshot) restoreTasks(s *State) error {
	for i := range sn.Tasks {
		if err := sn.Tasks[i].restore(s); err != nil {
			return fmt.Errorf("task %s: %w", sn.Tasks[i].Task.ID(), err)
		}
	}
	for _, n := range s.fleet.Absent() {
		if len(n.Tasks) == 0 {
			return fmt.Errorf("node %q is gone, and no task is on it", n.Name)
		}
	}
	return nil
}

func (r *TaskRecord) restore(s *State) error {
	t := s.roster.Task(r.Task)
	if t == nil {
		return errors.New("its job has no such task")
	}
	if err := r.check(); err != nil {
		return err
	}
	t.notRequested = r.NotRequested
	t.joinSubgroup(&t.Job.Alternatives[t.Alternative])
	to := taskState{status: r.Status, started: r.Started, reservedAt: r.ReservedAt, attempt: r.Attempt, protectedUntil: r.ProtectedUntil, sent: r.Sent, devicesUnknown: r.DevicesUnknown}
	if r.Evicted {
		to.eviction = &eviction{r.For, r.At, r.Overdue}
	}
	if r.Node != "" {
		n, claims, err := s.fleet.resolve(r.Node, r.Devices)
		if err != nil {
			return err
		}
		if n.absent && r.Status == Nominated {
			return fmt.Errorf("room is reserved for it on node %q, which is gone", r.Node)
		}
		to.node, to.claims, to.held = n, claims, t.Shape
		if r.Held != nil {
			to.held = s.Intern(*r.Held)
			s.shapes.drop(to.held)
		}
	}
	s.taskStates.setUnrecorded(t, to)
	if r.Landing == nil {
		return nil
	}
	n, claims, err := s.fleet.resolve(r.Landing.Node, r.Landing.Devices)
	if err != nil {
		return err
	}
	if n.absent {
		return fmt.Errorf("it moves to node %q, which is gone", n.Name)
	}
	aside := *t.Job
	shadow := t.shadow(&aside)
	if r.Landing.Held != nil {
		shadow.Shape = s.Intern(*r.Landing.Held)
		s.shapes.drop(shadow.Shape) // a landing does not count as a use of its shape
	}
	s.taskStates.setUnrecorded(shadow, taskState{status: Nominated, node: n, claims: claims, held: shadow.Shape, reservedAt: r.Landing.ReservedAt})
	s.taskStates.changeLanding(shadow, t.Job, +1)
	return nil
}
