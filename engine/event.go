package engine

import "github.com/berth-project/berth/cluster"

// EventKind says what happened.
type EventKind string

// The kinds of events. Handlers hear Allocated and Deallocated; the stream has the others.
const (
	Allocated   EventKind = "Allocated"
	Deallocated EventKind = "Deallocated"
	BoundTo     EventKind = "Bound"
	NominatedTo EventKind = "Nominated"
	Evicted     EventKind = "Evicted"
	Withdrawn   EventKind = "Withdrawn" // a promise that cannot be kept, has been held too long, or is of a gang that lost others
	Refused     EventKind = "Refused"
	Retired     EventKind = "Retired" // its set has enough without it; it does not come back
)

// Event is what handlers hear while it happens, virtually: it may be taken back.
type Event struct {
	Kind EventKind     // Allocated or Deallocated
	Job  *cluster.Job  // whose task it is
	Task *cluster.Task // what is placed, or taken away
	Node *cluster.Node // where
	Undo bool          // it takes back an earlier one
}

// Record is one thing that happened for good. It holds names and copies, so that
// it stays true while the State changes.
type Record struct {
	Kind     EventKind
	Job      string          // its ID
	Task     cluster.TaskRef // zero where it is about the job as a whole
	Node     string
	Decision *Decision
	Refusal  *Refusal
	Score    *Score // of Retired: what it was worth to keep
}

func (a Action) event() EventKind {
	switch a {
	case Nominate:
		return NominatedTo
	case EvictIt:
		return Evicted
	}
	return BoundTo
}
