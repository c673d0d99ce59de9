package soak

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

const second = int64(1_000_000_000)

// site is the real cluster, independent of the State of the scheduler: the time, the
// nodes, the objects that users created, and the processes. It is kept when the
// scheduler crashes.
type site struct {
	now       int64                    // in nanoseconds
	nodes     map[string]*cluster.Node // as they report themselves, without tasks
	queues    map[string]*cluster.Queue
	budgets   map[string]*cluster.Budget
	jobs      map[string]*cluster.Job     // as they were created
	models    map[string]*cluster.Job     // by Set: the template of its replicas
	processes map[string]*process         // by task
	ended     map[string]cluster.TaskGone // by task: how it ended
	// sent has the processes of bindings that were sent and are not answered, by task.
	sent map[string]*process
	// overcommitted has the nodes on which tasks may hold more than the node has,
	// because of reported facts. No decision may place a task there.
	overcommitted map[string]bool
}

// process is a task that runs.
type process struct {
	job, node string
	machine   *cluster.Node // the node itself; another node may have the same name later
	task      cluster.TaskRef
	shape     *cluster.Shape
	claims    []cluster.Claim
	started   int64
	stopping  bool   // it was evicted, and still holds its room
	attempt   uint64 // of the assignment that started it
}

func newSite() *site {
	return &site{
		now: 3600 * second, nodes: map[string]*cluster.Node{}, queues: map[string]*cluster.Queue{}, budgets: map[string]*cluster.Budget{},
		jobs: map[string]*cluster.Job{}, models: map[string]*cluster.Job{}, processes: map[string]*process{}, ended: map[string]cluster.TaskGone{},
		sent: map[string]*process{}, overcommitted: map[string]bool{},
	}
}

// sorted returns the keys in order, so that random choices do not depend on the order
// of a map.
func sorted[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// start adds the process of a task. Whether processes fit together is left to siteCheck.
func (s *site) start(t *cluster.Task, node string, claims []cluster.Claim, started int64) error {
	if s.processes[t.ID] != nil {
		return fmt.Errorf("%s was started while it was running", t.ID)
	}
	if s.nodes[node] == nil {
		return fmt.Errorf("%s was started on %s, which does not exist any more", t.ID, node)
	}
	for _, c := range claims {
		if s.nodes[node].Devices[c.Device].Lost {
			return fmt.Errorf("%s was started on device %d of %s, which is lost", t.ID, c.Device, node)
		}
	}
	s.processes[t.ID] = s.newProcess(t, node, claims, started)
	return nil
}

// send stores the binding of a task, which is answered later.
func (s *site) send(t *cluster.Task, node string, claims []cluster.Claim) {
	s.sent[t.ID] = s.newProcess(t, node, claims, s.now)
}

func (s *site) newProcess(t *cluster.Task, node string, claims []cluster.Claim, started int64) *process {
	return &process{job: t.Job.ID, task: t.Ref(), node: node, machine: s.nodes[node], shape: t.Shape, claims: slices.Clone(claims), started: started, attempt: t.Attempt}
}

// canStart reports whether the node and the devices of the process still exist. A new
// node with the same name does not count.
func (s *site) canStart(p *process) bool {
	n := s.nodes[p.node]
	return n != nil && n == p.machine && (len(p.claims) == 0 || p.claims[len(p.claims)-1].Device < len(n.Devices))
}

// stop marks the process of an evicted task as stopping.
func (s *site) stop(t *cluster.Task) error {
	p := s.processes[t.ID]
	if p == nil || p.stopping {
		return fmt.Errorf("%s was evicted, and does not run", t.ID)
	}
	p.stopping = true
	return nil
}

// removeJob removes a job and its processes.
func (s *site) removeJob(id string) {
	delete(s.jobs, id)
	ofJob := func(_ string, p *process) bool { return p.job == id }
	maps.DeleteFunc(s.processes, ofJob)
	maps.DeleteFunc(s.sent, ofJob)
	maps.DeleteFunc(s.ended, func(_ string, gone cluster.TaskGone) bool { return gone.Task.Job == id })
}

// addNode adds a node. Bindings that were sent to a former node with the same name and
// are not answered count on the new node, which may be smaller.
func (s *site) addNode(n *cluster.Node) {
	s.nodes[n.Name] = n
	for _, p := range s.sent {
		if p.node == n.Name {
			s.overcommitted[n.Name] = true
		}
	}
}

// retire stores which replicas are retired.
func (s *site) retire(rankings []engine.RetirementOrder) {
	for _, r := range rankings {
		for _, x := range r.Jobs {
			s.jobs[x.Job].Retired = x.Retired
		}
	}
}

// isHeld reports whether a process holds the device, or will if its binding succeeds.
func (s *site) isHeld(node string, device int) bool {
	for _, list := range []map[string]*process{s.processes, s.sent} {
		for _, p := range list {
			for _, c := range p.claims {
				if p.node == node && c.Device == device {
					return true
				}
			}
		}
	}
	return false
}

// freeMemory returns the memory of the device that a reading finds free if no foreign
// process uses any.
func (s *site) freeMemory(node string, device int) cluster.Bytes {
	return min(s.nodes[node].Devices[device].Memory-s.memoryUsed(node, device), s.freeUnified(node))
}

// memoryUsed returns the memory that processes hold of the device and of the devices
// that share its memory.
func (s *site) memoryUsed(node string, device int) cluster.Bytes {
	var sum cluster.Bytes
	for _, p := range s.processes {
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
	for _, p := range s.processes {
		if p.node == node {
			left -= cluster.Bytes(p.shape.Resources.Of(cluster.Memory) + hostMemory(n, p.shape, p.claims))
		}
	}
	return left
}

// hostMemory returns the memory of the node that a task uses beyond its request: for
// layers that are not on devices and, if memory is unified, for its devices.
func hostMemory(n *cluster.Node, shape *cluster.Shape, claims []cluster.Claim) int64 {
	var sum cluster.Bytes
	if l := shape.Need.Layers; l != nil {
		left := l.Total
		for _, c := range claims {
			left -= c.Layers
		}
		sum += firstLayers(l, left)
	}
	if n.Unified {
		for _, c := range claims {
			sum += c.Memory
		}
	}
	return int64(sum)
}

// firstLayers returns the memory of the first layers, which are not on devices.
func firstLayers(l *cluster.Layers, count int) cluster.Bytes {
	if len(l.Sizes) == 0 {
		return cluster.Bytes(count) * l.Bytes
	}
	var sum cluster.Bytes
	for _, r := range l.Sizes {
		n := min(r.Count, count)
		sum, count = sum+cluster.Bytes(n)*r.Bytes, count-n
	}
	return sum
}
