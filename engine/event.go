package engine

import "github.com/berth-project/berth/cluster"

// EventKind says what happened to a task or a job.
type EventKind string

// The kinds of events. Event handlers are called with Allocated and Deallocated. The records
// of an outcome have the other kinds.
const (
	Allocated   EventKind = "Allocated"
	Deallocated EventKind = "Deallocated"
	BoundTo     EventKind = "Bound"
	NominatedTo EventKind = "Nominated"
	Evicted     EventKind = "Evicted"
	Withdrawn   EventKind = "Withdrawn" // a reservation was released: its node lost the room, it was held too long, or its gang lost another one
	Earmarked   EventKind = "Earmarked" // room is earmarked for the job, or other room than before; without rooms, none is any more
	Refused     EventKind = "Refused"
	Retired     EventKind = "Retired" // the job was removed permanently, because its Set has more replicas than it should have
)

// Event is a change in a statement that event handlers are called with. The statement is not
// committed yet, so the change may be undone, with another event. The Event is valid only during
// the call: a handler copies what it keeps.
type Event struct {
	Kind EventKind     // Allocated or Deallocated
	Job  *cluster.Job  // the job of the task
	Task *cluster.Task // the task that is placed or removed
	Node *cluster.Node // the node that it is placed on or removed from
	Undo bool          // the event undoes an earlier one
}

// Record is an event that was committed. It holds names and copies, so that it does not
// change when State does. The only pointers that it shares with State are those to shapes,
// which never change.
type Record struct {
	Kind     EventKind
	Job      string                  // the ID of the job
	Task     cluster.TaskRef         // zero if the record is about the job as a whole
	Node     string                  // the node of the task; "" if it has none
	Decision *Decision               // of Bound, Nominated and Evicted
	Refusal  *Refusal                // of Refused
	Rooms    []cluster.EarmarkedRoom // of Earmarked
	Score    *Score                  // of Retired: the InstanceScore of the job
}

func (a Action) event() EventKind {
	switch a {
	case Nominate:
		return NominatedTo
	case EvictTask:
		return Evicted
	}
	return BoundTo
}
