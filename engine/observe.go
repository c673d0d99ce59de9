package engine

import (
	"errors"
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
	// Bound hears of a task that was assigned to the node and is seen there, or has ended.
	Bound func(t cluster.TaskRef, node string)
	// BindFailed hears of a task that was assigned to the node, or had room reserved there,
	// and is not to run there any more.
	BindFailed func(t cluster.TaskRef, node string)
	// Evicted hears of an evicted task that has left the node.
	Evicted func(t cluster.TaskRef, node string)
}

// AddObserver registers an Observer. It hears until the next session opens.
//
// Combining: all hear everything, in profile order.
func (h *Hooks) AddObserver(o Observer) { add(h, &h.observers, o) }

// Committed tells the observers of the last session what is final in its outcome:
// decisions, and reservations that were withdrawn.
func (e *Engine) Committed(out *Outcome) error {
	var errs []error
	for i := range out.Decisions {
		d := &out.Decisions[i]
		errs = append(errs, e.notifyObservers(func(o *Observer) {
			if o.Committed != nil {
				o.Committed(d)
			}
		}))
	}
	for i := range out.Events {
		if r := &out.Events[i]; r.Kind == Withdrawn {
			errs = append(errs, e.notifyObservers(func(o *Observer) { notify(o.BindFailed, r.Task, r.Node) }))
		}
	}
	return errors.Join(errs...)
}

// Watch looks at the tasks that a fact is about to change. The function that it returns
// is called when the fact is in the State: it tells the observers of the last session what
// became of those tasks.
func (e *Engine) Watch(s *cluster.State, fact cluster.Change) (told func() error) {
	if len(e.observers) == 0 {
		return func() error { return nil }
	}
	var watched []watchedTask
	for _, t := range affectedTasks(s, fact) {
		if t != nil && t.Node != nil {
			_, evicted := t.EvictedAt()
			watched = append(watched, watchedTask{t.Ref(), t.UID, t.Status, t.Node.Name, evicted})
		}
	}
	return func() error {
		var errs []error
		for _, w := range watched {
			if event := w.outcome(s.Task(w.task)); event != nil {
				errs = append(errs, e.notifyObservers(event))
			}
		}
		return errors.Join(errs...)
	}
}

// concerned are the tasks that the fact may change.
func affectedTasks(s *cluster.State, fact cluster.Change) []*cluster.Task {
	all := func(job string) []*cluster.Task {
		if j := s.Job(job); j != nil {
			return j.Tasks()
		}
		return nil
	}
	switch c := fact.(type) {
	case cluster.TaskSeen:
		return []*cluster.Task{s.Task(c.Task)}
	case cluster.TaskGone:
		return []*cluster.Task{s.Task(c.Task)}
	case cluster.TaskPut:
		return []*cluster.Task{s.Task(cluster.TaskRef{Job: c.Job, Name: c.Task.Name})}
	case cluster.BindFailed:
		return all(c.Task.Job)
	case cluster.EvictionRefused, cluster.NodeGone, cluster.NodePut, cluster.NodeSeen:
		return s.View().Nominated() // what their room depends on may not be there any more
	case cluster.JobPut:
		return all(c.Job.ID)
	case cluster.JobGone:
		return all(c.Job)
	}
	return nil
}

// sighting is where a task stood.
type watchedTask struct {
	task    cluster.TaskRef
	uid     string
	status  cluster.Status
	node    string
	evicted bool
}

// became is what observers are told of the task, which is nil where it is gone; nil:
// nothing.
func (w watchedTask) outcome(t *cluster.Task) func(*Observer) {
	if t != nil && t.UID != w.uid && w.uid != "" {
		t = nil // another task of that name
	}
	there := t != nil && t.Node != nil && t.Node.Name == w.node
	switch w.status {
	case cluster.Assumed, cluster.Nominated:
		switch {
		case there && (t.Status == cluster.Bound || t.Status == cluster.Releasing), t != nil && t.Ended():
			return func(o *Observer) { notify(o.Bound, w.task, w.node) }
		case !there:
			return func(o *Observer) { notify(o.BindFailed, w.task, w.node) }
		}
	case cluster.Releasing:
		if w.evicted && !(there && t.Status == cluster.Releasing) {
			return func(o *Observer) { notify(o.Evicted, w.task, w.node) }
		}
	}
	return nil
}

func notify(fn func(cluster.TaskRef, string), t cluster.TaskRef, node string) {
	if fn != nil {
		fn(t, node)
	}
}

// tell visits the observers. Those that panic are named by the error, and the others are
// told all the same.
func (e *Engine) notifyObservers(visit func(*Observer)) (err error) {
	for i := range e.observers {
		func() {
			defer func() {
				if p := recover(); p != nil {
					err = errors.Join(err, fmt.Errorf("plugin %s: its observer panicked: %v", e.observers[i].plugin, p))
				}
			}()
			visit(&e.observers[i].fn)
		}()
	}
	return err
}
