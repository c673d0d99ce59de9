package cluster

import "slices"

// workload adds and removes jobs and changes their status. It updates the tables of jobs,
// Sets and shapes together.
type workload struct {
	journal *journal
	roster  *roster
	tree    *tree
	sets    *sets
	shapes  *shapes
	fleet   *fleet
	leaving *Job // the job that is being removed, which is not eligible; nil: none
}

// add adds a new job.
func (w *workload) add(j *Job) { undoable(w.journal, w, j, (*workload).insert, (*workload).delete) }

// remove removes a job of which no task is on a node.
func (w *workload) remove(j *Job) { undoable(w.journal, w, j, (*workload).delete, (*workload).insert) }

// insert is add without the journal, and delete is remove without it.
func (w *workload) insert(j *Job) {
	w.roster.add(j)
	w.list(j)
	w.listEarmark(j, j.Earmarked)
	w.update(j)
}

// list adds the job to the lists of jobs and Sets and interns the shapes of its tasks.
// unlist reverts that.
func (w *workload) list(j *Job) {
	for a := range j.Alternatives {
		tasks := j.Alternatives[a].Tasks
		for _, t := range tasks {
			t.Shape = w.shapes.intern(t.Shape)
		}
	}
	w.roster.list(j)
	w.sets.list(j)
}

func (w *workload) unlist(j *Job) {
	for t := range j.each {
		w.shapes.drop(t.Shape)
	}
	w.roster.unlist(j)
	w.sets.unlist(j)
}

func (w *workload) delete(j *Job) {
	w.unlistEarmark(j, j.Earmarked, true)
	w.unlist(j)
	w.roster.remove(j)
}

func (w *workload) setBelowMinimum(j *Job, since int64) {
	if j.BelowMinimumSince != since {
		to := j.status()
		to.belowMinimumSince = since
		w.changeStatus(j, to)
	}
}

func (w *workload) displace(j *Job, victims []string) {
	all := slices.Concat(j.Displaced, victims)
	slices.Sort(all)
	if all = slices.Compact(all); len(all) > len(j.Displaced) {
		to := j.status()
		to.displaced = all
		w.changeStatus(j, to)
	}
}

// undisplace removes the record that the victim was evicted for the job.
func (w *workload) undisplace(j *Job, victim string) {
	if i, known := slices.BinarySearch(j.Displaced, victim); known {
		to := j.status()
		to.displaced = slices.Delete(slices.Clone(j.Displaced), i, i+1)
		w.changeStatus(j, to)
	}
}

func (w *workload) park(j *Job, p *Parked) {
	if p == nil && j.Parked == nil || p != nil && j.Parked != nil && *p == *j.Parked {
		return
	}
	to := j.status()
	if to.parked = nil; p != nil {
		copied := *p
		to.parked = &copied
	}
	w.changeStatus(j, to)
}

// changeStatus gives the job another status.
func (w *workload) changeStatus(j *Job, to jobStatus) {
	w.journal.recordOther(otherChange{job: j, status: j.status()})
	w.setStatus(j, to)
}

// setStatus is changeStatus without the journal.
func (w *workload) setStatus(j *Job, to jobStatus) {
	retired := j.Retired
	refused := j.BindRefused
	d := *j.JobDetails
	d.BelowMinimumSince, d.Evicted, d.Displaced, d.Parked, d.BindRefused = to.belowMinimumSince, to.evicted, to.displaced, to.parked, to.bindRefused
	j.JobDetails = d.shared()
	w.setEarmarked(j, to.earmarked, false)
	w.roster.listBelowMinimum(j)
	if refused != to.bindRefused {
		w.roster.listHeldBack(j)
		w.update(j)
	}
	if to.retired != retired {
		w.setRetired(j, to.retired)
	}
}

// isEligible reports whether the job can be placed: it is reported, it has as many tasks
// as its minimum, its queue is a leaf of the tree, and it does not wait because a binding was
// refused.
func (w *workload) isEligible(j *Job) bool {
	if q := w.tree.byName[j.Queue]; j.absent || j == w.leaving || q == nil || !q.Leaf() || q.loose {
		return false
	}
	return (!j.Open || j.Alternatives[0].Enough(func(*Task) bool { return true })) && !j.isHeldBack(w.tree.now)
}

// needsPlacement reports whether a task of the chosen alternative is on no node and has
// not ended. It is also true for a running job that is below its minimum because too many
// of its tasks failed, so that the job is refused with that reason.
func (j *Job) needsPlacement() bool {
	if len(j.Alternatives) == 1 && j.ended == 0 {
		return int(j.tasksOnNodes) < len(j.Tasks())
	}
	return slices.ContainsFunc(j.Tasks(), func(t *Task) bool { return !t.isPlacedOrEnded() }) || // tasksOnNodes does not suffice: tasks of other alternatives may be on nodes
		j.ended > 0 && j.Running() && !j.HasMinimum()
}

// update is called after every change of a job. It gives the job a new version and updates
// the list of pending jobs.
func (w *workload) update(j *Job) {
	if !w.roster.knows(j) {
		return
	}
	w.roster.slots.Touch(int(j.slot))
	w.roster.listPending(j, j.needsPlacement() && !j.Retired && w.isEligible(j))
}

func byID(jobs map[string]*Job) []*Job {
	return ordered(jobs, (*Job).compare)
}

// sortedByID returns a copy of the list that is sorted by ID.
func sortedByID(jobs []*Job) []*Job {
	out := append(make([]*Job, 0, len(jobs)), jobs...)
	slices.SortFunc(out, (*Job).compare)
	return out
}

func byTaskID(tasks map[*Task]bool) []*Task {
	out := make([]*Task, 0, len(tasks))
	for t := range tasks {
		out = append(out, t)
	}
	slices.SortFunc(out, (*Task).compare)
	return out
}

func (w *workload) setAbsent(j *Job, absent bool) {
	if was := j.absent; was != absent {
		j.absent = absent
		w.update(j)
		if w.journal.recording() {
			w.journal.recordUndo(func() { j.absent = was; w.update(j) })
		}
	}
}

// updateQueue calls update for all jobs that name the queue.
func (w *workload) updateQueue(name string) {
	for j := range w.roster.inQueue(name) {
		w.update(j)
	}
}

// addTask adds a task that is on no node to its open job.
func (w *workload) addTask(t *Task) {
	at, _ := slices.BinarySearchFunc(t.Job.Alternatives[0].Tasks, t, byIndexAndName)
	w.insertTask(t, at)
	if w.journal.recording() {
		w.journal.recordUndo(func() { w.deleteTask(t, at) })
	}
}

// removeTask removes a task that is on no node from its open job.
func (w *workload) removeTask(t *Task) {
	at := slices.Index(t.Job.Alternatives[0].Tasks, t)
	w.deleteTask(t, at)
	if w.journal.recording() {
		w.journal.recordUndo(func() { w.insertTask(t, at) })
	}
}

func (w *workload) insertTask(t *Task, at int) {
	t.Shape = w.shapes.intern(t.Shape)
	w.setTasks(t.Job, slices.Insert(t.Job.Alternatives[0].Tasks, at, t))
}

func (w *workload) deleteTask(t *Task, at int) {
	w.shapes.drop(t.Shape)
	w.setTasks(t.Job, slices.Delete(t.Job.Alternatives[0].Tasks, at, at+1))
}

// setTasks replaces the list of tasks of an open job.
func (w *workload) setTasks(j *Job, tasks []*Task) {
	j.Alternatives[0].Tasks = tasks
	j.recountEnded()
	w.update(j)
	j.spec = w.roster.slots.Version
}

func (w *workload) retire(j *Job) {
	to := j.status()
	to.retired = true
	w.changeStatus(j, to)
}

func (w *workload) setRetired(j *Job, retired bool) {
	w.sets.unlist(j)
	j.Retired = retired
	w.sets.list(j)
	w.roster.listRetired(j)
	w.update(j)
}

// setChosen sets the alternative that the job is placed in; -1 means none.
func (w *workload) setChosen(j *Job, alternative int) {
	j.Chosen = alternative
	if w.roster.knows(j) {
		w.sets.listOnWholeNodes(j)
	}
	w.update(j)
}
