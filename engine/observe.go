package engine

import (
	"errors"
	"fmt"

	"github.com/berth-project/berth/cluster"
)

// Observer has functions that are called when decisions are carried out. Only the scheduler
// that carries out decisions calls them: simulations, plans that are rolled back and what-if
// questions do not. Use an Observer for effects outside the engine, such as metrics or the
// confirmation of a reservation. Decisions must not depend on what an Observer has seen,
// because calls are not repeated after a restart; they depend on the View alone. Any of the
// functions may be nil.
type Observer struct {
	// Committed is called for each decision when it is final and logged.
	Committed func(*Decision)
	// Bound is called when a task that was assigned to the node is reported there, or has
	// ended.
	Bound func(t cluster.TaskRef, node string)
	// BindFailed is called when a task that was assigned to the node, or for which room was
	// reserved there, will not run there any more.
	BindFailed func(t cluster.TaskRef, node string)
	// Evicted is called when an evicted task no longer holds room on the node.
	Evicted func(t cluster.TaskRef, node string)
}

// AddObserver registers an Observer. It is called until the next session opens.
//
// Combining: all observers are called, in profile order.
func (h *Hooks) AddObserver(o Observer) { add(h, &h.observers, o, false) }

// Committed calls the observers of the last session for everything in its outcome that is
// final: Observer.Committed for each decision, and Observer.BindFailed for each reservation
// that was withdrawn. The error names the observers that panicked.
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

// ObserveFact notes the tasks that a fact may change. Call it before the fact is applied to the
// State, and call the function that it returns afterwards: that function calls the observers
// of the last session for each of these tasks that was bound, failed to bind or was evicted.
func (e *Engine) ObserveFact(s *cluster.State, fact cluster.Change) (report func() error) {
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

// affectedTasks returns the tasks that the fact may change. An entry may be nil.
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
		return s.View().Nominated() // the node may not be able to keep their reservations any more
	case cluster.JobPut:
		return all(c.Job.ID)
	case cluster.JobGone:
		return all(c.Job)
	}
	return nil
}

// watchedTask is a task as it was before a fact.
type watchedTask struct {
	task    cluster.TaskRef
	uid     string
	status  cluster.Status
	node    string
	evicted bool
}

// outcome returns the call of an Observer that the change to t requires, or nil if none is
// required. t is the task after the fact; it is nil if the task does not exist any more.
func (w watchedTask) outcome(t *cluster.Task) func(*Observer) {
	if t != nil && t.UID != w.uid && w.uid != "" {
		t = nil // it is another task with the same name
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

// notifyObservers visits the observers in order. If one panics, the remaining observers are
// still visited, and the error names its plugin.
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
