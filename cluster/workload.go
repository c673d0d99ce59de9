package cluster

import (
	"slices"
	"strings"
)

func (s *State) insertJob(j *Job) {
	s.roster.jobs[j.ID] = j
	s.roster.seat(j)
	s.list(j)
	s.settle(j)
}

// list adds the job to what is kept about all jobs; unlist takes it out again.
func (s *State) list(j *Job) {
	for a := range j.Alternatives {
		tasks := j.Alternatives[a].Tasks
		for _, t := range tasks {
			t.Shape = s.shapes.intern(t.Shape)
		}
		alike := !slices.ContainsFunc(tasks, func(t *Task) bool { return t.Shape != tasks[0].Shape })
		for _, t := range tasks {
			t.alike = alike
		}
	}
	s.roster.joinQueue(j)
	if j.Retired {
		s.roster.retired[j.ID] = j
	}
	s.sets.enlist(j)
	s.roster.listTorn(j)
}

func (s *State) unlist(j *Job) {
	for a := range j.Alternatives {
		for _, t := range j.Alternatives[a].Tasks {
			s.shapes.drop(t.Shape)
		}
	}
	s.roster.leaveQueue(j)
	s.sets.unlist(j)
	delete(s.roster.retired, j.ID)
	s.roster.listPending(j, false)
	delete(s.roster.torn, j.ID)
}

// deleteJob forgets a job of which no task is on a node.
func (s *State) deleteJob(j *Job) {
	s.unlist(j)
	delete(s.roster.jobs, j.ID)
	s.roster.unseat(j)
}

func (s *State) setTorn(j *Job, since int64) {
	if j.Torn != since {
		to := j.status()
		to.torn = since
		s.update(j, to)
	}
}

// Torn are the jobs that run below their minimum, by ID.
func (s *State) Torn() []*Job { return byID(s.roster.torn) }

func (s *State) displace(j *Job, victims []string) {
	all := slices.Concat(j.Displaced, victims)
	slices.Sort(all)
	if all = slices.Compact(all); len(all) > len(j.Displaced) {
		to := j.status()
		to.displaced = all
		s.update(j, to)
	}
}

// undisplace takes back that the victim was evicted for the job.
func (s *State) undisplace(j *Job, victim string) {
	if i, known := slices.BinarySearch(j.Displaced, victim); known {
		to := j.status()
		to.displaced = slices.Delete(slices.Clone(j.Displaced), i, i+1)
		s.update(j, to)
	}
}

func (s *State) park(j *Job, p *Parked) {
	if p == nil && j.Parked == nil || p != nil && j.Parked != nil && *p == *j.Parked {
		return
	}
	to := j.status()
	if to.parked = nil; p != nil {
		copied := *p
		to.parked = &copied
	}
	s.update(j, to)
}

// update gives the job another status.
func (s *State) update(j *Job, to jobStatus) {
	s.journal.note(rare{job: j, status: j.status()})
	s.setStatus(j, to)
}

// setStatus is update without the journal.
func (s *State) setStatus(j *Job, to jobStatus) {
	retired := j.Retired
	j.Torn, j.Evicted, j.Displaced, j.Parked = to.torn, to.evicted, to.displaced, to.parked
	s.roster.listTorn(j)
	if to.retired != retired {
		s.setRetired(j, to.retired)
	}
}

// admits reports whether the job can be considered: it is known, has as many tasks
// as its minimum, and is in a queue that may have jobs.
func (s *State) admits(j *Job) bool {
	if q := s.tree.byName[j.Queue]; j.absent || q == nil || !q.Leaf() || q.loose {
		return false
	}
	return !j.Open || j.Alternatives[0].Enough(func(*Task) bool { return true })
}

// waits reports whether a task of the chosen alternative is on no node. A job that
// runs waits as well where too many of its tasks failed for its minimum.
func (j *Job) waits() bool {
	if len(j.Alternatives) == 1 && j.ended == 0 {
		return j.attached < len(j.Tasks())
	}
	return slices.ContainsFunc(j.Tasks(), func(t *Task) bool { return !t.started() }) || // tasks of others may be seen on nodes
		j.ended > 0 && j.Running() && !j.Stands()
}

// settle takes note that the job changed, and keeps the list of pending jobs in
// step with its tasks.
func (s *State) settle(j *Job) {
	if !s.roster.knows(j) {
		return
	}
	s.roster.recent.touch(j.slot)
	s.roster.listPending(j, j.waits() && !j.Retired && s.admits(j))
}

// Pending are the jobs with tasks that are nowhere yet, by ID.
func (s *State) Pending() []*Job { return byID(s.roster.pending) }

// Waits reports whether the job is one of those.
func (s *State) Waits(j *Job) bool { return j.pending && s.roster.knows(j) }

// Job finds a job by ID, nil if there is none.
func (s *State) Job(id string) *Job { return s.roster.jobs[id] }

// Task finds a task by its name, nil if there is none.
func (s *State) Task(r TaskRef) *Task { return s.roster.Task(r) }

// Jobs are all jobs, by ID.
func (s *State) Jobs() []*Job { return byID(s.roster.jobs) }

func byID(jobs map[string]*Job) []*Job {
	out := make([]*Job, 0, len(jobs))
	for _, j := range jobs {
		out = append(out, j)
	}
	slices.SortFunc(out, func(a, b *Job) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// Nominated are the tasks that wait for reserved room, by ID.
func (s *State) Nominated() []*Task { return byTaskID(s.roster.nominated) }

func byTaskID(tasks map[*Task]bool) []*Task {
	out := make([]*Task, 0, len(tasks))
	for t := range tasks {
		out = append(out, t)
	}
	slices.SortFunc(out, (*Task).compare)
	return out
}
