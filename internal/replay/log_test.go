package replay

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
	"github.com/google/go-cmp/cmp"
)

// logTo returns an Options.Log that writes to the buffer.
func logTo(b *bytes.Buffer) func(cluster.Change) error {
	return func(c cluster.Change) error {
		text, err := cluster.Encode(c)
		b.Write(append(text, '\n'))
		return err
	}
}

func record(t *testing.T, log string) *Recording {
	t.Helper()
	r, err := Record("dir/cluster.jsonl", strings.NewReader(log), RecordOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// decisionsOf returns the decisions of a log, one on each line.
func decisionsOf(t *testing.T, log string) string {
	t.Helper()
	var out strings.Builder
	now := int64(0)
	for _, text := range strings.SplitAfter(log, "\n") {
		if text == "" {
			continue
		}
		c, err := cluster.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		switch c := c.(type) {
		case cluster.SessionOpened:
			now = c.Now
		case cluster.Decided:
			for _, d := range c.Changes {
				if a, ok := d.(cluster.Assign); ok {
					fmt.Fprintln(&out, now, a.Task.ID(), a.Node, a.Devices)
				}
			}
		}
	}
	return out.String()
}

func replayLog(t *testing.T, r *Recording, e *engine.Engine) (*LogRun, string) {
	t.Helper()
	var out strings.Builder
	o := LogOptions{Engine: e, CheckEvery: 3, Clock: func() time.Duration { return 0 }, Decided: func(now int64, decisions []engine.Decision) {
		for i := range decisions {
			d := &decisions[i]
			if d.Action == engine.Bind {
				var held []cluster.Holding
				for _, c := range d.Claims {
					held = append(held, cluster.Holding{Device: fmt.Sprintf("%s-%d", d.Node, c.Device), Milli: c.Milli, Memory: c.Memory})
				}
				fmt.Fprintln(&out, now, d.Task.ID(), d.Node, held)
			}
		}
	}}
	run, err := r.Replay(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return run, out.String()
}

// TestLogRoundTrip writes the log of a replay, and replays the log with the same policy: every decision
// is the same. With another policy, the result is that of the trace with that policy. Backfill is left
// out, because it decides by the run times that the log states and the trace does not.
func TestLogRoundTrip(t *testing.T) {
	s := Synth{Nodes: Machines(6, 8, "L4", 64, 256), Jobs: DefaultRequests(8), Load: 0.95, Mean: time.Hour, Sigma: 1, Length: 15 * time.Hour}
	logs := map[string]string{}
	runs := map[string]*Run{}
	for _, policy := range standard.Policies() {
		var b bytes.Buffer
		runs[policy] = run(t, s.Trace(3), Options{Engine: withoutBackfill(t, policy), Until: int64(s.Length), Log: logTo(&b)})
		logs[policy] = b.String()
	}
	for _, from := range []string{"best-fit", "fill-value"} {
		recording := record(t, logs[from])
		if !near(recording.Run.Mean, runs[from].Mean) || recording.Run.Failed != runs[from].Failed || recording.Cut || recording.Unknown > 0 {
			t.Errorf("%s: recorded mean %v and %d failed, want %v and %d", from, recording.Run.Mean, recording.Run.Failed, runs[from].Mean, runs[from].Failed)
		}
		for _, policy := range standard.Policies() {
			t.Run(from+" "+policy, func(t *testing.T) {
				got, decisions := replayLog(t, recording, withoutBackfill(t, policy))
				if diff := cmp.Diff(decisionsOf(t, logs[policy]), decisions); diff != "" {
					t.Error(diff)
				}
				want := runs[policy]
				if got.Arrived != want.Arrived || got.Failed != want.Failed || len(got.Waits) != len(want.Waits) || !near(got.Mean, want.Mean) {
					t.Errorf("%d arrived, %d failed, %d waits, mean %v; want %d, %d, %d, %v", got.Arrived, got.Failed, len(got.Waits), got.Mean, want.Arrived, want.Failed, len(want.Waits), want.Mean)
				}
			})
		}
	}
}
