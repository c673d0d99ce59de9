package engine

// How long a refused job is left alone if nothing changes that may help it: the
// first time a second, then twice as long each time, up to five minutes.
const (
	firstWait int64 = 1_000_000_000
	longest         = 300 * firstWait
)

// Parked is the back-off of a refused job.
type Parked struct {
	// Tries counts the first refusal, and those at a time when it was to be tried
	// again. One that was tried earlier because something changed does not count.
	Tries   int
	RetryAt int64 // 0: only when something changes
}

// due reports whether the time has come to try again.
func (p Parked) due(now int64) bool { return p.RetryAt > 0 && now >= p.RetryAt }

// refused is the back-off after one more refusal. Where waiting alone does not
// help, there is no time at which the job is tried again.
func (p Parked) refused(now int64, waiting bool) Parked {
	switch {
	case !waiting:
		p.RetryAt = 0
		p.Tries = max(1, p.Tries)
	case p.Tries == 0 || p.RetryAt == 0 || p.due(now):
		p.RetryAt = now + min(longest, firstWait<<min(p.Tries, 20))
		p.Tries++
	}
	return p
}
