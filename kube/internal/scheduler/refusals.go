package scheduler

import (
	"time"

	"github.com/berth-project/berth/cluster"
)

// refusals delays the facts about bindings of pods that the API server refuses again and again,
// for example because of a webhook. The State takes the pod for Assumed until then. Without the
// delay, the next session would decide the same, and the loop would send bindings as fast as
// they are refused.
type refusals struct {
	counts  map[string]int // by the UID of a pod: how many bindings were refused since one was carried out
	waiting []refusal      // in the order of arrival
}

type refusal struct {
	fact  cluster.Change
	until time.Time
}

// The delay doubles from the second refusal to the last of these.
const (
	firstDelay = 250 * time.Millisecond
	lastDelay  = 30 * time.Second
)

// delay counts a refusal of the pod, and returns how long the fact about it is delayed.
func (r *refusals) delay(uid string) time.Duration {
	if r.counts == nil {
		r.counts = map[string]int{}
	}
	r.counts[uid]++
	switch n := r.counts[uid]; {
	case n == 1:
		return 0
	case n < 9:
		return firstDelay << (n - 2)
	}
	return lastDelay
}

// forget ends the count of the pod.
func (r *refusals) forget(uid string) { delete(r.counts, uid) }

// add keeps the fact until due returns it.
func (r *refusals) add(fact cluster.Change, until time.Time) {
	r.waiting = append(r.waiting, refusal{fact, until})
}

// due removes and returns the facts whose delay has ended.
func (r *refusals) due(now time.Time) []cluster.Change {
	var out []cluster.Change
	kept := r.waiting[:0]
	for _, f := range r.waiting {
		if f.until.After(now) {
			kept = append(kept, f)
		} else {
			out = append(out, f.fact)
		}
	}
	clear(r.waiting[len(kept):])
	r.waiting = kept
	return out
}

// waitsFor reports whether the fact about a task of the job is delayed.
func (r *refusals) waitsFor(job string) bool {
	for _, f := range r.waiting {
		if b, is := f.fact.(cluster.BindFailed); is && b.Task.Job == job {
			return true
		}
	}
	return false
}

// next returns when the next delay ends, and false if no fact is delayed.
func (r *refusals) next() (at time.Time, found bool) {
	for _, f := range r.waiting {
		if !found || f.until.Before(at) {
			at, found = f.until, true
		}
	}
	return at, found
}
