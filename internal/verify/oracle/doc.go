// Package oracle judges the engine on small clusters by trying everything.
//
// It draws random clusters, lets the engine that ships decide, and compares the
// result with two things of its own: the rules of docs/designs/0004, written down
// once more, and a search over all arrangements and all plans. It refuses to know how
// the engine searches. Of the plugins it borrows the fair shares alone, which have tests
// of their own.
package oracle

import "github.com/berth-project/berth/engine"

// Kind is what a case is about.
type Kind string

// The kinds. Those with the name of a plugin have no other means to make room.
const (
	Allocate     Kind = "Allocate" // free room alone
	Consolidate  Kind = "Consolidate"
	Reclaim      Kind = "Reclaim"
	Preempt      Kind = "Preempt"
	Combined     Kind = "Combined"     // all means in one plan
	Topology     Kind = "Topology"     // gangs that stay in one rack, with all means
	Alternatives Kind = "Alternatives" // jobs with several forms, with all means
	Whole        Kind = "Whole"        // whole nodes of one group, with all means
	Costs        Kind = "Costs"        // a plugin says what victims cost, with all means
)

// Kinds lists every kind.
var Kinds = []Kind{Allocate, Consolidate, Reclaim, Preempt, Combined, Topology, Alternatives, Whole, Costs}

// reasons are those that evictions give, by plugin.
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
