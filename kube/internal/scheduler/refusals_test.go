package scheduler

import (
	"testing"
	"time"

	"github.com/berth-project/berth/cluster"
)

// TestHeldBack checks that the delay grows up to its limit, that the members of a gang that are
// refused together count once, and that a job that was bound begins anew.
func TestHeldBack(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	after := func(p *cluster.Parked) time.Duration {
		return time.Unix(0, heldBack(cluster.BindFailed{}, &cluster.Job{JobDetails: &cluster.JobDetails{BindRefused: p}}, now).RetryAt).Sub(now)
	}
	total := time.Duration(0)
	for n := range 12 {
		d := after(&cluster.Parked{Tries: n, RetryAt: now.UnixNano() - 1})
		if n == 1 && d != firstDelay || d > lastDelay || n >= 8 && d != lastDelay {
			t.Errorf("the delay after %d refusals is %s", n, d)
		}
		total += d
	}
	if total < 2*time.Minute {
		t.Errorf("12 refusals take %s", total)
	}
	if d := after(nil); d <= 0 || d > time.Millisecond {
		t.Errorf("the delay after the first refusal is %s", d)
	}
	if d := after(&cluster.Parked{Tries: 5, RetryAt: now.UnixNano() + 7}); d != 7 {
		t.Errorf("the delay after a refusal during a back-off is %s", d)
	}
}
