package scenario

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/sim/timeline"
	"github.com/berth-project/berth/plugins/standard"
)

// TestSkippedCyclesChangeNothing compares simulations over time in which cycles are skipped with
// simulations in which every cycle is run.
func TestSkippedCyclesChangeNothing(t *testing.T) {
	files := []string{"../../../examples/timeline", "../../../examples/reclaim", "../../../examples/quickstart"}
	for _, dir := range []string{"time", "reclaim", "preempt", "budgets", "queues", "consolidate"} {
		found, err := filepath.Glob(filepath.Join("../../../scenarios", dir, "*.yaml"))
		if err != nil || len(found) == 0 {
			t.Fatal(dir, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		for _, every := range []time.Duration{700 * time.Millisecond, time.Minute} {
			fast := course(t, file, every, nil)
			slow := course(t, file, every, func(*timeline.Timeline) {})
			if fast != slow {
				t.Errorf("%s, every %s: %s", file, every, firstDifference([]byte(fast), []byte(slow)))
			}
		}
	}
}

// course simulates 200 cycles and returns the result as JSON.
func course(t *testing.T, file string, every time.Duration, watch func(*timeline.Timeline)) string {
	t.Helper()
	b, err := manifest.Load([]string{file})
	if err != nil {
		t.Fatal(err)
	}
	e, err := Engine(standard.Registry(), b)
	if err != nil {
		t.Fatal(err)
	}
	state, err := b.State()
	if err != nil {
		t.Fatal(err)
	}
	c, err := timeline.Run(e, state, timeline.Options{Cycles: 200, Start: b.Now(), Every: int64(every), Grace: int64(every) * 3, Watch: watch})
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.MarshalIndent(c.Result(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
