package soak

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
)

// recovery starts a new scheduler, which knows only what the site and the log have.
type recovery struct {
	dice      *dice
	site      *site
	scheduler *scheduler
	history   *history
	counts    *Counts
}

// crash ends the scheduler and starts a new one without its log.
func (r *recovery) crash() error {
	r.counts.Crashes++
	return r.startFromSite()
}

// startFromSite starts a scheduler with the State that it reads from the site.
func (r *recovery) startFromSite() error {
	r.resolveSent()
	state, err := r.readSite()
	if err != nil {
		return fmt.Errorf("a new scheduler cannot take over: %w", err)
	}
	r.history.restart(state)
	return r.scheduler.start(state)
}

// crashWhileWriting ends the scheduler while it writes its log. The log is cut off at
// a random place after the first carriedOut bytes, which have the changes that were
// carried out. A new scheduler continues from there. It reads from the site what
// became of the tasks that are assigned or evicted.
func (r *recovery) crashWhileWriting(carriedOut int) error {
	r.counts.Crashes++
	r.counts.CutLogs++
	log := r.scheduler.log
	state, err := log.replay(carriedOut + r.dice.roll(log.size()-carriedOut+1))
	if err != nil {
		return err
	}
	if err := r.scheduler.start(state); err != nil {
		return err
	}
	r.resolveSent()
	for _, j := range state.Jobs() {
		for _, t := range j.Tasks() {
			if err := r.confirm(t); err != nil {
				return err
			}
		}
	}
	r.history.restart(state)
	return nil
}

// resolveSent decides at random which of the bindings that were sent and not answered
// have started their tasks.
func (r *recovery) resolveSent() {
	for _, id := range sorted(r.site.sent) {
		if p := r.site.sent[id]; r.dice.chance(50) && r.site.canStart(p) {
			r.site.processes[id] = p
		}
		delete(r.site.sent, id)
	}
}

// confirm reports to State the outcome of an assignment or eviction that is not
// confirmed yet.
func (r *recovery) confirm(t *cluster.Task) error {
	p := r.site.processes[t.ID]
	switch {
	case t.Status == cluster.Assumed && p != nil && p.attempt == t.Attempt:
		return r.scheduler.apply(cluster.TaskSeen{Task: t.Ref(), Node: p.node, Started: p.started})
	case t.Status == cluster.Assumed:
		return r.scheduler.apply(cluster.BindFailed{Task: t.Ref(), Attempt: t.Attempt})
	case t.Status == cluster.Releasing && p == nil && t.Sent(): // it is not known whether it was bound, so that only its end can be reported
		return r.scheduler.apply(cluster.TaskGone{Task: t.Ref()})
	case t.Status == cluster.Releasing && p == nil: // it was assigned in the session that evicted it, and never started
		return r.scheduler.apply(cluster.TaskSeen{Task: t.Ref()})
	case t.Status == cluster.Releasing:
		p.stopping = true // the eviction is sent again
	}
	return nil
}

// readSite returns the State that a new scheduler reads from the site. Reservations of
// the former scheduler are lost.
func (r *recovery) readSite() (*cluster.State, error) {
	state := cluster.NewState()
	for _, c := range r.objects() {
		if err := state.Apply(c); err != nil {
			return nil, err
		}
	}
	for _, id := range sorted(r.site.jobs) {
		if err := state.Apply(cluster.JobPut{Job: *r.site.jobs[id]}); err != nil {
			return nil, err
		}
		for _, alt := range state.Job(id).Alternatives {
			for _, t := range alt.Tasks {
				if err := r.readTask(state, t); err != nil {
					return nil, err
				}
			}
		}
	}
	return state, nil
}

// objects returns the queues, budgets and nodes of the site. A queue follows its
// parent in the list.
func (r *recovery) objects() (list []cluster.Change) {
	for _, isRoot := range []bool{true, false} {
		for _, name := range sorted(r.site.queues) {
			if q := *r.site.queues[name]; (q.Parent == "") == isRoot {
				list = append(list, cluster.QueuePut{Queue: q})
			}
		}
	}
	for _, name := range sorted(r.site.budgets) {
		list = append(list, cluster.BudgetPut{Budget: *r.site.budgets[name]})
	}
	for _, name := range sorted(r.site.nodes) {
		list = append(list, cluster.NodePut{Node: *r.site.nodes[name]})
	}
	return list
}

// readTask reports to State that the task ended or runs, if it does.
func (r *recovery) readTask(state *cluster.State, t *cluster.Task) error {
	if gone, ended := r.site.ended[t.ID]; ended && gone.Task == t.Ref() {
		return state.Apply(gone)
	}
	p := r.site.processes[t.ID]
	if p == nil {
		return nil
	}
	n := state.Node(p.node)
	if err := state.CanRun(t, n, p.claims); err != nil {
		return err
	}
	seen := cluster.SeenOn(t, n, p.claims, p.started)
	seen.Releasing = p.stopping
	return state.Apply(seen)
}
