package cluster

import "slices"

// View reads a State and has no way to change it. It is what plugins are given. It shows
// the State as it is when it is asked: changes that a statement makes are seen at once.
// What it returns belongs to the State and is not to be written to.
type View struct{ state *State }

// View returns a View of the State.
func (s *State) View() View { return View{s} }

// What is read most is read of the State itself as well.

// Node is View.Node.
func (s *State) Node(name string) *Node { return s.View().Node(name) }

// Nodes is View.Nodes.
func (s *State) Nodes() []*Node { return s.View().Nodes() }

// Job is View.Job.
func (s *State) Job(id string) *Job { return s.View().Job(id) }

// Jobs is View.Jobs.
func (s *State) Jobs() []*Job { return s.View().Jobs() }

// Pending is View.Pending.
func (s *State) Pending() []*Job { return s.View().Pending() }

// Task is View.Task.
func (s *State) Task(r TaskRef) *Task { return s.View().Task(r) }

// Queue is View.Queue.
func (s *State) Queue(name string) *Queue { return s.View().Queue(name) }

// Queues is View.Queues.
func (s *State) Queues() []*Queue { return s.View().Queues() }

// Now is View.Now.
func (s *State) Now() int64 { return s.View().Now() }

// Version is View.Version.
func (s *State) Version() uint64 { return s.View().Version() }

// Sets returns the sets of replicas.
func (v View) Sets() Sets { return Sets(v) }

// Classes returns the classes of preemptible tasks that run.
func (v View) Classes() Classes { return Classes(v) }

// Recent returns what changed most recently.
func (v View) Recent() Recent { return Recent(v) }

// Absent are the nodes that are gone, or not known yet, and have tasks on them, by name.
func (v View) Absent() []*Node { return v.state.fleet.Absent() }

// At is the node in the slot, nil if there is none.
func (v View) At(slot int) *Node { return v.state.fleet.slots.at[slot] }

// Avoiding visits the times until which nodes avoid shapes.
func (v View) Avoiding(visit func(until int64)) {
	for name := range v.state.fleet.avoiding {
		if n := v.Node(name); n != nil {
			for _, a := range n.Avoids {
				visit(a.Until)
			}
		}
	}
}

// Budgets are all budgets, by namespace and name.
func (v View) Budgets() []*Budget { return v.state.tree.budgets }

// Deserved is the queue's quota; of what it has none for, that of the queues below it together.
func (v View) Deserved(q *Queue) Resources {
	if known := v.Queue(q.Name); known != nil {
		return known.deserved
	}
	return nil
}

// Fork finds where the branches of two queues part: the two siblings, the first
// above the left queue and the second above the right one. Nil where one is
// above the other, or one of them is nil.
func (v View) Fork(left, right *Queue) (a, b *Queue) { return v.state.tree.Fork(left, right) }

// Fraction is the fraction of a GPU that slices of the resource are, the largest if
// products differ; 0 where it is not that of slices, or no node has any.
func (v View) Fraction(resource string) Milli {
	most := Milli(0)
	for i := range v.state.fleet.samples {
		if d := &v.state.fleet.samples[i]; d.Resource == resource {
			most = max(most, d.Fraction)
		}
	}
	return most
}

// Groups are all groups, in key order.
func (v View) Groups() []*Group {
	return ordered(v.state.fleet.groups, func(a, b *Group) int { return a.Key.Compare(b.Key) })
}

// Held is what the queue has held since the last interval of its Past; false: nothing.
func (v View) Held(q *Queue) (Usage, bool) {
	if len(q.current.used) == 0 || q.current.since >= v.Now() {
		return Usage{}, false
	}
	return Usage{q.current.since, v.Now(), q.current.used}, true
}

// Job finds a job by ID, nil if there is none.
func (v View) Job(id string) *Job { return v.state.roster.jobs[id] }

// JobAt is the job in the slot, nil if there is none.
func (v View) JobAt(slot int) *Job { return v.state.roster.slots.at[slot] }

// Jobs are all jobs, by ID.
func (v View) Jobs() []*Job { return byID(v.state.roster.jobs) }

// Kinds are one device of every kind there is, for Need.Kind: with product,
// profile, fraction, resource and type, and nothing else. Lost devices are of no kind.
func (v View) Kinds() []Device { return v.state.fleet.samples }

// Moving are the tasks that are on their way to another node, by ID.
func (v View) Moving() []*Task { return byTaskID(v.state.roster.moving) }

// Named reports whether some queue has terms for the product.
func (v View) Named(product string) bool { return v.state.tree.Named(product) }

// Node finds a node by name, nil if there is none.
func (v View) Node(name string) *Node { return v.state.fleet.byName[name] }

// Nodes are all nodes, by name.
func (v View) Nodes() []*Node { return v.state.fleet.sorted }

// Nominated are the tasks that wait for reserved room, by ID.
func (v View) Nominated() []*Task { return byTaskID(v.state.roster.nominated) }

// Now is when the last session was opened.
func (v View) Now() int64 { return v.state.tree.now }

// Parent is the queue above, nil at the top and where the queue waits for it.
func (v View) Parent(q *Queue) *Queue { return v.state.tree.Parent(q) }

// Past is what the queue used until now: what was reported, and what it has held since.
func (v View) Past(q *Queue) []Usage {
	if u, held := v.Held(q); held {
		return append(slices.Clip(q.Past), u)
	}
	return q.Past
}

// Pending are the jobs with tasks that are nowhere yet, by ID.
func (v View) Pending() []*Job { return byID(v.state.roster.pending) }

// Products are the names of products that some queue has terms for, sorted. What
// queues use is counted under these names as well, and under no other products.
func (v View) Products() []string { return v.state.tree.products }

// Queue finds a queue by name, nil if there is none.
func (v View) Queue(name string) *Queue { return v.state.tree.byName[name] }

// Queues are all queues, by name.
func (v View) Queues() []*Queue { return v.state.tree.Queues() }

// Releasing are the tasks that are evicted and still on their node, by ID.
func (v View) Releasing() []*Task {
	return slices.SortedFunc(slices.Values(v.state.roster.releasing), (*Task).compare)
}

// Retired are the jobs that were retired and are still there, by ID.
func (v View) Retired() []*Job { return byID(v.state.roster.retired) }

// Task finds a task by its name, nil if there is none.
func (v View) Task(r TaskRef) *Task { return v.state.roster.Task(r) }

// Torn are the jobs that run below their minimum, by ID.
func (v View) Torn() []*Job { return byID(v.state.roster.torn) }

// Unified is how many nodes have unified memory.
func (v View) Unified() int { return v.state.fleet.unified }

// Version is the version of the most recent change.
func (v View) Version() uint64 { return v.state.fleet.slots.version }

// Waits reports whether the job is pending: a task of it is nowhere yet.
func (v View) Waits(j *Job) bool { return j.pending && v.state.roster.knows(j) }

// Weakest is the rank of the weakest tier that a queue has.
func (v View) Weakest() int { return v.state.tree.Weakest() }
