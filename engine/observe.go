package engine

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
)

// Observer hears what becomes of decisions, from the scheduler that carries them out: it
// hears nothing of simulations, of plans that are taken back, or of what-if questions. It
// is for effects outside, such as metrics or the confirmation of a reservation. It is no
// source for decisions, which follow from the View alone: after a restart nothing is heard
// again. Functions may be nil.
type Observer struct {
	// Committed hears of each decision when it is final and logged.
	Committed func(*Decision)
	// Bound hears of a task that was assigned to the node and is seen there.
	Bound func(t cluster.TaskRef, node string)
	// BindFailed hears of a task that was assigned to the node, or held room there, and
	// does so no more without having run.
	BindFailed func(t cluster.TaskRef, node string)
	// Evicted hears of an evicted task that has left the node.
	Evicted func(t cluster.TaskRef, node string)
}

// AddObserver registers an Observer. It hears until the next session opens.
//
// Combining: all hear everything, in profile order.
func (h *Hooks) AddObserver(o Observer) { add(h, &h.observers, o) }

// Committed tells the observers of the last session of decisions that are final.
func (e *Engine) Committed(decisions []Decision) error {
	for i := range decisions {
		d := &decisions[i]
		if err := e.tell(func(o *Observer) {
			if o.Committed != nil {
				o.Committed(d)
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// Watch looks at the tasks that a fact is about to change. The function that it returns
// is called when the fact is in the State: it tells the observers of the last session what
// became of those tasks.
func (e *Engine) Watch(s *cluster.State, fact cluster.Change) (told func() error) {
	if len(e.observers) == 0 {
		return func() error { return nil }
	}
	var watched []standing
	if j := s.Job(concerns(fact)); j != nil {
		for _, t := range j.Tasks() {
			if t.Node != nil {
				watched = append(watched, standing{t.Ref(), t.UID, t.Status, t.Node.Name})
			}
		}
	}
	return func() error {
		for _, w := range watched {
			if err := e.tell(w.became(s.Task(w.task))); err != nil {
				return err
			}
		}
		return nil
	}
}

// concerns is the job that the fact is about; "": it is about none.
func concerns(fact cluster.Change) string {
	switch c := fact.(type) {
	case cluster.TaskSeen:
		return c.Task.Job
	case cluster.TaskGone:
		return c.Task.Job
	case cluster.BindFailed:
		return c.Task.Job
	case cluster.JobPut:
		return c.Job.ID
	case cluster.JobGone:
		return c.Job
	}
	return ""
}

// standing is where a task stood.
type standing struct {
	task   cluster.TaskRef
	uid    string
	status cluster.Status
	node   string
}

// became is what observers are told of the task, which is nil where it is gone.
func (w standing) became(t *cluster.Task) func(*Observer) {
	if t != nil && t.UID != w.uid && w.uid != "" {
		t = nil // another task of that name
	}
	there := t != nil && t.Node != nil && t.Node.Name == w.node
	switch w.status {
	case cluster.Assumed, cluster.Nominated:
		switch {
		case there && t.Status == cluster.Bound:
			return func(o *Observer) { call(o.Bound, w) }
		case !there:
			return func(o *Observer) { call(o.BindFailed, w) }
		}
	case cluster.Releasing:
		if !there {
			return func(o *Observer) { call(o.Evicted, w) }
		}
	}
	return func(*Observer) {}
}

func call(fn func(cluster.TaskRef, string), w standing) {
	if fn != nil {
		fn(w.task, w.node)
	}
}

// tell visits the observers. One that panics is named by the error, and the others are
// told all the same.
func (e *Engine) tell(visit func(*Observer)) (err error) {
	for i := range e.observers {
		func() {
			defer func() {
				if p := recover(); p != nil {
					err = fmt.Errorf("plugin %s: its observer panicked: %v", e.observers[i].plugin, p)
				}
			}()
			visit(&e.observers[i].fn)
		}()
	}
	return err
}
