package cluster

import (
	"maps"
	"slices"
)

// Sets reads the sets of replicas of a State: the jobs that are made of one model.
type Sets struct{ state *State }

// Desired is how many jobs the set should have: where they differ about it, the
// most that one of them says.
func (s Sets) Desired(name string) int {
	if set := s.state.sets.byName[name]; set != nil {
		return set.desired
	}
	return 0
}

// Excess are the names of the sets that have more jobs than they should, in order.
func (s Sets) Excess() []string { return slices.Sorted(maps.Keys(s.state.sets.excess)) }

// Home is the group that the set's replicas belong on: the one that was chosen
// for them, or else the one that some of them were placed for, or are on. Nil:
// none yet.
func (s Sets) Home(name string) *Key {
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

// Jobs are the jobs of the set, by ID. Those that were retired are no part of it.
func (s Sets) Jobs(name string) []*Job {
	if set := s.state.sets.byName[name]; set != nil {
		return set.jobs
	}
	return nil
}

// Names are the names of all sets of replicas, in order.
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

// Classes reads which preemptible tasks run, class by class: by queue and priority.
type Classes struct{ state *State }

// Least is the least that a running preemptible task of the class holds of devices, in
// thousandths; 0 where a device of one is lost, since Kinds does not say what it counts as.
func (k Classes) Least(c Class) int64 { return k.state.classes.Least(c) }

// Lowest is the lowest priority of preemptible tasks that run in the queue; false where
// none does.
func (k Classes) Lowest(queue string) (priority int32, found bool) {
	return k.state.classes.Lowest(queue)
}

// Newest is the node on which the newest task of the class runs, the first by name of
// several, but for nodes that are to be skipped. With it comes what any node has of the
// class at least; Newest is that node's. It reports false where there is no such node.
func (k Classes) Newest(c Class, skip func(slot int) bool) (slot int, least OnNode, found bool) {
	return k.state.classes.Newest(c, skip)
}

// Nodes visits the slots of the nodes on which preemptible tasks of the class run, in
// no order.
func (k Classes) Nodes(c Class, visit func(slot int, k OnNode)) { k.state.classes.Nodes(c, visit) }

// Preemptible is how many tasks of preemptible jobs are on nodes, at whatever stage.
func (k Classes) Preemptible() int { return k.state.classes.preemptible }

// RunOn reports whether preemptible tasks of the class run on the node in the slot.
func (k Classes) RunOn(c Class, slot int) bool { return k.state.classes.RunOn(c, slot) }

// Visit visits the classes of which preemptible tasks run, in no order, until visit
// answers false.
func (k Classes) Visit(visit func(Class) bool) { k.state.classes.Visit(visit) }

// VisitQueue visits the classes of the queue of which preemptible tasks run, the lowest
// priority first, until visit answers false. It reports whether all were visited.
func (k Classes) VisitQueue(queue string, visit func(Class) bool) bool {
	return k.state.classes.VisitQueue(queue, visit)
}

// Recent reads what changed since a version, most recent first, and the slots that
// nodes and jobs are kept in. A reader that keeps something by slot takes in the changes
// since the version that it knows, and need not look at the rest.
type Recent struct{ state *State }

// Born is the version with which the slot's present node came.
func (r Recent) Born(slot int) uint64 { return r.state.fleet.born[slot] }

// Jobs visits the slots of jobs that changed after the version, most recent
// first, each once: that came, whose tasks stand elsewhere, or that are gone.
func (r Recent) Jobs(since uint64, visit func(slot int)) { r.state.roster.slots.since(since, visit) }

// JobsVersion is the version of the most recent change of a job. Jobs have
// versions of their own, apart from those of nodes.
func (r Recent) JobsVersion() uint64 { return r.state.roster.slots.version }

// Nodes visits the slots that changed after the version, most recent first,
// each once. A slot whose node was removed is visited too.
func (r Recent) Nodes(since uint64, visit func(slot int)) { r.state.fleet.slots.since(since, visit) }

// Queue is the version at which the queue's use or terms last changed.
func (r Recent) Queue(q *Queue) uint64 { return r.state.tree.slots.versions[q.slot] }

// Queues visits the queues whose use or terms changed after the version,
// most recent first, each once. A queue that was removed is not visited; Terms
// grows.
func (r Recent) Queues(since uint64, visit func(*Queue)) {
	queues := &r.state.tree.slots
	queues.since(since, func(slot int) {
		if q := queues.at[slot]; q != nil {
			visit(q)
		}
	})
}

// QueuesVersion is the version of the most recent change of a queue's use or terms.
func (r Recent) QueuesVersion() uint64 { return r.state.tree.slots.version }

// Rank orders slots by node name. Adding and removing nodes keeps the order of the others.
func (r Recent) Rank(slot int) int64 { return r.state.fleet.ranks[slot] }

// Ranks is Rank for every slot, for callers that compare many.
func (r Recent) Ranks() []int64 { return r.state.fleet.ranks }

// Commits grows whenever something is changed for good. Versions grow as well with what
// a session tries and takes back.
func (r Recent) Commits() uint64 { return r.state.journal.commits }

// Slots is one more than the highest slot ever used.
func (r Recent) Slots() int { return len(r.state.fleet.slots.at) }

// Terms grows whenever a queue or a budget is given new terms.
func (r Recent) Terms() uint64 { return r.state.tree.revision }
