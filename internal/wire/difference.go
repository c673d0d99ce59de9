package wire

// Difference says which tasks gained and lost between two simulations.
type Difference struct {
	Placed  []Move `json:"newlyPlaced"`
	Moved   []Move `json:"moved"`
	Pending []Move `json:"newlyPending"`
	// Evicted are tasks that are evicted only in the second simulation, even if they are
	// placed again. Kept are tasks that are evicted only in the first one.
	Evicted         []EvictedTask `json:"newlyEvicted"`
	NoLongerEvicted []EvictedTask `json:"noLongerEvicted"`
	// Gone are tasks that are not requested any more.
	NoLongerRequested []Move `json:"noLongerWanted"`
	Before            Totals `json:"before"`
	After             Totals `json:"after"`
}

// Move is a task that is on another node than before. From or To is "" where it is on no
// node.
type Move struct {
	Workload string `json:"workload"`
	Task     string `json:"task"`
	From     string `json:"from,omitempty"`
	To       string `json:"to,omitempty"`
	Message  string `json:"message,omitempty"` // why it is pending now
}

// EvictedTask is a task that is evicted.
type EvictedTask struct {
	Workload string `json:"workload"`
	Task     string `json:"task"`
	From     string `json:"from"`
	For      string `json:"for,omitempty"` // the workload for which it is evicted
	Reason   string `json:"reason"`
	Landing  string `json:"landing,omitempty"` // the node to which it moves
}

// Totals count tasks, including those that ran before.
type Totals struct {
	Placed  int `json:"placed"`
	Pending int `json:"pending"`
}
