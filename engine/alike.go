package engine

import (
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// denied holds the refusals of jobs in this session. Until the session makes another decision
// or a plugin publishes a number, an interchangeable job is refused for the same reason, so it
// is not tried. Patient sessions share only refusals of replicas of one set, because they keep
// other jobs that are alike in buckets.
type denied struct {
	refusals map[deniedKey][]deniedJob
	asOf     deniedAsOf // when the first of these refusals was added
}

// deniedAsOf is the value of clerk.decided, and the epoch of the index.
type deniedAsOf struct {
	decided int
	epoch   uint64 // of filters and of scores together
}

// shareRefusal returns the refusal of an interchangeable job, if there is one, and otherwise
// what try returns. A Twin session calls try in any case, and fails if the refusal must not be
// shared.
func shareRefusal(s *Session, job *cluster.Job, try func() *Refusal) *Refusal {
	if job.Set.Name == "" && s.options.Patient {
		return try()
	}
	now, usable := deniedAsOf{s.clerk.decided, s.engine.index.epochs()}, s.finder.keeper.usable(job)
	shared := s.denied.refusalFor(job, usable, now)
	if shared != nil && s.options.Search != Twin {
		return shared
	}
	s.heaps.gaveUp = false
	refusal := try()
	switch {
	case s.fault.err != nil || refusal.isOwn():
	case shared != nil && (refusal == nil || refusal.Reason != shared.Reason):
		s.fault.fail("engine", "a job that differs from %s only in name and age was refused for %s; the answers of filters must depend on neither", job.ID, shared.Reason)
	case shared == nil && refusal != nil && !s.heaps.gaveUp:
		now.epoch = s.engine.index.epochs()
		s.denied.add(job, usable, refusal, now)
	}
	return refusal
}

// isOwn reports whether the refusal is about the job alone, by Rejection.Own.
func (r *Refusal) isOwn() bool {
	return r != nil && slices.ContainsFunc(r.Attempts, func(a Attempt) bool { return a.Before != nil && a.Before.Own })
}

type deniedJob struct {
	job     *cluster.Job
	refusal *Refusal
}

// deniedKey has some of what interchangeable jobs have in common, so that few jobs have to be
// compared. Jobs of different sets are not interchangeable.
type deniedKey struct {
	queue, namespace, set string
	usable                string // see keeper.usable
	priority              int32
	preemptible           bool
	shape                 *cluster.Shape // of the first task; nil if there is none
}

// maxDenied is how many refusals are kept for one key.
const maxDenied = 16

func deniedKeyOf(j *cluster.Job, usable string) deniedKey {
	k := deniedKey{usable: usable, queue: j.Queue, namespace: j.Namespace, set: j.Set.Name, priority: j.Priority, preemptible: j.Preemptible}
	if len(j.Alternatives) > 0 && len(j.Alternatives[0].Tasks) > 0 {
		k.shape = j.Alternatives[0].Tasks[0].Shape
	}
	return k
}

// refusalFor returns the refusal of an interchangeable job, rewritten for the job. It returns
// nil if the job must be tried.
func (d *denied) refusalFor(job *cluster.Job, usable string, now deniedAsOf) *Refusal {
	if len(d.refusals) == 0 || d.asOf != now {
		return nil
	}
	for _, known := range d.refusals[deniedKeyOf(job, usable)] {
		if interchangeable(known.job, job) {
			return known.refusal.about(job)
		}
	}
	return nil
}

// about returns a copy of the refusal for another job, which must be interchangeable
// with the refused one.
func (r *Refusal) about(job *cluster.Job) *Refusal {
	out := *r
	out.Job, out.Retry = job.ID, 0
	out.Attempts = slices.Clone(r.Attempts)
	for i := range out.Attempts {
		out.Attempts[i].Task.Job = job.ID // interchangeable jobs have tasks that are equal in all else
	}
	return &out
}

// add remembers the refusal for interchangeable jobs.
func (d *denied) add(job *cluster.Job, usable string, r *Refusal, now deniedAsOf) {
	if r.Surplus || job.Chosen >= 0 {
		return
	}
	switch {
	case d.refusals == nil:
		d.refusals = map[deniedKey][]deniedJob{}
	case d.asOf != now:
		clear(d.refusals)
	}
	d.asOf = now
	if key := deniedKeyOf(job, usable); len(d.refusals[key]) < maxDenied {
		d.refusals[key] = append(d.refusals[key], deniedJob{job, r})
	}
}

// interchangeable reports whether the two jobs are equal in everything that a decision
// depends on. Neither has a chosen alternative or a task that ended, and their alternatives are
// equal.
func interchangeable(a, b *cluster.Job) bool {
	return a != b && a.Chosen < 0 && b.Chosen < 0 && a.Ended()+b.Ended() == 0 && a.DelayEnds() == b.DelayEnds() &&
		a.Set.Desired == b.Set.Desired && a.Queue == b.Queue && a.Namespace == b.Namespace && a.Priority == b.Priority && a.Preemptible == b.Preemptible &&
		len(a.Affinity)+len(b.Affinity)+len(a.Displaced)+len(b.Displaced) == 0 && maps.Equal(a.Labels, b.Labels) &&
		slices.EqualFunc(a.Alternatives, b.Alternatives, sameAlternative)
}

func sameAlternative(a, b cluster.Alternative) bool {
	return a.Name == b.Name && a.Min == b.Min && a.Running == b.Running && len(a.Subgroups)+len(b.Subgroups) == 0 && a.Topology.None() && b.Topology.None() &&
		sameWholeNodes(a.Whole, b.Whole) &&
		slices.EqualFunc(a.Tasks, b.Tasks, func(s, t *cluster.Task) bool {
			return s.Shape == t.Shape && s.Name == t.Name && s.Role == t.Role && s.Index == t.Index
		})
}

func sameWholeNodes(a, b *cluster.WholeNodes) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	if (x.Only == nil) != (y.Only == nil) || x.Only != nil && *x.Only != *y.Only {
		return false
	}
	x.Only, y.Only = nil, nil
	return x == y
}
