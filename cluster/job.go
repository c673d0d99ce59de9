package cluster

import (
	"math"
	"slices"
)

// Job is what is queued and placed as a unit: one or more tasks, of which a minimum is
// placed together or not at all. It may have several alternatives, which are tried in
// order; the first that can be placed is chosen.
type Job struct {
	// ID is the kind and the name, and is unique in a State: "job/train",
	// "pod/default/web-0".
	ID string `json:"id"`
	// UID distinguishes jobs that have the same ID at different times; "": not known.
	UID       string `json:"uid,omitempty"`
	Namespace string `json:"namespace,omitempty"` // the namespace of its manifest
	Queue     string `json:"queue,omitempty"`     // the name of its queue
	// Created is when the job was created, in nanoseconds since 1970. Older jobs are tried
	// first; a job with 0 counts as the oldest.
	Created int64 `json:"created,omitempty"`
	// RunFor is how long the job runs after its minimum has started, in nanoseconds; 0:
	// not known. Simulations end the job then. Only earmarks depend on it (see Earmarked).
	RunFor       int64             `json:"runFor,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`       // affinity terms and disruption budgets select jobs by them
	Alternatives []Alternative     `json:"alternatives,omitempty"` // the forms that the job may take, the preferred one first

	// JobDetails are fields that most jobs do not have. Jobs of a State without them share one
	// record. A job that is made without a record must get one before these fields are read.
	*JobDetails

	Priority    int32 `json:"priority,omitempty"`    // within a queue, jobs of a higher priority are tried first
	Preemptible bool  `json:"preemptible,omitempty"` // its tasks may be evicted and moved
	// Retired is true for a job that is removed permanently because its set has more
	// replicas than it should have. A retired job is not pending.
	Retired bool `json:"retired,omitempty"`
	// Open is true for a job that gets and loses tasks one at a time, such as pods. It has
	// one alternative, and is not pending before it has as many tasks as the minimum.
	Open bool `json:"open,omitempty"`

	// The next fields are here because there is room for them beside the fields before.
	absent       bool // it is not reported; only its tasks are known
	slot         int32
	tasksOnNodes int32 // how many of its tasks are on a node, in any status
	landings     int32 // the number of landings: how many of its tasks move, and have room reserved on another node
	ended        int32 // how many of its tasks have ended
	queueIndex   int32 // its index in roster.byQueue
	pendingAt    int32 // its index in roster.pending plus one; 0: it is not pending

	// Chosen is the index of the alternative that is placed; -1 if no task is placed.
	Chosen int `json:"-"`

	spec     uint64 // the version of jobs when its spec last changed
	revision uint64
}

// Profile returns the name of the profile that decides about the job as a whole: that of its
// first task (see Shape.Profile). It is "" if the job has no task.
func (j *Job) Profile() string {
	for i := range j.Alternatives {
		if tasks := j.Alternatives[i].Tasks; len(tasks) > 0 {
			return tasks[0].Shape.Profile
		}
	}
	return ""
}

// SpecVersion returns the version of jobs (Recent.JobsVersion) at which the spec of the
// job last changed.
func (j *Job) SpecVersion() uint64 { return j.spec }

// jobStatus has the fields of a job that decisions and facts change, apart from its
// spec.
type jobStatus struct {
	belowMinimumSince int64
	evicted           int64
	displaced         []string
	retired           bool
	parked            *Parked    // what it points to never changes
	bindRefused       *Parked    // as parked
	earmarked         *Earmarked // as parked
}

func (j *Job) status() jobStatus {
	return jobStatus{j.BelowMinimumSince, j.Evicted, j.Displaced, j.Retired, j.Parked, j.BindRefused, j.Earmarked}
}

// Forever is a PreemptionDelay without end: no task is ever evicted or moved for the job.
const Forever int64 = maxAmount

// DelayEnds returns when the job's PreemptionDelay ends, in nanoseconds since 1970; 0
// if it has none, and math.MaxInt64 if it has no end. Without a creation time a job has no delay
// before its first eviction, unless the delay has no end.
func (j *Job) DelayEnds() int64 {
	if j.PreemptionDelay == Forever {
		return math.MaxInt64
	}
	from := max(j.Created, j.Evicted)
	if j.PreemptionDelay <= 0 || from <= 0 {
		return 0
	}
	if end, ok := AddOverflow(from, j.PreemptionDelay); ok {
		return end
	}
	return math.MaxInt64
}

// Set is the set of replicas that a job belongs to.
type Set struct {
	Name    string `json:"name,omitempty"`    // "": the job is in no set
	Desired int    `json:"desired,omitempty"` // how many replicas there should be
	// Group is the node group that was chosen for all replicas; nil: none yet.
	Group *GroupKey `json:"group,omitempty"`
}

// Health is the state of a running replica, as it is reported.
type Health string

// The states of health. "" means that the health is not known.
const (
	HealthRunning  Health = "Running"
	HealthStarting Health = "Starting"
	HealthFailed   Health = "Failed"
)

// Offload is how many layers of a running replica are on devices, and how many layers
// it has. If Total is 0, this is not known.
type Offload struct {
	Layers int `json:"layers,omitempty"`
	Total  int `json:"total,omitempty"`
}

// Note is the beginning of a remark that matters also after the job is placed.
const Note = "Note: "

// Alternative is one of the forms that a job may take: its tasks, and how many of them
// are needed.
type Alternative struct {
	Name  string  `json:"name,omitempty"`  // the name in its manifest; may be ""
	Tasks []*Task `json:"tasks,omitempty"` // in the order of the manifest
	// Min is the minimum: this many of the tasks are placed together, or none is. The
	// tasks beyond it are surplus, and are placed one by one if there is room.
	Min int `json:"min,omitempty"`
	// Whole is set if the tasks are placed on whole nodes of one group; nil: the node of
	// each task is chosen separately.
	Whole *WholeNodes `json:"whole,omitempty"`
	// Subgroups are parts of the job with minima of their own, which must be met in
	// addition to Min.
	Subgroups []Subgroup `json:"subgroups,omitempty"`
	// MinSubgroups is how many of the subgroups without a parent must have their minimum;
	// 0: all. The other subgroups are surplus, and each is placed as a whole.
	MinSubgroups int      `json:"minSubgroups,omitempty"`
	Topology     Topology `json:"topology,omitzero"` // the domains in which all tasks must be, or should be
	// Running is true for an alternative that the job does not request any more, but of
	// which tasks still run. No task is placed in it. These alternatives are last.
	Running bool `json:"running,omitempty"`
}

// Topology keeps tasks near each other. A level is a node label; the nodes with the same
// value of it form a domain, and nodes without the label are in no domain.
type Topology struct {
	Required  string   `json:"required,omitempty"`  // all tasks must be in one domain of this level; "": any nodes
	Preferred []string `json:"preferred,omitempty"` // levels, the narrowest first: tasks are placed in as few domains of each as possible
}

// None reports whether the topology neither requires nor prefers anything.
func (t *Topology) None() bool { return t.Required == "" && len(t.Preferred) == 0 }

// Counts reports whether the task counts towards the minimum when it is placed. A task
// that its job does not request any more does not count, unless all of the alternative
// is kept only because it runs.
func (a *Alternative) Counts(t *Task) bool { return !t.notRequested || a.Running }

// Enough reports whether as many tasks count as the minimum, and as many tasks of the
// subgroups as their minima. Tasks that succeeded always count, and tasks that failed
// never do; counts is called for the others.
func (a *Alternative) Enough(counts func(*Task) bool) bool {
	var buffer [8]int
	members := buffer[:0] // by subgroup: how many of its tasks count
	members = append(members, make([]int, len(a.Subgroups))...)
	total := 0
	for _, t := range a.Tasks {
		if !a.counts(t, counts) {
			continue
		}
		total++
		if t.Subgroup > 0 && t.Subgroup <= len(members) { // the subgroup of a task may have been removed
			members[t.Subgroup-1]++
		}
	}
	return total >= a.Min && (len(members) == 0 || a.MinimumMet(members))
}

// WholeNodes places replicas on whole nodes of one group. A node never has two replicas.
type WholeNodes struct {
	Replicas        int   `json:"replicas,omitempty"`
	NodesPerReplica int   `json:"nodesPerReplica,omitempty"`
	Memory          Bytes `json:"memory,omitempty"` // the device memory that one replica needs on all its nodes together
	// Only is the group to which these figures apply; nil: they apply to every group.
	// Consecutive alternatives that each name a group are tried together, and the group
	// with the best score is chosen.
	Only *GroupKey `json:"only,omitempty"`
	// Apart allows the replicas of a set to be on different groups. If it is false, all are
	// placed on the group of the first.
	Apart bool `json:"apart,omitempty"`
	// Usable is how much of a node's device memory may be used; 0: all of it.
	Usable Bytes `json:"usable,omitempty"`
}

// Task is one process on one node, such as a pod. It is the unit that is assigned to
// nodes and evicted.
type Task struct {
	// ID is the job's ID, a slash and the task's name. Tasks of different alternatives
	// of a job may have the same ID; see TaskRef.
	ID   string `json:"-"`
	Name string `json:"name"` // such as "worker-0"; unique in its alternative
	// UID distinguishes tasks that have the same name at different times; "": not known.
	UID   string `json:"uid,omitempty"`
	Role  string `json:"role,omitempty"`  // such as "worker"
	Index int    `json:"index,omitempty"` // its number among the tasks of its role, from 0
	Job   *Job   `json:"-"`               // the job that it belongs to
	Shape *Shape `json:"shape,omitempty"` // what it requests; tasks with equal requests and equal Keys share one Shape
	// Alternative is the index of its alternative in the job; State sets it.
	Alternative int `json:"-"`
	// Subgroup is the number of its subgroup in the alternative, from 1; 0: it is in none.
	Subgroup int `json:"subgroup,omitempty"`
	// Started is when it was started, as TaskSeen reports it, or else when it was assigned
	// to its node, in nanoseconds since 1970. 0 means that neither is known; such a task
	// counts as the oldest.
	Started int64 `json:"-"`

	Status Status `json:"-"` // its state, such as Pending or Bound
	// The next fields are here because there is room for them beside Status.
	sent           bool  // its binding was sent, and the outcome is not known
	devicesUnknown bool  // which devices it holds is not known, and State has chosen as many as it requests
	notRequested   bool  // its job does not request it any more; it is removed when it is on no node
	releasing      int32 // its index in roster.releasing, while it is Releasing

	Node   *Node   `json:"-"` // the node that it is on, or on which room is reserved for it; nil if it is pending or has ended
	Claims []Claim `json:"-"` // what it holds of the devices of its node, sorted by device

	// Attempt counts how often the task was assigned or evicted. Facts about a binding or
	// an eviction name it, so that a late fact about an earlier attempt is recognized.
	Attempt uint64 `json:"-"`

	held     *Shape   // the shape that its room is booked with; nil if it is on no node
	transit  *transit // nil for most tasks; what it points to never changes
	subgroup int      // the subgroup that it requests; Subgroup is 0 while the alternative has no such subgroup
	revision uint64
}

// transit is the part of a task's state that only a few tasks have at a time: those that are
// nominated, are evicted or move.
type transit struct {
	reservedAt     int64     // see Task.ReservedAt
	protectedUntil int64     // see Task.ProtectedUntil
	eviction       *eviction // set while the task is Releasing because of an eviction; nil if it was stopped otherwise
	landing        *Task     // the shadow for which room is reserved on another node, while the task moves
	shadowOf       *Task     // if the task is a shadow: the task that moves
}

// setTransit replaces what transit points to.
func (t *Task) setTransit(to transit) {
	switch {
	case to == transit{}:
		t.transit = nil
	case t.transit == nil || *t.transit != to:
		kept := to
		t.transit = &kept
	}
}

// inTransit returns the transit of the task, which is zero for most tasks.
func (t *Task) inTransit() transit {
	if t.transit == nil {
		return transit{}
	}
	return *t.transit
}

// ReservedAt returns when the task was nominated, in nanoseconds since 1970; 0 if it is not
// nominated.
func (t *Task) ReservedAt() int64 {
	if t.transit == nil {
		return 0
	}
	return t.transit.reservedAt
}

// ProtectedUntil returns a time before which the task is not evicted, because an eviction of it
// was refused; 0: none.
func (t *Task) ProtectedUntil() int64 {
	if t.transit == nil {
		return 0
	}
	return t.transit.protectedUntil
}

// eviction returns how the task was evicted, or nil.
func (t *Task) eviction() *eviction {
	if t.transit == nil {
		return nil
	}
	return t.transit.eviction
}

// TaskRef identifies a task. The alternative is part of it, because tasks of different
// alternatives of a job may have the same name.
type TaskRef struct {
	Job         string `json:"job,omitempty"`         // the ID of the job
	Alternative int    `json:"alternative,omitempty"` // the index of the alternative
	Name        string `json:"name,omitempty"`
}

// ID returns the ID of the task: the job's ID, a slash and the task's name.
func (r TaskRef) ID() string { return r.Job + "/" + r.Name }

// Ref returns the TaskRef of the task. For a shadow it is that of the task that moves.
func (t *Task) Ref() TaskRef {
	if o := t.ShadowOf(); o != nil {
		t = o
	}
	return TaskRef{t.Job.ID, t.Alternative, t.Name}
}

// Status is the state of a task.
type Status uint8

// The states of a task.
const (
	Pending   Status = iota // it has no node
	Bound                   // it was seen on its node
	Nominated               // room is reserved for it, part of which other tasks may still be releasing
	Releasing               // it was evicted or is being stopped, and still holds its room
	Assumed                 // it is assigned to its node, and was not seen there yet
	Succeeded               // it has ended well: it needs no room, and counts towards the minimum
	Failed                  // it has failed: it needs no room, and does not count towards the minimum
)

var statusNames = [...]string{"Pending", "Bound", "Nominated", "Releasing", "Assumed", "Succeeded", "Failed"}

func (s Status) String() string { return statusNames[s] }

// Ended reports whether the task has succeeded or failed. Such a task is on no node, and
// is not placed again.
func (t *Task) Ended() bool { return t.Status == Succeeded || t.Status == Failed }

// KeepsRoom reports whether the task is expected to keep its room: it is not Releasing, or
// it was evicted and is overdue.
func (t *Task) KeepsRoom() bool { return t.Status != Releasing || t.Overdue() }

// Runs reports whether the task is Bound or Assumed.
func (t *Task) Runs() bool { return t.Status.runs() }

func (s Status) runs() bool { return s == Bound || s == Assumed }

// joinSubgroup sets Subgroup to the subgroup that the task requests, or to 0 if the
// alternative does not have it or the job does not request the task any more.
func (t *Task) joinSubgroup(a *Alternative) {
	if t.Subgroup = t.subgroup; t.notRequested || t.subgroup > len(a.Subgroups) {
		t.Subgroup = 0
	}
}

// Sent reports whether the task's binding was sent and its outcome is not known yet.
func (t *Task) Sent() bool { return t.sent }

// EvictedAt returns when the task was evicted, in nanoseconds since 1970. It returns
// false if the task is not Releasing, or is Releasing without an eviction.
func (t *Task) EvictedAt() (at int64, evicted bool) {
	if t.Status != Releasing || t.eviction() == nil {
		return 0, false
	}
	return t.eviction().at, true
}

// Overdue reports whether the task was evicted and has not stopped in time. Its room
// then counts as held again.
func (t *Task) Overdue() bool { return t.eviction() != nil && t.eviction().overdue }

// eviction describes an eviction. A value never changes after it was made.
type eviction struct {
	forJob  string // the ID of the job that room is made for; may be ""
	at      int64
	overdue bool // the task has not stopped in time, and its room counts as held
}

// Slot returns the job's slot, by which Recent.Jobs reports changes. After the job was
// removed, another job may get its slot.
func (j *Job) Slot() int { return int(j.slot) }

// Tasks returns the tasks of the chosen alternative, or of the first one if none is
// chosen.
func (j *Job) Tasks() []*Task {
	if len(j.Alternatives) == 0 {
		return nil
	}
	return j.Alternatives[max(j.Chosen, 0)].Tasks
}

// each calls visit with the tasks of all alternatives until it returns false.
func (j *Job) each(visit func(*Task) bool) {
	for a := range j.Alternatives {
		for _, t := range j.Alternatives[a].Tasks {
			if !visit(t) {
				return
			}
		}
	}
}

// Placed returns how many tasks are placed; see Task.Placed.
func (j *Job) Placed() int {
	return count(j.Tasks(), (*Task).Placed)
}

// Missing returns how many tasks are neither placed nor ended.
func (j *Job) Missing() int { return len(j.Tasks()) - j.Placed() - j.Ended() }

// Ended returns how many tasks have ended.
func (j *Job) Ended() int {
	if j.ended == 0 {
		return 0
	}
	return count(j.Tasks(), (*Task).Ended)
}

func count(tasks []*Task, which func(*Task) bool) int {
	n := 0
	for _, t := range tasks {
		if which(t) {
			n++
		}
	}
	return n
}

// HasMinimum reports whether the job has its minimum: enough of its tasks are placed or
// have succeeded.
func (j *Job) HasMinimum() bool {
	return j.Chosen >= 0 && j.Alternatives[j.Chosen].Enough((*Task).Placed)
}

// IsSurplus reports whether the task is surplus: the running tasks of the job are its
// minimum without the task, and the subgroups of the task keep their minima.
func (j *Job) IsSurplus(t *Task) bool {
	if j.Chosen < 0 {
		return false
	}
	a := &j.Alternatives[j.Chosen]
	return a.Enough(func(o *Task) bool { return o != t && o.Runs() }) && (t.Subgroup == 0 || a.keeps(t.Subgroup, func(o *Task) bool { return o == t }))
}

// Placed reports whether the task is nominated, assumed or bound, or moves, so that room
// is reserved for it on another node.
func (t *Task) Placed() bool {
	return t.Runs() || t.Status == Nominated || t.Landing() != nil
}

// Running reports whether any task of the job runs.
func (j *Job) Running() bool {
	return slices.ContainsFunc(j.Tasks(), (*Task).Runs)
}
