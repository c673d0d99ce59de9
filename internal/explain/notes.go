package explain

import (
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/wire"
)

// Report is the answer to why a workload is where it is, or is pending. Its JSON is
// that of wire.Report.
type Report struct {
	wire.Report
	Notes Notes `json:"-"`
}

// Notes are what the text of a report needs and its JSON does not have.
type Notes struct {
	Torn  string // a sentence: since when the workload has run below its minimum; "": it has not
	Tasks int    // how many tasks the workload has
	// Placed and Min say how many of the tasks that must be placed together found a place.
	Placed, Min int
	Retired     bool // the workload was retired
	// Kept: the workload runs in a form in which it would not be placed any more. The
	// last remark says why.
	Kept    bool
	Own     map[string]bool // nodes that the workload's own other tasks would take
	Groups  []string        // a line for each node group
	Domains []string        // a line for each topology domain
	// Reasons are sentences: how its queue stands, and why nothing is evicted for it.
	Reasons []string
	// Evicted and Displaced are those of the report, with what their text needs.
	Evicted, Displaced []Eviction
	// Group and RunnerUp are the titles of the group that was chosen and of the next best.
	Group, RunnerUp string
}

// Eviction is an eviction with what its text needs.
type Eviction struct {
	wire.Eviction
	plan   *engine.Weighing
	total  int      // how many tasks the workload has
	also   []string // workloads that are evicted by the same plan
	spared string   // which workloads were protected, and why
}
