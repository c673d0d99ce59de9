package engine

import "github.com/berth-project/berth/cluster"

// The back-off of a refused job, in nanoseconds, if nothing changes that may help it: one
// second after the first refusal, then twice as long each time, up to five minutes.
const (
	firstBackOff   int64 = 1_000_000_000
	longestBackOff       = 300 * firstBackOff
)

// isDue reports whether the back-off is over.
func isDue(p cluster.Parked, now int64) bool { return p.RetryAt > 0 && now >= p.RetryAt }

// refusedAgain returns the back-off after one more refusal. If waiting is false, waiting alone
// does not help: RetryAt is then 0, and Tries is at least 1 and otherwise unchanged. If
// waiting is true, Tries grows by 1 and a new back-off begins after the first refusal, after
// a refusal at or after RetryAt, and after a refusal that follows one with RetryAt 0. A
// refusal before RetryAt, of a job that was tried because something changed, changes nothing.
func refusedAgain(p cluster.Parked, now int64, waiting bool) cluster.Parked {
	switch {
	case !waiting:
		p.RetryAt = 0
		p.Tries = max(1, p.Tries)
	case p.Tries == 0 || p.RetryAt == 0 || isDue(p, now):
		p.RetryAt = now + min(longestBackOff, firstBackOff<<min(p.Tries, 20))
		p.Tries++
	}
	return p
}

// saveBackOff writes the job's back-off to the State, so that it survives a restart.
func (b *backlog) saveBackOff(c *clerk, job *cluster.Job) {
	var p *cluster.Parked
	if e := b.waiters.At(job.Slot()); e != nil && e.bucket != nil {
		p = &e.bucket.parked
	}
	if p == nil && job.Parked == nil || p != nil && job.Parked != nil && *p == *job.Parked {
		return
	}
	tx := c.state.Begin()
	tx.Park(job, p)
	c.end(&tx)
}
