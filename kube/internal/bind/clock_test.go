package bind_test

import (
	"time"

	"k8s.io/utils/clock"
)

// epoch is the time that the instant clock shows.
var epoch = time.Unix(1_800_000_000, 0)

type real = clock.RealClock

func (instant) Now() time.Time                { return epoch }
func (instant) Since(time.Time) time.Duration { return 0 }

func (instant) After(time.Duration) <-chan time.Time {
	c := make(chan time.Time, 1)
	c <- epoch
	return c
}
