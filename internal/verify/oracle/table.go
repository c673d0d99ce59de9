package oracle

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/fairshare"
)

// The resources of cases.
const (
	cpu = iota
	memory
	gpu
	resources
)

var names = [resources]string{cluster.CPU, cluster.Memory, cluster.DefaultDeviceResource}

// vector has an amount of each resource.
type vector [resources]int64

func (v vector) plus(o vector, sign int64) vector {
	for r := range v {
		v[r] += sign * o[r]
	}
	return v
}

// within reports whether no amount is larger than that of the other vector.
func (v vector) within(o vector) bool {
	for r := range v {
		if v[r] > o[r] {
			return false
		}
	}
	return true
}

// vectorOf converts a list. A resource that is not in the list has the amount absent.
func vectorOf(list cluster.Resources, absent int64) vector {
	var v vector
	for r := range v {
		v[r] = absent
		for _, a := range list {
			if a.Name == names[r] {
				v[r] = a.Value
			}
		}
	}
	return v
}

// table has the nodes, queues and jobs of a case. It does not change while placements are
// tried.
type table struct {
	now     int64
	nodes   []*cluster.Node
	queues  []*queue
	divided [resources]bool // whether queues divide the resource: devices, and those with a quota or limit
	total   vector          // of all nodes
	jobs    []*job
	tasks   []*task
	budgets []*cluster.Budget
}

type queue struct {
	index    int
	name     string
	parent   *queue
	children []*queue
	tier     cluster.Tier
	limit    vector // -1 means no limit
	declared vector // the quota of the queue itself; -1 means none
	share    vector // when the session opens
	request  vector // what its tasks hold and pending ones request, within the limits

	minRunBeforePreempt, minRunBeforeReclaim int64
}

// quota returns the quota of the queue itself, or the sum of those of its children, or -1 if
// there is none.
func (q *queue) quota(r int) int64 {
	if q.declared[r] >= 0 || len(q.children) == 0 {
		return q.declared[r]
	}
	sum := int64(-1)
	for _, c := range q.children {
		if below := c.quota(r); below >= 0 {
			sum = max(0, sum) + below
		}
	}
	return sum
}

// job is one form of a job.
type job struct {
	*cluster.Job
	index  int      // of the job
	form   int      // index of the form
	forms  []*job   // all forms of the job, in order
	branch []*queue // from the root down to its own queue
	alt    *cluster.Alternative
	tasks  []*task
	cost   int64 // of evicting one of its tasks
}

// set returns the set of all tasks of the form.
func (j *job) set() (set uint64) {
	for _, t := range j.tasks {
		set |= t.bit()
	}
	return set
}

func (j *job) leaf() *queue { return j.branch[len(j.branch)-1] }

type task struct {
	*cluster.Task
	index int
	job   *job
	asks  vector // what it requests; see asks
}

// bit returns the set with only this task.
func (t *task) bit() uint64 { return 1 << t.index }

// isEqual reports whether the tasks are interchangeable.
func (t *task) isEqual(o *task) bool {
	return t.job == o.job && t.Shape == o.Shape && t.Subgroup == o.Subgroup
}

// newTable reads State as it is before a session.
func newTable(s cluster.View, now int64) *table {
	w := &table{now: now, nodes: s.Nodes(), budgets: s.Budgets()}
	w.divided[gpu] = true
	for _, n := range w.nodes {
		w.total[gpu] += int64(len(n.Devices)) * int64(cluster.Whole)
		for _, l := range n.Resources {
			if r := slices.Index(names[:], l.Name); r >= 0 {
				w.total[r] += l.Capacity
			}
		}
	}
	byName := map[string]*queue{}
	for _, q := range s.Queues() {
		k := &queue{index: len(w.queues), name: q.Name, tier: q.Tier, limit: vectorOf(q.Limits, -1), declared: vectorOf(q.Quota, -1),
			minRunBeforePreempt: q.MinRunBeforePreempt, minRunBeforeReclaim: q.MinRunBeforeReclaim}
		w.queues = append(w.queues, k)
		for r := range names {
			w.divided[r] = w.divided[r] || k.limit[r] >= 0 || k.declared[r] >= 0
		}
		byName[q.Name] = k
	}
	for _, q := range s.Queues() {
		if parent := byName[q.Parent]; parent != nil {
			byName[q.Name].parent = parent
			parent.children = append(parent.children, byName[q.Name])
		}
	}
	for _, j := range s.Jobs() {
		w.addJob(j, byName)
	}
	return w
}

// addJob adds all forms of the job. Its entry in the list of jobs is the form in which it
// runs, or the first one.
func (w *table) addJob(j *cluster.Job, byName map[string]*queue) {
	var branch []*queue
	for q := byName[j.Queue]; q != nil; q = q.parent {
		branch = append(branch, q)
	}
	slices.Reverse(branch)
	forms := make([]*job, len(j.Alternatives))
	for i := range j.Alternatives {
		k := &job{Job: j, index: len(w.jobs), form: i, forms: forms, branch: branch, alt: &j.Alternatives[i], cost: costOf(j)}
		for _, t := range k.alt.Tasks {
			u := &task{Task: t, index: len(w.tasks), job: k}
			u.asks = w.asks(u)
			k.tasks = append(k.tasks, u)
			w.tasks = append(w.tasks, u)
		}
		forms[i] = k
	}
	w.jobs = append(w.jobs, forms[max(0, j.Chosen)])
}

// divide computes the fair shares, as a session does when it opens.
func (w *table) divide(s cluster.View) {
	var share func(list []*fairshare.Queue)
	share = func(list []*fairshare.Queue) {
		for _, q := range list {
			own := w.queues[slices.IndexFunc(w.queues, func(k *queue) bool { return k.name == q.Name })]
			for i := range q.Shares {
				if r := slices.Index(names[:], q.Shares[i].Resource); r >= 0 {
					own.share[r], own.request[r] = q.Shares[i].Share(), q.Shares[i].Request
					if own.limit[r] >= 0 {
						own.request[r] = min(own.request[r], own.limit[r])
					}
				}
			}
			share(q.Children)
		}
	}
	share(fairshare.Shares(s, fairshare.Offered(s), fairshare.Settings{}).Roots)
}

// asks returns what the task requests. It does not depend on the node: memory of devices is
// requested only in cases in which all devices have the same memory.
func (w *table) asks(t *task) vector {
	v := vectorOf(t.Shape.Resources, 0)
	for _, n := range w.nodes {
		for i := range n.Devices {
			if ofKind(t, &n.Devices[i]) {
				v[gpu] = int64(devicesOf(t, n)) * int64(claimOn(t, i, &n.Devices[i]).Milli)
				return v
			}
		}
	}
	v[gpu] = int64(t.Shape.Need.Devices) * int64(cluster.Whole)
	return v
}

// devicesOf returns how many devices of the node the task requests. Whole nodes are
// requested only in cases in which all nodes have the same number of devices.
func devicesOf(t *task, n *cluster.Node) int {
	if t.Shape.Need.WholeNode {
		return len(n.Devices)
	}
	return t.Shape.Need.Devices
}

// claimOn returns what the task holds of the device if it is placed there.
func claimOn(t *task, i int, d *cluster.Device) cluster.Claim {
	need := &t.Shape.Need
	switch {
	case t.Shape.Isolation.GPU == cluster.GPUDeviceExclusive || need.Share == 0 && need.Memory == 0:
		return cluster.Claim{Device: i, Milli: cluster.Whole, Memory: d.Memory}
	case need.Share > 0:
		return cluster.Claim{Device: i, Milli: need.Share, Memory: cluster.Bytes(int64(d.Memory) * int64(need.Share) / int64(cluster.Whole))}
	}
	return cluster.Claim{Device: i, Milli: max(1, cluster.Milli(int64(need.Memory)*int64(cluster.Whole)/int64(d.Memory))), Memory: need.Memory}
}

// ofKind reports whether the task can hold the device if no other task holds it.
func ofKind(t *task, d *cluster.Device) bool {
	need := &t.Shape.Need
	return need.Memory <= d.Memory && (len(need.Products) == 0 || slices.Contains(need.Products, d.Product))
}
