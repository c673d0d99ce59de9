package scheduler

import (
	"sync/atomic"
	"time"

	"github.com/berth-project/berth/kube/internal/bind"
)

// Health has counts and times for probes and metrics. Its methods are safe for concurrent use.
type Health struct {
	synced, leading, due    atomic.Bool
	turned                  atomic.Int64 // when the loop was last seen, in nanoseconds since 1970
	rejectedFacts           atomic.Int64
	sessions, failed, tried atomic.Int64
	sessionTime             atomic.Int64 // in nanoseconds, of all sessions
	done, refused, notSent  atomic.Int64 // bindings and evictions
}

// Stats are the figures of a Health at one time.
type Stats struct {
	Synced, Leading                   bool
	Due                               bool // there is something to decide
	Turned                            time.Time
	RejectedFacts                     int64
	Sessions, Failed, Tried           int64
	SessionTime                       time.Duration
	Requests, RequestsFailed, NotSent int64
}

// Stats returns the figures.
func (h *Health) Stats() Stats {
	return Stats{
		Synced: h.synced.Load(), Leading: h.leading.Load(), Due: h.due.Load(), Turned: time.Unix(0, h.turned.Load()),
		RejectedFacts: h.rejectedFacts.Load(), Sessions: h.sessions.Load(), Failed: h.failed.Load(), Tried: h.tried.Load(),
		SessionTime: time.Duration(h.sessionTime.Load()),
		Requests:    h.done.Load(), RequestsFailed: h.refused.Load(), NotSent: h.notSent.Load(),
	}
}

func (h *Health) update(s *Scheduler, synced bool) {
	h.synced.Store(synced)
	h.leading.Store(s.options.Held())
	h.due.Store(s.changed)
	h.turned.Store(time.Now().UnixNano())
}

// ended counts a session.
func (h *Health) ended(took time.Duration, tried int) {
	h.sessions.Add(1)
	h.tried.Add(int64(tried))
	h.sessionTime.Add(int64(took))
}

// sent counts a request.
func (h *Health) sent(r *bind.Result) {
	switch r.Outcome {
	case bind.Done:
		h.done.Add(1)
	case bind.Failed:
		h.refused.Add(1)
	default:
		h.notSent.Add(1)
	}
}
