package cluster

import "math"

// Occupancy is a summary of one node for searches that compare many nodes: how many of its
// devices have room, and what its running preemptible tasks hold.
type Occupancy struct {
	// Unfilled is Node.Unfilled, or math.MaxInt32 if devices of the node share their memory:
	// one eviction may then make any number of them usable.
	Unfilled int
	Jobs     []JobOnNode
	// running remembers what jobs hold that have several tasks and can only be evicted as a
	// whole.
	running map[*Job]running
}

// JobOnNode is a summary of the running preemptible tasks of one job on one node.
type JobOnNode struct {
	Job    *Job
	Newest int64 // when the newest of them was started, in nanoseconds
	// Whole is true if the job has no surplus tasks, so that it can only be evicted as a whole.
	Whole   bool
	Tasks   int   // how many tasks are evicted at least if one of them is evicted, on all nodes
	Freed   int64 // how much of devices these tasks hold at least, in thousandths
	Count   int   // how many tasks of the job run on the node
	Devices int   // how many devices they hold together
	Widest  int   // how many devices one of them holds at most
	Each    int64 // the least that one of them holds, in thousandths of devices
}

// running is how many tasks of a job run, and how much of devices they hold, in thousandths.
type running struct {
	tasks int
	milli int64
}

// Occupancy sets the fields of o to those of the node in the slot. It reuses the memory of
// o.Jobs, and what o has learned about jobs: State must not change between two calls with the
// same o. If there is no node in the slot, there are no jobs.
func (k Classes) Occupancy(slot int, o *Occupancy) {
	o.Unfilled, o.Jobs = 0, o.Jobs[:0]
	n := k.state.fleet.slots.table.At(slot)
	if n == nil {
		return
	}
	if o.Unfilled = n.Unfilled(); n.sliced {
		o.Unfilled = math.MaxInt32
	}
	for _, t := range n.Tasks {
		if t.mayBeVictim() {
			o.add(t)
		}
	}
}

// add includes the task in the summary of its job.
func (o *Occupancy) add(t *Task) {
	var j *JobOnNode
	for i := len(o.Jobs) - 1; i >= 0 && j == nil; i-- { // most often, the last is of the same job
		if o.Jobs[i].Job == t.Job {
			j = &o.Jobs[i]
		}
	}
	held := t.milli()
	if j == nil {
		o.Jobs = append(o.Jobs, JobOnNode{Job: t.Job, Newest: t.Started, Whole: true, Each: held})
		j = &o.Jobs[len(o.Jobs)-1]
	}
	j.Newest, j.Whole, j.Each = max(j.Newest, t.Started), j.Whole && !t.elastic(), min(j.Each, held)
	j.Count, j.Devices, j.Widest = j.Count+1, j.Devices+len(t.Claims), max(j.Widest, len(t.Claims))
	if j.Tasks, j.Freed = 1, j.Each; j.Whole && len(t.Job.Tasks()) > 1 {
		all := o.runningOf(t.Job)
		j.Tasks, j.Freed = all.tasks, all.milli
	}
}

// runningOf returns what the running tasks of the job hold.
func (o *Occupancy) runningOf(j *Job) running {
	all, known := o.running[j]
	if known {
		return all
	}
	for _, t := range j.Tasks() {
		if t.Runs() {
			all.tasks, all.milli = all.tasks+1, all.milli+t.milli()
		}
	}
	if o.running == nil {
		o.running = map[*Job]running{}
	}
	o.running[j] = all
	return all
}

// Linked calls visit with the slot of each node whose Occupancy depends on all tasks of the
// job: the nodes on which its tasks run, if the job has several tasks and can only be evicted
// as a whole.
func (k Classes) Linked(j *Job, visit func(slot int)) {
	if !j.Preemptible || len(j.Tasks()) == 1 {
		return
	}
	for _, t := range j.Tasks() {
		if t.mayBeVictim() && !t.elastic() {
			visit(t.Node.Slot())
		}
	}
}
