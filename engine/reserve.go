package engine

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
)

// Reserver holds something for tasks that the State does not account for, such as a
// license or a place in a storage system. It counts what tasks on nodes hold: at the
// beginning of a session those on the nodes of the View that stay (Task.Stays), and then
// as its functions are called. They see the statement's changes.
// Plans are tried and taken back many times, so they only count; what has effects outside
// waits for Observer.Committed.
//
// In a statement, Reserve is called when a task is allocated, also as the landing of a task
// that moves, and its answer counts. Unreserve is called when a task is evicted, and when
// its nomination is withdrawn. Where one of these is taken back, the opposite is called,
// and what Reserve answers does not count; nor does it where an evicted task does not leave
// in time. Nothing is called where a nominated task is bound: it held its room before.
type Reserver struct {
	// Reserve counts what the task holds on the node, in any case, and returns nil where
	// there is enough. A rejection turns the node down: Unreserve is called for it, and the
	// next best node is tried. Where its cure has Evict, plans are tried whose victims
	// leave the node. The task is on the node already when it is asked (Node.Tasks).
	Reserve func(*cluster.Task, *cluster.Node) *Rejection
	// Unreserve gives back what the task held on the node.
	Unreserve func(*cluster.Task, *cluster.Node)
}

// AddReserve registers a Reserver. Matters may be nil; where it answers false, neither
// function is called for the task. It may depend only on what the job and the task request
// and on their labels.
//
// Combining: in profile order. The first rejection counts; it and those asked before it
// are called to unreserve, last first.
func (h *Hooks) AddReserve(matters func(*cluster.Task, *cluster.Job) bool, r Reserver) {
	if r.Reserve == nil || r.Unreserve == nil {
		h.misused("AddReserve", "it needs both Reserve and Unreserve")
		return
	}
	add(h, (*[]hook[Reserver])(&h.reservers), r).tasks = matters
}

// unreserved is the error of an allocation that a Reserver turned down.
type unreserved struct {
	plugin    string
	rejection *Rejection
}

func (u *unreserved) Error() string {
	return fmt.Sprintf("plugin %s could not reserve: %s", u.plugin, u.rejection.Reason)
}

// reservers are those of a profile.
type reservers []hook[Reserver]

// reserve asks them about a task that is allocated on the node; an error means that none
// of them holds anything for it.
func (r reservers) reserve(t *cluster.Task, n *cluster.Node, fault *fault) error {
	for i := range r {
		k := &r[i]
		if k.tasks != nil && !k.tasks(t, t.Job) {
			continue
		}
		if rejection := k.fn.Reserve(t, n); rejection != nil {
			r[:i+1].unreserve(t, n)
			return &unreserved{k.plugin, fault.sign(k.plugin, rejection)}
		}
	}
	return nil
}

// again reserves for a task whose eviction or withdrawal is taken back, or which does not
// leave.
func (r reservers) again(t *cluster.Task, n *cluster.Node) {
	for i := range r {
		if k := &r[i]; k.tasks == nil || k.tasks(t, t.Job) {
			k.fn.Reserve(t, n)
		}
	}
}

// unreserve gives back what they hold for the task, last first.
func (r reservers) unreserve(t *cluster.Task, n *cluster.Node) {
	for i := len(r) - 1; i >= 0; i-- {
		if k := &r[i]; k.tasks == nil || k.tasks(t, t.Job) {
			k.fn.Unreserve(t, n)
		}
	}
}

// barred is the nodes that Reservers turned down, until the statement changes.
type barred struct {
	stmt  *Statement
	stamp uint64
	nodes map[barredPair]*unreserved
}

type barredPair struct {
	task *cluster.Task
	node *cluster.Node
}

// any reports whether a node is barred as things are.
func (b *barred) any() bool { return b.stmt != nil && b.stamp == b.stmt.stamp && len(b.nodes) > 0 }

// bar keeps the task from the node until the statement changes.
func (b *barred) bar(st *Statement, t *cluster.Task, n *cluster.Node, why *unreserved) {
	if !b.any() || b.stmt != st {
		*b = barred{st, st.stamp, map[barredPair]*unreserved{}}
	}
	b.nodes[barredPair{t, n}] = why
}

// bars are the filters of what Reservers turned down for the task, in profile order.
func (f *finder) bars(t *cluster.Task) (out []hook[TaskFilter]) {
	for i := range f.hooks.reservers {
		plugin := f.hooks.reservers[i].plugin
		by := func(why *unreserved) bool { return why != nil && why.plugin == plugin }
		for pair, why := range f.barred.nodes {
			if pair.task == t && by(why) {
				out = append(out, hook[TaskFilter]{plugin: plugin, fn: func(t *cluster.Task, _ *cluster.Job, n *cluster.Node) *Rejection {
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
