package cluster

import "slices"

// net returns the decisions that lead from the State at the position in the journal to
// the present State. Something that was changed and changed back gives no decision.
// Decisions that free room are first, so that the decisions can be applied in order.
func (l *journal) net(from int) []Change {
	if len(l.records) == from {
		return nil
	}
	var n netChanges
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
	return slices.Concat(n.frees, n.evictedAgain, n.takes, n.moves, n.overdue, n.rest)
}

// netChanges collects the tasks, jobs and sets that changed, each with its state before
// its first change. It then compares these with the present state.
type netChanges struct {
	known  map[any]bool // the tasks and jobs in the lists; nil while the lists are short
	tasks  []*Task
	was    []taskState // of the tasks, before their first change
	jobs   []*Job
	status []jobStatus // of the jobs, before their first change
	sets   []*replicas
	groups []*GroupKey // of the sets, before their first change

	// The decisions, in the order of net. evictedAgain has pairs of an Assign and an Evict
	// of tasks that were both assigned and evicted.
	frees, evictedAgain, takes, moves, overdue, rest []Change
}

// add takes the state before the change from the record, if the record is the first of
// its task, job or set.
func (n *netChanges) add(r *record) {
	switch o := r.other; {
	case o == nil:
		if n.isNew(r.task, len(n.tasks), func() bool { return slices.Contains(n.tasks, r.task) }) {
			n.tasks, n.was = append(n.tasks, r.task), append(n.was, r.was)
		}
	case o.landing != nil:
	case o.job != nil:
		if n.isNew(o.job, len(n.jobs), func() bool { return slices.Contains(n.jobs, o.job) }) {
			n.jobs, n.status = append(n.jobs, o.job), append(n.status, o.status)
		}
	case o.set != nil:
		if !slices.Contains(n.sets, o.set) {
			n.sets, n.groups = append(n.sets, o.set), append(n.groups, o.group)
		}
	}
}

// isNew reports whether the task or job is not in its list yet, which has listed
// elements. find searches the list; with more than a few elements a map is used instead.
func (n *netChanges) isNew(thing any, listed int, find func() bool) bool {
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

// task adds the decisions about the task, which had the state was before.
func (n *netChanges) task(t *Task, was *taskState) {
	if t.ShadowOf() != nil {
		n.landing(t, was)
		return
	}
	ref := t.Ref()
	kept := t.Node == was.node && slices.Equal(t.Claims, was.claims) && t.held == was.held && (t.Status != Nominated || t.ReservedAt() == was.reservedAt)
	if was.status == Nominated && (t.Status == Pending || !kept) {
		n.frees = append(n.frees, Withdraw{Task: ref})
	}
	switch {
	case t.Status == Assumed && was.status != Assumed:
		n.takes = append(n.takes, Assign{ref, t.UID, t.Node.Name, t.Node.holdings(t.Claims), t.Started, t.Attempt})
	case t.Status == Nominated && (was.status != Nominated || !kept):
		n.takes = append(n.takes, Nominate{ref, t.UID, t.Node.Name, t.Node.holdings(t.Claims), t.ReservedAt()})
	case t.Status == Releasing && was.status != Releasing:
		evict := Evict{ref, t.UID, t.eviction().forJob, t.eviction().at, t.Attempt}
		if was.status != Bound && was.status != Assumed { // it was assigned and then evicted
			n.evictedAgain = append(n.evictedAgain, Assign{ref, t.UID, t.Node.Name, t.Node.holdings(t.Claims), t.Started, t.Attempt - 1}, evict)
		} else {
			n.frees = append(n.frees, evict)
		}
	}
	if t.Status == Releasing && t.eviction() != nil && t.eviction().overdue && (was.eviction == nil || !was.eviction.overdue) {
		n.overdue = append(n.overdue, Overdue{ref})
	}
}

// landing adds the decisions about the shadow of a task that moves or moved.
func (n *netChanges) landing(shadow *Task, was *taskState) {
	t := shadow.ShadowOf()
	landed := t.Landing() == shadow
	if was.node != nil && !landed {
		n.frees = append(n.frees, Withdraw{t.Ref(), true})
	}
	if was.node == nil && landed {
		n.moves = append(n.moves, Move{t.Ref(), shadow.Node.Name, shadow.Node.holdings(shadow.Claims), shadow.ReservedAt()})
	}
}

// job adds the decisions about the job, which had the status was.
func (n *netChanges) job(j *Job, was *jobStatus) {
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
	if j.BelowMinimumSince != was.belowMinimumSince {
		n.rest = append(n.rest, Tear{j.ID, j.BelowMinimumSince})
	}
	if !sameRooms(j.Earmarked, was.earmarked) && was.earmarked != nil { // before others are given the room
		n.frees = append(n.frees, Earmark{Job: j.ID})
	}
	if j.Earmarked != nil && j.Earmarked != was.earmarked {
		n.rest = append(n.rest, Earmark{j.ID, *j.Earmarked.clone()})
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
