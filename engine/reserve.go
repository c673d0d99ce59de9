package engine

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
)

// Reserver accounts for something that tasks need and the State does not know, such as a
// license or space in a storage system. At the beginning of a session it counts the tasks on
// the nodes of the View for which Task.KeepsRoom returns true. After that it counts by the calls of
// its functions, which see the changes of the statement. Both functions only count, because
// plans are tried and rolled back many times. Use Observer.Committed for effects outside the
// engine.
//
// In a statement, Reserve is called when a task is allocated, or when room is reserved for a
// task that moves, and a rejection takes effect. Unreserve is called when a task is evicted
// and when its nomination is withdrawn. If such a change is rolled back, the opposite
// function is called, and a rejection is ignored. Reserve is also called, and a rejection
// ignored, when an evicted task is overdue. Neither function is called when a nominated task
// is bound, since the task has held its room from its nomination on.
type Reserver struct {
	// Reserve counts what the task holds on the node, and returns nil if there is enough. If
	// it returns a rejection, it must have counted the task nevertheless: Unreserve is called
	// for the task, and the next best node is tried. If the Cure of the rejection has Evict,
	// plans with victims on the node are tried. Node.Tasks already has the task when Reserve
	// is called.
	Reserve func(*cluster.Task, *cluster.Node) *Rejection
	// Unreserve releases what the task held on the node.
	Unreserve func(*cluster.Task, *cluster.Node)
	// Devices returns the devices of the node that Reserve chose for the task. It is called
	// after all Reservers have accepted the task, and lets an allocator outside the engine
	// choose devices. If it is nil or returns none, or if the devices are not as many as the
	// task requests or are not free in the State, the task holds the devices that the engine
	// chose. If several Reservers return devices, the first counts.
	Devices func(*cluster.Task, *cluster.Node) []cluster.Holding
}

// AddReserve registers a Reserver. If matters is not nil and returns false for a task, neither
// function is called for that task. What matters returns may depend only on the requests and
// labels of the job and the task.
//
// Combining: in profile order. The first rejection counts. Unreserve of that Reserver, and of
// those that were called before it, is then called, the last first.
func (h *Hooks) AddReserve(matters func(*cluster.Task, *cluster.Job) bool, r Reserver) {
	if r.Reserve == nil || r.Unreserve == nil {
		misused(h, "AddReserve", "it needs both Reserve and Unreserve")
		return
	}
	add(h, (*[]hook[Reserver])(&h.reservers), r, false).tasks = matters
}

// unreserved is the error of an allocation that a Reserver rejected.
type unreserved struct {
	plugin    string
	rejection *Rejection
}

func (u *unreserved) Error() string {
	return fmt.Sprintf("plugin %s could not reserve: %s", u.plugin, u.rejection.Reason)
}

// reservers are the Reservers of a session, in profile order.
type reservers []hook[Reserver]

// reserve calls Reserve for a task that is allocated on the node. After an error, no Reserver
// counts the task.
func (r reservers) reserve(t *cluster.Task, n *cluster.Node, fault *fault) error {
	for i := range r {
		k := &r[i]
		if k.tasks != nil && !k.tasks(t, t.Job) {
			continue
		}
		rejection := k.fn.Reserve(t, n)
		if rejection != nil && k.profiles.decideShape(t.Shape) { // tasks of other profiles only count
			r[:i+1].unreserve(t, n)
			return &unreserved{k.plugin, fault.sign(k.plugin, rejection)}
		}
	}
	return nil
}

// devices returns the claims for the devices that a Reserver chose for the task, and nil if none
// did or the number of devices is not the one that the task requests.
func (r reservers) devices(t *cluster.Task, n *cluster.Node) []cluster.Claim {
	for i := range r {
		k := &r[i]
		if k.fn.Devices == nil || !k.profiles.decideShape(t.Shape) || k.tasks != nil && !k.tasks(t, t.Job) {
			continue
		}
		chosen := k.fn.Devices(t, n)
		if len(chosen) == 0 {
			continue
		}
		claims, err := n.Resolve(chosen)
		if err != nil || t.Shape.CheckClaims(claims) != nil {
			return nil
		}
		return claims
	}
	return nil
}

// again calls Reserve for a task when its eviction or withdrawal is rolled back, or when it is
// overdue. Rejections are ignored, since the task is on the node in any case.
func (r reservers) again(t *cluster.Task, n *cluster.Node) {
	for i := range r {
		if k := &r[i]; k.tasks == nil || k.tasks(t, t.Job) {
			k.fn.Reserve(t, n)
		}
	}
}

// unreserve calls Unreserve for the task, in reverse profile order.
func (r reservers) unreserve(t *cluster.Task, n *cluster.Node) {
	for i := len(r) - 1; i >= 0; i-- {
		if k := &r[i]; k.tasks == nil || k.tasks(t, t.Job) {
			k.fn.Unreserve(t, n)
		}
	}
}

// barred is the nodes that Reservers rejected for tasks. It is valid until the statement
// changes.
type barred struct {
	stmt  *Statement
	stamp uint64
	nodes map[barredPair]*unreserved
}

type barredPair struct {
	task *cluster.Task
	node *cluster.Node
}

// any reports whether a node is barred and the statement has not changed since.
func (b *barred) any() bool { return b.stmt != nil && b.stamp == b.stmt.stamp && len(b.nodes) > 0 }

// bar excludes the node for the task until the statement changes.
func (b *barred) bar(st *Statement, t *cluster.Task, n *cluster.Node, why *unreserved) {
	if !b.any() || b.stmt != st {
		*b = barred{st, st.stamp, map[barredPair]*unreserved{}}
	}
	b.nodes[barredPair{t, n}] = why
}

// bars returns filters that reject the barred nodes for the task, in profile order of the
// Reservers.
func (f *finder) bars(t *cluster.Task) (out []*hook[TaskFilter]) {
	for i := range f.hooks.reservers {
		plugin := f.hooks.reservers[i].plugin
		by := func(why *unreserved) bool { return why != nil && why.plugin == plugin }
		for pair, why := range f.barred.nodes {
			if pair.task == t && by(why) {
				out = append(out, &hook[TaskFilter]{plugin: plugin, fn: func(t *cluster.Task, _ *cluster.Job, n *cluster.Node) *Rejection {
					if why := f.barred.nodes[barredPair{t, n}]; f.barred.any() && by(why) {
						return why.rejection
					}
					return nil
				}})
				break
			}
		}
	}
	return out
}
