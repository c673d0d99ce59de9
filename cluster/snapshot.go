package cluster

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Snapshot is a State as a plain value. It holds everything that decisions depend on. It
// does not hold versions, slots and sums, which State computes.
type Snapshot struct {
	Now     int64         `json:"now,omitempty"` // when the last session was opened, in nanoseconds
	Queues  []QueueRecord `json:"queues,omitempty"`
	Nodes   []NodeRecord  `json:"nodes,omitempty"`
	Budgets []Budget      `json:"budgets,omitempty"`
	Jobs    []JobRecord   `json:"jobs,omitempty"`
	Sets    []SetRecord   `json:"sets,omitempty"`
	Tasks   []TaskRecord  `json:"tasks,omitempty"`  // tasks that are placed, or were before
	Unseen  []TaskSeen    `json:"unseen,omitempty"` // reports about tasks that are not known yet
	Demand  Demand        `json:"demand,omitzero"`  // what tasks that arrived have requested
	Learnt  []Learn       `json:"learnt,omitempty"` // the parameters of plugins
}

// QueueRecord is a queue in a snapshot.
type QueueRecord struct {
	Queue    Queue     `json:"queue"`
	Revision uint64    `json:"revision,omitempty"`
	Since    int64     `json:"since,omitempty"` // end of the last interval of its past, in nanoseconds
	Held     Resources `json:"held,omitempty"`  // what it has used since then
}

// NodeRecord is a node in a snapshot.
type NodeRecord struct {
	Node     Node   `json:"node"`
	Revision uint64 `json:"revision,omitempty"`
	Absent   bool   `json:"absent,omitempty"`  // the node was removed or never reported, and tasks are on it
	Unknown  bool   `json:"unknown,omitempty"` // the node was never reported
}

// JobRecord is a job in a snapshot.
type JobRecord struct {
	Job      Job               `json:"job"`
	Revision uint64            `json:"revision,omitempty"`
	Absent   bool              `json:"absent,omitempty"` // the job was never reported, or was removed; only its tasks are known
	Tasks    map[string]uint64 `json:"tasks,omitempty"`  // revisions of tasks, by name
}

// SetRecord is a Set in a snapshot. Only a Set with a group or a scaled number has one.
type SetRecord struct {
	Name   string    `json:"name"`
	Group  *GroupKey `json:"group,omitempty"`  // the node group that was chosen for its jobs
	Scaled *int      `json:"scaled,omitempty"` // the number of SetScaled
}

// TaskRecord is the status of a task in a snapshot: where it is and what it holds. The
// spec of the task is in the record of its job.
type TaskRecord struct {
	Task           TaskRef   `json:"task"`
	Status         Status    `json:"status,omitempty"`
	Node           string    `json:"node,omitempty"`
	Devices        []Holding `json:"devices,omitempty"`
	DevicesUnknown bool      `json:"counted,omitempty"`  // the devices were not reported; State has chosen them
	Held           *Shape    `json:"held,omitempty"`     // what it was placed with, if that differs from what it requests now
	NotRequested   bool      `json:"extra,omitempty"`    // its job does not request it any more
	Started        int64     `json:"started,omitempty"`  // see Task.Started
	ReservedAt     int64     `json:"promised,omitempty"` // when its room was reserved, in nanoseconds
	Attempt        uint64    `json:"attempt,omitempty"`  // number of assignments and evictions so far
	ProtectedUntil int64     `json:"spared,omitempty"`   // until when it is not evicted again after a refused eviction, in nanoseconds
	Sent           bool      `json:"sent,omitempty"`     // its binding was sent and is not confirmed
	Evicted        bool      `json:"evicted,omitempty"`  // it was evicted by a decision
	For            string    `json:"for,omitempty"`      // the job that it was evicted for
	At             int64     `json:"at,omitempty"`       // when it was evicted, in nanoseconds
	Overdue        bool      `json:"overdue,omitempty"`  // it was evicted and did not leave in time, so its room counts as held
	Landing        *Landing  `json:"landing,omitempty"`
}

// Landing is the room that is reserved on another node for a task that moves.
type Landing struct {
	Node       string    `json:"node"`
	Devices    []Holding `json:"devices,omitempty"`
	ReservedAt int64     `json:"promised,omitempty"` // when the room was reserved, in nanoseconds
	Held       *Shape    `json:"held,omitempty"`     // what is reserved, if that differs from what the task requests now
}

// Digest returns a hash of everything that decisions depend on. Equal States have equal
// digests, and States with equal digests make the same decisions.
func (s *State) Digest() string {
	h := sha256.New()
	e := json.NewEncoder(h)
	s.records(func(record any) {
		switch r := record.(type) { // decisions do not depend on revisions, which the sources of facts assign
		case QueueRecord:
			r.Revision = 0
			record = r
		case NodeRecord:
			r.Revision = 0
			record = r
		case JobRecord:
			r.Revision, r.Tasks = 0, nil
			record = r
		}
		_ = e.Encode(record) // writing to a hash does not fail, and every record can be encoded
	})
	return hex.EncodeToString(h.Sum(nil))
}

// Snapshot returns a copy of the State as a value. Its parts may be shared with the
// State and must not be changed.
func (s *State) Snapshot() *Snapshot {
	out := &Snapshot{}
	s.records(func(record any) {
		switch r := record.(type) {
		case int64:
			out.Now = r
		case QueueRecord:
			out.Queues = append(out.Queues, r)
		case NodeRecord:
			out.Nodes = append(out.Nodes, r)
		case Budget:
			out.Budgets = append(out.Budgets, r)
		case JobRecord:
			out.Jobs = append(out.Jobs, r)
		case SetRecord:
			out.Sets = append(out.Sets, r)
		case TaskRecord:
			out.Tasks = append(out.Tasks, r)
		case TaskSeen:
			out.Unseen = append(out.Unseen, r)
		case Demand:
			out.Demand = r
		case Learn:
			out.Learnt = append(out.Learnt, r)
		}
	})
	return out
}

// records calls visit with each record of a snapshot, in a fixed order.
func (s *State) records(visit func(any)) {
	visit(s.tree.now)
	for _, q := range s.tree.Queues() {
		visit(QueueRecord{*q, q.revision, q.current.since, q.current.used})
	}
	for _, n := range s.fleet.all() {
		visit(n.record())
	}
	for _, b := range s.tree.budgets {
		visit(*b)
	}
	jobs := s.Jobs()
	for _, j := range jobs {
		visit(j.record())
	}
	for _, name := range slices.Sorted(maps.Keys(s.sets.byName)) {
		set := s.sets.byName[name]
		r := SetRecord{Name: name, Group: set.group}
		if set.scaled >= 0 {
			r.Scaled = &set.scaled
		}
		if r.Group != nil || r.Scaled != nil {
			visit(r)
		}
	}
	for _, j := range jobs {
		for t := range j.each {
			if t.isPlacedOrEnded() || t.Attempt > 0 || t.notRequested {
				visit(t.record())
			}
		}
	}
	unseen := slices.Collect(maps.Values(s.roster.earlySightings))
	slices.SortFunc(unseen, func(a, b TaskSeen) int {
		return cmp.Or(strings.Compare(a.Task.ID(), b.Task.ID()), cmp.Compare(a.Task.Alternative, b.Task.Alternative))
	})
	for _, seen := range unseen {
		visit(seen)
	}
	visit(s.demand.Demand.copied())
	for _, r := range s.parameters.records() {
		visit(r)
	}
}

func (n *Node) record() NodeRecord {
	r := NodeRecord{Node: *n.clone(), Revision: n.revision, Absent: n.absent, Unknown: n.unreported}
	r.Node.Devices = slices.DeleteFunc(r.Node.Devices, func(d Device) bool { return d.Gone && d.Idle() })
	first := slices.IndexFunc(r.Node.Devices, func(d Device) bool { return d.Gone })
	if first >= 0 { // these devices are at the end, and their order has no meaning
		slices.SortFunc(r.Node.Devices[first:], func(a, b Device) int { return strings.Compare(a.UUID, b.UUID) })
	}
	return r
}

func (j *Job) record() JobRecord {
	r := JobRecord{Job: *j, Revision: j.revision, Absent: j.absent}
	r.Job.Alternatives = copyAlternatives(j.Alternatives)
	for t := range j.each {
		if t.revision != 0 {
			if r.Tasks == nil {
				r.Tasks = map[string]uint64{}
			}
			r.Tasks[t.Name] = t.revision
		}
	}
	return r
}

func (t *Task) record() TaskRecord {
	r := TaskRecord{Task: t.Ref(), Status: t.Status, DevicesUnknown: t.devicesUnknown, NotRequested: t.notRequested, Started: t.Started, ReservedAt: t.ReservedAt(), Attempt: t.Attempt, ProtectedUntil: t.ProtectedUntil(), Sent: t.sent}
	if t.Node != nil {
		r.Node, r.Devices = t.Node.Name, t.Node.holdings(t.Claims)
	}
	if t.held != nil && !t.held.sameInterned(t.Shape) {
		r.Held = t.held
	}
	if e := t.eviction(); e != nil {
		r.Evicted, r.For, r.At, r.Overdue = true, e.forJob, e.at, e.overdue
	}
	if l := t.Landing(); l != nil {
		r.Landing = &Landing{Node: l.Node.Name, Devices: l.Node.holdings(l.Claims), ReservedAt: l.ReservedAt()}
		if !l.held.sameInterned(t.Shape) {
			r.Landing.Held = l.held
		}
	}
	return r
}
