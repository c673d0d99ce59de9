package soak

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// taskEvents has the steps that happen to tasks after a session has decided about them.
type taskEvents struct {
	dice       *dice
	site       *site
	scheduler  *scheduler
	executor   *executor
	controller *controller
}

// answerBindings answers all bindings that were sent.
func (e *taskEvents) answerBindings() error {
	if err := e.executor.answer(); err != nil {
		return err
	}
	return e.controller.restartGangs()
}

// stopEvicted ends all or some of the processes that are stopping, which frees their
// room. Sometimes it also ends the process of another task.
func (e *taskEvents) stopEvicted() error {
	all := e.dice.chance(50)
	for _, id := range sorted(e.site.processes) {
		p := e.site.processes[id]
		if !p.stopping || !all && e.dice.chance(50) {
			continue
		}
		delete(e.site.processes, id)
		if err := e.scheduler.apply(cluster.TaskSeen{Task: p.task}); err != nil {
			return err
		}
	}
	if e.dice.chance(15) {
		if err := e.endTask(); err != nil {
			return err
		}
	}
	return e.controller.restartGangs()
}

// endTask ends a running task, which succeeds or fails.
func (e *taskEvents) endTask() error {
	running := slices.DeleteFunc(sorted(e.site.processes), func(id string) bool { return e.site.processes[id].stopping })
	if len(running) == 0 {
		return nil
	}
	id := pick(e.dice, running)
	gone := cluster.TaskGone{Task: e.site.processes[id].task, Ended: pick(e.dice, []cluster.Status{cluster.Succeeded, cluster.Failed})}
	delete(e.site.processes, id)
	e.site.ended[id] = gone
	return e.scheduler.apply(gone)
}
