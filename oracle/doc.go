// Package oracle judges the engine on small clusters by trying everything.
//
// It draws random clusters, lets the engine that ships decide, and holds what it
// did against two things of its own: the rules of docs/designs/0004, written
// down once more, and a search over all arrangements and all victims. It refuses
// to know how the engine searches; of the plugins it borrows the fair shares
// alone, which have tests of their own.
package oracle

import "github.com/berth-project/berth/engine"

// Kind is what a case is about: who has to find a way for the pending job.
type Kind string

// The kinds. All but the first name the one adapter that is in the profile.
const (
	Allocate    Kind = "Allocate" // free room alone
	Consolidate Kind = "Consolidate"
	Reclaim     Kind = "Reclaim"
	Preempt     Kind = "Preempt"
)

// Kinds lists every kind.
var Kinds = []Kind{Allocate, Consolidate, Reclaim, Preempt}

// purpose is what victims go for.
func (k Kind) purpose() engine.Purpose {
	return map[Kind]engine.Purpose{Consolidate: engine.Move, Reclaim: engine.Reclaim, Preempt: engine.Preempt}[k]
}

// reason is the one that evictions give.
func (k Kind) reason() engine.Reason {
	return map[Kind]engine.Reason{Consolidate: "Consolidated", Reclaim: "Reclaimed", Preempt: "Preempted"}[k]
}
