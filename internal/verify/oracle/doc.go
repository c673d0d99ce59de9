// Package oracle compares the decisions of the engine with an exhaustive search, on
// small clusters.
//
// It draws random clusters, runs a session of the engine with the standard plugins, and
// compares the result with its own implementation of the rules of docs/designs/0004, and
// with a search over all placements and all plans. It does not depend on how the engine
// searches. The only code that it shares with plugins computes the fair shares, which
// have their own tests.
//
// The types form layers. Each type calls only types that this list names before it:
//
//   - objects has what does not change: nodes, queues, the forms and tasks of jobs, budgets.
//   - freeRoom records what is free on nodes and devices, queueUse what the queues hold, and
//     shares compares that with fair shares.
//   - placement records where each task is, and keeps freeRoom and queueUse up to date.
//     history records what the session has done so far.
//   - The rules for plans: ending is the State that a plan leads to. lastResort has rules 4
//     and 5 for one victim, victimRules all rules for one victim, and balance rule 5 for the
//     whole plan. planRules uses all of them to decide whether a plan is legal.
//   - planCosts computes what plans cost. placementSearch tries all placements of tasks, and
//     greedy places one task after the other.
//   - candidates lists what plans might evict and move, search tries all plans, and planner
//     finds the cheapest plan for a job with them.
//   - planChecker checks the plan of each turn of a session, replay applies the turn and
//     checks where tasks are placed, and checker has both.
//   - judge compares each turn with the cheapest plan.
//
// On top of these, Case is drawn and judged, and Report sums up the verdicts. SessionLoop and
// Entitled are separate: they run sessions on a cluster until it is at rest, and check the
// quotas then.
package oracle

import "github.com/berth-project/berth/engine"

// Kind is what a case is about.
type Kind string

// The kinds. In a kind with the name of a plugin, this plugin is the only one that makes
// room. "All plugins" are Consolidate, Reclaim and Preempt.
const (
	Allocate     Kind = "Allocate" // only free room is used
	Consolidate  Kind = "Consolidate"
	Reclaim      Kind = "Reclaim"
	Preempt      Kind = "Preempt"
	Combined     Kind = "Combined"     // plans that need several of all plugins
	Topology     Kind = "Topology"     // gangs that must be in one rack, with all plugins
	Alternatives Kind = "Alternatives" // jobs with several alternatives, with all plugins
	Whole        Kind = "Whole"        // jobs on whole nodes of one group, with all plugins
	Costs        Kind = "Costs"        // victims with costs, with all plugins
)

// Kinds lists every kind.
var Kinds = []Kind{Allocate, Consolidate, Reclaim, Preempt, Combined, Topology, Alternatives, Whole, Costs}

// reasons has the reason with which each plugin that makes room evicts tasks.
var reasons = map[Kind]engine.Reason{Consolidate: "Consolidated", Reclaim: "Reclaimed", Preempt: "Preempted"}

// has reports whether the profile of the kind has the plugin, which is Consolidate, Reclaim or
// Preempt.
func (k Kind) has(plugin Kind) bool {
	switch k {
	case Allocate:
		return false
	case Consolidate, Reclaim, Preempt:
		return k == plugin
	}
	return true
}
