package soak

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// executor carries out decisions at the site and reports the results to the
// scheduler. Some bindings fail, some are answered later, and some evictions are
// refused.
type executor struct {
	dice      *dice
	site      *site
	scheduler *scheduler
	history   *history
	counts    *Counts
}

// carryOut carries out the decisions one after the other.
func (e *executor) carryOut(decisions []engine.Decision) error {
	for i := range decisions {
		d := &decisions[i]
		t := e.scheduler.state.Task(d.Task)
		var err error
		switch {
		case d.Action == engine.Bind && t.Status == cluster.Assumed:
			err = e.bind(t, d)
		case d.Action == engine.EvictTask && t.Status == cluster.Releasing && e.site.processes[t.ID] == nil && e.site.sent[t.ID] == nil:
			err = e.scheduler.apply(cluster.TaskSeen{Task: d.Task}) // it was assigned in the session that evicted it, and never started
		case d.Action == engine.EvictTask && t.Status == cluster.Releasing:
			err = e.evict(t)
		}
		if err != nil {
			return err
		}
	}
	e.history.updateGangs(e.scheduler.state) // bindings of part of a gang may have failed
	return nil
}

// bind starts an assigned task.
func (e *executor) bind(t *cluster.Task, d *engine.Decision) error {
	switch {
	case e.dice.chance(4):
		e.counts.RefusedActions++
		return e.scheduler.apply(cluster.BindFailed{Task: d.Task, Attempt: t.Attempt})
	case e.dice.chance(4):
		e.counts.LateAnswers++
		return e.send(t, d)
	}
	if err := e.site.start(t, d.Node, d.Claims, e.site.now); err != nil {
		return err
	}
	return e.scheduler.apply(cluster.TaskSeen{Task: d.Task, Node: d.Node, Started: e.site.now})
}

// send sends the binding of an assigned task, which is answered later.
func (e *executor) send(t *cluster.Task, d *engine.Decision) error {
	e.site.send(t, d.Node, d.Claims)
	return e.scheduler.apply(cluster.BindSent{Task: d.Task, Attempt: t.Attempt})
}

// answer answers all bindings that were sent. A binding to a node that was removed
// fails, even if another node has the same name now.
func (e *executor) answer() error {
	for _, id := range sorted(e.site.sent) {
		p := e.site.sent[id]
		delete(e.site.sent, id)
		t := e.scheduler.state.Task(p.task)
		if t == nil || t.Status != cluster.Assumed || t.Attempt != p.attempt {
			continue // the binding belongs to an earlier assignment of the task
		}
		var err error
		if e.dice.chance(30) || !e.site.canStart(p) {
			err = e.scheduler.apply(cluster.BindFailed{Task: p.task, Attempt: p.attempt})
		} else {
			e.site.processes[id] = p
			err = e.scheduler.apply(cluster.TaskSeen{Task: p.task, Node: p.node, Started: p.started})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// evict begins to stop the process of a task. If the binding of the task is not
// answered yet, the task is deleted instead.
func (e *executor) evict(t *cluster.Task) error {
	if e.site.sent[t.ID] != nil {
		delete(e.site.sent, t.ID)
		return e.scheduler.apply(cluster.TaskGone{Task: t.Ref()})
	}
	if e.dice.chance(3) {
		e.counts.RefusedActions++
		e.history.forgetVictim(t.Job.ID)
		return e.scheduler.apply(cluster.EvictionRefused{Task: t.Ref(), Attempt: t.Attempt, ProtectedUntil: e.site.now + 30*second})
	}
	return e.site.stop(t)
}
