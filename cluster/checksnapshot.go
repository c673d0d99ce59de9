package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// maxQueueDepth bounds how many queues are above each other: what a task holds is
// counted in each of them.
const maxQueueDepth = 1000

// check reports what no State has: objects that are there twice, tasks that no job
// has, amounts that cannot be counted. What tasks hold is checked as they are placed.
func (sn *Snapshot) check() error {
	if err := cmp.Or(checkAmount("now", sn.Now), sn.checkQueues(), sn.checkNodes(), sn.checkJobs()); err != nil {
		return err
	}
	budgets, sets, tasks := names{}, names{}, map[TaskRef]bool{}
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
			return fmt.Errorf("task %s is there twice", ref.ID())
		}
		tasks[ref] = true
	}
	unseen := make(map[TaskRef]bool, len(sn.Unseen))
	for i := range sn.Unseen {
		u := &sn.Unseen[i]
		if u.Node == "" || unseen[u.Task] {
			return fmt.Errorf("task %s was seen on no node, or is there twice", u.Task.ID())
		}
		unseen[u.Task] = true
		if err := checkHoldings(u.Devices); err != nil {
			return fmt.Errorf("task %s: %w", u.Task.ID(), err)
		}
	}
	return nil
}

// names finds objects of one kind that have the same name, or none.
type names map[string]bool

func (s names) add(kind, name string) error {
	if name == "" || s[name] {
		return fmt.Errorf("%s %q has no name, or is there twice", kind, name)
	}
	s[name] = true
	return nil
}

func (sn *Snapshot) checkQueues() error {
	known, above := names{}, make(map[string]string, len(sn.Queues))
	for i := range sn.Queues {
		r := &sn.Queues[i]
		q := &r.Queue
		if err := cmp.Or(known.add("queue", q.Name), q.check(), r.Held.check(), checkAmount("since", r.Since)); err != nil {
			return err
		}
		if q.Parent == q.Name || q.Parent == DefaultQueue || q.Name == DefaultQueue && q.Parent != "" {
			return fmt.Errorf("queue %q cannot be below %q", q.Name, q.Parent)
		}
		above[q.Name] = q.Parent
	}
	for _, r := range sn.Queues { // a queue may be below itself: its jobs wait
		seen := map[string]bool{}
		for q := r.Queue.Name; q != "" && !seen[q]; q = above[q] {
			if seen[q] = true; len(seen) > maxQueueDepth {
				return fmt.Errorf("queue %q has more than %d queues above it", r.Queue.Name, maxQueueDepth)
			}
		}
	}
	return nil
}

func (sn *Snapshot) checkNodes() error {
	known, offered := names{}, sums{}
	for i := range sn.Nodes {
		r := &sn.Nodes[i]
		n := &r.Node
		if err := cmp.Or(known.add("node", n.Name), n.check()); err != nil {
			return err
		}
		if r.Unknown && !r.Absent {
			return fmt.Errorf("node %q was never reported, and is there", n.Name)
		}
		gone := false // a device that is not listed any more is lost, and they come last
		for k := range n.Devices {
			if d := &n.Devices[k]; gone && !d.Gone || d.Gone && !d.Lost {
				return fmt.Errorf("node %q: device %q is out of place", n.Name, d.UUID)
			}
			gone = n.Devices[k].Gone
		}
		for _, l := range n.Resources {
			if !offered.add(l.Name, l.Capacity) {
				return fmt.Errorf("with node %q there is more %s than can be counted", n.Name, l.Name)
			}
		}
	}
	return nil
}

// sums are of each resource over all objects.
type sums map[string]int64

// add reports whether the sum can be counted.
func (s sums) add(name string, v int64) bool {
	total, ok := AddOverflow(s[name], v)
	s[name] = total
	return ok
}

func (sn *Snapshot) checkJobs() error {
	known, requested := names{}, sums{}
	for i := range sn.Jobs {
		r := &sn.Jobs[i]
		j := &r.Job
		if err := cmp.Or(known.add("job", j.ID), r.checkTasks(), j.checkAmounts()); err != nil {
			return err
		}
		for t := range j.each {
			for _, x := range slices.Concat(t.Shape.Resources, t.Shape.LeftOut) {
				if !requested.add(x.Name, x.Value) {
					return fmt.Errorf("with %s more %s is requested than can be counted", j.ID, x.Name)
				}
			}
		}
	}
	return nil
}

// checkTasks is what check asks of a job, as far as it holds for one that has lost
// or gained tasks since it was put.
func (r *JobRecord) checkTasks() error {
	j := &r.Job
	if len(j.Alternatives) == 0 {
		return fmt.Errorf("%s has no tasks", j.ID)
	}
	if j.ID == "" {
		return fmt.Errorf("%s has %d alternatives", j.ID, len(j.Alternatives))
	}
	for a := range j.Alternatives {
		alt, known := &j.Alternatives[a], names{}
		switch requested := !j.Open && !alt.Running; {
		case alt.Min < 0 || requested && (alt.Min < 1 || alt.Min > len(alt.Tasks)):
			return fmt.Errorf("%s: a minimum of %d for %d tasks", j.ID, alt.Min, len(alt.Tasks))
		case j.Open && a > 0 && !alt.Running:
			return fmt.Errorf("%s has %d alternatives", j.ID, len(j.Alternatives))
		}
		if err := alt.checkParents(); err != nil {
			return fmt.Errorf("%s: %w", j.ID, err)
		}
		for _, t := range alt.Tasks {
			subgroups := len(alt.Subgroups)
			if t != nil { // a task may outlive its subgroup, or come before it
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

// check reports a standing that no task has.
func (r *TaskRecord) check() error {
	nowhere := r.Status == Pending || r.Status == Succeeded || r.Status == Failed
	switch {
	case (r.Node == "") != nowhere:
		return fmt.Errorf("it is %s on node %q", r.Status, r.Node)
	case nowhere && (len(r.Devices) > 0 || r.Counted || r.Sent || r.Held != nil || r.Extra):
		return fmt.Errorf("it is %s, and holds something", r.Status)
	case r.Status != Releasing && (r.Evicted || r.Landing != nil):
		return fmt.Errorf("it is %s, and leaves", r.Status)
	case !r.Evicted && (r.For != "" || r.At != 0 || r.Overdue):
		return errors.New("it is not evicted, and was evicted for something")
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
