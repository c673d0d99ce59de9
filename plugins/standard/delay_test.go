package standard_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// A job with a preemption delay evicts nothing before the delay ends. A patient session
// asks to be run at that time, and the job is tried then, whatever its back-off.
func TestPreemptionDelay(t *testing.T) {
	const delay = 100 * sec
	c := newLiveScheduler(t, gpus("a", 1), enginetest.Job("low").Devices(1).Preemptible().On("a"),
		enginetest.Job("high").Priority(5).Devices(1).Created(1000*sec).PreemptionDelay(delay))
	evicted := func(out engine.Outcome) (n int) {
		for i := range out.Decisions {
			if out.Decisions[i].Action == engine.EvictTask {
				n++
			}
		}
		return n
	}
	for now := int64(0); now < delay; {
		out := c.session(now + 1000*sec - c.now)
		if evicted(out) > 0 {
			t.Fatalf("it evicts after %d", now)
		}
		r := c.engine.Refusal(c.state.Job("job/high"))
		if r == nil || r.Delayed != 1000*sec+delay {
			t.Fatalf("after %d: %+v", now, r)
		}
		if out.NextWake <= c.now || out.NextWake > 1000*sec+delay {
			t.Fatalf("woken at %d", out.NextWake)
		}
		now = out.NextWake - 1000*sec
	}
	if got := evicted(c.session(1000*sec + delay - c.now)); got != 1 {
		t.Errorf("%d evictions when the delay is over", got)
	}
}

// Two replicas of a set have different preemption delays. Only the replica with the delay
// that has ended evicts.
func TestDelaysOfASet(t *testing.T) {
	c := newLiveScheduler(t, gpus("a", 1), enginetest.Job("low").Devices(1).Preemptible().On("a"),
		enginetest.Job("m-0").Set("m", 2).Priority(5).Devices(1).Created(1000*sec).PreemptionDelay(100*sec),
		enginetest.Job("m-1").Set("m", 2).Priority(5).Devices(1).Created(100*sec).PreemptionDelay(100*sec))
	var got []string
	for _, d := range c.session(sec).Decisions {
		if d.Action == engine.EvictTask {
			got = append(got, d.Task.ID()+" for "+d.For)
		}
	}
	if diff := cmp.Diff([]string{"job/low/worker-0 for job/m-1"}, got); diff != "" {
		t.Error(diff)
	}
}
