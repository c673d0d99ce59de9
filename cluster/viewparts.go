package cluster

import (
	"maps"
	"slices"
)

// Sets is a read-only view of the Sets of a State. A Set is the jobs that are replicas of
// one workload, such as a Model.
type Sets struct{ state *State }

// Desired returns how many jobs the Set should have: the number of SetScaled, or else the
// largest number that one of its jobs says. It returns 0 for a Set that is not known.
func (s Sets) Desired(name string) int {
	if set := s.state.sets.byName[name]; set != nil {
		return set.desired
	}
	return 0
}

// Excess returns the names of the Sets that have more jobs than they should, sorted.
func (s Sets) Excess() []string {
	if len(s.state.sets.excess) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(s.state.sets.excess))
}

// Home returns the node group that the replicas of the Set belong on: the group that was
// chosen for them, or else the group that one of them was placed for or is on. It returns
// nil if there is none yet.
func (s Sets) Home(name string) *GroupKey {
	set := s.state.sets.byName[name]
	if set == nil {
		return nil
	}
	if set.group != nil {
		return set.group
	}
	for _, j := range set.jobs {
		if j.Set.Group != nil {
			return j.Set.Group
		}
	}
	for _, j := range set.onWholeNodes {
		if home := j.homeGroup(); home != nil {
			return home
		}
	}
	return nil
}

// Jobs returns the jobs of the Set, sorted by ID. Retired jobs are not among them.
func (s Sets) Jobs(name string) []*Job {
	if set := s.state.sets.byName[name]; set != nil {
		return set.jobs
	}
	return nil
}

// Names returns the names of all Sets that have jobs, sorted.
func (s Sets) Names() []string {
	var out []string
	for name, set := range s.state.sets.byName {
		if len(set.jobs) > 0 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Classes is a read-only view of the running preemptible tasks of a State, by class. A
// class is a queue and a priority.
type Classes struct{ state *State }

// Least returns the least that a running preemptible task of the class holds of devices, in
// thousandths. It returns 0 if one of these tasks holds a lost device, because View.Kinds
// does not cover lost devices.
func (k Classes) Least(c Class) int64 { return k.state.classes.Least(c) }

// Lowest returns the lowest priority of the running preemptible tasks of the queue, and
// false if there are none.
func (k Classes) Lowest(queue string) (priority int32, found bool) {
	return k.state.classes.Lowest(queue)
}

// Newest returns the slot of the node with the most recently started running task of the
// class. Nodes for which skip returns true are left out; among equals, the first by name
// is returned. least is a lower bound for what every node has of the class, except that
// least.Newest is that of the returned node. Newest returns false if there is no such node.
func (k Classes) Newest(c Class, skip func(slot int) bool) (slot int, least ClassOnNode, found bool) {
	return k.state.classes.Newest(c, skip)
}

// Preemptible returns how many tasks of preemptible jobs are on nodes or have room
// reserved on them, whatever their status.
func (k Classes) Preemptible() int { return k.state.classes.preemptible }

// RunOn reports whether preemptible tasks of the class run on the node in the slot.
func (k Classes) RunOn(c Class, slot int) bool { return k.state.classes.RunOn(c, slot) }

// Visit calls visit for each class with running preemptible tasks, in no order, until visit
// returns false.
func (k Classes) Visit(visit func(Class) bool) { k.state.classes.Visit(visit) }

// VisitQueue calls visit for each class of the queue with running preemptible tasks, lowest
// priority first, until visit returns false. It reports whether all classes were visited.
func (k Classes) VisitQueue(queue string, visit func(Class) bool) bool {
	return k.state.classes.VisitQueue(queue, visit)
}

// Recent is a read-only view of the changes of a State, most recent first. A reader that
// keeps something for each slot takes in what changed since the version that it knows, and
// need not read the rest. Nodes, jobs and queues each have versions of their own.
type Recent struct{ state *State }

// AddedVersion returns the version at which the current node of the slot was added.
func (r Recent) AddedVersion(slot int) uint64 { return r.state.fleet.addedVersions[slot] }

// NodesAdded returns the version at which a node was added last.
func (r Recent) NodesAdded() uint64 { return r.state.fleet.lastAdded }

// Jobs calls visit once for each slot with a job that changed after the version, most recent
// first: the job was added or removed, or its spec or the status of a task changed.
func (r Recent) Jobs(since uint64, visit func(slot int)) { r.state.roster.slots.Since(since, visit) }

// JobsVersion returns the version of the most recent change of a job.
func (r Recent) JobsVersion() uint64 { return r.state.roster.slots.Version }

// Nodes calls visit once for each slot with a node that changed after the version, most
// recent first. The slot of a node that was removed is visited too.
func (r Recent) Nodes(since uint64, visit func(slot int)) { r.state.fleet.slots.Since(since, visit) }

// NodeVersion returns the version of the last change of the slot's node. It reads only a table of
// versions, which is faster than Node.Version for a reader that visits many slots.
func (r Recent) NodeVersion(slot int) uint64 { return r.state.fleet.slots.Versions[slot] }

// Queue returns the version at which the queue's use or spec changed last.
func (r Recent) Queue(q *Queue) uint64 { return r.state.tree.slots.Versions[q.slot] }

// Queues calls visit once for each queue that changed its use or spec after the version,
// most recent first. A queue that was removed is not visited, but its removal changes
// QueueSpecsVersion.
func (r Recent) Queues(since uint64, visit func(*Queue)) {
	queues := &r.state.tree.slots
	queues.Since(since, func(slot int) {
		if q := queues.table.At(slot); q != nil {
			visit(q)
		}
	})
}

// QueuesVersion returns the version of the most recent change of a queue's use or spec.
func (r Recent) QueuesVersion() uint64 { return r.state.tree.slots.Version }

// Rank returns a number by which slots can be sorted by the names of their nodes. Adding a
// node may change the ranks of other nodes, but never their order.
func (r Recent) Rank(slot int) int64 { return r.state.fleet.ranks[slot] }

// Ranks returns Rank for every slot, for callers that compare many slots.
func (r Recent) Ranks() []int64 { return r.state.fleet.ranks }

// Reranks grows whenever all nodes get new ranks.
func (r Recent) Reranks() uint64 { return r.state.fleet.reranks }

// Commits grows whenever a change becomes final. Versions, in contrast, also grow with
// changes that a session makes and then undoes.
func (r Recent) Commits() uint64 { return r.state.journal.commits }

// Slots returns the number of slots of nodes: one more than the highest slot ever used.
func (r Recent) Slots() int { return r.state.fleet.slots.table.Len() }

// QueueSpecsVersion grows whenever a queue or a budget is added or removed, or its spec
// changes.
func (r Recent) QueueSpecsVersion() uint64 { return r.state.tree.revision }
