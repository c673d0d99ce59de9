package wire

// Difference is who gained and who lost between two simulations.
type Difference struct {
	Placed  []Move `json:"newlyPlaced"`
	Moved   []Move `json:"moved"`
	Pending []Move `json:"newlyPending"`
	// Evicted are tasks that have to go now and did not before, wherever they are
	// placed again; Kept are those that do not have to any more.
	Evicted []Going `json:"newlyEvicted"`
	Kept    []Going `json:"noLongerEvicted"`
	// Gone are tasks that nobody asks for any more.
	Gone   []Move `json:"noLongerWanted"`
	Before Totals `json:"before"`
	After  Totals `json:"after"`
}

// Move is a task that stands elsewhere than before; "" is nowhere.
type Move struct {
	Workload string `json:"workload"`
	Task     string `json:"task"`
	From     string `json:"from,omitempty"`
	To       string `json:"to,omitempty"`
	Message  string `json:"message,omitempty"` // why it is pending now
}

// Going is a task that is evicted.
type Going struct {
	Workload string `json:"workload"`
	Task     string `json:"task"`
	From     string `json:"from"`
	For      string `json:"for,omitempty"` // the workload that it makes room for
	Reason   string `json:"reason"`
	Landing  string `json:"landing,omitempty"` // the node that it moves to
}

// Totals count tasks, those that ran before included.
type Totals struct {
	Placed  int `json:"placed"`
	Pending int `json:"pending"`
}
