package cluster

// A Change is one thing that happens to a State, as a plain value: it names nodes,
// jobs, tasks and devices, and holds no pointer into State. The types below form a
// closed set; docs/reference/changes.md has the JSON form of each.
//
// Facts report what happened outside. They always apply: a fact that is older than
// what State knows, or equal to it, changes nothing; a fact that names something
// unknown waits until that is known; a fact that contradicts State wins. Only a
// malformed fact is rejected.
//
// Decisions are what a session decided. They are conditional: those of one
// statement, Decided, apply together or not at all.
type Change interface {
	// Kind is the name of the type, in JSON.
	Kind() string
	apply(*State) error
}

// Facts about nodes.
type (
	// NodePut reports what a node is. A node that is new also gets its status from
	// it: Phase, Artifacts, and Lost and Foreign of its devices. A known node keeps its own.
	NodePut struct {
		Node Node `json:"node"`
		// Revision is the source's; a lower one than the last is stale. 0: always new.
		Revision uint64 `json:"revision,omitempty"`
	}
	// NodeSeen reports the status of a node. What is absent stays as it is.
	NodeSeen struct {
		Name      string                    `json:"name"`
		Phase     *Phase                    `json:"phase,omitempty"`
		Lost      *[]string                 `json:"lost,omitempty"` // UUIDs of the devices that are lost, all of them
		Artifacts *map[string]ArtifactState `json:"artifacts,omitempty"`
	}
	// NodeRead reports how much memory of the node's devices is free, by UUID. Where that
	// is less than State accounts for, the difference is foreign.
	NodeRead struct {
		Name string           `json:"name"`
		Free map[string]Bytes `json:"free"`
	}
	// NodeGone reports that a node is gone. What runs there stays on the absent node
	// until it is seen elsewhere or gone.
	NodeGone struct {
		Name string `json:"name"`
	}
)

// Facts about queues and budgets.
type (
	// QueuePut reports the terms of a queue. Past of a known queue stays as it is.
	QueuePut struct {
		Queue    Queue  `json:"queue"`
		Revision uint64 `json:"revision,omitempty"`
	}
	// QueueGone reports that a queue is gone. Its jobs wait until it is back.
	QueueGone struct {
		Name string `json:"name"`
	}
	// BudgetPut reports the terms of a disruption budget.
	BudgetPut struct {
		Budget Budget `json:"budget"`
	}
	// BudgetGone reports that a disruption budget is gone.
	BudgetGone struct {
		Namespace string `json:"namespace,omitempty"`
		Name      string `json:"name"`
	}
)

// Facts about jobs and tasks.
type (
	// JobPut reports what a job requests. A job that is new also gets its status from
	// it: Displaced, Evicted, Retired and Torn. What runs of a known job, is reserved for it or
	// is leaving stays as it is. Tasks of an Open job come with TaskPut.
	JobPut struct {
		Job      Job    `json:"job"`
		Revision uint64 `json:"revision,omitempty"`
	}
	// JobSeen reports the status of a job that runs.
	JobSeen struct {
		Job     string  `json:"job"`
		Health  Health  `json:"health,omitempty"`
		Offload Offload `json:"offload,omitzero"`
	}
	// JobGone reports that a job is gone. Tasks of an open job stay until they are gone themselves.
	JobGone struct {
		Job string `json:"job"`
		UID string `json:"uid,omitempty"` // of the job that is gone; "": whichever is there
	}
	// SetScaled reports how many jobs a set of replicas should have.
	SetScaled struct {
		Set     string `json:"set"`
		Desired int    `json:"desired"`
	}
	// TaskPut reports a task of an open job.
	TaskPut struct {
		Job      string `json:"job"`
		Task     Task   `json:"task"`
		Revision uint64 `json:"revision,omitempty"`
	}
	// TaskSeen reports where a task is. It is level-triggered: it says how things are,
	// not what happened.
	TaskSeen struct {
		Task TaskRef `json:"task"`
		UID  string  `json:"uid,omitempty"`  // "": whichever is there
		Node string  `json:"node,omitempty"` // "": on none
		// Devices are what it holds; nil: not known, and State books as many as it requests.
		Devices []Holding `json:"devices,omitempty"`
		Leaving bool      `json:"leaving,omitempty"` // it was told to stop
		Started int64     `json:"started,omitempty"`
	}
	// TaskGone reports that a task is gone. With Ended it has ended, and stays so until
	// it is seen on a node, put with another UID, or gone once more. Otherwise a task of
	// an open job is removed, and one of another job is pending again.
	TaskGone struct {
		Task TaskRef `json:"task"`
		UID  string  `json:"uid,omitempty"`
		// Ended is Succeeded or Failed: the task needs no room, and is not placed again.
		Ended Status `json:"ended,omitempty"`
		// Rejected: its node turned it down. The node is avoided for its shape until then.
		Rejected int64 `json:"rejected,omitempty"`
	}
	// BindSent reports that the binding of an assigned task was sent, so that its
	// outcome is not known until it is seen or has failed.
	BindSent struct {
		Task    TaskRef `json:"task"`
		UID     string  `json:"uid,omitempty"`
		Attempt uint64  `json:"attempt"`
	}
	// BindFailed reports that a binding was refused, or was read back as not made.
	BindFailed struct {
		Task    TaskRef `json:"task"`
		UID     string  `json:"uid,omitempty"`
		Attempt uint64  `json:"attempt"`
	}
	// EvictionRefused reports that an eviction was refused. The task is spared until then.
	EvictionRefused struct {
		Task    TaskRef `json:"task"`
		UID     string  `json:"uid,omitempty"`
		Attempt uint64  `json:"attempt"`
		Spared  int64   `json:"spared,omitempty"`
	}
)

// Decisions.
type (
	// Decided is the decisions of one statement.
	Decided struct {
		Changes []Change `json:"changes"`
	}
	// Assign has a task run on a node.
	Assign struct {
		Task    TaskRef   `json:"task"`
		UID     string    `json:"uid,omitempty"`
		Node    string    `json:"node"`
		Devices []Holding `json:"devices,omitempty"`
		At      int64     `json:"at,omitempty"`
		Attempt uint64    `json:"attempt"`
	}
	// Nominate reserves room for a task that is not free yet.
	Nominate struct {
		Task    TaskRef   `json:"task"`
		UID     string    `json:"uid,omitempty"`
		Node    string    `json:"node"`
		Devices []Holding `json:"devices,omitempty"`
		At      int64     `json:"at,omitempty"`
	}
	// Evict has a task leave its node.
	Evict struct {
		Task    TaskRef `json:"task"`
		UID     string  `json:"uid,omitempty"`
		For     string  `json:"for,omitempty"` // the job that room is made for
		At      int64   `json:"at,omitempty"`
		Attempt uint64  `json:"attempt"`
	}
	// Move reserves room for a task that is evicted, on the node that it moves to.
	Move struct {
		Task    TaskRef   `json:"task"`
		Node    string    `json:"node"`
		Devices []Holding `json:"devices,omitempty"`
		At      int64     `json:"at,omitempty"`
	}
	// Withdraw releases the room reserved for a task or, with Landing, for a task that moves.
	Withdraw struct {
		Task    TaskRef `json:"task"`
		Landing bool    `json:"landing,omitempty"`
	}
	// Overdue counts the room of an evicted task as held: it does not leave.
	Overdue struct {
		Task TaskRef `json:"task"`
	}
	// Retire takes a job out of its set for good.
	Retire struct {
		Job string `json:"job"`
	}
	// ChooseGroup keeps a set of replicas on one group.
	ChooseGroup struct {
		Set   string `json:"set"`
		Group Key    `json:"group"`
	}
	// Displace notes that tasks of the victims were evicted for the job: none is
	// evicted for it again.
	Displace struct {
		Job     string   `json:"job"`
		Victims []string `json:"victims"`
	}
	// Tear notes since when a job runs below its minimum; 0: it does not.
	Tear struct {
		Job   string `json:"job"`
		Since int64  `json:"since,omitempty"`
	}
	// Park notes when a refused job is tried again, and how often it was refused.
	Park struct {
		Job string `json:"job"`
		Parked
	}
)

// SessionOpened reports that a session begins. It moves State's clock, which never
// goes back, and with it what queues used in the past.
type SessionOpened struct {
	Now int64 `json:"now"`
	// Profile and Options are what the session ran with, for a session that is run again.
	Profile string `json:"profile,omitempty"`
	Options string `json:"options,omitempty"`
}

// Parked is how long a refused job is left alone unless something changes that may
// help it.
type Parked struct {
	Tries   int   `json:"tries,omitempty"`
	RetryAt int64 `json:"retryAt,omitempty"` // 0: only when something changes
}

// Holding is what a task holds of one device, named by its UUID.
type Holding struct {
	Device string `json:"device"`
	Milli  Milli  `json:"milli,omitempty"`
	Memory Bytes  `json:"memory,omitempty"`
	Layers int    `json:"layers,omitempty"`
}

// Kind is the name of the change in JSON.
func (NodePut) Kind() string         { return "NodePut" }
func (NodeSeen) Kind() string        { return "NodeSeen" }
func (NodeRead) Kind() string        { return "NodeRead" }
func (NodeGone) Kind() string        { return "NodeGone" }
func (QueuePut) Kind() string        { return "QueuePut" }
func (QueueGone) Kind() string       { return "QueueGone" }
func (BudgetPut) Kind() string       { return "BudgetPut" }
func (BudgetGone) Kind() string      { return "BudgetGone" }
func (JobPut) Kind() string          { return "JobPut" }
func (JobSeen) Kind() string         { return "JobSeen" }
func (JobGone) Kind() string         { return "JobGone" }
func (SetScaled) Kind() string       { return "SetScaled" }
func (TaskPut) Kind() string         { return "TaskPut" }
func (TaskSeen) Kind() string        { return "TaskSeen" }
func (TaskGone) Kind() string        { return "TaskGone" }
func (BindSent) Kind() string        { return "BindSent" }
func (BindFailed) Kind() string      { return "BindFailed" }
func (EvictionRefused) Kind() string { return "EvictionRefused" }
func (Decided) Kind() string         { return "Decided" }
func (Assign) Kind() string          { return "Assign" }
func (Nominate) Kind() string        { return "Nominate" }
func (Evict) Kind() string           { return "Evict" }
func (Move) Kind() string            { return "Move" }
func (Withdraw) Kind() string        { return "Withdraw" }
func (Overdue) Kind() string         { return "Overdue" }
func (Retire) Kind() string          { return "Retire" }
func (ChooseGroup) Kind() string     { return "ChooseGroup" }
func (Displace) Kind() string        { return "Displace" }
func (Tear) Kind() string            { return "Tear" }
func (Park) Kind() string            { return "Park" }
func (SessionOpened) Kind() string   { return "SessionOpened" }
