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

// Snapshot is a State as a plain value: everything that decisions depend on, and
// no version, slot, count or cache.
type Snapshot struct {
	Now     int64         `json:"now,omitempty"`
	Queues  []QueueRecord `json:"queues,omitempty"`
	Nodes   []NodeRecord  `json:"nodes,omitempty"`
	Budgets []Budget      `json:"budgets,omitempty"`
	Jobs    []JobRecord   `json:"jobs,omitempty"`
	Sets    []SetRecord   `json:"sets,omitempty"`
	Tasks   []TaskRecord  `json:"tasks,omitempty"` // those that were ever placed
	Unseen  []TaskSeen    `json:"unseen,omitempty"`
}

// QueueRecord is a queue in a snapshot.
type QueueRecord struct {
	Queue    Queue  `json:"queue"`
	Revision uint64 `json:"revision,omitempty"`
	// Since and Held are what it has used since the last interval of its past.
	Since int64     `json:"since,omitempty"`
	Held  Resources `json:"held,omitempty"`
}

// NodeRecord is a node in a snapshot.
type NodeRecord struct {
	Node     Node   `json:"node"`
	Revision uint64 `json:"revision,omitempty"`
	Absent   bool   `json:"absent,omitempty"`  // it is gone, and tasks are on it
	Unknown  bool   `json:"unknown,omitempty"` // it was never reported
}

// JobRecord is a job in a snapshot.
type JobRecord struct {
	Job      Job               `json:"job"`
	Revision uint64            `json:"revision,omitempty"`
	Absent   bool              `json:"absent,omitempty"` // only its tasks are known
	Tasks    map[string]uint64 `json:"tasks,omitempty"`  // revisions of tasks, by name
}

// SetRecord is a set of replicas in a snapshot.
type SetRecord struct {
	Name   string `json:"name"`
	Group  *Key   `json:"group,omitempty"`
	Scaled *int   `json:"scaled,omitempty"`
}

// TaskRecord is where a task stands, in a snapshot.
type TaskRecord struct {
	Task     TaskRef   `json:"task"`
	Status   Status    `json:"status,omitempty"`
	Node     string    `json:"node,omitempty"`
	Devices  []Holding `json:"devices,omitempty"`
	Counted  bool      `json:"counted,omitempty"` // its devices are not known
	Held     *Shape    `json:"held,omitempty"`    // what it was placed with, where that is not what it requests now
	Extra    bool      `json:"extra,omitempty"`   // its job does not request it any more
	Started  int64     `json:"started,omitempty"`
	Promised int64     `json:"promised,omitempty"`
	Attempt  uint64    `json:"attempt,omitempty"`
	Spared   int64     `json:"spared,omitempty"`
	Sent     bool      `json:"sent,omitempty"`
	Evicted  bool      `json:"evicted,omitempty"`
	For      string    `json:"for,omitempty"`
	At       int64     `json:"at,omitempty"`
	Overdue  bool      `json:"overdue,omitempty"`
	Landing  *Landing  `json:"landing,omitempty"`
}

// Landing is room that is reserved for a task that moves.
type Landing struct {
	Node     string    `json:"node"`
	Devices  []Holding `json:"devices,omitempty"`
	Promised int64     `json:"promised,omitempty"`
	Held     *Shape    `json:"held,omitempty"` // what is reserved, where that is not what the task requests now
}

// Digest is a fingerprint of everything that decisions depend on: two States with
// the same digest decide alike.
func (s *State) Digest() string {
	h := sha256.New()
	e := json.NewEncoder(h)
	s.records(func(record any) {
		switch r := record.(type) { // revisions are the sources' own, and decide nothing
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
		_ = e.Encode(record) // a hash does not fail, and records can be encoded
	})
	return hex.EncodeToString(h.Sum(nil))
}

// Snapshot copies the State into a value.
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
		}
	})
	return out
}

// records visits the State, object by object, in order.
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
			if t.isPlacedOrEnded() || t.Attempt > 0 || t.extra {
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
}

func (n *Node) record() NodeRecord {
	r := NodeRecord{Node: *n.clone(), Revision: n.revision, Absent: n.absent, Unknown: n.unreported}
	r.Node.Devices = slices.DeleteFunc(r.Node.Devices, func(d Device) bool { return d.Gone && d.Idle() })
	first := slices.IndexFunc(r.Node.Devices, func(d Device) bool { return d.Gone })
	if first >= 0 { // they come last, and their order means nothing
		slices.SortFunc(r.Node.Devices[first:], func(a, b Device) int { return strings.Compare(a.UUID, b.UUID) })
	}
	return r
}

func (j *Job) record() JobRecord {
	r := JobRecord{Job: *j, Revision: j.revision, Absent: j.absent}
	r.Job.Alternatives = copied(j.Alternatives)
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
	r := TaskRecord{Task: t.Ref(), Status: t.Status, Counted: t.counted, Extra: t.extra, Started: t.Started, Promised: t.Promised, Attempt: t.Attempt, Spared: t.Spared, Sent: t.sent}
	if t.Node != nil {
		r.Node, r.Devices = t.Node.Name, t.Node.holdings(t.Claims)
	}
	if t.held != nil && !t.held.alike(t.Shape) {
		r.Held = t.held
	}
	if e := t.eviction; e != nil {
		r.Evicted, r.For, r.At, r.Overdue = true, e.forJob, e.at, e.overdue
	}
	if l := t.landing; l != nil {
		r.Landing = &Landing{Node: l.Node.Name, Devices: l.Node.holdings(l.Claims), Promised: l.Promised}
		if !l.held.alike(t.Shape) {
			r.Landing.Held = l.held
		}
	}
	return r
}
