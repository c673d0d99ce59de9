package oracle

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets the heap grow further between two collections: the clusters are small, and a
// fourth of the time would be spent on collecting them.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
