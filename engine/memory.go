package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// How long a refused job is left alone if nothing changes that may help it: the
// first time a second, then twice as long each time, up to five minutes.
const (
	firstWait int64 = 1_000_000_000
	longest         = 300 * firstWait
)

// memory is what an engine remembers of refused jobs, so that it need not try
// again what cannot have changed. It is only used for one State at a time, and
// losing it loses nothing but time.
type memory struct {
	state *cluster.State
	jobs  map[string]*memo
}

// memo is a job that was refused.
type memo struct {
	job      *cluster.Job
	refusal  *Refusal
	version  uint64 // of the State, when it was refused
	revision uint64 // of queues and budgets
	stand    stand
	home     cluster.Key // of its set; none: the zero key
	tries    int
	retry    int64 // 0: only when something changes
}

// stand is how many of a job's own tasks are where. What it loses itself leaves
// it with other forms, other domains, and less to keep to.
type stand struct{ chosen, placed, pending int }

func standOf(j *cluster.Job) stand {
	out := stand{chosen: j.Chosen, placed: j.Placed()}
	for _, t := range j.Tasks() {
		if t.Status == cluster.Pending {
			out.pending++
		}
	}
	return out
}

// waits is the refusal of a job that need not be tried again yet, nil if it must.
func (s *Session) waits(job *cluster.Job) *Refusal {
	m := s.recall(job)
	if m == nil || m.retry > 0 && s.Now >= m.retry || s.helped(m) {
		return nil
	}
	r := *m.refusal
	r.Waiting, r.Retry = true, m.retry
	return &r
}

func (s *Session) recall(job *cluster.Job) *memo {
	if !s.options.Patient || s.engine.memory.state != s.State {
		return nil
	}
	m := s.engine.memory.jobs[job.ID]
	if m == nil || m.job != job {
		return nil
	}
	return m
}

// remember keeps the refusal, or forgets the job.
func (s *Session) remember(job *cluster.Job, r *Refusal) {
	if !s.options.Patient || s.err != nil {
		return
	}
	mem := &s.engine.memory
	if mem.state != s.State {
		*mem = memory{state: s.State, jobs: map[string]*memo{}}
	}
	if r == nil {
		delete(mem.jobs, job.ID)
		return
	}
	m := s.recall(job)
	if m == nil {
		m = &memo{job: job}
		mem.jobs[job.ID] = m
	}
	m.refusal, m.version, m.revision = r, s.State.Version(), s.State.Revision()
	m.stand, m.home = standOf(job), s.homeOf(job)
	m.retry = 0
	if !r.Permanent || r.Surplus { // what stands may be placed otherwise, so that surplus is never given up
		m.retry = s.Now + min(longest, firstWait<<min(m.tries, 20))
		r.Retry = m.retry
	}
	m.tries++
}

// forget drops what is remembered of jobs that are gone.
func (s *Session) forget() {
	mem := &s.engine.memory
	if mem.state != s.State {
		return
	}
	for id, m := range mem.jobs {
		if s.State.Job(id) != m.job {
			delete(mem.jobs, id)
		}
	}
}

// helped reports whether something changed that may let the job be placed: new
// terms of a queue or budget, a queue's limit that is not in the way any more, a
// node that takes one of its tasks and has room that it did not have, or where
// its own tasks and those of its set stand. Where a filter looks at more than the node, every change may.
func (s *Session) helped(m *memo) bool {
	if m.revision != s.State.Revision() || m.stand != standOf(m.job) || m.home != s.homeOf(m.job) {
		return true
	}
	if m.version == s.State.Version() {
		return false
	}
	if slices.ContainsFunc(m.job.Tasks(), func(t *cluster.Task) bool { return t.Node != nil && t.Node.SpecVersion() > m.version }) {
		return true // it may be in another domain now
	}
	var asked []*cluster.Shape
	for i := range m.job.Alternatives {
		if m.job.Chosen >= 0 && i != m.job.Chosen || m.job.Chosen < 0 && m.job.Alternatives[i].Running {
			continue
		}
		for _, t := range m.job.Alternatives[i].Tasks {
			if t.Status != cluster.Pending || slices.Contains(asked, t.Shape) {
				continue
			}
			asked = append(asked, t.Shape)
			if s.news(m, t) {
				return true
			}
		}
	}
	return false
}

// news reports whether anything changed for the task.
func (s *Session) news(m *memo, t *cluster.Task) bool {
	if s.before(t) != nil {
		return false // whatever nodes have, it may not have it
	}
	if slices.ContainsFunc(m.refusal.Attempts, func(a Attempt) bool { return a.Before != nil }) {
		return true // this was in the way, for one of its tasks
	}
	if filters, _, _ := s.taskHooks(t); len(filters) > 0 {
		return true
	}
	ask := s.verdicts(t)
	found := false
	s.State.Changed(m.version, func(slot int) {
		if n := s.State.At(slot); !found && n != nil && n.Freed() > m.version {
			rejected, transient := ask(n)
			found = !rejected || m.refusal.Permanent && transient
		}
	})
	return found
}

// homeOf is where the job's set belongs, the zero key where it may go anywhere.
func (s *Session) homeOf(j *cluster.Job) cluster.Key {
	if j.Set.Name != "" {
		if home := s.State.Home(j.Set.Name); home != nil {
			return *home
		}
	}
	return cluster.Key{}
}
