package cluster

import "slices"

// net sums up what the journal records since the place: the decisions that lead
// from there to here. Decisions that free room come first, so that those that take
// it can be applied one after the other.
func (l *journal) net(from int) []Change {
	if len(l.records) == from {
		return nil
	}
	var n netting
	for i := from; i < len(l.records); i++ {
		n.add(&l.records[i])
	}
	for i := range n.tasks {
		n.task(n.tasks[i], &n.was[i])
	}
	for i := range n.jobs {
		n.job(n.jobs[i], &n.status[i])
	}
	for i, set := range n.sets {
		if set.group != nil && !equalPointers(set.group, n.groups[i]) {
			n.rest = append(n.rest, ChooseGroup{set.name, *set.group})
		}
	}
	return slices.Concat(n.frees, n.brief, n.takes, n.moves, n.overdue, n.rest)
}

// netting collects what changed first, and then what became of it.
type netting struct {
	known  map[any]bool // for many: what is in the lists
	tasks  []*Task
	was    []standing
	jobs   []*Job
	status []jobStatus
	sets   []*replicas
	groups []*Key

	frees, brief, takes, moves, overdue, rest []Change // brief: assigned and evicted again
}

func (n *netting) add(r *record) {
	switch o := r.rare; {
	case o == nil:
		if n.first(r.task, len(n.tasks), func() bool { return slices.Contains(n.tasks, r.task) }) {
			n.tasks, n.was = append(n.tasks, r.task), append(n.was, r.was)
		}
	case o.landing != nil:
	case o.job != nil:
		if n.first(o.job, len(n.jobs), func() bool { return slices.Contains(n.jobs, o.job) }) {
			n.jobs, n.status = append(n.jobs, o.job), append(n.status, o.status)
		}
	case o.set != nil:
		if !slices.Contains(n.sets, o.set) {
			n.sets, n.groups = append(n.sets, o.set), append(n.groups, o.group)
		}
	}
}

// first reports whether the thing was not recorded before.
func (n *netting) first(thing any, listed int, find func() bool) bool {
	const few = 32
	if listed < few && n.known == nil {
		return !find()
	}
	if n.known == nil {
		n.known = map[any]bool{}
		for _, t := range n.tasks {
			n.known[t] = true
		}
		for _, j := range n.jobs {
			n.known[j] = true
		}
	}
	if n.known[thing] {
		return false
	}
	n.known[thing] = true
	return true
}

func (n *netting) task(t *Task, was *standing) {
	if t.shadows != nil {
		n.landing(t, was)
		return
	}
	ref := t.Ref()
	kept := t.Node == was.node && slices.Equal(t.Claims, was.claims) && t.held == was.held && (t.Status != Nominated || t.Promised == was.promised)
	if was.status == Nominated && (t.Status == Pending || !kept) {
		n.frees = append(n.frees, Withdraw{Task: ref})
	}
	switch {
	case t.Status == Assumed && was.status != Assumed:
		n.takes = append(n.takes, Assign{ref, t.UID, t.Node.Name, t.Node.holdings(t.Claims), t.Started, t.Attempt})
	case t.Status == Nominated && (was.status != Nominated || !kept):
		n.takes = append(n.takes, Nominate{ref, t.UID, t.Node.Name, t.Node.holdings(t.Claims), t.Promised})
	case t.Status == Releasing && was.status != Releasing:
		evict := Evict{ref, t.UID, t.eviction.forJob, t.eviction.at, t.Attempt}
		if was.status != Bound && was.status != Assumed { // it was assigned before that
			n.brief = append(n.brief, Assign{ref, t.UID, t.Node.Name, t.Node.holdings(t.Claims), t.Started, t.Attempt - 1}, evict)
		} else {
			n.frees = append(n.frees, evict)
		}
	}
	if t.Status == Releasing && t.eviction != nil && t.eviction.overdue && (was.eviction == nil || !was.eviction.overdue) {
		n.overdue = append(n.overdue, Overdue{ref})
	}
}

func (n *netting) landing(shadow *Task, was *standing) {
	t := shadow.shadows
	landed := t.landing == shadow
	if was.node != nil && !landed {
		n.frees = append(n.frees, Withdraw{t.Ref(), true})
	}
	if was.node == nil && landed {
		n.moves = append(n.moves, Move{t.Ref(), shadow.Node.Name, shadow.Node.holdings(shadow.Claims), shadow.Promised})
	}
}

func (n *netting) job(j *Job, was *jobStatus) {
	if j.Retired && !was.retired {
		n.rest = append(n.rest, Retire{j.ID})
	}
	var victims []string
	for _, v := range j.Displaced {
		if _, known := slices.BinarySearch(was.displaced, v); !known {
			victims = append(victims, v)
		}
	}
	if len(victims) > 0 {
		n.rest = append(n.rest, Displace{j.ID, victims})
	}
	if j.Torn != was.torn {
		n.rest = append(n.rest, Tear{j.ID, j.Torn})
	}
	var before, now Parked
	if was.parked != nil {
		before = *was.parked
	}
	if j.Parked != nil {
		now = *j.Parked
	}
	if before != now {
		n.rest = append(n.rest, Park{j.ID, now})
	}
}
