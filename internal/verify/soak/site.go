package soak

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// site is the real cluster, independent of the State of the scheduler: the nodes, the
// objects that users created, and the processes. It is kept when the scheduler crashes.
type site struct {
	nodes   map[string]*cluster.Node // as they report themselves, without tasks
	queues  map[string]*cluster.Queue
	budgets map[string]*cluster.Budget
	jobs    map[string]*cluster.Job     // as they were created
	models  map[string]*cluster.Job     // by Set: the template of its replicas
	runs    map[string]*process         // by task
	ended   map[string]cluster.TaskGone // by task: how it ended
	// shrunk has the nodes on which tasks may hold more than the node has, because of
	// reported facts. No decision may place a task there.
	shrunk map[string]bool
}

// process is a task that runs.
type process struct {
	job, node string
	on        *cluster.Node // the node itself; another node may have the same name later
	task      cluster.TaskRef
	shape     *cluster.Shape
	claims    []cluster.Claim
	started   int64
	leaving   bool
	attempt   uint64 // of the assignment that started it
}

func newSite() *site {
	return &site{
		nodes: map[string]*cluster.Node{}, queues: map[string]*cluster.Queue{}, budgets: map[string]*cluster.Budget{},
		jobs: map[string]*cluster.Job{}, models: map[string]*cluster.Job{}, runs: map[string]*process{}, ended: map[string]cluster.TaskGone{}, shrunk: map[string]bool{},
	}
}

// sorted returns the keys in order, so that random choices do not depend on the order
// of a map.
func sorted[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// start starts the task. Whether processes fit together is left to check.
func (s *site) start(t *cluster.Task, node string, claims []cluster.Claim, now int64) error {
	if s.runs[t.ID] != nil {
		return fmt.Errorf("%s was started while it was running", t.ID)
	}
	if s.nodes[node] == nil {
		return fmt.Errorf("%s was started on %s, which is gone", t.ID, node)
	}
	for _, c := range claims {
		if s.nodes[node].Devices[c.Device].Lost {
			return fmt.Errorf("%s was started on device %d of %s, which is lost", t.ID, c.Device, node)
		}
	}
	s.runs[t.ID] = s.process(t, node, claims, now)
	return nil
}

// process returns a process for the task on the node.
func (s *site) process(t *cluster.Task, node string, claims []cluster.Claim, now int64) *process {
	return &process{job: t.Job.ID, task: t.Ref(), node: node, on: s.nodes[node], shape: t.Shape, claims: slices.Clone(claims), started: now, attempt: t.Attempt}
}

// canStart reports whether the node and the devices of the process still exist. A new
// node with the same name does not count.
func (s *site) canStart(p *process) bool {
	n := s.nodes[p.node]
	return n != nil && n == p.on && (len(p.claims) == 0 || p.claims[len(p.claims)-1].Device < len(n.Devices))
}

// stop marks the process of an evicted task as stopping.
func (s *site) stop(t *cluster.Task) error {
	p := s.runs[t.ID]
	if p == nil || p.leaving {
		return fmt.Errorf("%s was evicted, and does not run", t.ID)
	}
	p.leaving = true
	return nil
}

// retire stores which replicas are retired.
func (s *site) retire(rankings []engine.RetirementOrder) {
	for _, r := range rankings {
		for _, x := range r.Jobs {
			s.jobs[x.Job].Retired = x.Retired
		}
	}
}

// memoryUsed returns the memory that processes hold of the device.
func (s *site) memoryUsed(node string, device int) cluster.Bytes {
	var sum cluster.Bytes
	for _, p := range s.runs {
		for _, c := range p.claims {
			if p.node != node {
				continue
			}
			if d := s.nodes[node].Devices; c.Device == device || d[device].Shares != "" && d[device].Shares == d[c.Device].Shares {
				sum += c.Memory
			}
		}
	}
	return sum
}

// freeUnified returns the unified memory of the node that no process uses. If its
// memory is not unified, it returns the maximum.
func (s *site) freeUnified(node string) cluster.Bytes {
	n := s.nodes[node]
	if !n.Unified {
		return cluster.MaxDeviceMemory
	}
	var left cluster.Bytes
	for _, l := range n.Resources {
		if l.Name == cluster.Memory {
			left = cluster.Bytes(l.Capacity)
		}
	}
	for _, p := range s.runs {
		if p.node == node {
			left -= cluster.Bytes(p.shape.Resources.Of(cluster.Memory) + host(n, p.shape, p.claims))
		}
	}
	return left
}

// removeProcesses removes the processes that the function selects.
func (s *site) removeProcesses(gone func(id string, p *process) bool) { maps.DeleteFunc(s.runs, gone) }

// copySpec returns a copy of the job without anything that State has recorded in it.
func copySpec(j *cluster.Job) *cluster.Job {
	k := *j
	k.Alternatives = slices.Clone(j.Alternatives)
	for a := range k.Alternatives {
		tasks := slices.Clone(k.Alternatives[a].Tasks)
		for i, t := range tasks {
			shape := *t.Shape
			tasks[i] = &cluster.Task{Name: t.Name, Role: t.Role, Index: t.Index, Subgroup: t.Subgroup, Shape: &shape}
		}
		k.Alternatives[a].Tasks = tasks
	}
	return &k
}

// rebuildState returns the State that a new scheduler reads from the site.
// Reservations of the former scheduler are lost.
func (s *site) rebuildState() (*cluster.State, error) {
	state := cluster.NewState()
	for _, top := range []bool{true, false} {
		for _, name := range sorted(s.queues) {
			if q := *s.queues[name]; (q.Parent == "") == top {
				if err := state.Apply(cluster.QueuePut{Queue: q}); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, name := range sorted(s.budgets) {
		if err := state.Apply(cluster.BudgetPut{Budget: *s.budgets[name]}); err != nil {
			return nil, err
		}
	}
	for _, name := range sorted(s.nodes) {
		if err := state.Apply(cluster.NodePut{Node: *s.nodes[name]}); err != nil {
			return nil, err
		}
	}
	for _, id := range sorted(s.jobs) {
		if err := state.Apply(cluster.JobPut{Job: *s.jobs[id]}); err != nil {
			return nil, err
		}
		for _, alt := range state.Job(id).Alternatives {
			for _, t := range alt.Tasks {
				if err := s.restore(state, t); err != nil {
					return nil, err
				}
			}
		}
	}
	return state, nil
}

func (s *site) restore(state *cluster.State, t *cluster.Task) error {
	if gone, ended := s.ended[t.ID]; ended && gone.Task == t.Ref() {
		return state.Apply(gone)
	}
	p := s.runs[t.ID]
	if p == nil {
		return nil
	}
	n := state.Node(p.node)
	if err := state.CanRun(t, n, p.claims); err != nil {
		return err
	}
	seen := cluster.SeenOn(t, n, p.claims, p.started)
	seen.Leaving = p.leaving
	return state.Apply(seen)
}

// compareState checks that State has the nodes, jobs and processes of the site, and
// no others.
func (s *site) compareState(state *cluster.State, sent map[string]*process) error {
	if got, want := len(state.Nodes()), len(s.nodes); got != want {
		return fmt.Errorf("the site has %[2]d nodes, State has %[1]d", got, want)
	}
	if got, want := len(state.Jobs()), len(s.jobs); got != want {
		return fmt.Errorf("the site has %[2]d jobs, State has %[1]d", got, want)
	}
	running := 0
	for _, j := range state.Jobs() {
		if s.jobs[j.ID] == nil {
			return fmt.Errorf("%s is in State, and was never created", j.ID)
		}
		for _, alt := range j.Alternatives {
			for _, t := range alt.Tasks {
				p := s.runs[t.ID]
				there := t.Runs() || t.Status == cluster.Releasing
				switch {
				case t.Status == cluster.Assumed && sent[t.ID] != nil && p == nil:
					continue // the answer is not known
				case there != (p != nil):
					return fmt.Errorf("%s is %s in State, and running: %v", t.ID, t.Status, p != nil)
				case p == nil:
					continue
				case p.node != t.Node.Name || !slices.Equal(p.claims, t.Claims) || p.leaving != (t.Status == cluster.Releasing):
					return fmt.Errorf("%s is %s on %s with %v in State, and runs on %s with %v, stopping: %v", t.ID, t.Status, t.Node.Name, t.Claims, p.node, p.claims, p.leaving)
				case !p.leaving && p.started != t.Started:
					return fmt.Errorf("%s started at %d, and State has %d", t.ID, p.started, t.Started)
				}
				running++
			}
		}
	}
	if running != len(s.runs) {
		return fmt.Errorf("%d tasks run, and State has %d", len(s.runs), running)
	}
	return nil
}

// check checks that the processes fit on their nodes and devices. It does not look at
// State.
func (s *site) check() error {
	type use struct {
		milli   cluster.Milli
		memory  cluster.Bytes
		holders []string
	}
	devices, held := map[string]map[int]*use{}, map[string]map[string]int64{}
	for _, id := range sorted(s.runs) {
		p := s.runs[id]
		n := s.nodes[p.node]
		if n == nil || s.jobs[p.job] == nil {
			return fmt.Errorf("%s of %s runs on %s, and the job or the node does not exist", id, p.job, p.node)
		}
		if devices[p.node] == nil {
			devices[p.node], held[p.node] = map[int]*use{}, map[string]int64{}
		}
		for _, a := range p.shape.Resources {
			held[p.node][a.Name] += a.Value
		}
		held[p.node][cluster.Memory] += host(n, p.shape, p.claims)
		for _, c := range p.claims {
			u := devices[p.node][c.Device]
			if u == nil {
				u = &use{}
				devices[p.node][c.Device] = u
			}
			u.milli += c.Milli
			u.memory += c.Memory
			for _, other := range u.holders {
				if p.shape.Need.WholeNode && s.runs[other].shape.Need.WholeNode {
					return fmt.Errorf("%s and %s both have node %s", id, other, p.node)
				}
				if !p.shape.Isolation.Beside(s.runs[other].shape.Isolation) {
					return fmt.Errorf("%s and %s run on device %d of %s, and one of them requests it exclusively", id, other, c.Device, p.node)
				}
			}
			u.holders = append(u.holders, id)
			if u.milli > cluster.Whole || u.memory > n.Devices[c.Device].Room() {
				return fmt.Errorf("device %d of %s is held twice, by %v: %d milli, %d of %d bytes", c.Device, p.node, u.holders, u.milli, u.memory, n.Devices[c.Device].Room())
			}
		}
	}
	for _, name := range sorted(held) {
		for _, l := range s.nodes[name].Resources {
			if v := held[name][l.Name]; v > l.Capacity && !s.shrunk[name] {
				return fmt.Errorf("the processes on %s hold %d of %s, and it has %d", name, v, l.Name, l.Capacity)
			}
		}
	}
	return nil
}
