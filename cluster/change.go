package cluster

// A Change is one entry of the log of a State, as a plain value: it names nodes, jobs,
// tasks and devices, and holds no pointer into State. The types below are the only
// ones; docs/reference/changes.md has the JSON form of each.
//
// Facts report what happened outside the scheduler. State accepts every fact that is
// well-formed, with one exception: TaskPut for a job that is not open is an error. A fact
// that is older than what State knows, or equal to it, changes nothing. A fact that
// contradicts State replaces what State had. TaskPut for an unknown job and TaskSeen for
// an unknown task are kept until the job or task is known. NodeSeen and NodeRead for an
// unknown node and JobSeen for an unknown job are dropped.
//
// State does not check all values of a fact: Apply accepts negative amounts, and a node
// that lists a resource twice. Decode checks these in JSON, and package internal/convert
// in API objects. A caller that builds a fact in Go must give it valid values.
//
// Decisions are what a session decided. State refuses a decision that contradicts it.
// The decisions of one statement (Decided) are applied together or not at all.
type Change interface {
	// Kind returns the name of the type, which is the kind of the change in JSON.
	Kind() string
	apply(*State) error
}

// Facts about nodes.
type (
	// NodePut reports the spec of a node. For a node that is new or absent it also reports
	// the status: Phase, Artifacts, Avoids, and Lost and Foreign of the devices. Any other
	// node keeps its status; devices that are new on it are neither lost nor have foreign
	// memory.
	NodePut struct {
		Node Node `json:"node"`
		// Revision is a number that the source increases with each change of the object. A
		// fact with a revision that is not higher than the last one is stale, and changes nothing.
		// 0 is never stale. The revision of an absent node or job is not checked.
		Revision uint64 `json:"revision,omitempty"`
	}
	// NodeSeen reports the status of a node. Fields that are left out keep their value.
	NodeSeen struct {
		Name      string                    `json:"name"`
		Phase     *Phase                    `json:"phase,omitempty"`
		Lost      *[]string                 `json:"lost,omitempty"` // the UUIDs of all devices that are lost
		Artifacts *map[string]ArtifactState `json:"artifacts,omitempty"`
	}
	// NodeRead reports how much memory of the node's devices is free. If a device has less
	// free memory than State accounts for, the difference is foreign.
	NodeRead struct {
		Name string           `json:"name"`
		Free map[string]Bytes `json:"free"` // by UUID of the device
	}
	// NodeGone reports that a node was removed. The node becomes absent: its running tasks
	// stay on it until they are reported on another node or as gone. Reservations on the
	// node are released. A task that moves there loses its landing, and stays evicted.
	NodeGone struct {
		Name string `json:"name"`
	}
)

// Facts about queues and budgets.
type (
	// QueuePut reports the spec of a queue: its parent, tier and priority, its quota,
	// limits and weights, and its minimum run times. A known queue keeps its Past.
	QueuePut struct {
		Queue    Queue  `json:"queue"`
		Revision uint64 `json:"revision,omitempty"` // see NodePut
	}
	// QueueGone reports that a queue was removed. Its jobs, and those of the queues below
	// it, are not pending until the queue is put again. The queue default cannot be
	// removed: QueueGone resets its spec to the defaults, and its jobs stay pending.
	QueueGone struct {
		Name string `json:"name"`
	}
	// BudgetPut reports the spec of a disruption budget.
	BudgetPut struct {
		Budget Budget `json:"budget"`
	}
	// BudgetGone reports that a disruption budget was removed.
	BudgetGone struct {
		Namespace string `json:"namespace,omitempty"`
		Name      string `json:"name"`
	}
)

// Facts about jobs and tasks.
type (
	// JobPut reports the spec of a job. For a new job it also reports the status:
	// Displaced, Evicted, Retired, BelowMinimumSince, Parked, BindRefused, Health and Offload. A known
	// job keeps its status. Tasks of a known job that are on nodes stay there, unless the
	// new spec gives them another UID. Landings of tasks that the new spec does not have
	// are released. If the UID of the job itself differs, the known job is removed with its
	// tasks and the job is new; if both are open, the tasks stay. The tasks of an Open job
	// are reported with TaskPut, and those in Job are ignored.
	JobPut struct {
		Job      Job    `json:"job"`
		Revision uint64 `json:"revision,omitempty"` // see NodePut
	}
	// JobSeen reports the status of a job that runs.
	JobSeen struct {
		Job     string  `json:"job"`
		Health  Health  `json:"health,omitempty"`
		Offload Offload `json:"offload,omitzero"`
	}
	// JobGone reports that a job was removed. Its tasks are removed with it, except those
	// of an open job, which stay until TaskGone reports them.
	JobGone struct {
		Job string `json:"job"`
		UID string `json:"uid,omitempty"` // of the job that was removed; "": any job with this ID
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
		Revision uint64 `json:"revision,omitempty"` // see NodePut
	}
	// TaskSeen reports the node that a task is on now. It is level-triggered: it may be
	// reported again at any time, and then changes nothing.
	TaskSeen struct {
		Task TaskRef `json:"task"`
		UID  string  `json:"uid,omitempty"`  // "": any task with this name
		Node string  `json:"node,omitempty"` // "": the task is on no node
		// Devices are what the task holds. Empty means that this is not known: State then
		// keeps the devices that the task holds on this node. If the task was not on this
		// node, or was only nominated there, State chooses as many devices as the task
		// requests, which may differ from the devices that were reserved for it.
		Devices   []Holding `json:"devices,omitempty"`
		Releasing bool      `json:"leaving,omitempty"` // the task is being stopped, and releases its room
		Started   int64     `json:"started,omitempty"` // when the task was started, in nanoseconds since 1970
	}
	// TaskGone reports that a task is on no node any more. If Ended is set, the task has
	// ended: it stays ended until it is seen on a node, is put with another UID, or
	// TaskGone is reported without Ended. Otherwise a task of an open job is removed, and
	// a task of another job is pending again. Room that is reserved for the task on
	// another node, because the task moves, is released in all these cases. TaskSeen
	// without a node keeps that room: the task is then nominated for it.
	TaskGone struct {
		Task TaskRef `json:"task"`
		UID  string  `json:"uid,omitempty"`
		// Ended is Succeeded or Failed: the task needs no room and is not placed again.
		Ended Status `json:"ended,omitempty"`
		// Rejected is set if the node rejected the task. It is the time until which no task
		// of the same shape is placed on that node, in nanoseconds since 1970.
		Rejected int64 `json:"rejected,omitempty"`
	}
	// BindSent reports that the binding of an assumed task was sent. Its outcome is not
	// known until the task is seen on its node, or BindFailed is reported.
	BindSent struct {
		Task    TaskRef `json:"task"`
		UID     string  `json:"uid,omitempty"`
		Attempt uint64  `json:"attempt"`
	}
	// BindFailed reports that a binding was refused, or that a later read showed that it
	// was not made.
	BindFailed struct {
		Task    TaskRef `json:"task"`
		UID     string  `json:"uid,omitempty"`
		Attempt uint64  `json:"attempt"`
		// RetryAt is set if the binding was refused and may be refused again. The job of the
		// task is not pending before this time, in nanoseconds since 1970, so that others can
		// use the room meanwhile. See Job.BindRefused.
		RetryAt int64 `json:"retryAt,omitempty"`
	}
	// EvictionRefused reports that the eviction of a task was refused, so that the task
	// still runs. The reservations of the job that it was evicted for are released: the
	// nominations of its tasks and their landings. The landing of the task itself is
	// released too. Displaced of the job that it was evicted for does not name the task's
	// job any more, unless another task of it is still evicted for that job. Reservations
	// on the task's node that the node cannot keep are released, the latest first.
	EvictionRefused struct {
		Task           TaskRef `json:"task"`
		UID            string  `json:"uid,omitempty"`
		Attempt        uint64  `json:"attempt"`
		ProtectedUntil int64   `json:"spared,omitempty"` // the task is not evicted again before this time
	}
)

// Decisions.
type (
	// Decided has the decisions of one statement. They are applied together or not at all.
	Decided struct {
		Changes []Change `json:"changes"`
	}
	// Assign assigns a task to a node. The task is Assumed until it is seen there. The
	// room must be free, or reserved for the task.
	Assign struct {
		Task    TaskRef   `json:"task"`
		UID     string    `json:"uid,omitempty"`
		Node    string    `json:"node"`
		Devices []Holding `json:"devices,omitempty"`
		At      int64     `json:"at,omitempty"`
		Attempt uint64    `json:"attempt"` // one more than the last attempt of the task
	}
	// Nominate reserves room for a pending task, although other tasks are still releasing
	// part of this room.
	Nominate struct {
		Task    TaskRef   `json:"task"`
		UID     string    `json:"uid,omitempty"`
		Node    string    `json:"node"`
		Devices []Holding `json:"devices,omitempty"`
		At      int64     `json:"at,omitempty"`
	}
	// Evict evicts a running task. The task is Releasing until it is reported as gone.
	Evict struct {
		Task    TaskRef `json:"task"`
		UID     string  `json:"uid,omitempty"`
		For     string  `json:"for,omitempty"` // the job that room is made for
		At      int64   `json:"at,omitempty"`
		Attempt uint64  `json:"attempt"` // one more than the last attempt of the task
	}
	// Move reserves room for a task that was evicted, on the node that it moves to.
	Move struct {
		Task    TaskRef   `json:"task"`
		Node    string    `json:"node"`
		Devices []Holding `json:"devices,omitempty"`
		At      int64     `json:"at,omitempty"`
	}
	// Withdraw releases the room that is reserved for a nominated task or, with Landing,
	// for a task that moves.
	Withdraw struct {
		Task    TaskRef `json:"task"`
		Landing bool    `json:"landing,omitempty"`
	}
	// Overdue notes that an evicted task has not stopped in time. Its room counts as held
	// again, and no new reservation can be made there. Reservations that exist are not released.
	Overdue struct {
		Task TaskRef `json:"task"`
	}
	// Retire removes a job from its set permanently. The job is not pending any more.
	Retire struct {
		Job string `json:"job"`
	}
	// ChooseGroup keeps all replicas of a set on the nodes of one group.
	ChooseGroup struct {
		Set   string   `json:"set"`
		Group GroupKey `json:"group"`
	}
	// Displace notes that tasks of the victims, which are jobs, were evicted for the job.
	// Tasks of these jobs are not evicted for it again.
	Displace struct {
		Job     string   `json:"job"`
		Victims []string `json:"victims"`
	}
	// Tear notes since when a job has run with fewer tasks than its minimum; 0: it has
	// its minimum. Sessions make it only if a plugin of the profile has a Sweep hook.
	Tear struct {
		Job   string `json:"job"`
		Since int64  `json:"since,omitempty"`
	}
	// Park notes when a refused job is tried again, and how often it was refused.
	Park struct {
		Job string `json:"job"`
		Parked
	}
	// Earmark earmarks room for a job that waits, instead of what was earmarked for it before.
	// Without rooms, nothing is earmarked for the job any more. No two jobs have an earmark on
	// the same node.
	Earmark struct {
		Job string `json:"job"`
		Earmarked
	}
)

// SessionOpened reports that a session begins. It sets the clock of State, and with it
// what queues used in the past. A time that is earlier than the clock changes nothing.
type SessionOpened struct {
	Now int64 `json:"now"`
	// Profile and Options are those of the session, so that it can be run again from the
	// log.
	Profile string `json:"profile,omitempty"`
	Options string `json:"options,omitempty"`
}

// Learn reports the parameters that a plugin has learnt in a session, such as prices. State keeps
// them until the plugin reports others. An empty list removes them.
type Learn struct {
	Plugin     string  `json:"plugin"`
	Parameters []int64 `json:"parameters,omitempty"` // what they mean is up to the plugin
}

// Parked is the back-off of a refused job: when it is tried again if nothing changes
// before that may help it.
type Parked struct {
	// Tries determines how long the next back-off is. A refusal before RetryAt does not
	// count, and neither does a permanent refusal unless it is the first.
	Tries   int   `json:"tries,omitempty"`
	RetryAt int64 `json:"retryAt,omitempty"` // 0: the job is tried again only when something changes
}

// Holding is a Claim that names its device by UUID.
type Holding struct {
	Device string `json:"device"`
	Milli  Milli  `json:"milli,omitempty"`  // thousandths of the device
	Memory Bytes  `json:"memory,omitempty"` // memory of the device
	Layers int    `json:"layers,omitempty"` // how many layers of divisible work are on the device
}

// Kind returns the name of the change in JSON.
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
func (Earmark) Kind() string         { return "Earmark" }
func (SessionOpened) Kind() string   { return "SessionOpened" }
func (Learn) Kind() string           { return "Learn" }
