package timeline

import (
	"strings"
	"testing"
	"time"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// TestTooManyChanges checks that the number of recorded changes is limited, and that
// a simulation that exceeds it ends with an error.
func TestTooManyChanges(t *testing.T) {
	r := newRunner(enginetest.Engine(), enginetest.State(enginetest.Node("a"), enginetest.Job("j").Created(2)), Options{Cycles: 9, Every: 1, Watch: func(*Timeline) {}})
	if err := r.step(); err != nil {
		t.Fatal(err)
	}
	r.changes = maxChanges
	if err := r.step(); err != nil { // nothing happens
		t.Fatal(err)
	}
	if err := r.step(); err == nil || !strings.Contains(err.Error(), "changes have happened by cycle 3; use fewer or longer cycles") {
		t.Error(err)
	}
}

// sessions is a plugin that counts the sessions.
type sessions struct{ n *int }

func (sessions) Name() string                    { return "sessions" }
func (s sessions) OnSessionOpen(*engine.Session) { *s.n++ }

// TestSkippedCycles checks that cycles in which nothing can happen take no session.
func TestSkippedCycles(t *testing.T) {
	n := 0
	state := enginetest.State(enginetest.Node("a").CPU(1, "1Gi"), enginetest.Job("j").CPU(1, "1Gi").RunFor(int64(time.Hour)), enginetest.Job("k").CPU(1, "1Gi"))
	c, err := Run(enginetest.Engine(enginetest.Fit(), sessions{&n}), state, Options{Cycles: MaxCycles, Every: 1})
	if err != nil {
		t.Fatal(err)
	}
	if c.Cycle != MaxCycles || n > 10 {
		t.Errorf("%d sessions in %d cycles, want at most 10 in %d", n, c.Cycle, MaxCycles)
	}
}
