package scheduler

import (
	"sync/atomic"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/internal/live"
	"github.com/berth-project/berth/kube/internal/bind"
	"github.com/berth-project/berth/kube/internal/metrics"
)

// Health is what probes ask for. Its methods are safe for concurrent use.
type Health struct {
	synced atomic.Bool
	turned atomic.Int64 // when the loop ended its last turn, in nanoseconds since 1970
	// due is since when something is to be decided and no session has ended, and failing since
	// when every session has ended with an error, in nanoseconds since 1970; 0: neither.
	due, failing atomic.Int64
}

// Synced reports whether all objects that existed at the start are known.
func (h *Health) Synced() bool { return h.synced.Load() }

// Turned returns when the loop ended its last turn, which includes a session if something was
// to be decided. It is the time of the start before the first turn.
func (h *Health) Turned() time.Time { return time.Unix(0, h.turned.Load()) }

// DueFor returns for how long something has had to be decided without a session that ended. It is 0
// for a process that is not the leader.
func (h *Health) DueFor(now time.Time) time.Duration { return sinceOf(&h.due, now) }

// FailingFor returns for how long every session has ended with an error.
func (h *Health) FailingFor(now time.Time) time.Duration { return sinceOf(&h.failing, now) }

func sinceOf(at *atomic.Int64, now time.Time) time.Duration {
	since := at.Load()
	if since == 0 {
		return 0
	}
	return now.Sub(time.Unix(0, since))
}

// note keeps the time of the first of several calls with is set.
func note(at *atomic.Int64, is bool, now time.Time) {
	if !is {
		at.Store(0)
	} else {
		at.CompareAndSwap(0, now.UnixNano())
	}
}

// noteDue notes whether something is to be decided by this process.
func (h *Health) noteDue(is bool, now time.Time) { note(&h.due, is, now) }

// noteSession notes that a session has ended.
func (h *Health) noteSession(err error, now time.Time) {
	note(&h.failing, err != nil, now)
	h.due.Store(0)
}

// endTurn notes that a turn of the loop has ended.
func (s *Scheduler) endTurn(synced bool) {
	s.health.synced.Store(synced)
	s.health.turned.Store(time.Now().UnixNano())
	s.metrics.Turn(s.options.Held(), len(s.dispatcher.toBind)+len(s.dispatcher.toPrepare), len(s.dispatcher.toEvict))
}

// measure counts what a session decided.
func (s *Scheduler) measure(out *engine.Outcome, took time.Duration, err error) {
	s.metrics.Session(took, err)
	each := took / time.Duration(max(1, len(out.Tried)))
	bound, victims := map[string]int{}, map[string]int{}
	for i := range out.Decisions {
		switch d := &out.Decisions[i]; d.Action {
		case engine.Bind:
			bound[profileOf(s.leader.State().Task(d.Task), &s.options.Feed)]++
		case engine.EvictTask:
			victims[d.For]++
		}
	}
	for profile, n := range bound {
		s.metrics.Attempts(metrics.Scheduled, profile, n, each)
	}
	for _, n := range victims {
		s.metrics.Preempted(n)
	}
	for _, r := range out.Refusals {
		pods := map[string]int{}
		if job := s.leader.State().Job(r.Job); job != nil {
			for _, t := range job.Tasks() {
				if t.Status == cluster.Pending {
					pods[profileOf(t, &s.options.Feed)]++
				}
			}
		}
		for profile, n := range pods {
			s.metrics.Attempts(metrics.Unschedulable, profile, n, each)
		}
	}
	if err != nil {
		s.metrics.Attempts(metrics.Error, s.options.Feed.SchedulerNames[0], 1, each)
	}
}

// profileOf returns the name of the profile that decides about the task, which may be nil.
func profileOf(t *cluster.Task, o *feed.Options) string {
	if t == nil || t.Shape.Profile == "" {
		return o.SchedulerNames[0]
	}
	return t.Shape.Profile
}

// measureRequest counts a binding or an eviction.
func (s *Scheduler) measureRequest(r *bind.Result) {
	kind := metrics.Binding
	switch {
	case r.Evicts:
		kind = metrics.Eviction
	case r.Prepares:
		kind = metrics.Preparation
	}
	s.metrics.Request(kind, r.Outcome.String(), r.Took)
	if pod := s.objects.pod(r.Pod.Task); pod != nil && !r.Evicts && r.Outcome == bind.Done {
		s.metrics.Bound(time.Since(pod.CreationTimestamp.Time))
	}
}

// pending counts pending pods. It may be called from any goroutine.
func pending(f *live.Follower) metrics.Pending {
	var out metrics.Pending
	view, err := f.View()
	if err != nil {
		return out
	}
	for _, j := range view.Jobs() {
		pods := 0
		for _, t := range j.Tasks {
			if t.Status == cluster.Pending {
				pods++
			}
		}
		if j.Refusal != nil {
			out.Unschedulable += pods
		} else {
			out.Active += pods
		}
	}
	return out
}
