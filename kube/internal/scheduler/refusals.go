package scheduler

import (
	"time"

	"github.com/berth-project/berth/cluster"
)

// A binding that the API server refuses, for example because of a webhook, may be refused again.
// Without a delay, the next session would decide the same, and the loop would send bindings as
// fast as they are refused. The State therefore holds the job back for some time, so that others
// can use the room. The time doubles from the second refusal to the last of these.
const (
	firstDelay = 250 * time.Millisecond
	lastDelay  = 30 * time.Second
)

// delayAfter returns how long a job is held back after one more refusal. earlier is how many
// there were before.
func delayAfter(earlier int) time.Duration {
	switch {
	case earlier == 0:
		return time.Nanosecond // it is tried again in the next session
	case earlier < 8:
		return firstDelay << (earlier - 1)
	}
	return lastDelay
}

// heldBack returns the fact about a binding that was refused, with the time until which the job is
// held back.
func heldBack(fact cluster.BindFailed, job *cluster.Job, now time.Time) cluster.BindFailed {
	earlier := 0
	if job != nil && job.BindRefused != nil {
		if until := job.BindRefused.RetryAt; until > now.UnixNano() {
			fact.RetryAt = until // another member of the gang was refused as well
			return fact
		}
		earlier = job.BindRefused.Tries
	}
	fact.RetryAt = now.Add(delayAfter(earlier)).UnixNano()
	return fact
}
