package scheduler

import (
	"testing"
	"time"

	"github.com/berth-project/berth/cluster"
)

// TestRefusals checks that the delay grows up to its limit, that a fact is returned once and not
// before its delay has ended, and that a pod that was bound begins anew.
func TestRefusals(t *testing.T) {
	var r refusals
	total := time.Duration(0)
	for n := 1; n <= 12; n++ {
		d := r.delay("u1")
		if n == 1 && d != 0 || n == 2 && d != firstDelay || d > lastDelay || n >= 9 && d != lastDelay {
			t.Errorf("the delay after %d refusals is %s", n, d)
		}
		total += d
	}
	if total < 2*time.Minute {
		t.Errorf("12 refusals take %s", total)
	}
	if r.forget("u1"); r.delay("u1") != 0 {
		t.Error("the first refusal is delayed")
	}
	now := time.Unix(1_800_000_000, 0)
	early, late := cluster.BindFailed{UID: "early"}, cluster.BindFailed{UID: "late"}
	r.add(late, now.Add(2*time.Second))
	r.add(early, now.Add(time.Second))
	if at, found := r.next(); !found || !at.Equal(now.Add(time.Second)) {
		t.Errorf("the next delay ends at %s (%t)", at, found)
	}
	for after, want := range []string{"", "early", "late", ""} {
		got := ""
		for _, f := range r.due(now.Add(time.Duration(after) * time.Second)) {
			got += f.(cluster.BindFailed).UID
		}
		if got != want {
			t.Errorf("after %d s, %q is due, want %q", after, got, want)
		}
	}
	if _, found := r.next(); found {
		t.Error("a fact is delayed after all were due")
	}
}
