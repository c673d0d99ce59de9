package cluster

import "slices"

// present reports whether the task can start on the node now: the room that the
// claims name is free of tasks that are releasing it, and no task that is leaving is
// one that it must be away from. All other reservations are set aside.
func (r *roster) present(t *Task, n *Node, claims []Claim) bool {
	return n.present(t, claims) && r.apart(t, n)
}

// apart reports whether no task that is leaving keeps the task away from the node.
// Such a task has made room: the node can be reserved. But it is still there, and to
// be kept away holds until it has left.
func (r *roster) apart(t *Task, n *Node) bool {
	for _, o := range r.releasing {
		if o != t && (t.Job.excludes(o.Job, n, o.Node) || o.Job.excludes(t.Job, o.Node, n)) {
			return false
		}
	}
	return true
}

// excludes reports whether a required anti-term of the job, with a task on one node,
// keeps the other job off the other node.
func (j *Job) excludes(o *Job, here, there *Node) bool {
	for i := range j.Affinity {
		t := &j.Affinity[i]
		if !t.Anti || t.Weight != 0 || !t.Matches(j, o) {
			continue
		}
		a, known := here.Domain(t.Within)
		if b, too := there.Domain(t.Within); known && too && a == b {
			return true
		}
	}
	return false
}

// Matches reports whether the term of the job is about the other job.
func (t *JobTerm) Matches(j, o *Job) bool {
	own := len(t.Namespaces) == 0 && o.Namespace == j.Namespace
	return (own || slices.Contains(t.Namespaces, o.Namespace)) && t.Selector.Matches(o.Labels)
}

// Repels reports whether a required anti-term of one of the two jobs is about the
// other, in whatever domain.
func (j *Job) Repels(o *Job) bool { return j.avoids(o) || o.avoids(j) }

func (j *Job) avoids(o *Job) bool {
	return slices.ContainsFunc(j.Affinity, func(t JobTerm) bool { return t.Anti && t.Weight == 0 && t.Matches(j, o) })
}
