package soak

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

const second = int64(1_000_000_000)

// World is a site, the engine that schedules it, and its State.
type World struct {
	State *cluster.State
	Counts

	site    *site
	engine  *engine.Engine
	dice    dice
	step    int
	clock   int64
	maxJobs int // the number of jobs at a time
	// unconstrained worlds have no constraints such as selectors or taints: only room
	// limits where tasks can be placed.
	unconstrained bool
	// restartsGangs says that a controller restarts gangs that fall below their
	// minimum. Otherwise the scheduler has to evict or complete them.
	restartsGangs bool
	// torn maps the gangs that run below their minimum because of reported facts to the
	// time of the first session that saw it, or 0 if none has.
	torn map[string]int64
	// sent has the bindings that were sent and not answered, by task.
	sent map[string]*process
	log  log
	// displaced has pairs of jobs: tasks of the second were evicted for the first.
	displaced map[[2]string]bool
}

// newWorld returns a small cluster.
func newWorld(d dice) (*World, error) {
	w := &World{site: newSite(), dice: d, clock: 3600 * second, torn: map[string]int64{}, sent: map[string]*process{}}
	if w.maxJobs = 4 + d.Roll(13); w.chance(10) {
		w.maxJobs += 8
	}
	w.restartsGangs, w.unconstrained = w.chance(50), w.chance(60)
	for _, q := range queues() {
		w.site.queues[q.Name] = q
	}
	if err := w.boot(); err != nil {
		return nil, err
	}
	for range 3 + d.Roll(6) {
		if err := w.AddNode(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// boot starts a new scheduler, which knows only what it reads from the site.
func (w *World) boot() (err error) {
	if w.engine, err = engine.New(standard.Registry(), standard.Profile()); err != nil {
		return err
	}
	w.displaced = map[[2]string]bool{}
	w.torn = map[string]int64{}
	w.settleSent()
	if w.State, err = w.site.rebuildState(); err != nil {
		return fmt.Errorf("a new scheduler cannot take over: %w", err)
	}
	w.findTorn()
	w.log = log{}
	return w.compact()
}

// apply applies a change to State and writes it to the log.
func (w *World) apply(c cluster.Change) error {
	if err := w.State.Apply(c); err != nil {
		return fmt.Errorf("%s: %w", c.Kind(), err)
	}
	return w.writeLog(c)
}

// Crash ends the scheduler between two sessions and starts a new one.
func (w *World) Crash() error {
	w.Crashes++
	return w.boot()
}

// Pass advances the clock.
func (w *World) Pass() error {
	w.clock += pick(w, []int64{1, 10, 40, 120, 600}) * second
	return nil
}

// chance returns true with the given probability in percent.
func (w *World) chance(percent int) bool { return w.dice.Roll(100) < percent }

func pick[T any](w *World, list []T) T { return list[w.dice.Roll(len(list))] }

// Restore reports a job that already runs, as in a dump of a live cluster.
func (w *World) Restore() error {
	if err := w.AddJob(); err != nil || len(w.State.Pending()) == 0 || len(w.State.Nodes()) == 0 {
		return err
	}
	j := pick(w, w.State.Pending())
	if j.Chosen >= 0 || j.Alternatives[0].Whole != nil {
		return nil
	}
	started := pick(w, []int64{0, w.clock, w.clock - 100*second})
	for _, t := range j.Tasks() {
		n := pick(w, w.State.Nodes())
		if slices.ContainsFunc(n.Tasks, func(t *cluster.Task) bool { return !t.Runs() }) {
			continue // its room may still be held by releasing tasks, or is reserved
		}
		if claims, ok := n.Choose(t.Shape, nil); ok {
			if err := w.State.CanRun(t, n, claims); err != nil {
				return err
			}
			if err := w.apply(cluster.SeenOn(t, n, claims, started)); err != nil {
				return err
			}
			if err := w.site.start(t, n.Name, claims, started); err != nil {
				return err
			}
			w.site.shrunk[n.Name] = true // the node may not have enough cores and memory
		}
	}
	return w.restartTorn()
}

// RemoveJob removes a job. Pending jobs are removed more often than others, because
// many of them can never be placed and would fill the cluster.
func (w *World) RemoveJob() error {
	jobs := w.State.Jobs()
	if waiting := slices.DeleteFunc(w.State.Jobs(), func(j *cluster.Job) bool { return j.Chosen >= 0 }); len(waiting) > 0 && w.chance(60) {
		jobs = waiting
	}
	if len(jobs) == 0 {
		return nil
	}
	return w.end(pick(w, jobs).ID)
}

// end removes a job and its processes.
func (w *World) end(id string) error {
	delete(w.site.jobs, id)
	delete(w.torn, id)
	w.site.removeProcesses(func(_ string, p *process) bool { return p.job == id })
	maps.DeleteFunc(w.site.ended, func(_ string, gone cluster.TaskGone) bool { return gone.Task.Job == id })
	maps.DeleteFunc(w.sent, func(_ string, p *process) bool { return p.job == id })
	return w.apply(cluster.JobGone{Job: id})
}

// endTask ends a running task, which succeeds or fails.
func (w *World) endTask() error {
	runs := slices.DeleteFunc(sorted(w.site.runs), func(id string) bool { return w.site.runs[id].leaving })
	if len(runs) == 0 {
		return nil
	}
	id := pick(w, runs)
	gone := cluster.TaskGone{Task: w.site.runs[id].task, Ended: pick(w, []cluster.Status{cluster.Succeeded, cluster.Failed})}
	delete(w.site.runs, id)
	w.site.ended[id] = gone
	return w.apply(gone)
}

// Leave stops evicted tasks, some sooner than others, which frees their room.
// Sometimes it also ends another task.
func (w *World) Leave() error {
	all := w.chance(50)
	for _, id := range sorted(w.site.runs) {
		p := w.site.runs[id]
		if !p.leaving || !all && w.chance(50) {
			continue
		}
		delete(w.site.runs, id)
		if err := w.apply(cluster.TaskSeen{Task: p.task}); err != nil {
			return err
		}
	}
	if w.chance(15) {
		if err := w.endTask(); err != nil {
			return err
		}
	}
	return w.restartTorn()
}

// restartTorn restarts the gangs that run below their minimum, if a controller does
// that. A gang that has only reservations is left to the engine.
func (w *World) restartTorn() error {
	w.findTorn()
	if !w.restartsGangs {
		return nil
	}
	for _, j := range w.State.Jobs() {
		if _, torn := w.torn[j.ID]; !torn {
			continue
		}
		if err := w.restart(j); err != nil {
			return err
		}
		delete(w.torn, j.ID)
	}
	return nil
}

// restart stops a job so that it can be placed again with any alternative: its
// reservations are withdrawn and its running tasks are stopped.
func (w *World) restart(j *cluster.Job) error {
	for _, t := range slices.Clone(j.Tasks()) {
		if t.Landing() != nil {
			if err := w.apply(cluster.Decided{Changes: []cluster.Change{cluster.Withdraw{Task: t.Ref(), Landing: true}}}); err != nil {
				return err
			}
		}
		switch {
		case t.Status == cluster.Nominated:
			if err := w.apply(cluster.Decided{Changes: []cluster.Change{cluster.Withdraw{Task: t.Ref()}}}); err != nil {
				return err
			}
		case w.sent[t.ID] != nil:
			if err := w.evict(t); err != nil {
				return err
			}
		case t.Runs():
			if err := w.site.stop(t); err != nil {
				return err
			}
			if err := w.apply(cluster.TaskSeen{Task: t.Ref(), Node: t.Node.Name, Leaving: true}); err != nil {
				return err
			}
		}
	}
	return nil
}

// findTorn updates the gangs that run below their minimum.
func (w *World) findTorn() {
	for _, j := range w.State.Jobs() {
		if !j.Running() || j.HasMinimum() {
			delete(w.torn, j.ID)
		} else if _, known := w.torn[j.ID]; !known {
			w.torn[j.ID] = 0
		}
	}
}
