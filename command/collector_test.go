package command

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestCollector(t *testing.T) {
	for _, tt := range []struct {
		live uint64
		want int
	}{
		{1 << 20, 300}, {300 << 20, 300}, {400 << 20, 225}, {800 << 20, 62}, {1000 << 20, 40}, {16 << 30, 40},
	} {
		if got := growthOf(tt.live, 300); got != tt.want {
			t.Errorf("%d MiB are left: the heap grows by %d %%, want %d", tt.live>>20, got, tt.want)
		}
	}

	t.Setenv("GOGC", "")
	first := debug.SetGCPercent(250)
	defer debug.SetGCPercent(first)
	set := func() int {
		now := debug.SetGCPercent(100)
		debug.SetGCPercent(now)
		return now
	}
	c := newCollector()
	if set() != collectGrowth {
		t.Errorf("the percentage is %d before the first collection, want %d", set(), collectGrowth)
	}
	runtime.GC()
	c.adjust()
	if set() != 250 {
		t.Errorf("the percentage is %d with a small heap, want 250", set())
	}
	c.restore()
	if set() != 250 {
		t.Errorf("the percentage is %d after the replay, want 250", set())
	}
	t.Setenv("GOGC", "70")
	c = newCollector()
	c.adjust()
	c.restore()
	if set() != 250 {
		t.Errorf("the percentage is %d although GOGC is set, want 250", set())
	}
}
