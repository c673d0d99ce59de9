package cluster

import "slices"

// View is a read-only view of a State. Plugins get a View and never the State itself. A
// View always shows the current State, including the changes of a statement that is not
// committed. What its methods return belongs to the State and must not be changed.
type View struct{ state *State }

// View returns a View of the State.
func (s *State) View() View { return View{s} }

// State has the methods of View that are used most.

// Node is a shorthand for View.Node.
func (s *State) Node(name string) *Node { return s.View().Node(name) }

// Nodes is a shorthand for View.Nodes.
func (s *State) Nodes() []*Node { return s.View().Nodes() }

// Job is a shorthand for View.Job.
func (s *State) Job(id string) *Job { return s.View().Job(id) }

// Jobs is a shorthand for View.Jobs.
func (s *State) Jobs() []*Job { return s.View().Jobs() }

// Pending is a shorthand for View.Pending.
func (s *State) Pending() []*Job { return s.View().Pending() }

// Task is a shorthand for View.Task.
func (s *State) Task(r TaskRef) *Task { return s.View().Task(r) }

// Queue is a shorthand for View.Queue.
func (s *State) Queue(name string) *Queue { return s.View().Queue(name) }

// Queues is a shorthand for View.Queues.
func (s *State) Queues() []*Queue { return s.View().Queues() }

// Now is a shorthand for View.Now.
func (s *State) Now() int64 { return s.View().Now() }

// Version is a shorthand for View.Version.
func (s *State) Version() uint64 { return s.View().Version() }

// Sets returns the Sets of replicas.
func (v View) Sets() Sets { return Sets(v) }

// Classes returns the running preemptible tasks, by class.
func (v View) Classes() Classes { return Classes(v) }

// Recent returns what changed most recently.
func (v View) Recent() Recent { return Recent(v) }

// Absent returns the nodes that were removed or never reported and have tasks on them,
// sorted by name.
func (v View) Absent() []*Node { return v.state.fleet.Absent() }

// At returns the node in the slot, or nil if there is none.
func (v View) At(slot int) *Node { return v.state.fleet.slots.table.At(slot) }

// Avoiding calls visit with each time until which a node avoids a shape, in nanoseconds
// and in no order.
func (v View) Avoiding(visit func(until int64)) {
	for name := range v.state.fleet.avoiding {
		if n := v.Node(name); n != nil {
			for _, a := range n.Avoids {
				visit(a.Until)
			}
		}
	}
}

// Budgets returns all disruption budgets, sorted by namespace and name.
func (v View) Budgets() []*Budget { return v.state.tree.budgets }

// Quotas returns what the queue is entitled to by quotas: its own quota and, for each
// resource that its quota does not name, the sum over the queues directly below it.
func (v View) Quotas(q *Queue) Resources {
	if known := v.Queue(q.Name); known != nil {
		return known.quotas
	}
	return nil
}

// Fork returns the two siblings in the tree at which two queues are compared: a is left or
// a queue above it, b is right or a queue above it. It returns nil for both if one queue is
// above the other, if they are the same, or if one of them is nil.
func (v View) Fork(left, right *Queue) (a, b *Queue) { return v.state.tree.Fork(left, right) }

// Fraction returns the fraction of a GPU, in thousandths, that a MIG slice with this
// resource name is. If products differ, it returns the largest. It returns 0 if the
// resource is not that of MIG slices, or if no node has such a slice.
func (v View) Fraction(resource string) Milli {
	most := Milli(0)
	for i := range v.state.fleet.samples {
		if d := &v.state.fleet.samples[i]; d.Resource == resource {
			most = max(most, d.Fraction)
		}
	}
	return most
}

// Groups returns all node groups, sorted by key.
func (v View) Groups() []*Group {
	return ordered(v.state.fleet.groups, func(a, b *Group) int { return a.Key.Compare(b.Key) })
}

// Held returns what the queue has used since the last interval of its Past. It returns
// false if the queue used nothing, or if no time has passed.
func (v View) Held(q *Queue) (Usage, bool) {
	if len(q.current.used) == 0 || q.current.since >= v.Now() {
		return Usage{}, false
	}
	return Usage{q.current.since, v.Now(), q.current.used}, true
}

// Job returns the job with the ID, or nil if there is none.
func (v View) Job(id string) *Job { return v.state.roster.jobs[id] }

// JobAt returns the job in the slot, or nil if there is none.
func (v View) JobAt(slot int) *Job { return v.state.roster.slots.table.At(slot) }

// Jobs returns all jobs, sorted by ID.
func (v View) Jobs() []*Job { return byID(v.state.roster.jobs) }

// Kinds returns one device of every kind that the cluster has, to be tested with
// Need.Kind. Only product, profile, fraction, resource and type are set. Lost devices do
// not count.
func (v View) Kinds() []Device { return v.state.fleet.samples }

// Moving returns the tasks for which room is reserved on another node, to which they
// move, sorted by ID.
func (v View) Moving() []*Task { return byTaskID(v.state.roster.moving) }

// Named reports whether the quota, limits or weights of any queue name the product, which
// is a name as ProductResource returns it.
func (v View) Named(product string) bool { return v.state.tree.Named(product) }

// Node returns the node with the name, or nil if there is none. Absent nodes are not
// found.
func (v View) Node(name string) *Node { return v.state.fleet.byName[name] }

// Nodes returns all nodes, sorted by name. Absent nodes are not among them.
func (v View) Nodes() []*Node { return v.state.fleet.sorted }

// Nominated returns the tasks that are Nominated, sorted by ID.
func (v View) Nominated() []*Task { return byTaskID(v.state.roster.nominated) }

// Now returns when the last session was opened, in nanoseconds.
func (v View) Now() int64 { return v.state.tree.now }

// Parent returns the queue directly above, or nil if the queue is at the top of the tree
// or is loose.
func (v View) Parent(q *Queue) *Queue { return v.state.tree.Parent(q) }

// Past returns what the queue used until now: Queue.Past, followed by what Held returns.
func (v View) Past(q *Queue) []Usage {
	if u, held := v.Held(q); held {
		return append(slices.Clip(q.Past), u)
	}
	return q.Past
}

// Pending returns the jobs that have a task to place, sorted by ID.
func (v View) Pending() []*Job { return sortedByID(v.state.roster.pending) }

// Products returns the product resources (see ProductResource) that the quota, limits or
// weights of any queue name, sorted. Queue.Used counts devices under these names in addition
// to their resource names. It does not count them under other product resources.
func (v View) Products() []string { return v.state.tree.products }

// Queue returns the queue with the name, or nil if there is none.
func (v View) Queue(name string) *Queue { return v.state.tree.byName[name] }

// Queues returns all queues, sorted by name.
func (v View) Queues() []*Queue { return v.state.tree.Queues() }

// Releasing returns the tasks that are Releasing, sorted by ID.
func (v View) Releasing() []*Task {
	return slices.SortedFunc(slices.Values(v.state.roster.releasing), (*Task).compare)
}

// Retired returns the jobs that were retired and are not removed yet, sorted by ID.
func (v View) Retired() []*Job { return byID(v.state.roster.retired) }

// Task returns the task that the reference names, or nil if there is none.
func (v View) Task(r TaskRef) *Task { return v.state.roster.Task(r) }

// BelowMinimum returns the jobs that are recorded as running below their minimum
// (Job.BelowMinimumSince), sorted by ID.
func (v View) BelowMinimum() []*Job { return byID(v.state.roster.belowMinimum) }

// Unified returns how many nodes have unified memory.
func (v View) Unified() int { return v.state.fleet.unified }

// Version returns the version of the most recent change of a node.
func (v View) Version() uint64 { return v.state.fleet.slots.Version }

// IsPending reports whether the job is pending: it is in the list that Pending returns.
func (v View) IsPending(j *Job) bool { return j.pendingAt > 0 && v.state.roster.knows(j) }

// Weakest returns the rank (Tier.Rank) of the weakest tier that any queue has.
func (v View) Weakest() int { return v.state.tree.Weakest() }
