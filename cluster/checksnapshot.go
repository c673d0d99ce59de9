package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// maxQueueDepth bounds the depth of the tree of queues in a snapshot, because what a task holds is
// charged to its queue and to every queue above it.
const maxQueueDepth = 1000

// check returns an error for a snapshot with objects that are listed twice, tasks without a
// name, queues that are too deep in the tree, or amounts that are too large. What tasks
// hold is checked when they are restored.
func (sn *Snapshot) check() error {
	if err := cmp.Or(checkTime("now", sn.Now), sn.checkQueues(), sn.checkNodes(), sn.checkJobs(), sn.Demand.check()); err != nil {
		return err
	}
	budgets, sets, tasks := uniqueNames{}, uniqueNames{}, map[TaskRef]bool{}
	for i := range sn.Budgets {
		b := &sn.Budgets[i]
		if err := cmp.Or(budgets.add("budget", b.Namespace+"/"+b.Name), checkAmount("bound", b.Bound)); err != nil {
			return err
		}
	}
	for _, r := range sn.Sets {
		err := sets.add("set", r.Name)
		if r.Scaled != nil {
			err = cmp.Or(err, checkAmount("the size of a set", *r.Scaled))
		} else if r.Group == nil {
			err = cmp.Or(err, fmt.Errorf("set %q has neither a size nor a group of its own", r.Name))
		}
		if err != nil {
			return err
		}
	}
	for i := range sn.Tasks {
		ref := sn.Tasks[i].Task
		if tasks[ref] {
			return fmt.Errorf("task %s is listed twice", ref.ID())
		}
		tasks[ref] = true
	}
	unseen := make(map[TaskRef]bool, len(sn.Unseen))
	for i := range sn.Unseen {
		u := &sn.Unseen[i]
		if u.Node == "" || unseen[u.Task] {
			return fmt.Errorf("task %s is listed as unseen without a node, or twice", u.Task.ID())
		}
		unseen[u.Task] = true
		if err := checkHoldings(u.Devices); err != nil {
			return fmt.Errorf("task %s: %w", u.Task.ID(), err)
		}
	}
	return nil
}

// uniqueNames finds objects of one kind that have no name, or the name of another.
type uniqueNames map[string]bool

// add returns an error if the name is empty or was added before. kind is for the error.
func (s uniqueNames) add(kind, name string) error {
	if name == "" || s[name] {
		return fmt.Errorf("%s %q has no name, or is listed twice", kind, name)
	}
	s[name] = true
	return nil
}

func (sn *Snapshot) checkQueues() error {
	known, above := uniqueNames{}, make(map[string]string, len(sn.Queues))
	for i := range sn.Queues {
		r := &sn.Queues[i]
		q := &r.Queue
		if err := cmp.Or(known.add("queue", q.Name), q.check(), r.Held.check(), checkTime("since", r.Since)); err != nil {
			return err
		}
		if q.Parent == q.Name || q.Parent == DefaultQueue || q.Name == DefaultQueue && q.Parent != "" {
			return fmt.Errorf("queue %q cannot be below %q", q.Name, q.Parent)
		}
		above[q.Name] = q.Parent
	}
	for _, r := range sn.Queues { // a cycle of parents is no error: the jobs of these queues are not pending
		seen := map[string]bool{}
		for q := r.Queue.Name; q != "" && !seen[q]; q = above[q] {
			if seen[q] = true; len(seen) > maxQueueDepth {
				return fmt.Errorf("queue %q is at a depth of more than %d in the tree of queues", r.Queue.Name, maxQueueDepth)
			}
		}
	}
	return nil
}

func (sn *Snapshot) checkNodes() error {
	known, offered := uniqueNames{}, resourceSums{}
	for i := range sn.Nodes {
		r := &sn.Nodes[i]
		n := &r.Node
		if err := cmp.Or(known.add("node", n.Name), n.check()); err != nil {
			return err
		}
		if r.Unknown && !r.Absent {
			return fmt.Errorf("node %q is marked unknown, and is not marked absent", n.Name)
		}
		gone := false // devices that are gone are marked lost, and are last
		for k := range n.Devices {
			if d := &n.Devices[k]; gone && !d.Gone || d.Gone && !d.Lost {
				return fmt.Errorf("node %q: device %q is not in order: devices that are gone must be lost, and last", n.Name, d.UUID)
			}
			gone = n.Devices[k].Gone
		}
		for _, l := range n.Resources {
			if !offered.add(l.Name, l.Capacity) {
				return fmt.Errorf("node %q: the sum of %s over all nodes is too large", n.Name, l.Name)
			}
		}
	}
	return nil
}

// resourceSums has the sum of each resource over all objects of one kind.
type resourceSums map[string]int64

// add adds v to the sum of the resource. It returns false if the sum overflows.
func (s resourceSums) add(name string, v int64) bool {
	total, ok := AddOverflow(s[name], v)
	s[name] = total
	return ok
}

func (sn *Snapshot) checkJobs() error {
	known, requested, earmarked := uniqueNames{}, resourceSums{}, map[string]string{}
	for i := range sn.Jobs {
		r := &sn.Jobs[i]
		j := &r.Job
		if err := cmp.Or(known.add("job", j.ID), r.checkTasks(), j.checkAmounts()); err != nil {
			return err
		}
		if e := j.details().Earmarked; e != nil {
			for i := range e.Rooms {
				name := e.Rooms[i].Node
				if of := earmarked[name]; of != "" {
					return fmt.Errorf("node %q is earmarked for %s and %s", name, of, j.ID)
				}
				earmarked[name] = j.ID
			}
		}
		for t := range j.each {
			for _, x := range slices.Concat(t.Shape.Resources, t.Shape.LeftOut) {
				if !requested.add(x.Name, x.Value) {
					return fmt.Errorf("%s: the sum of %s over all requests is too large", j.ID, x.Name)
				}
			}
		}
	}
	return nil
}

// checkTasks is Job.check without the conditions that hold only for a new job: a job
// in a snapshot may have lost or gained tasks since it was put.
func (r *JobRecord) checkTasks() error {
	j := &r.Job
	if len(j.Alternatives) == 0 {
		return fmt.Errorf("%s has no tasks", j.ID)
	}
	if j.ID == "" {
		return fmt.Errorf("%s has %d alternatives", j.ID, len(j.Alternatives))
	}
	for a := range j.Alternatives {
		alt, known := &j.Alternatives[a], uniqueNames{}
		switch requested := !j.Open && !alt.Running; {
		case alt.Min < 0 || requested && (alt.Min < 1 || alt.Min > len(alt.Tasks)):
			return fmt.Errorf("%s: the minimum is %d, and there are %d tasks", j.ID, alt.Min, len(alt.Tasks))
		case j.Open && a > 0 && !alt.Running:
			return fmt.Errorf("%s has %d alternatives", j.ID, len(j.Alternatives))
		}
		if err := alt.checkParents(); err != nil {
			return fmt.Errorf("%s: %w", j.ID, err)
		}
		for _, t := range alt.Tasks {
			subgroups := len(alt.Subgroups)
			if t != nil { // the subgroup of a task may have been removed, or may not be known yet
				subgroups = max(subgroups, t.Subgroup)
			}
			if err := t.check(subgroups); err != nil {
				return fmt.Errorf("%s: %w", j.ID, err)
			}
			if err := known.add("task", t.Name); err != nil {
				return fmt.Errorf("%s: %w", j.ID, err)
			}
		}
	}
	return nil
}

// check returns an error for a combination of status, node and holdings that no task
// can have.
func (r *TaskRecord) check() error {
	onNoNode := r.Status == Pending || r.Status == Succeeded || r.Status == Failed
	switch {
	case (r.Node == "") != onNoNode:
		return fmt.Errorf("it cannot be %s on node %q", r.Status, r.Node)
	case onNoNode && (len(r.Devices) > 0 || r.DevicesUnknown || r.Sent || r.Held != nil || r.NotRequested):
		return fmt.Errorf("it is %s, and cannot hold anything", r.Status)
	case r.Status != Releasing && (r.Evicted || r.Landing != nil):
		return fmt.Errorf("it is %s, and cannot be evicted or have a landing", r.Status)
	case !r.Evicted && (r.For != "" || r.At != 0 || r.Overdue):
		return errors.New("it is not evicted, and cannot have fields of an eviction (for, at, overdue)")
	}
	err := checkHoldings(r.Devices)
	if r.Held != nil {
		err = cmp.Or(err, r.Held.check())
	}
	if l := r.Landing; l != nil {
		if err = cmp.Or(err, checkHoldings(l.Devices)); l.Held != nil {
			err = cmp.Or(err, l.Held.check())
		}
	}
	return err
}
