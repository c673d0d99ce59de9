package cluster

import (
	"math"
	"slices"
)

// Job is tasks that stand or fall together. It may come in several
// alternatives, tried in order; the first that places wins.
type Job struct {
	// ID is kind and name, unique in a State: "job/train", "pod/default/web-0".
	ID string `json:"id"`
	// UID tells jobs apart that have the same ID one after the other; "": not known.
	UID       string `json:"uid,omitempty"`
	Namespace string `json:"namespace,omitempty"` // the namespace that its manifest was in
	Queue     string `json:"queue,omitempty"`     // the name of its queue
	Priority  int32  `json:"priority,omitempty"`  // jobs of a higher priority come first in their queue
	// Created orders jobs by age, in nanoseconds; 0 is older than everything.
	Created     int64 `json:"created,omitempty"`
	Preemptible bool  `json:"preemptible,omitempty"` // its tasks may be evicted and moved
	// RunFor is how long it runs once its minimum has started, in nanoseconds; 0:
	// not known. Simulations end it then; decisions do not look at it.
	RunFor int64 `json:"runFor,omitempty"`
	// StaleGrace is how long it may run below its minimum before what is left of it
	// is evicted, in nanoseconds; below 0: for good; nil: as the profile says.
	StaleGrace *int64 `json:"staleGrace,omitempty"`
	// PreemptionDelay is for how long, in nanoseconds, it evicts and moves nothing
	// after it was created or evicted.
	PreemptionDelay int64             `json:"preemptionDelay,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`       // by which affinity terms and disruption budgets find it
	Alternatives    []Alternative     `json:"alternatives,omitempty"` // its forms, the first one preferred
	// Affinity to other jobs; what concerns nodes alone is in the shapes.
	Affinity []JobTerm `json:"affinity,omitempty"`
	// Set is the set of replicas the job belongs to.
	Set Set `json:"set,omitzero"`
	// Displaced are the jobs that tasks were evicted of for this one, by ID in
	// order: no job is evicted twice for the same one.
	Displaced []string `json:"displaced,omitempty"`
	// Health is what is known of a replica that runs.
	Health  Health  `json:"health,omitempty"`
	Offload Offload `json:"offload,omitzero"` // how many layers of a replica that runs are on devices
	// Retired jobs go for good: their set has enough without them. They are not pending.
	Retired bool `json:"retired,omitempty"`
	// Open jobs gain and lose tasks one at a time, as pods do: they have one
	// alternative, and are considered once they have as many tasks as its minimum.
	Open bool `json:"open,omitempty"`
	// Remarks are sentences for the answer to why. Decisions do not look at them.
	Remarks []string `json:"remarks,omitempty"`
	// Torn is when it was first seen to run below its minimum; 0: it does not.
	Torn int64 `json:"torn,omitempty"`
	// Evicted is when a task of it was evicted last; 0: never. It is kept for jobs
	// with a PreemptionDelay.
	Evicted int64 `json:"evicted,omitempty"`
	// Parked is how long the job is left alone after a refusal; nil: it was not refused.
	Parked *Parked `json:"parked,omitempty"`

	// Chosen is the alternative its tasks were placed from; -1 while none is placed.
	Chosen int `json:"-"`

	slot     int
	spec     uint64 // version of jobs when it was last given another spec
	revision uint64
	absent   bool // only its tasks are known
	attached int  // tasks that are on a node, however they stand there
	expected int  // landings that are held for those of them that move
	ended    int  // tasks that have ended
	pending  bool // it is in roster.pending
	seat     int  // its place in roster.byQueue
}

// SpecVersion is the version of jobs (Recent.JobsVersion) at which the job was last
// given another spec.
func (j *Job) SpecVersion() uint64 { return j.spec }

// jobStatus is what decisions and time have made of a job.
type jobStatus struct {
	torn      int64
	evicted   int64
	displaced []string
	retired   bool
	parked    *Parked // never changed in place
}

func (j *Job) status() jobStatus {
	return jobStatus{j.Torn, j.Evicted, j.Displaced, j.Retired, j.Parked}
}

// DelayEnds is when the job's PreemptionDelay ends; 0: it has none. A job that was
// created at no known time has none before its first eviction.
func (j *Job) DelayEnds() int64 {
	from := max(j.Created, j.Evicted)
	if j.PreemptionDelay <= 0 || from <= 0 {
		return 0
	}
	if end, ok := AddOverflow(from, j.PreemptionDelay); ok {
		return end
	}
	return math.MaxInt64
}

// Set names the replicas a job is one of, and how many there should be.
type Set struct {
	Name    string `json:"name,omitempty"`
	Desired int    `json:"desired,omitempty"`
	// Group is the group that was chosen for all of them; nil: none yet.
	Group *Key `json:"group,omitempty"`
}

// Health is how a replica is.
type Health string

// The states of health. "" is not known.
const (
	HealthRunning  Health = "Running"
	HealthStarting Health = "Starting"
	HealthFailed   Health = "Failed"
)

// Offload is how many of a replica's layers are on devices; Total 0: not known.
type Offload struct {
	Layers int `json:"layers,omitempty"`
	Total  int `json:"total,omitempty"`
}

// Alternative is one form a job may take.
type Alternative struct {
	Name  string  `json:"name,omitempty"`  // by which its manifest calls it; may be ""
	Tasks []*Task `json:"tasks,omitempty"` // in the order in which they are written
	// Min of the tasks must be placed together, or none is. Tasks beyond it are
	// surplus: placed if there is room.
	Min int `json:"min,omitempty"`
	// Whole asks for whole nodes of one group; nil: nodes are chosen one by one.
	Whole *WholeNodes `json:"whole,omitempty"`
	// Subgroups are parts of the job with minima of their own, beside Min.
	Subgroups []Subgroup `json:"subgroups,omitempty"`
	// MinSubgroups is how many of the subgroups that are in no other must have their
	// minimum; 0: all. The rest is surplus, each as a whole.
	MinSubgroups int      `json:"minSubgroups,omitempty"`
	Topology     Topology `json:"topology,omitzero"` // how near each other the tasks must be
	// Running forms are those of tasks that run so already: what asked for them
	// may have changed since. Nothing is placed anew in one, and they come last.
	Running bool `json:"running,omitempty"`
}

// Topology keeps tasks near each other. A level is a label; nodes with the same
// value of it form a domain, and nodes without it are in none.
type Topology struct {
	Required  string   `json:"required,omitempty"`  // all tasks in one domain of this level; "": anywhere
	Preferred []string `json:"preferred,omitempty"` // narrowest first: in as few domains of each as possible
}

// None reports whether anything goes.
func (t *Topology) None() bool { return t.Required == "" && len(t.Preferred) == 0 }

// Counts reports whether the task, where it is placed, counts towards the minimum:
// what is not requested any more does not.
func (a *Alternative) Counts(t *Task) bool { return !t.extra || a.Running }

// Enough reports whether the tasks that count make the minimum, and those of
// each subgroup make its own. What succeeded counts, and what failed does not.
func (a *Alternative) Enough(counts func(*Task) bool) bool {
	var room [8]int
	parts := room[:0]
	parts = append(parts, make([]int, len(a.Subgroups))...)
	total := 0
	for _, t := range a.Tasks {
		if !a.counts(t, counts) {
			continue
		}
		total++
		if t.Subgroup > 0 && t.Subgroup <= len(parts) { // a task may outlive its subgroup
			parts[t.Subgroup-1]++
		}
	}
	return total >= a.Min && (len(parts) == 0 || a.Met(parts))
}

// WholeNodes places replicas on whole nodes of one group, never two on a node.
type WholeNodes struct {
	Replicas        int   `json:"replicas,omitempty"`
	NodesPerReplica int   `json:"nodesPerReplica,omitempty"`
	Memory          Bytes `json:"memory,omitempty"` // device memory that one replica needs, over all its nodes
	// Only is the group whose nodes these figures are for; nil: they are for every
	// group. Alternatives next to each other that each name their group are one
	// choice: their groups are compared by score.
	Only *Key `json:"only,omitempty"`
	// Apart lets each replica of a set be on a group of its own; otherwise all go
	// where the first went.
	Apart bool `json:"apart,omitempty"`
	// Usable is how much of a node's device memory counts; 0: all of it.
	Usable Bytes `json:"usable,omitempty"`
}

// Task is the smallest thing placed: it goes onto one node.
type Task struct {
	// ID is unique in a State: the job's ID, a slash and the task's name.
	ID   string `json:"-"`
	Name string `json:"name"` // "worker-0"
	// UID tells tasks apart that have the same name one after the other; "": not known.
	UID   string `json:"uid,omitempty"`
	Role  string `json:"role,omitempty"`  // "worker"
	Index int    `json:"index,omitempty"` // its number among the tasks of its role, from 0
	Job   *Job   `json:"-"`               // the job that it belongs to
	Shape *Shape `json:"shape,omitempty"` // what it asks for, shared with all tasks that look alike
	// Alternative is the place of its form among the job's; AddJob sets it.
	Alternative int `json:"-"`
	// Subgroup is its place among the alternative's, counted from 1; 0: in none.
	Subgroup int `json:"subgroup,omitempty"`
	// Started is when it was bound; 0: before the first session.
	Started int64 `json:"-"`
	// Promised is when its nomination was made.
	Promised int64 `json:"-"`

	Status Status  `json:"-"` // where it stands: Pending, Bound and so on
	Node   *Node   `json:"-"` // nil while pending
	Claims []Claim `json:"-"` // what it holds of the devices of its node

	// Attempt counts how often it was assigned or evicted. Answers name it, so that a
	// late one to an earlier attempt is known.
	Attempt uint64 `json:"-"`
	// Spared: it is not evicted before then, since an eviction was refused.
	Spared int64 `json:"-"`

	held     *Shape    // what its room is booked with; nil while pending
	eviction *eviction // of a task that is Releasing; nil where something else told it to stop
	sent     bool      // its binding was sent, and the answer is not known
	counted  bool      // its devices are not known: State has chosen as many
	subgroup int       // that it requests; Subgroup is 0 while the job has no such one
	extra    bool      // its job does not request it any more: it is dropped once it has left
	alike    bool      // all tasks of its alternative have its shape
	revision uint64
	// releasing is its place in roster.releasing, while it is there.
	releasing int
	landing   *Task // holds room for it elsewhere, while it moves
	shadows   *Task // what it stands for, if it is a shadow
}

// TaskRef names a task. Forms of a job may have tasks of the same name, so the
// alternative belongs to it.
type TaskRef struct {
	Job         string `json:"job,omitempty"` // its ID
	Alternative int    `json:"alternative,omitempty"`
	Name        string `json:"name,omitempty"`
}

// ID is that of the task.
func (r TaskRef) ID() string { return r.Job + "/" + r.Name }

// Ref names the task; a shadow has the name of what it stands for.
func (t *Task) Ref() TaskRef {
	if t.shadows != nil {
		t = t.shadows
	}
	return TaskRef{t.Job.ID, t.Alternative, t.Name}
}

// Status is where a task stands.
type Status uint8

// The states of a task.
const (
	Pending   Status = iota
	Bound            // on its node
	Nominated        // has reserved room, part of which is still releasing
	Releasing        // evicted, but still there
	Assumed          // assigned to its node, and not yet seen there
	Succeeded        // has ended well: it needs no room, and counts for the minimum
	Failed           // has ended otherwise: it counts for nothing
)

var statusNames = [...]string{"Pending", "Bound", "Nominated", "Releasing", "Assumed", "Succeeded", "Failed"}

func (s Status) String() string { return statusNames[s] }

// Ended reports whether the task has ended. It is on no node, and is not placed again.
func (t *Task) Ended() bool { return t.Status == Succeeded || t.Status == Failed }

// Stays reports whether a task on a node counts as there: it is not one that was evicted
// or told to stop and is leaving. An evicted task that does not leave in time stays.
func (t *Task) Stays() bool { return t.Status != Releasing || t.Overdue() }

// Runs reports whether the task is on its node, or was assigned to it.
func (t *Task) Runs() bool { return t.Status.runs() }

func (s Status) runs() bool { return s == Bound || s == Assumed }

// join puts the task into the subgroup that it requests, if the alternative has it.
func (t *Task) join(a *Alternative) {
	if t.Subgroup = t.subgroup; t.extra || t.subgroup > len(a.Subgroups) {
		t.Subgroup = 0
	}
}

// Sent reports whether the task's binding was sent and not answered yet.
func (t *Task) Sent() bool { return t.sent }

// EvictedAt is when the task was evicted; false where it was not, or something
// else told it to stop.
func (t *Task) EvictedAt() (at int64, evicted bool) {
	if t.Status != Releasing || t.eviction == nil {
		return 0, false
	}
	return t.eviction.at, true
}

// Overdue reports whether the task was evicted and does not leave: its room counts as held.
func (t *Task) Overdue() bool { return t.eviction != nil && t.eviction.overdue }

// eviction is what an eviction was for. It never changes.
type eviction struct {
	forJob  string
	at      int64
	overdue bool // the task does not leave: its room counts as held
}

// Slot is the job's number in its State. Another job may have it once this one is gone.
func (j *Job) Slot() int { return j.slot }

// Tasks are those of the chosen alternative, or of the first while none is chosen.
func (j *Job) Tasks() []*Task {
	if len(j.Alternatives) == 0 {
		return nil
	}
	return j.Alternatives[max(j.Chosen, 0)].Tasks
}

// each visits the tasks of all alternatives.
func (j *Job) each(visit func(*Task) bool) {
	for a := range j.Alternatives {
		for _, t := range j.Alternatives[a].Tasks {
			if !visit(t) {
				return
			}
		}
	}
}

// Placed counts the tasks that hold room now or have reserved some.
func (j *Job) Placed() int {
	return count(j.Tasks(), (*Task).Placed)
}

// Missing counts the tasks that are neither placed nor ended.
func (j *Job) Missing() int { return len(j.Tasks()) - j.Placed() - j.Ended() }

// Ended counts the tasks that have ended.
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

// Stands reports whether what is placed of the job makes its minimum.
func (j *Job) Stands() bool {
	return j.Chosen >= 0 && j.Alternatives[j.Chosen].Enough((*Task).Placed)
}

// Spares reports whether what runs of the job makes its minimum without the task, and
// the subgroups that it is in keep their own.
func (j *Job) Spares(t *Task) bool {
	if j.Chosen < 0 {
		return false
	}
	a := &j.Alternatives[j.Chosen]
	return a.Enough(func(o *Task) bool { return o != t && o.Runs() }) && (t.Subgroup == 0 || a.keeps(t.Subgroup, func(o *Task) bool { return o == t }))
}

// Placed reports whether the task holds room now or has reserved some.
func (t *Task) Placed() bool {
	return t.Runs() || t.Status == Nominated || t.landing != nil
}

// Running reports whether any task of the job runs.
func (j *Job) Running() bool {
	return slices.ContainsFunc(j.Tasks(), (*Task).Runs)
}
