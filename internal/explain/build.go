package explain

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/berth-project/berth/internal/wire"
)

// Report says why a workload is placed where it is, or why it is pending. Its JSON is that of
// wire.Report.
type Report struct {
	wire.Report
	Notes Notes `json:"-"`
}

// Notes are facts that the text of a report needs and its JSON does not have.
type Notes struct {
	BelowMinimum string // a sentence that says since when the workload has run below its minimum; "" if it does not
	Tasks        int    // how many tasks the workload has
	Steps        int    // how many steps it took to find what would help; see whatif.Steps
	// Min is how many tasks must be placed together, and Placed is how many of these could be
	// placed.
	Placed, Min int
	Retired     bool // the workload was retired
	// KeptForm is set if the workload runs in a form in which it would not be placed any more.
	// The last remark says why.
	KeptForm bool
	OwnNodes map[string]bool // the nodes on which other tasks of the workload would be placed
	Groups   []string        // a line for each node group
	Domains  []string        // a line for each topology domain
	// Reasons are sentences that say what its queue holds, and why nothing is evicted for it.
	Reasons []string
	// Evicted and Displaced are the evictions of the report, with what their text needs.
	Evicted, Displaced []Eviction
	// Group and RunnerUp are the titles of the group that was chosen and of the next best.
	Group, RunnerUp string
}

// Eviction is an eviction with what its text needs.
type Eviction struct {
	wire.Eviction
	plan      *engine.PlanSearch
	jobTasks  int      // how many tasks the workload has
	together  []string // workloads that are evicted by the same plan
	protected string   // which workloads were protected, and why
}

// AddEvictions adds the evictions of the workload, and the evictions for it.
func (r *Report) AddEvictions(s *cluster.State, decisions []engine.Decision, ph Phrases) {
	id := r.Workload
	r.Notes.Evicted = ph.evictions(s, decisions, func(d *engine.Decision) bool { return d.Task.Job == id })
	r.Notes.Displaced = ph.evictions(s, decisions, func(d *engine.Decision) bool { return d.For == id })
	r.Evicted, r.Displaced = wire.Map(r.Notes.Evicted, wireEviction), wire.Map(r.Notes.Displaced, wireEviction)
}

func wireEviction(e Eviction) wire.Eviction { return e.Eviction }

// AddGroup adds how the node group was chosen.
func (r *Report) AddGroup(d *engine.Decision) {
	r.Group, r.Notes.Group, r.Notes.RunnerUp = wire.NewGroupChoice(d), GroupTitle(d.Group), ""
	if len(d.Groups) > 1 {
		r.Notes.RunnerUp = GroupTitle(d.Groups[1].Group)
	}
}

// AddBelowMinimum adds since when the job has run below its minimum. It adds nothing if the job
// does not.
func (r *Report) AddBelowMinimum(j *cluster.Job, now int64) {
	if r.Notes.BelowMinimum = belowMinimumText(j, now); r.Notes.BelowMinimum != "" {
		r.BelowMinimumSince = quantity.Time(j.BelowMinimumSince)
	}
}
