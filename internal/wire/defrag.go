package wire

// Defrag is what berth defrag prints as JSON and YAML: a plan of moves, in the order in which they
// are to be carried out.
type Defrag struct {
	Goal  string       `json:"goal"`          // jobs, devices, nodes or room
	For   string       `json:"for,omitempty"` // the only workload of the goal jobs
	Moves []DefragMove `json:"moves"`
	Fits  []DefragFit  `json:"fits"` // pending workloads that fit, without a move or after some
	// Pending workloads of the goal jobs for which no room can be made.
	Refused []DefragRefusal `json:"refused"`
	Stays   []DefragStay    `json:"stays"` // why tasks that run stay where they are
	Before  DefragSums      `json:"before"`
	After   DefragSums      `json:"after"`
	Tasks   int             `json:"tasks"` // how many tasks run
	Steps   int             `json:"steps"` // a measure of the work that is the same on every machine
	// True if the search ended because it reached the bound of its steps.
	Bounded bool `json:"bounded,omitempty"`
}

// DefragMove is one task that is moved.
type DefragMove struct {
	Workload    string     `json:"workload"`
	Task        string     `json:"task"`
	From        string     `json:"from"`
	FromDevices []Device   `json:"fromDevices"`
	To          string     `json:"to"`
	Devices     []Device   `json:"devices"`
	For         string     `json:"for,omitempty"` // the pending workload that the task is moved for
	Ran         string     `json:"ran,omitempty"` // for how long the task has run, if that is known
	After       DefragSums `json:"after"`         // after this move
}

// DefragFit is a pending workload that fits after some of the moves.
type DefragFit struct {
	Workload   string `json:"workload"`
	AfterMoves int    `json:"afterMoves"`
}

// DefragRefusal is a pending workload for which no room can be made.
type DefragRefusal struct {
	Workload string   `json:"workload"`
	Alike    []string `json:"alike,omitempty"` // other workloads that request the same
	Reason   string   `json:"reason"`          // why it does not fit now
	Message  string   `json:"message"`         // the same in words, and why moves do not help
}

// DefragStay counts tasks that stay where they are.
type DefragStay struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Tasks   int    `json:"tasks"`
	First   string `json:"first"` // one of them, as WORKLOAD TASK
}

// DefragSums measure the cluster.
type DefragSums struct {
	FreeDevices int `json:"freeDevices"` // devices of which nothing is held
	FreeNodes   int `json:"freeNodes"`   // nodes with devices of which none is held
	Pending     int `json:"pending"`     // workloads with a task to place
	// How many devices are free that a task like those that arrived cannot use, on average.
	Unusable float64 `json:"unusable"`
}
