package manifest

import "encoding/json"

// Session is a session of a scheduler: how it was run, and what it decided.
type Session struct {
	// Number is the number of the session since the scheduler started.
	Number uint64 `json:"number"`
	// Hold is how long room is reserved for a nominated task, in nanoseconds. 0 means as long
	// as its node has the room.
	Hold int64 `json:"hold,omitempty"`
	// Tried lists the workloads that had a turn, in this order. If the session is run again,
	// they have the same turns. The others were refused before, and their back-off had not ended.
	Tried []string `json:"tried,omitempty"`
	// Decisions are what was decided, in this order.
	Decisions []SessionDecision `json:"decisions,omitempty"`
	// Refusals are the refusals that were new or had changed.
	Refusals []SessionRefusal `json:"refusals,omitempty"`
}

// SessionDecision is one decision of a session.
type SessionDecision struct {
	Action   string `json:"action"` // Bind, Nominate or Evict
	Workload string `json:"workload"`
	Task     string `json:"task"`
	Node     string `json:"node"`
	Devices  []int  `json:"devices,omitempty"` // indexes of the devices of the node
	For      string `json:"for,omitempty"`     // the workload for which a task is evicted
}

// SessionRefusal is one refusal of a session.
type SessionRefusal struct {
	Workload string `json:"workload"`
	Reason   string `json:"reason"`
	Message  string `json:"message,omitempty"`
}

// SessionOf returns the session of which the snapshot is the input, and what the filters of
// Kubernetes read then, if the snapshot has it. It returns nil if it is the input of none.
func SessionOf(b *Bundle) (*Session, json.RawMessage) {
	if f := b.snapshot(); f != nil {
		return f.Session, f.Kubernetes
	}
	return nil, nil
}
