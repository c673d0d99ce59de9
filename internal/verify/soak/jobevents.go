package soak

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// jobEvents has the steps that happen to jobs.
type jobEvents struct {
	dice       *dice
	maker      *jobMaker
	site       *site
	scheduler  *scheduler
	workload   *workload
	controller *controller
}

// add adds a random job.
func (e *jobEvents) add() error {
	if e.workload.isFull() {
		return nil
	}
	return e.workload.put(e.maker.job(e.site.now, sorted(e.site.jobs)))
}

// addRunning adds a job, and then reports that tasks of a pending job already run, as
// in a dump of a live cluster.
func (e *jobEvents) addRunning() error {
	state := e.scheduler.state
	if err := e.add(); err != nil || len(state.Pending()) == 0 || len(state.Nodes()) == 0 {
		return err
	}
	j := pick(e.dice, state.Pending())
	if j.Chosen >= 0 || j.Alternatives[0].Whole != nil {
		return nil
	}
	started := pick(e.dice, []int64{0, e.site.now, e.site.now - 100*second})
	for _, t := range j.Tasks() {
		n := pick(e.dice, state.Nodes())
		if slices.ContainsFunc(n.Tasks, func(t *cluster.Task) bool { return !t.Runs() }) {
			continue // room of the node may still be held by releasing tasks, or is reserved
		}
		if claims, ok := n.Choose(t.Shape, nil); ok {
			if err := e.startOn(n, t, claims, started); err != nil {
				return err
			}
		}
	}
	return e.controller.restartGangs()
}

// startOn starts a task without a decision of the scheduler. The node may not have
// enough cores and memory.
func (e *jobEvents) startOn(n *cluster.Node, t *cluster.Task, claims []cluster.Claim, started int64) error {
	if err := e.scheduler.state.CanRun(t, n, claims); err != nil {
		return err
	}
	if err := e.scheduler.apply(cluster.SeenOn(t, n, claims, started)); err != nil {
		return err
	}
	e.site.overcommitted[n.Name] = true
	return e.site.start(t, n.Name, claims, started)
}

// change changes the labels, priority, queue or minimum of a job. Its tasks continue
// to run.
func (e *jobEvents) change() error {
	if len(e.site.jobs) == 0 {
		return nil
	}
	j := *e.site.jobs[pick(e.dice, sorted(e.site.jobs))]
	if j.Set.Name != "" {
		return nil // replicas share the spec of their model
	}
	j.Alternatives = slices.Clone(j.Alternatives)
	e.maker.change(&j)
	if err := e.workload.put(&j); err != nil {
		return err
	}
	return e.controller.restartGangs()
}

// remove removes a job. Pending jobs are removed more often than others, because many
// of them can never be placed and would fill the cluster.
func (e *jobEvents) remove() error {
	jobs := e.scheduler.state.Jobs()
	if pending := slices.DeleteFunc(e.scheduler.state.Jobs(), func(j *cluster.Job) bool { return j.Chosen >= 0 }); len(pending) > 0 && e.dice.chance(60) {
		jobs = pending
	}
	if len(jobs) == 0 {
		return nil
	}
	return e.workload.remove(pick(e.dice, jobs).ID)
}
