package replay

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// Trace is a cluster, and the jobs that arrive in it.
type Trace struct {
	Name  string // such as "openb_pod_list_default"
	Nodes []Node
	Jobs  []Job // in the order in which they arrive
	// Copies is how many times each of the Jobs arrives, one copy after the other; 0 means once. Len
	// and Job count the copies.
	Copies int
}

// Len returns how many jobs arrive.
func (t *Trace) Len() int { return len(t.Jobs) * max(1, t.Copies) }

// Job returns the job with the number. Copies share one record.
func (t *Trace) Job(number int) *Job { return &t.Jobs[number/max(1, t.Copies)] }

// jobName returns the name of the job with the number.
func (t *Trace) jobName(number int) string {
	if t.Copies == 0 {
		return t.Jobs[number].Name
	}
	return copyName(t.Job(number).Name, number%t.Copies)
}

// copyName returns the name of a copy of a node or a job.
func copyName(name string, number int) string { return fmt.Sprintf("%s-%03d", name, number) }

// Node is a machine of a trace.
type Node struct {
	Name         string
	Labels       map[string]string
	CPU          int64         // in thousandths of a core
	Memory       cluster.Bytes // 0: the trace does not tell, and memory is not limited
	Devices      int
	Product      string        // of the devices
	DeviceMemory cluster.Bytes // of each device; 0: defaultDeviceMemory
}

// Job is a job of a trace. Its tasks are alike, and start together.
type Job struct {
	Name     string
	Queue    string // "": the default queue
	Arrival  int64  // in nanoseconds since the trace began
	RunTime  int64  // in nanoseconds; 0: the job does not end
	Tasks    int    // how many tasks it has; 0 means 1
	Priority int32
	Request
}

// Request is what one task requests.
type Request struct {
	CPU      int64 // in thousandths of a core
	Memory   cluster.Bytes
	Devices  int
	Share    cluster.Milli // of each device; 0 means whole devices
	Products []string      // the products that are allowed, sorted; empty: any
}

// defaultDeviceMemory is the memory of devices of which a trace does not tell it. Requests of
// traces are shares, so that it decides nothing.
const defaultDeviceMemory = 16 << 30

// unlimited is the memory of nodes of which a trace does not tell it.
const unlimited = 1 << 50

// Milli returns how much the request is of devices, in thousandths of a device.
func (r *Request) Milli() int64 {
	return int64(r.Devices) * int64(r.share())
}

func (r *Request) share() cluster.Milli {
	if r.Share == 0 {
		return cluster.Whole
	}
	return r.Share
}

// Milli returns how much all tasks of the job request of devices.
func (j *Job) Milli() int64 { return int64(j.tasks()) * j.Request.Milli() }

func (j *Job) tasks() int { return max(1, j.Tasks) }

// Milli returns how much the cluster has of devices, in thousandths of a device.
func (t *Trace) Milli() int64 {
	var sum int64
	for i := range t.Nodes {
		sum += int64(t.Nodes[i].Devices) * int64(cluster.Whole)
	}
	return sum
}

// put returns the change that adds the node.
func (n *Node) put() cluster.Change {
	memory := int64(n.Memory)
	if memory == 0 {
		memory = unlimited
	}
	out := cluster.Node{
		Name: n.Name, Labels: n.Labels,
		Resources: []cluster.Ledger{{Name: cluster.CPU, Capacity: n.CPU}, {Name: cluster.Memory, Capacity: memory}},
	}
	size := n.DeviceMemory
	if size == 0 {
		size = defaultDeviceMemory
	}
	for d := range n.Devices {
		out.Devices = append(out.Devices, cluster.Device{DeviceSpec: &cluster.DeviceSpec{Product: n.Product, Type: "cuda", Memory: size}, UUID: fmt.Sprintf("%s-%d", n.Name, d)})
	}
	return cluster.NodePut{Node: out}
}

// shape returns the shape of the request.
func (r *Request) shape() cluster.Shape {
	s := cluster.Shape{Resources: cluster.Resources{{Name: cluster.CPU, Value: r.CPU}, {Name: cluster.Memory, Value: int64(r.Memory)}}}
	if r.Devices > 0 {
		s.Need = cluster.Need{Devices: r.Devices, Products: r.Products}
		if r.share() < cluster.Whole {
			s.Need.Share = r.Share
		}
	}
	return s
}

// arrival is the change that adds a job, with the memory of its parts. A State copies what it keeps of
// them, so that it can be filled again.
type arrival struct {
	cluster.JobPut
	shape        cluster.Shape
	alternatives [1]cluster.Alternative
	tasks        []cluster.Task
	list         []*cluster.Task
}

// fill makes it the change that adds the job. If known is set, the engine knows its run time.
func (a *arrival) fill(j *Job, number int, known bool) {
	a.Job = cluster.Job{ID: jobID(number), Queue: j.Queue, Created: j.Arrival + 1, Priority: j.Priority}
	if known {
		a.Job.RunFor = j.RunTime
	}
	a.shape = j.shape()
	n := j.tasks()
	a.tasks, a.list = slices.Grow(a.tasks[:0], n)[:n], slices.Grow(a.list[:0], n)[:n]
	for i := range n {
		a.tasks[i] = cluster.Task{Name: strconv.Itoa(i), Shape: &a.shape, Index: i}
		a.list[i] = &a.tasks[i]
	}
	a.alternatives[0] = cluster.Alternative{Min: n, Tasks: a.list}
	a.Job.Alternatives = a.alternatives[:]
}

// jobID returns the ID of the job with the number. Names of traces need not be unique.
func jobID(number int) string {
	id := append(make([]byte, 0, 16), idPrefix...)
	for most := 10_000_000; most > 1 && number < most; most /= 10 {
		id = append(id, '0')
	}
	return string(strconv.AppendInt(id, int64(number), 10))
}

const idPrefix = "job/"

// jobNumber returns the number of the job with the ID.
func jobNumber(id string) (int, error) { return strconv.Atoi(strings.TrimPrefix(id, idPrefix)) }

// queues returns the names of the queues of the jobs, sorted, without the default queue.
func (t *Trace) queues() []string {
	seen := map[string]bool{}
	var out []string
	for i := range t.Jobs {
		if q := t.Jobs[i].Queue; q != "" && q != cluster.DefaultQueue && !seen[q] {
			seen[q] = true
			out = append(out, q)
		}
	}
	slices.Sort(out)
	return out
}

// State returns the State of the cluster before the first job arrives.
func (t *Trace) State() (*cluster.State, error) {
	seen := make(map[string]bool, len(t.Nodes))
	for i := range t.Nodes {
		if name := t.Nodes[i].Name; name == "" || seen[name] {
			return nil, fmt.Errorf("node %d is named %q; each node needs a name of its own", i+1, name)
		}
		seen[t.Nodes[i].Name] = true
	}
	s := cluster.NewState()
	return s, s.ApplyAll(t.changes())
}

// changes returns the changes that add the nodes and queues of the trace.
func (t *Trace) changes() []cluster.Change {
	out := make([]cluster.Change, 0, len(t.Nodes))
	for i := range t.Nodes {
		out = append(out, t.Nodes[i].put())
	}
	for _, q := range t.queues() {
		out = append(out, cluster.QueuePut{Queue: cluster.Queue{Name: q}})
	}
	return out
}

// products returns the products of a list such as "T4|V100", sorted and each once.
func products(list string) []string {
	if list == "" {
		return nil
	}
	out := strings.Split(list, "|")
	slices.Sort(out)
	return slices.Compact(out)
}
