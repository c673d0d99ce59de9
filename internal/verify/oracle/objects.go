package oracle

import (
	"math/bits"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/fairshare"
)

// objects has the nodes, queues, jobs and budgets of State as they are before a session.
// They do not change while placements and plans are tried.
type objects struct {
	now     int64
	nodes   []*cluster.Node
	queues  []*queue
	divided [resources]bool // whether queues divide the resource: devices, and resources with a quota or limit
	total   vector          // the capacity of all nodes
	jobs    []*form         // for each job the form in which it runs, or its first form
	tasks   []*task         // the tasks of all forms of all jobs
	budgets []*cluster.Budget
}

// queue is a queue of State with its place in the tree and its fair share.
type queue struct {
	index    int // in objects.queues
	name     string
	parent   *queue
	children []*queue
	tier     cluster.Tier
	limit    vector // -1 means no limit
	declared vector // the quota of the queue itself; -1 means none
	share    vector // the fair share when the session opens
	request  vector // what its tasks hold and its pending tasks request, up to its limit

	minRunBeforePreempt, minRunBeforeReclaim int64
}

// quota returns the quota of the queue itself or, if it declares none, the sum of the
// quotas of its children. It returns -1 if there is no quota at all.
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

// newObjects reads State as it is before a session. The fair shares of the queues are 0
// until divide is called.
func newObjects(s cluster.View, now int64) *objects {
	o := &objects{now: now, nodes: s.Nodes(), budgets: s.Budgets()}
	o.divided[gpu] = true
	for _, n := range o.nodes {
		o.total[gpu] += int64(len(n.Devices)) * int64(cluster.Whole)
		for _, l := range n.Resources {
			if r := slices.Index(resourceNames[:], l.Name); r >= 0 {
				o.total[r] += l.Capacity
			}
		}
	}
	byName := map[string]*queue{}
	for _, q := range s.Queues() {
		k := &queue{index: len(o.queues), name: q.Name, tier: q.Tier, limit: vectorOf(q.Limits, -1), declared: vectorOf(q.Quota, -1),
			minRunBeforePreempt: q.MinRunBeforePreempt, minRunBeforeReclaim: q.MinRunBeforeReclaim}
		o.queues = append(o.queues, k)
		for r := range resourceNames {
			o.divided[r] = o.divided[r] || k.limit[r] >= 0 || k.declared[r] >= 0
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
		o.addJob(j, byName)
	}
	return o
}

// addJob adds all forms of the job and their tasks.
func (o *objects) addJob(j *cluster.Job, byName map[string]*queue) {
	var branch []*queue
	for q := byName[j.Queue]; q != nil; q = q.parent {
		branch = append(branch, q)
	}
	slices.Reverse(branch)
	forms := make([]*form, len(j.Alternatives))
	for i := range j.Alternatives {
		f := &form{job: j, index: len(o.jobs), number: i, forms: forms, branch: branch, alt: &j.Alternatives[i], cost: costOf(j)}
		for _, t := range f.alt.Tasks {
			k := &task{task: t, index: len(o.tasks), form: f, amounts: o.amounts(t.Shape)}
			f.tasks = append(f.tasks, k)
			o.tasks = append(o.tasks, k)
		}
		forms[i] = f
	}
	o.jobs = append(o.jobs, forms[max(0, j.Chosen)])
}

// divide computes the fair shares of the queues, as a session does when it opens.
func (o *objects) divide(s cluster.View) {
	var set func(list []*fairshare.Queue)
	set = func(list []*fairshare.Queue) {
		for _, q := range list {
			own := o.queues[slices.IndexFunc(o.queues, func(k *queue) bool { return k.name == q.Name })]
			for i := range q.Shares {
				if r := slices.Index(resourceNames[:], q.Shares[i].Resource); r >= 0 {
					own.share[r], own.request[r] = q.Shares[i].Share(), q.Shares[i].Request
					if own.limit[r] >= 0 {
						own.request[r] = min(own.request[r], own.limit[r])
					}
				}
			}
			set(q.Children)
		}
	}
	set(fairshare.Shares(s, fairshare.Offered(s), fairshare.Settings{}).Roots)
}

// amounts returns what a task of the shape requests. It does not depend on the node: a
// case has requests for memory of devices only if all devices have the same memory.
func (o *objects) amounts(s *cluster.Shape) vector {
	v := vectorOf(s.Resources, 0)
	for _, n := range o.nodes {
		for i := range n.Devices {
			if isSuitable(s, &n.Devices[i]) {
				v[gpu] = int64(devicesOf(s, n)) * int64(claimOn(s, i, &n.Devices[i]).Milli)
				return v
			}
		}
	}
	v[gpu] = int64(s.Need.Devices) * int64(cluster.Whole)
	return v
}

// members returns the tasks of the set, in the order of their indices.
func (o *objects) members(set taskSet) []*task {
	out := make([]*task, 0, bits.OnesCount64(uint64(set)))
	for ; set != 0; set &= set - 1 {
		out = append(out, o.tasks[bits.TrailingZeros64(uint64(set))])
	}
	return out
}

// find returns the form in which the job runs, or its first form. It returns nil if there
// is no such job.
func (o *objects) find(job string) *form {
	for _, f := range o.jobs {
		if f.job.ID == job {
			return f
		}
	}
	return nil
}

// findTask returns the task, or nil.
func (o *objects) findTask(ref cluster.TaskRef) *task {
	for _, t := range o.tasks {
		if t.task.Ref() == ref {
			return t
		}
	}
	return nil
}

// findNode returns the index of the node, or -1.
func (o *objects) findNode(name string) int {
	return slices.IndexFunc(o.nodes, func(n *cluster.Node) bool { return n.Name == name })
}
