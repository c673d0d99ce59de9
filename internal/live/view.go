package live

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// View is the cluster at one position, for lists and pages. It never changes, and
// holds nothing of a State.
type View struct {
	Position uint64
	Now      int64   // when the last session was opened
	Queues   []Queue // by name

	nodes table[Node]
	jobs  table[Job]
	// Lists in order are made when they are first asked for.
	nodeList func() []Node
	jobList  func() []Job
}

// Node is a node in a view.
type Node struct {
	Name      string
	Group     string // devices and how many of them; "" without
	Phase     cluster.Phase
	Closed    bool // it takes nothing new
	Resources []Resource
	Devices   []Device
	Tasks     []Task // that are on it, or have room reserved on it
}

// Resource is how much of a resource a node has.
type Resource struct {
	Name           string
	Capacity, Used int64
}

// Device is a device of a node.
type Device struct {
	UUID, Product string
	Memory, Free  cluster.Bytes
	Share         cluster.Milli // of it that is held or reserved
	Lost          bool
}

// Task is where a task stands.
type Task struct {
	cluster.TaskRef
	Status  cluster.Status
	Node    string   // "": on none
	Devices []string // UUIDs of those that it holds
	Started int64
}

// Job is a job in a view.
type Job struct {
	ID, Namespace, Queue string
	Priority             int32
	Created              int64
	Preemptible, Retired bool
	Pending              bool // tasks of it are on no node
	Tasks                []Task
	// Refusal is the last that the leader said of it while it is pending; nil: none.
	// All readers of the view share it.
	Refusal *engine.Refusal
}

// Queue is a queue in a view.
type Queue struct {
	Name, Parent        string
	Tier                cluster.Tier
	Priority            int32
	Used, Quota, Limits cluster.Resources
}

// Node finds a node by name.
func (v *View) Node(name string) (Node, bool) { return v.nodes.get(name) }

// Job finds a job by ID.
func (v *View) Job(id string) (Job, bool) { return v.jobs.get(id) }

// Nodes are all nodes, by name.
func (v *View) Nodes() []Node { return v.nodeList() }

// Jobs are all jobs, by ID.
func (v *View) Jobs() []Job { return v.jobList() }

// tables are the rows from which views are made, kept in step with a State.
type tables struct {
	nodes    table[Node]
	jobs     table[Job]
	queues   []Queue
	newNodes changed
	newJobs  changed
	queueing uint64 // version of queues that the rows are of
	refusals map[string]said
	latest   *View
}

// said is the last refusal of a job.
type said struct {
	job     *cluster.Job // that it is about: another one may have its name later
	refusal *engine.Refusal
}

// begin fills the tables.
func (t *tables) begin(s *cluster.State) {
	t.refusals = map[string]said{}
	t.note(s, nil)
}

// note takes note of what changed, and of what a session said. It is called after
// each change, so that a refusal is dropped when its job is placed or gone, however
// often views are made.
func (t *tables) note(s *cluster.State, refusals []*engine.Refusal) {
	s.View().Recent().Jobs(t.newJobs.version, func(slot int) {
		was, id := t.newJobs.name(slot), ""
		j := s.View().JobAt(slot)
		if j != nil {
			id = j.ID
		}
		t.newJobs.rename(slot, id)
		if r, known := t.refusals[was]; known && (r.job != j || !s.View().Waits(j)) {
			delete(t.refusals, was)
		}
	})
	t.newJobs.version = s.View().Recent().JobsVersion()
	for _, r := range refusals {
		j := s.Job(r.Job)
		if j == nil || !s.View().Waits(j) {
			continue
		}
		t.refusals[r.Job] = said{j, r}
		t.newJobs.add(r.Job)
	}
}

// view makes the view of the position; the last one where nothing changed since.
func (t *tables) view(s *cluster.State, position uint64) *View {
	if t.latest != nil && t.latest.Position == position {
		return t.latest
	}
	s.View().Recent().Nodes(t.newNodes.version, func(slot int) {
		name := ""
		if n := s.View().At(slot); n != nil {
			name = n.Name
		}
		t.newNodes.rename(slot, name)
	})
	t.newNodes.version = s.Version()
	t.nodes = t.nodes.with(t.newNodes.take(), func(name string) (Node, bool) { return nodeRow(s.Node(name)) })
	t.jobs = t.jobs.with(t.newJobs.take(), func(id string) (Job, bool) {
		j := s.Job(id)
		if j == nil {
			return Job{}, false
		}
		return jobRow(j, s.View().Waits(j), t.refusals[id].refusal), true
	})
	if v := s.View().Recent().QueuesVersion(); v != t.queueing || t.queues == nil {
		t.queueing, t.queues = v, queueRows(s)
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
