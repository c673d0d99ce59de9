package command

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
)

// The heap may grow to collectHeap bytes between two collections, but by at least collectGrowth percent
// and at most the percentage that was set before the replay. With a percentage alone, either a large
// trace needs too much memory, or a smaller one spends much of its time on collections.
const (
	collectGrowth = 40
	collectHeap   = 1300 << 20
)

// collector decides how often memory is collected while a trace is replayed, unless the variable GOGC
// is set.
type collector struct {
	before int              // the percentage before the replay
	live   []metrics.Sample // how many bytes the last collection left
	seen   uint64           // its value when the percentage was set last
	off    bool
}

// newCollector makes collections as frequent as collectGrowth says.
func newCollector() *collector {
	if os.Getenv("GOGC") != "" {
		return &collector{off: true}
	}
	return &collector{before: debug.SetGCPercent(collectGrowth), live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
}

// adjust sets the percentage if memory was collected since the last call.
func (c *collector) adjust() {
	if c.off {
		return
	}
	metrics.Read(c.live)
	if live := c.live[0].Value.Uint64(); live > 0 && live != c.seen {
		c.seen = live
		debug.SetGCPercent(growthOf(live, c.before))
	}
}

// growthOf returns by how many percent the heap grows until the next collection, if the last one left
// so many bytes.
func growthOf(live uint64, most int) int {
	return max(collectGrowth, min(most, int(collectHeap*100/live)-100))
}

// restore sets the percentage of the time before newCollector.
func (c *collector) restore() {
	if !c.off {
		debug.SetGCPercent(c.before)
	}
}
