package engine

import "github.com/berth-project/berth/cluster"

// How long a refused job is left alone if nothing changes that may help it: the
// first time a second, then twice as long each time, up to five minutes.
const (
	firstBackOff   int64 = 1_000_000_000
	longestBackOff       = 300 * firstBackOff
)

// due reports whether the time has come to try again.
func isDue(p cluster.Parked, now int64) bool { return p.RetryAt > 0 && now >= p.RetryAt }

// refusedAgain is the back-off after one more refusal. Tries counts the first
// refusal, and those at a time when the job was to be tried again; one that was tried
// earlier because something changed does not count. Where waiting alone does not
// help, there is no time at which the job is tried again.
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

// write keeps the job's back-off in the State, so that a restart does not
// lose it.
func (b *backlog) saveBackOff(c *clerk, job *cluster.Job) {
	var p *cluster.Parked
	if e := b.waiters[job.Slot()]; e != nil && e.bucket != nil {
		p = &e.bucket.parked
	}
	if p == nil && job.Parked == nil || p != nil && job.Parked != nil && *p == *job.Parked {
		return
	}
	stmt := c.begin()
	stmt.position()
	stmt.tx.Park(job, p)
	stmt.release()
	stmt.end()
}
