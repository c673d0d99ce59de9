// Package oracle compares the decisions of the engine with an exhaustive search, on
// small clusters.
//
// It draws random clusters, runs a session of the engine with the standard plugins, and
// compares the result with its own implementation of the rules of docs/designs/0004, and
// with a search over all placements and all plans. It does not depend on how the engine
// searches. The only code that it shares with plugins computes the fair shares, which
// have their own tests.
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

// reasons has the reason of evictions, by plugin.
var reasons = map[Kind]engine.Reason{Consolidate: "Consolidated", Reclaim: "Reclaimed", Preempt: "Preempted"}

// has reports whether the profile of the kind has the plugin.
func (k Kind) has(plugin Kind) bool {
	switch k {
	case Allocate:
		return false
	case Consolidate, Reclaim, Preempt:
		return k == plugin
	}
	return true
}
