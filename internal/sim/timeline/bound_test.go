package timeline

import (
	"strings"
	"testing"

	"github.com/berth-project/berth/enginetest"
)

// TestTooManyChanges checks that the number of recorded changes is limited, and that
// a simulation that exceeds it ends with an error.
func TestTooManyChanges(t *testing.T) {
	r := newRunner(enginetest.Engine(), enginetest.State(enginetest.Node("a"), enginetest.Job("j").Created(2)), Options{Cycles: 9, Every: 1})
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
