package wire

// Difference says how the tasks of two simulations differ: the first without a change, and
// the second with it.
type Difference struct {
	Placed  []Move `json:"newlyPlaced"`
	Moved   []Move `json:"moved"`
	Pending []Move `json:"newlyPending"`
	// Tasks that are evicted only in the second simulation, even if they are placed again.
	Evicted         []EvictedTask `json:"newlyEvicted"`
	NoLongerEvicted []EvictedTask `json:"noLongerEvicted"` // tasks that are evicted only in the first simulation
	// Tasks that are not requested any more.
	NoLongerRequested []Move `json:"noLongerWanted"`
	Before            Totals `json:"before"`
	After             Totals `json:"after"`
}

// Move is a task that is on different nodes at the end of the two simulations. From or To is
// left out if the task is on no node.
type Move struct {
	Workload string `json:"workload"`
	Task     string `json:"task"`
	From     string `json:"from,omitempty"`
	To       string `json:"to,omitempty"`
	Message  string `json:"message,omitempty"` // why it is pending now
}

// EvictedTask is a task that a simulation evicts.
type EvictedTask struct {
	Workload string `json:"workload"`
	Task     string `json:"task"`
	From     string `json:"from"`
	For      string `json:"for,omitempty"` // the workload for which it is evicted
	Reason   string `json:"reason"`
	Landing  string `json:"landing,omitempty"` // the node to which it moves
}

// Totals count all tasks at the end of a simulation, including those that ran before it.
type Totals struct {
	Placed  int `json:"placed"`
	Pending int `json:"pending"`
}
