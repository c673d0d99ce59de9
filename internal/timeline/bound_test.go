package timeline

import (
	"strings"
	"testing"

	"github.com/berth-project/berth/enginetest"
)

// TestTooMuchHappens: what is kept is bounded, and beyond it there is an error, not a crash.
func TestTooMuchHappens(t *testing.T) {
	r := begin(enginetest.Engine(), enginetest.State(enginetest.Node("a"), enginetest.Job("j").Created(2)), Options{Cycles: 9, Every: 1})
	if err := r.step(); err != nil {
		t.Fatal(err)
	}
	r.changes = maxChanges
	if err := r.step(); err != nil { // nothing happens
		t.Fatal(err)
	}
	if err := r.step(); err == nil || !strings.Contains(err.Error(), "have happened by cycle 3; give fewer cycles") {
		t.Error(err)
	}
}
