package cluster

import (
	"fmt"
	"slices"
	"strings"
)

// AddJob takes a job into the books; its tasks are pending. Shapes are interned here.
func (s *State) AddJob(j *Job) error {
	if s.jobs[j.ID] != nil {
		return fmt.Errorf("%s is already there", j.ID)
	}
	if j.Queue == "" {
		j.Queue = DefaultQueue
	}
	switch q := s.queues[j.Queue]; {
	case q == nil:
		return fmt.Errorf("%s: no queue %q", j.ID, j.Queue)
	case !q.Leaf():
		return fmt.Errorf("%s: queue %q has queues below it; jobs go into those", j.ID, j.Queue)
	}
	if len(j.Alternatives) == 0 {
		return fmt.Errorf("%s has no tasks", j.ID)
	}
	for _, alt := range j.Alternatives {
		if alt.Min < 1 || alt.Min > len(alt.Tasks) {
			return fmt.Errorf("%s: a minimum of %d for %d tasks", j.ID, alt.Min, len(alt.Tasks))
		}
		if err := alt.checkSubgroups(); err != nil {
			return fmt.Errorf("%s: %w", j.ID, err)
		}
	}
	j.Chosen, j.attached, j.expected = -1, 0, 0
	for a := range j.Alternatives {
		for _, t := range j.Alternatives[a].Tasks {
			t.Job, t.Alternative = j, a
			t.ID = j.ID + "/" + t.Name
		}
	}
	s.insertJob(j)
	s.cold(func() { s.deleteJob(j) })
	return nil
}

func (s *State) insertJob(j *Job) {
	s.jobs[j.ID] = j
	for a := range j.Alternatives {
		for _, t := range j.Alternatives[a].Tasks {
			t.Shape = s.Intern(*t.Shape)
		}
	}
	s.seatJob(j)
	s.enlist(j)
	s.listTorn(j)
	s.settle(j)
}

// deleteJob forgets a job of which no task is on a node.
func (s *State) deleteJob(j *Job) {
	for a := range j.Alternatives {
		for _, t := range j.Alternatives[a].Tasks {
			s.Drop(t.Shape)
		}
	}
	delete(s.jobs, j.ID)
	if set := s.sets[j.Set.Name]; set != nil && j.Retired {
		set.retired--
	}
	s.dismiss(j)
	delete(s.retired, j.ID)
	delete(s.pending, j.ID)
	delete(s.torn, j.ID)
	s.unseatJob(j)
}

// checkSubgroups makes sure that every subgroup can have its minimum.
func (a *Alternative) checkSubgroups() error {
	members := make([]int, len(a.Subgroups))
	for _, t := range a.Tasks {
		if t.Subgroup < 0 || t.Subgroup > len(members) {
			return fmt.Errorf("task %s is in a subgroup that is not there", t.Name)
		}
		if t.Subgroup > 0 {
			members[t.Subgroup-1]++
		}
	}
	for i, g := range a.Subgroups {
		if g.Min < 0 || g.Min > members[i] {
			return fmt.Errorf("subgroup %s: a minimum of %d for %d tasks", g.Name, g.Min, members[i])
		}
	}
	return nil
}

// RemoveJob ends a job: its tasks leave their nodes.
func (s *State) RemoveJob(id string) error {
	j := s.jobs[id]
	if j == nil {
		return fmt.Errorf("no workload %q", id)
	}
	for a := range j.Alternatives {
		for _, t := range j.Alternatives[a].Tasks {
			s.Strand(t)
			s.Clear(t)
		}
	}
	if set := s.sets[j.Set.Name]; set != nil && len(set.jobs)+set.retired == 1 {
		s.keepGroup(set, nil) // the set is forgotten with its last job; an undo finds its group here
	}
	s.deleteJob(j)
	s.cold(func() { s.insertJob(j) })
	return nil
}

// Choose fixes the alternative that the job's tasks are placed from; -1: none.
func (s *State) Choose(j *Job, alternative int) {
	was := j.Chosen
	s.cold(func() { s.choose(j, was) })
	s.choose(j, alternative)
}

// SetTorn notes since when the job runs below its minimum; 0: it does not.
func (s *State) SetTorn(j *Job, since int64) {
	if j.Torn != since {
		to := j.status()
		to.torn = since
		s.update(j, to)
	}
}

// Torn are the jobs that run below their minimum, by ID.
func (s *State) Torn() []*Job { return byID(s.torn) }

func (s *State) listTorn(j *Job) {
	if j.Torn != 0 && s.jobs[j.ID] == j {
		s.torn[j.ID] = j
	} else {
		delete(s.torn, j.ID)
	}
}

// Displace notes that the victim was evicted for the job: it is not evicted for
// that job again.
func (s *State) Displace(j *Job, victim string) {
	if i, known := slices.BinarySearch(j.Displaced, victim); !known {
		to := j.status()
		to.displaced = slices.Insert(slices.Clone(j.Displaced), i, victim)
		s.update(j, to)
	}
}

// update gives the job another status.
func (s *State) update(j *Job, to jobStatus) {
	if s.marks > 0 {
		s.journal = append(s.journal, record{job: j, status: j.status()})
	}
	s.setStatus(j, to)
}

// setStatus is update without the journal.
func (s *State) setStatus(j *Job, to jobStatus) {
	retired := j.Retired
	j.Torn, j.Displaced = to.torn, to.displaced
	s.listTorn(j)
	if to.retired != retired {
		s.setRetired(j, to.retired)
	}
}

// Restart makes a job ready to be placed anew, in whichever form: a gang below
// its minimum is no gang. Promises are taken back, and what runs is evicted; it
// is returned, for it holds its room until it has left.
func (s *State) Restart(j *Job) []*Task {
	var evicted []*Task
	for _, t := range j.Tasks() {
		s.Strand(t)
		switch t.Status {
		case Nominated:
			s.Clear(t)
		case Bound:
			if s.Evict(t) == nil {
				evicted = append(evicted, t)
			}
		}
	}
	return evicted
}

// settle takes note that the job changed, and keeps the list of pending jobs in
// step with its tasks.
func (s *State) settle(j *Job) {
	if s.jobs[j.ID] != j {
		return // a shadow is in nobody's books
	}
	s.recentJobs.touch(j.slot)
	if j.attached < len(j.Tasks()) && !j.Retired {
		s.pending[j.ID] = j
	} else {
		delete(s.pending, j.ID)
	}
}

// Pending are the jobs with tasks that are nowhere yet, by ID.
func (s *State) Pending() []*Job { return byID(s.pending) }

// Waits reports whether the job is one of those.
func (s *State) Waits(j *Job) bool { return s.pending[j.ID] == j }

// Job finds a job by ID, nil if there is none.
func (s *State) Job(id string) *Job { return s.jobs[id] }

// Task finds a task by its name, nil if there is none.
func (s *State) Task(r TaskRef) *Task {
	j := s.jobs[r.Job]
	if j == nil || r.Alternative < 0 || r.Alternative >= len(j.Alternatives) {
		return nil
	}
	for _, t := range j.Alternatives[r.Alternative].Tasks {
		if t.Name == r.Name {
			return t
		}
	}
	return nil
}

// Jobs are all jobs, by ID.
func (s *State) Jobs() []*Job { return byID(s.jobs) }

func byID(jobs map[string]*Job) []*Job {
	out := make([]*Job, 0, len(jobs))
	for _, j := range jobs {
		out = append(out, j)
	}
	slices.SortFunc(out, func(a, b *Job) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// Nominated are the tasks that wait for promised room, by ID.
func (s *State) Nominated() []*Task { return byTaskID(s.nominated) }

func byTaskID(tasks map[string]*Task) []*Task {
	out := make([]*Task, 0, len(tasks))
	for _, t := range tasks {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *Task) int { return strings.Compare(a.ID, b.ID) })
	return out
}
