package live

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// View is the cluster at one position, for lists and pages. It is immutable, and shares
// nothing with a State.
type View struct {
	Position uint64
	Now      int64   // when the last session was opened
	Queues   []Queue // by name

	nodes table[Node]
	jobs  table[Job]
	// The sorted lists are made when they are first requested.
	nodeList func() []Node
	jobList  func() []Job
}

// Node is a node in a view.
type Node struct {
	Name      string
	Group     string // the product and number of its devices; "": it has no devices
	Phase     cluster.Phase
	Closed    bool // it takes no new tasks
	Resources []Resource
	Devices   []Device
	Tasks     []Task // tasks that are on it, or for which room is reserved on it
}

// Resource is how much of a resource a node has, and how much of it is used.
type Resource struct {
	Name           string
	Capacity, Used int64
}

// Device is a device of a node.
type Device struct {
	UUID, Product string
	Memory, Free  cluster.Bytes
	Share         cluster.Milli // how much of it is held or reserved
	Lost          bool
}

// Task is a task in a view.
type Task struct {
	cluster.TaskRef
	Status  cluster.Status
	Node    string   // "": on none
	Devices []string // UUIDs of the devices that it holds
	Started int64    // in nanoseconds since 1970; 0: it does not run, or its start is not known
}

// Job is a job in a view.
type Job struct {
	ID, Namespace, Queue string
	Priority             int32
	Created              int64
	Preemptible, Retired bool
	Pending              bool // some of its tasks are on no node
	Tasks                []Task
	// Refusal is the last refusal of a pending job; nil: none. All readers of the view
	// share it and must not change it.
	Refusal *engine.Refusal
}

// Queue is a queue in a view.
type Queue struct {
	Name, Parent        string
	Tier                cluster.Tier
	Priority            int32
	Used, Quota, Limits cluster.Resources
}

// Node returns the node with the name.
func (v *View) Node(name string) (Node, bool) { return v.nodes.get(name) }

// Job returns the job with the ID.
func (v *View) Job(id string) (Job, bool) { return v.jobs.get(id) }

// Nodes returns all nodes, by name.
func (v *View) Nodes() []Node { return v.nodeList() }

// Jobs returns all jobs, by ID.
func (v *View) Jobs() []Job { return v.jobList() }

// tables are the rows from which views are made. They follow one State.
type tables struct {
	nodes         table[Node]
	jobs          table[Job]
	queues        []Queue
	newNodes      changed
	newJobs       changed
	queuesVersion uint64 // the version of queues at which the rows were made
	refusals      map[string]lastRefusal
	latest        *View
}

// lastRefusal is the last refusal of a job.
type lastRefusal struct {
	job     *cluster.Job // another job may have the same ID later
	refusal *engine.Refusal
}

// start initializes the tables.
func (t *tables) start(s *cluster.State) {
	t.refusals = map[string]lastRefusal{}
	t.record(s, nil)
}

// record records which jobs changed, and the refusals of a session. It is called after each
// change and not only when a view is made, so that a refusal is dropped as soon as its job
// is placed or removed.
func (t *tables) record(s *cluster.State, refusals []*engine.Refusal) {
	s.View().Recent().Jobs(t.newJobs.version, func(slot int) {
		was, id := t.newJobs.name(slot), ""
		j := s.View().JobAt(slot)
		if j != nil {
			id = j.ID
		}
		t.newJobs.setName(slot, id)
		if _, hasRow := t.jobs.get(was); was != id && !hasRow && s.Job(was) == nil {
			t.newJobs.drop(was) // it came and went between two views
		}
		if r, known := t.refusals[was]; known && (r.job != j || !s.View().IsPending(j)) {
			delete(t.refusals, was)
		}
	})
	t.newJobs.version = s.View().Recent().JobsVersion()
	for _, r := range refusals {
		j := s.Job(r.Job)
		if j == nil || !s.View().IsPending(j) {
			continue
		}
		t.refusals[r.Job] = lastRefusal{j, r}
		t.newJobs.add(r.Job)
	}
}

// view returns the view of the position. It returns the last view if nothing changed since.
func (t *tables) view(s *cluster.State, position uint64) *View {
	if t.latest != nil && t.latest.Position == position {
		return t.latest
	}
	s.View().Recent().Nodes(t.newNodes.version, func(slot int) {
		name := ""
		if n := s.View().At(slot); n != nil {
			name = n.Name
		}
		t.newNodes.setName(slot, name)
	})
	t.newNodes.version = s.Version()
	t.nodes = t.nodes.with(t.newNodes.take(), func(name string) (Node, bool) { return nodeRow(s.Node(name)) })
	t.jobs = t.jobs.with(t.newJobs.take(), func(id string) (Job, bool) {
		j := s.Job(id)
		if j == nil {
			return Job{}, false
		}
		return jobRow(j, s.View().IsPending(j), t.refusals[id].refusal), true
	})
	if v := s.View().Recent().QueuesVersion(); v != t.queuesVersion || t.queues == nil {
		t.queuesVersion, t.queues = v, queueRows(s)
	}
	nodes, jobs := t.nodes, t.jobs
	t.latest = &View{
		Position: position, Now: s.Now(), Queues: t.queues, nodes: nodes, jobs: jobs,
		nodeList: sync.OnceValue(func() []Node { return nodes.list(func(a, b Node) int { return strings.Compare(a.Name, b.Name) }) }),
		jobList:  sync.OnceValue(func() []Job { return jobs.list(func(a, b Job) int { return strings.Compare(a.ID, b.ID) }) }),
	}
	return t.latest
}

func nodeRow(n *cluster.Node) (Node, bool) {
	if n == nil {
		return Node{}, false
	}
	row := Node{Name: n.Name, Phase: n.Phase, Closed: n.Closed()}
	if g := n.Group(); g != nil {
		row.Group = g.Key.String()
	}
	for _, l := range n.Resources {
		row.Resources = append(row.Resources, Resource{l.Name, l.Capacity, l.Used})
	}
	for i := range n.Devices {
		d := &n.Devices[i]
		row.Devices = append(row.Devices, Device{d.UUID, d.Product, d.Memory, d.Free(), d.Use.Milli, d.Lost})
	}
	for _, t := range n.Tasks {
		row.Tasks = append(row.Tasks, taskRow(t))
	}
	slices.SortFunc(row.Tasks, func(a, b Task) int {
		return cmp.Or(strings.Compare(a.ID(), b.ID()), cmp.Compare(a.Alternative, b.Alternative), cmp.Compare(a.Status, b.Status))
	})
	return row, true
}

func taskRow(t *cluster.Task) Task {
	row := Task{TaskRef: t.Ref(), Status: t.Status, Started: t.Started}
	if t.Node == nil {
		return row
	}
	row.Node = t.Node.Name
	for _, c := range t.Claims {
		row.Devices = append(row.Devices, t.Node.Devices[c.Device].UUID)
	}
	return row
}

func jobRow(j *cluster.Job, pending bool, refusal *engine.Refusal) Job {
	row := Job{
		ID: j.ID, Namespace: j.Namespace, Queue: j.Queue, Priority: j.Priority, Created: j.Created,
		Preemptible: j.Preemptible, Retired: j.Retired, Pending: pending, Refusal: refusal,
	}
	for _, t := range j.Tasks() {
		row.Tasks = append(row.Tasks, taskRow(t))
	}
	return row
}

func queueRows(s *cluster.State) []Queue {
	var out []Queue
	for _, q := range s.Queues() {
		out = append(out, Queue{q.Name, q.Parent, q.Tier, q.Priority, slices.Clone(q.Used), slices.Clone(q.Quota), slices.Clone(q.Limits)})
	}
	return out
}
