package cluster

import (
	"cmp"
	"slices"
)

// specs adds jobs, changes the specs of jobs and tasks, and removes them, while tasks of
// these jobs are on nodes.
type specs struct {
	journal    *journal
	fleet      *fleet
	roster     *roster
	sets       *sets
	shapes     *shapes
	classes    *classes
	workload   *workload
	booking    *booking
	taskStates *taskStates
	sightings  *sightings
	demand     *demand
}

// add adds a new job, and applies what was reported about its tasks before the job was
// known.
func (sp *specs) add(spec *Job, revision uint64) {
	j := buildJob(spec, revision)
	sp.workload.add(j)
	sp.demand.arrive(j.Alternatives[0].Tasks)
	sp.sightings.applyEarly(j)
}

// respec gives a known job another spec. Its tasks that run, are nominated or are
// releasing stay on their nodes, and hold what they were placed with. A task that is on a
// node and not in the new spec is kept until it has left the node.
func (sp *specs) respec(j, spec *Job, revision uint64) {
	sp.workload.earmark(j, nil) // it was made for what the job requested, and for its place in the order
	next := buildJob(spec, revision)
	next.UID, next.Retired = cmp.Or(next.UID, j.UID), j.Retired
	next.JobDetails = next.withStatus(j.JobDetails)
	sp.dropReplaced(j, next)
	if next.Set.Name != j.Set.Name {
		sp.sets.forgetGroup(j)
	}
	sp.replaceSpec(j, next, j.mergedTasks(next))
	sp.sightings.applyEarly(j)
}

// dropReplaced takes the tasks off their nodes that have another UID in the next version
// of the job. It also releases the landings of these tasks and of the tasks that the next
// version does not have.
func (sp *specs) dropReplaced(j, next *Job) {
	if j.Open && next.Open {
		return
	}
	for a := range j.Alternatives {
		to := next.matchingAlternative(&j.Alternatives[a], a)
		for i, t := range slices.Clone(j.Alternatives[a].Tasks) {
			k := -1
			switch {
			case to < 0:
			case i < len(next.Alternatives[to].Tasks) && next.Alternatives[to].Tasks[i].Name == t.Name:
				k = i
			default:
				k = slices.IndexFunc(next.Alternatives[to].Tasks, func(o *Task) bool { return o.Name == t.Name })
			}
			if k < 0 || uidsDiffer(t.UID, next.Alternatives[to].Tasks[k].UID) {
				sp.taskStates.dropLanding(t)
			}
			if k >= 0 && uidsDiffer(t.UID, next.Alternatives[to].Tasks[k].UID) {
				sp.taskStates.clear(t)
				sp.taskStates.set(t, taskState{}) // the new task does not inherit the number of attempts
			}
		}
	}
}

// mergedTasks returns the tasks of the job's next version, by alternative. A task that
// both versions have remains the same *Task. mergedTasks sets next.Chosen. For tasks that
// are on nodes in an alternative that the next version does not have, it adds an
// alternative to next that is marked as Running.
func (j *Job) mergedTasks(next *Job) [][]taskSpec {
	tasks, known := taskSpecsOf(next.Alternatives), taskSpecsOf(j.Alternatives)
	if j.Open && next.Open {
		next.Alternatives = append(next.Alternatives, j.Alternatives[1:]...) // tasks that were placed before the job was open
		next.Chosen = j.Chosen
		return known
	}
	matches := make([]int, len(j.Alternatives)) // found before alternatives are added to next: none of those may match another one
	for a := range j.Alternatives {
		matches[a] = next.matchingAlternative(&j.Alternatives[a], a)
		if slices.Contains(matches[:a], matches[a]) {
			matches[a] = -1
		}
	}
	for a := range j.Alternatives {
		old, to := &j.Alternatives[a], matches[a]
		var left []taskSpec
		for i, t := range old.Tasks {
			k := -1
			switch {
			case to < 0:
			case i < len(tasks[to]) && tasks[to][i].name == t.Name: // in most cases the order is the same
				k = i
			default:
				k = slices.IndexFunc(tasks[to], func(f taskSpec) bool { return f.name == t.Name })
			}
			switch {
			case k >= 0:
				tasks[to][k].task, tasks[to][k].uid = t, cmp.Or(tasks[to][k].uid, t.UID)
			case t.Node != nil:
				known[a][i].notRequested = true
				left = append(left, known[a][i])
			}
		}
		if len(left) > 0 && to < 0 {
			form := *old
			form.Running, form.Min = true, min(old.Min, len(left))
			next.Alternatives = append(next.Alternatives, form)
			tasks = append(tasks, nil)
			to = len(tasks) - 1
		}
		for _, f := range left {
			f.alternative = to
			tasks[to] = append(tasks[to], f)
		}
	}
	next.Chosen = slices.IndexFunc(tasks, func(list []taskSpec) bool {
		return slices.ContainsFunc(list, func(f taskSpec) bool { return f.task.isPlacedOrEnded() || f.task.Landing() != nil })
	})
	return tasks
}

// matchingAlternative returns the index of the alternative that corresponds to one of the
// version before, which had the index at. Alternatives correspond if they have the same
// name or, without names, the same index. It returns -1 if there is none.
func (j *Job) matchingAlternative(old *Alternative, at int) int {
	if old.Name == "" {
		if at < len(j.Alternatives) && j.Alternatives[at].Name == "" {
			return at
		}
		return -1
	}
	return slices.IndexFunc(j.Alternatives, func(a Alternative) bool { return a.Name == old.Name })
}

// taskSpec is what the spec of a job says about one of its tasks.
type taskSpec struct {
	task                         *Task
	name, uid, role, id          string
	index, alternative, subgroup int
	shape                        *Shape
	notRequested                 bool
	revision                     uint64
}

// taskSpecsOf returns the specs of all tasks, by alternative.
func taskSpecsOf(alternatives []Alternative) [][]taskSpec {
	out := make([][]taskSpec, len(alternatives))
	for a := range alternatives {
		for _, t := range alternatives[a].Tasks {
			out[a] = append(out[a], taskSpec{t, t.Name, t.UID, t.Role, t.ID, t.Index, a, t.subgroup, t.Shape, t.notRequested, t.revision})
		}
	}
	return out
}

// replaceSpec overwrites the job with the version, which gets these tasks.
func (j *Job) replaceSpec(version *Job, tasks [][]taskSpec) {
	*j = *version
	j.Alternatives = slices.Clone(version.Alternatives)
	for a := range tasks {
		list := make([]*Task, len(tasks[a]))
		for i, f := range tasks[a] {
			t := f.task
			t.Job = j
			t.Name, t.UID, t.Role, t.ID, t.Index, t.Alternative, t.subgroup = f.name, f.uid, f.role, f.id, f.index, f.alternative, f.subgroup
			t.Shape, t.notRequested, t.revision = f.shape, f.notRequested, f.revision
			t.joinSubgroup(&j.Alternatives[a])
			list[i] = t
		}
		j.Alternatives[a].Tasks = list
	}
}

// replaceSpec overwrites the job with the version, which gets these tasks, and records
// in the journal how to undo that.
func (sp *specs) replaceSpec(j, version *Job, tasks [][]taskSpec) {
	before, was := *j, taskSpecsOf(j.Alternatives)
	sp.rewrite(j, version, tasks)
	if sp.journal.recording() {
		sp.journal.recordUndo(func() { sp.rewrite(j, &before, was) })
	}
}

// rewrite is replaceSpec without the journal. It takes the job out of all ledgers and
// lists first, changes it, and then enters it again. The nodes of its tasks get a new
// version, because what hooks remember about these nodes may depend on the job's spec.
func (sp *specs) rewrite(j, version *Job, tasks [][]taskSpec) {
	book := func(sign int) {
		for t := range j.each {
			for _, o := range [...]*Task{t, t.Landing()} {
				if o != nil && o.Node != nil {
					if sign < 0 {
						o.Node.Tasks = remove(o.Node.Tasks, o, (*Task).compare) // the order of the list depends on the alternative
					} else {
						o.Node.Tasks = insert(o.Node.Tasks, o, (*Task).compare)
						sp.fleet.touch(o.Node)
					}
					sp.booking.bookAndList(o, sign)
					if j.Preemptible {
						sp.classes.preemptible += sign
					}
				}
			}
			sp.shapes.useHeld(t.held, t.Shape, sign)
		}
	}
	book(-1)
	var kept replicas
	if set := sp.sets.byName[j.Set.Name]; set != nil {
		kept = *set
	}
	sp.workload.unlist(j)
	slot, attached, expected := j.slot, j.tasksOnNodes, j.landings
	j.replaceSpec(version, tasks)
	j.slot, j.tasksOnNodes, j.landings, j.pendingAt = slot, attached, expected, 0
	j.recountEnded()
	sp.workload.list(j)
	if set := sp.sets.byName[j.Set.Name]; set != nil && set.name == kept.name { // if the job is the only one of its set, unlist removed the set
		set.group, set.scaled = kept.group, kept.scaled
		sp.sets.listExcess(set)
	}
	book(+1)
	sp.workload.update(j)
	j.spec = sp.roster.slots.Version
}

// dropNotRequested removes a task that its job does not request any more and that has
// left its node.
func (sp *specs) dropNotRequested(t *Task) {
	j := t.Job
	next := *j
	next.Alternatives = slices.Clone(j.Alternatives)
	alt := &next.Alternatives[t.Alternative]
	alt.Tasks = slices.DeleteFunc(slices.Clone(alt.Tasks), func(o *Task) bool { return o == t })
	if alt.Running {
		alt.Min = min(alt.Min, len(alt.Tasks))
	}
	for last := len(next.Alternatives) - 1; last > 0 && next.Alternatives[last].Running && len(next.Alternatives[last].Tasks) == 0; last-- {
		next.Alternatives = next.Alternatives[:last] // only at the end: decisions and reports name alternatives by index
	}
	sp.replaceSpec(j, &next, taskSpecsOf(next.Alternatives))
}

// remove removes the job with all its tasks.
func (sp *specs) remove(j *Job) {
	sp.workload.leaving = j // it does not become pending when its tasks leave their nodes
	var room [8]*Task
	for a := range j.Alternatives {
		for _, t := range append(room[:0], j.Alternatives[a].Tasks...) { // a copy, because clear may remove the task from the list
			sp.demand.leave(t)
			sp.taskStates.dropLanding(t)
			sp.taskStates.clear(t)
		}
	}
	sp.sets.forgetGroup(j)
	sp.workload.remove(j)
	sp.workload.leaving = nil
}

// replace replaces a job by one with the same ID and another UID. The new job inherits
// nothing, unless both are open: tasks of an open job have UIDs of their own, and stay.
func (sp *specs) replace(j *Job, spec *Job, revision uint64) {
	if !j.Open || !spec.Open {
		sp.remove(j)
		sp.add(spec, revision)
		return
	}
	sp.workload.changeStatus(j, jobStatus{displaced: slices.Clone(spec.Displaced), belowMinimumSince: spec.BelowMinimumSince, evicted: spec.Evicted, retired: spec.Retired, parked: spec.Parked, bindRefused: spec.BindRefused})
	sp.respec(j, spec, revision)
}

// respecTask gives a task of an open job another spec. The task still holds what it was
// placed with.
func (sp *specs) respecTask(t *Task, c *TaskPut) {
	next := c.Task
	next.UID = cmp.Or(next.UID, t.UID)
	if t.sameSpec(&next) && !t.notRequested {
		t.revision = max(t.revision, c.Revision)
		return
	}
	j := *t.Job
	tasks := taskSpecsOf(j.Alternatives)
	for i := range tasks[0] {
		if f := &tasks[0][i]; f.task == t {
			f.notRequested = false
			f.uid, f.role, f.index, f.subgroup, f.shape, f.revision = next.UID, next.Role, next.Index, next.Subgroup, next.Shape, c.Revision
		}
	}
	slices.SortFunc(tasks[0], func(a, b taskSpec) int {
		return byIndexAndName(&Task{Index: a.index, Name: a.name}, &Task{Index: b.index, Name: b.name})
	})
	sp.replaceSpec(t.Job, &j, tasks)
}

// removeTask removes a task of an open job. If the job itself is absent, because it
// was never reported or was removed, it is removed with its last task.
func (sp *specs) removeTask(t *Task) {
	j := t.Job
	sp.dropTask(t)
	if j.absent && len(j.Alternatives[0].Tasks) == 0 {
		sp.remove(j)
	}
}

// dropTask takes a task off its node and out of its open job.
func (sp *specs) dropTask(t *Task) {
	sp.demand.leave(t)
	sp.taskStates.dropLanding(t)
	sp.taskStates.clear(t)
	if slices.Contains(t.Job.Alternatives[0].Tasks, t) { // clear already removed a task that the job does not request any more
		sp.workload.removeTask(t)
	}
}
