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

// World is a site, the engine that schedules it, and the engine's books.
type World struct {
	State *cluster.State
	Counts

	site   *site
	engine *engine.Engine
	dice   dice
	step   int
	clock  int64
	most   int  // jobs at a time
	plain  bool // nobody is choosy: what keeps jobs apart is room alone
	// restarts: whoever runs jobs starts gangs anew that have lost members;
	// otherwise that is left to the scheduler.
	restarts bool
	// torn are the gangs that run below their minimum, because of what happened to
	// them. From when on the scheduler has known: 0, not yet.
	torn map[string]int64
	// sent are the bindings that were sent and not answered, by task.
	sent map[string]*process
	log  log
	// displaced are the jobs that tasks were evicted of for another, by both names.
	displaced map[[2]string]bool
}

// newWorld makes a small cluster.
func newWorld(d dice) (*World, error) {
	w := &World{site: newSite(), dice: d, clock: 3600 * second, torn: map[string]int64{}, sent: map[string]*process{}}
	if w.most = 4 + d.Roll(13); w.chance(10) {
		w.most += 8
	}
	w.restarts, w.plain = w.chance(50), w.chance(60)
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

// boot starts a scheduler: all it knows is what is there.
func (w *World) boot() (err error) {
	if w.engine, err = engine.New(standard.Registry(), standard.Profile()); err != nil {
		return err
	}
	w.displaced = map[[2]string]bool{}
	w.torn = map[string]int64{}
	w.settleSent()
	if w.State, err = w.site.books(); err != nil {
		return fmt.Errorf("a new scheduler cannot take over: %w", err)
	}
	w.tear()
	w.log = log{}
	return w.compact()
}

// tell has the State make a change, and writes it down.
func (w *World) tell(c cluster.Change) error {
	if err := w.State.Apply(c); err != nil {
		return fmt.Errorf("%s: %w", c.Kind(), err)
	}
	return w.write(c)
}

// Crash ends the scheduler between two sessions and starts a new one.
func (w *World) Crash() error {
	w.Crashes++
	return w.boot()
}

// Pass lets time pass.
func (w *World) Pass() error {
	w.clock += pick(w, []int64{1, 10, 40, 120, 600}) * second
	return nil
}

// chance is true so many times out of a hundred.
func (w *World) chance(percent int) bool { return w.dice.Roll(100) < percent }

func pick[T any](w *World, list []T) T { return list[w.dice.Roll(len(list))] }

// Restore has a job run somewhere already, as a dump would say.
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
			continue // nobody can run yet where others are leaving or expected
		}
		if claims, ok := n.Choose(t.Shape, nil); ok {
			if err := w.State.CanRun(t, n, claims); err != nil {
				return err
			}
			if err := w.tell(cluster.SeenOn(t, n, claims, started)); err != nil {
				return err
			}
			if err := w.site.start(t, n.Name, claims, started); err != nil {
				return err
			}
			w.site.shrunk[n.Name] = true // cores and memory are booked as they are
		}
	}
	return w.whole()
}

// RemoveJob ends a job. Those that wait are given up more often than others end:
// many can never be placed, and would fill the world.
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

// end takes a job away, with all that runs of it.
func (w *World) end(id string) error {
	delete(w.site.jobs, id)
	delete(w.torn, id)
	w.site.drop(func(_ string, p *process) bool { return p.job == id })
	maps.DeleteFunc(w.site.ended, func(_ string, gone cluster.TaskGone) bool { return gone.Task.Job == id })
	maps.DeleteFunc(w.sent, func(_ string, p *process) bool { return p.job == id })
	return w.tell(cluster.JobGone{Job: id})
}

// endTask has a task that runs end, well or not.
func (w *World) endTask() error {
	runs := slices.DeleteFunc(sorted(w.site.runs), func(id string) bool { return w.site.runs[id].leaving })
	if len(runs) == 0 {
		return nil
	}
	id := pick(w, runs)
	gone := cluster.TaskGone{Task: w.site.runs[id].task, Ended: pick(w, []cluster.Status{cluster.Succeeded, cluster.Failed})}
	delete(w.site.runs, id)
	w.site.ended[id] = gone
	return w.tell(gone)
}

// Leave lets tasks go that were evicted, some sooner than others: their room is
// then really free. Now and then another task ends by itself.
func (w *World) Leave() error {
	all := w.chance(50)
	for _, id := range sorted(w.site.runs) {
		p := w.site.runs[id]
		if !p.leaving || !all && w.chance(50) {
			continue
		}
		delete(w.site.runs, id)
		if err := w.tell(cluster.TaskSeen{Task: p.task}); err != nil {
			return err
		}
	}
	if w.chance(15) {
		if err := w.endTask(); err != nil {
			return err
		}
	}
	return w.whole()
}

// whole has whoever runs jobs restart what runs below its minimum, if he does.
// What only has promises is the engine's to put right.
func (w *World) whole() error {
	w.tear()
	if !w.restarts {
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

// restart has a job start anew, in whichever form: what is reserved for it is
// released, and what runs of it is told to stop.
func (w *World) restart(j *cluster.Job) error {
	for _, t := range slices.Clone(j.Tasks()) {
		if t.Landing() != nil {
			if err := w.tell(cluster.Decided{Changes: []cluster.Change{cluster.Withdraw{Task: t.Ref(), Landing: true}}}); err != nil {
				return err
			}
		}
		switch {
		case t.Status == cluster.Nominated:
			if err := w.tell(cluster.Decided{Changes: []cluster.Change{cluster.Withdraw{Task: t.Ref()}}}); err != nil {
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
			if err := w.tell(cluster.TaskSeen{Task: t.Ref(), Node: t.Node.Name, Leaving: true}); err != nil {
				return err
			}
		}
	}
	return nil
}

// tear finds the gangs that something has happened to.
func (w *World) tear() {
	for _, j := range w.State.Jobs() {
		if !j.Running() || j.HasMinimum() {
			delete(w.torn, j.ID)
		} else if _, known := w.torn[j.ID]; !known {
			w.torn[j.ID] = 0
		}
	}
}
