package engine

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
)

// Reserver holds something for a task that the State does not account for, such as a
// license or a place in a storage system. Reserve is asked when the task has been
// allocated on the node in a statement, and Unreserve is called for each Reserve that
// let the task pass and that is taken back. Both see the statement's changes. Plans are
// tried and taken back many times, so both only count; what has effects outside waits
// for Observer.Committed. What was reserved in earlier sessions is found in the View.
type Reserver struct {
	// Reserve turns the node down for the task; nil lets it pass. The next best node is
	// tried then, and the node is not tried again for the task in this turn of its job.
	Reserve func(*cluster.Task, *cluster.Node) *Rejection
	// Unreserve takes back what Reserve did. It is also called when a reservation of
	// room for a nominated task is withdrawn for good.
	Unreserve func(*cluster.Task, *cluster.Node)
}

// AddReserve registers a Reserver. Matters may be nil; where it answers false, neither
// function is called for the task.
//
// Combining: in profile order. The first rejection counts; those asked before it are
// called to unreserve, last first.
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
			r[:i].unreserve(t, n)
			return &unreserved{k.plugin, fault.sign(k.plugin, rejection)}
		}
	}
	return nil
}

// unreserve takes back what they hold for the task, last first.
func (r reservers) unreserve(t *cluster.Task, n *cluster.Node) {
	for i := len(r) - 1; i >= 0; i-- {
		if k := &r[i]; k.tasks == nil || k.tasks(t, t.Job) {
			k.fn.Unreserve(t, n)
		}
	}
}

// barred is the nodes that Reservers turned down in this turn.
type barred map[barredPair]*unreserved

type barredPair struct {
	task *cluster.Task
	node *cluster.Node
}

// bar keeps the task from the node until the next turn.
func (f *finder) bar(t *cluster.Task, n *cluster.Node, why *unreserved) {
	if f.barred == nil {
		f.barred = barred{}
	}
	f.barred[barredPair{t, n}] = why
}

// bars are the filters of what Reservers turned down for the task, in profile order.
func (f *finder) bars(t *cluster.Task) (out []hook[TaskFilter]) {
	for i := range f.hooks.reservers {
		plugin := f.hooks.reservers[i].plugin
		by := func(why *unreserved) bool { return why != nil && why.plugin == plugin }
		for pair, why := range f.barred {
			if pair.task == t && by(why) {
				out = append(out, hook[TaskFilter]{plugin: plugin, fn: func(t *cluster.Task, _ *cluster.Job, n *cluster.Node) *Rejection {
					if why := f.barred[barredPair{t, n}]; by(why) {
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
