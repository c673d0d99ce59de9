package scheduler

import (
	"errors"
	"testing"
	"time"
)

// TestHealth checks since when something is due, and since when sessions fail.
func TestHealth(t *testing.T) {
	var h Health
	start := time.Unix(1_800_000_000, 0)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	check := func(seconds int, due, failing time.Duration) {
		t.Helper()
		if h.DueFor(at(seconds)) != due || h.FailingFor(at(seconds)) != failing {
			t.Errorf("after %d s: due for %s and failing for %s, want %s and %s", seconds, h.DueFor(at(seconds)), h.FailingFor(at(seconds)), due, failing)
		}
	}
	check(0, 0, 0)
	h.noteDue(true, at(0))
	h.noteDue(true, at(5))
	check(9, 9*time.Second, 0)
	h.noteSession(errors.New("a plugin fails"), at(10))
	check(20, 0, 10*time.Second)
	h.noteDue(true, at(20))
	h.noteSession(errors.New("a plugin fails"), at(21))
	check(30, 0, 20*time.Second)
	h.noteDue(true, at(30))
	h.noteDue(false, at(40)) // another process leads
	check(50, 0, 40*time.Second)
	h.noteSession(nil, at(50))
	check(60, 0, 0)
}
