package cluster

import "slices"

// canStartNow reports whether the task can start on the node now, so that it is assigned
// and not only nominated. No releasing task may still hold the room that the claims
// name, and no anti-affinity term may separate the task from a task that is still
// releasing. Other reservations are ignored.
func (r *roster) canStartNow(t *Task, n *Node, claims []Claim) bool {
	return n.isVacated(t, claims) && r.isClearOfReleasing(t, n)
}

// isClearOfReleasing reports whether no anti-affinity term separates the task from a
// releasing task. Room may be reserved in spite of such a term, but the releasing task
// still runs, so the term holds until it has stopped.
func (r *roster) isClearOfReleasing(t *Task, n *Node) bool {
	for _, o := range r.releasing {
		if o != t && (t.Job.excludes(o.Job, n, o.Node) || o.Job.excludes(t.Job, o.Node, n)) {
			return false
		}
	}
	return true
}

// excludes reports whether a required anti-affinity term of j, which has a task on
// the node here, forbids a task of the other job on the node there.
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

// Matches reports whether the term, which is one of j, selects the other job: by its
// namespace and its labels.
func (t *JobTerm) Matches(j, o *Job) bool {
	own := len(t.Namespaces) == 0 && o.Namespace == j.Namespace
	return (own || slices.Contains(t.Namespaces, o.Namespace)) && t.Selector.Matches(o.Labels)
}

// Repels reports whether a required anti-affinity term of one of the two jobs selects
// the other, in any domain.
func (j *Job) Repels(o *Job) bool { return j.avoids(o) || o.avoids(j) }

func (j *Job) avoids(o *Job) bool {
	return slices.ContainsFunc(j.Affinity, func(t JobTerm) bool { return t.Anti && t.Weight == 0 && t.Matches(j, o) })
}
