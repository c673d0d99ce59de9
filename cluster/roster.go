package cluster

import (
	"fmt"
	"iter"
	"maps"

	"github.com/berth-project/berth/internal/paged"
)

// roster is the table of the jobs and their tasks. Every change of a job gives it a new
// version.
type roster struct {
	journal        *journal
	jobs           map[string]*Job // by ID
	slots          slots[Job]
	pending        []*Job          // in any order: jobs with tasks that are to be placed
	belowMinimum   map[string]*Job // by ID: jobs that run below their minimum
	heldBack       map[string]*Job // by ID: jobs with BindRefused
	earmarked      map[string]*Job // by ID: jobs with Earmarked
	retired        map[string]*Job
	byQueue        map[string]*paged.Table[Job] // by queue, which need not be known: the jobs that name it, in any order
	nominated      map[*Task]bool
	moving         map[*Task]bool       // tasks that have a landing
	releasing      []*Task              // in any order
	earlySightings map[TaskRef]TaskSeen // reports about tasks that are not known yet
}

func newRoster(l *journal) roster {
	return roster{
		journal: l, jobs: map[string]*Job{}, belowMinimum: map[string]*Job{}, heldBack: map[string]*Job{}, earmarked: map[string]*Job{}, retired: map[string]*Job{}, byQueue: map[string]*paged.Table[Job]{},
		nominated: map[*Task]bool{}, moving: map[*Task]bool{}, earlySightings: map[TaskRef]TaskSeen{},
	}
}

// add adds a new job. The caller adds it to the lists.
func (r *roster) add(j *Job) {
	r.jobs[j.ID] = j
	j.slot = int32(r.slots.take(j))
}

// remove removes a job. The caller has taken it out of the lists.
func (r *roster) remove(j *Job) {
	delete(r.jobs, j.ID)
	r.slots.free(int(j.slot))
	r.slots.Touch(int(j.slot))
}

// task returns the task that a decision names. It fails if the task is not known or has
// another UID.
func (r *roster) task(ref TaskRef, uid string) (*Task, error) {
	t := r.Task(ref)
	if t == nil {
		return nil, fmt.Errorf("no task %s", ref.ID())
	}
	if uidsDiffer(t.UID, uid) {
		return nil, fmt.Errorf("task %s was replaced by another one of the same name", ref.ID())
	}
	return t, nil
}

// withJob calls change with the job that a decision names. It fails if the job is not
// known.
func (r *roster) withJob(job string, change func(*Job)) error {
	j := r.jobs[job]
	if j == nil {
		return fmt.Errorf("no job %q", job)
	}
	change(j)
	return nil
}

// listNominated updates the list of nominated tasks after the status of the task changed
// from was.
func (r *roster) listNominated(t *Task, was Status) {
	switch {
	case t.Status == Nominated && t.ShadowOf() == nil:
		r.nominated[t] = true
	case was == Nominated:
		delete(r.nominated, t)
	}
}

func (r *roster) listMoving(t *Task) { keepIf(t.Landing() != nil, r.moving, t, true) }

// keepEarly keeps a report about a task that is not known yet, until the task is known.
func (r *roster) keepEarly(c TaskSeen) {
	was, known := r.earlySightings[c.Task]
	r.earlySightings[c.Task] = c
	if r.journal.recording() {
		r.journal.recordUndo(func() { keepIf(known, r.earlySightings, c.Task, was) })
	}
}

func (r *roster) forgetEarly(ref TaskRef, uid string) {
	if was, known := r.earlySightings[ref]; known && !uidsDiffer(was.UID, uid) {
		delete(r.earlySightings, ref)
		if r.journal.recording() {
			r.journal.recordUndo(func() { r.earlySightings[ref] = was })
		}
	}
}

// listReleasing adds the task to the list of releasing tasks or removes it, according to
// its status. On removal the last task of the list takes its place.
func (r *roster) listReleasing(t *Task) {
	if t.Status == Releasing {
		t.releasing = int32(len(r.releasing))
		r.releasing = append(r.releasing, t)
		return
	}
	last := len(r.releasing) - 1
	r.releasing[t.releasing] = r.releasing[last]
	r.releasing[t.releasing].releasing = t.releasing
	r.releasing[last] = nil
	r.releasing = r.releasing[:last]
}

// list adds the job to the lists of jobs, and unlist removes it from them.
func (r *roster) list(j *Job) {
	list := r.byQueue[j.Queue]
	if list == nil {
		list = &paged.Table[Job]{}
		r.byQueue[j.Queue] = list
	}
	j.queueIndex = int32(list.Len())
	list.Append(j)
	r.listRetired(j)
	r.listBelowMinimum(j)
	r.listHeldBack(j)
}

func (r *roster) unlist(j *Job) {
	r.leaveQueue(j)
	r.listPending(j, false)
	delete(r.retired, j.ID)
	delete(r.belowMinimum, j.ID)
	delete(r.heldBack, j.ID)
}

// inQueue returns the jobs that name the queue, in any order.
func (r *roster) inQueue(name string) iter.Seq[*Job] {
	if list := r.byQueue[name]; list != nil {
		return list.All()
	}
	return func(func(*Job) bool) {}
}

// leaveQueue removes the job from the list of its queue. The last job of the list takes
// its place.
func (r *roster) leaveQueue(j *Job) {
	list := r.byQueue[j.Queue]
	if list.Len() == 1 {
		delete(r.byQueue, j.Queue)
		return
	}
	moved := list.At(list.Len() - 1)
	list.Set(int(j.queueIndex), moved)
	moved.queueIndex = j.queueIndex
	list.RemoveLast()
}

func (r *roster) listRetired(j *Job) { keepIf(j.Retired, r.retired, j.ID, j) }

func (r *roster) listBelowMinimum(j *Job) {
	keepIf(j.BelowMinimumSince != 0 && r.knows(j), r.belowMinimum, j.ID, j)
}

// keepIf sets the key to the value if the condition is true, and deletes it otherwise.
func keepIf[K comparable, V any](condition bool, m map[K]V, key K, value V) {
	if condition {
		m[key] = value
	} else {
		delete(m, key)
	}
}

// knows reports whether the job itself is in State. A job that Job.Shadow made is not.
func (r *roster) knows(j *Job) bool {
	return int(j.slot) < r.slots.table.Len() && r.slots.table.At(int(j.slot)) == j
}

// listPending adds the job to the list of pending jobs or removes it. On removal the last job of
// the list takes its place.
func (r *roster) listPending(j *Job, pending bool) {
	if pending == (j.pendingAt > 0) {
		return
	}
	if pending {
		r.pending = append(r.pending, j)
		j.pendingAt = int32(len(r.pending))
		return
	}
	last := len(r.pending) - 1
	moved := r.pending[last]
	r.pending[j.pendingAt-1], moved.pendingAt = moved, j.pendingAt
	r.pending[last], j.pendingAt = nil, 0
	r.pending = r.pending[:last]
}

// Task implements View.Task.
func (r *roster) Task(ref TaskRef) *Task {
	j := r.jobs[ref.Job]
	if j == nil || ref.Alternative < 0 || ref.Alternative >= len(j.Alternatives) {
		return nil
	}
	return findTask(j.Alternatives[ref.Alternative].Tasks, ref.Name)
}

// findTask returns the task of the name, or nil. The tasks of a role are numbered and follow each
// other, so that the number at the end of a name, from the beginning or the end of the list, is
// where most tasks are. A gang may have many tasks, and each of them is looked up.
func findTask(tasks []*Task, name string) *Task {
	if at := numberOf(name); at >= 0 && at < len(tasks) {
		fromEnd := len(tasks) - 1 + at - tasks[len(tasks)-1].Index
		for _, i := range [...]int{at, fromEnd} {
			if i >= 0 && i < len(tasks) && tasks[i].Name == name {
				return tasks[i]
			}
		}
	}
	for _, t := range tasks {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// numberOf returns the number at the end of a name, or -1.
func numberOf(name string) int {
	const most = 9 // digits
	n, digit := 0, 1
	for i := len(name) - 1; i >= 0 && i >= len(name)-most && name[i] >= '0' && name[i] <= '9'; i-- {
		n += int(name[i]-'0') * digit
		digit *= 10
	}
	if digit == 1 {
		return -1
	}
	return n
}

// clone copies the roster. The copied tasks are on the nodes of the given fleet. The map
// tasks leads from each task to its copy.
func (r *roster) clone(l *journal, f *fleet) (c roster, tasks map[*Task]*Task) {
	c, tasks = newRoster(l), map[*Task]*Task{}
	c.jobs, c.slots = make(map[string]*Job, len(r.jobs)), r.slots.clone()
	for id, j := range r.jobs {
		k := j.clone(f, tasks)
		c.jobs[id] = k
		c.slots.table.Set(int(k.slot), k)
	}
	c.pending, c.belowMinimum, c.retired = c.same(r.pending), c.copiesByID(r.belowMinimum), c.copiesByID(r.retired)
	c.heldBack, c.earmarked = c.copiesByID(r.heldBack), c.copiesByID(r.earmarked)
	for name, jobs := range r.byQueue {
		list := &paged.Table[Job]{}
		for j := range jobs.All() {
			list.Append(c.jobs[j.ID])
		}
		c.byQueue[name] = list
	}
	for t := range r.nominated {
		c.nominated[tasks[t]] = true
	}
	for t := range r.moving {
		c.moving[tasks[t]] = true
	}
	for _, t := range r.releasing {
		c.releasing = append(c.releasing, tasks[t])
	}
	c.earlySightings = maps.Clone(r.earlySightings)
	return c, tasks
}

// same returns the jobs of this roster that have the same IDs as the given jobs of
// another one.
func (r *roster) same(jobs []*Job) []*Job {
	out := make([]*Job, len(jobs))
	for i, j := range jobs {
		out[i] = r.jobs[j.ID]
	}
	return out
}

// copiesByID is same for a map of jobs by ID.
func (r *roster) copiesByID(jobs map[string]*Job) map[string]*Job {
	out := make(map[string]*Job, len(jobs))
	for id := range jobs {
		out[id] = r.jobs[id]
	}
	return out
}
