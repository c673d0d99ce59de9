package soak

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// grace is how long a gang may run below its minimum in the standard profile.
const grace = 60 * second

// prior describes State before a session.
type prior struct {
	held    map[string]queueUse             // by queue
	at      map[*cluster.Task]*cluster.Node // by task
	bound   map[*cluster.Task]int64         // when each running task started
	stood   map[*cluster.Job]bool           // the minimum was placed
	started map[*cluster.Job]bool           // the minimum was running; reservations do not count
	tasks   map[*cluster.Job]int            // number of tasks
}

func (w *World) prior() *prior {
	m := &prior{held: w.queueUses(), at: w.nodesOfTasks(), bound: map[*cluster.Task]int64{}, stood: map[*cluster.Job]bool{}, started: map[*cluster.Job]bool{}, tasks: map[*cluster.Job]int{}}
	for _, j := range w.State.Jobs() {
		m.stood[j], m.tasks[j] = j.HasMinimum(), len(j.Tasks())
		m.started[j] = started(j)
		for _, t := range j.Tasks() {
			if t.Runs() {
				m.bound[t] = t.Started
			}
		}
	}
	return m
}

// started reports whether the job's minimum is running.
func started(j *cluster.Job) bool {
	return j.Chosen >= 0 && j.Alternatives[j.Chosen].Enough(func(t *cluster.Task) bool { return t.Runs() })
}

// Schedule runs a session and carries out its decisions. Sometimes the scheduler
// crashes while it does. Each decision of the index is compared with the scan.
func (w *World) Schedule() error {
	w.clock += second
	w.Sessions++
	before := w.prior()
	patient := w.chance(60)
	options := engine.Options{
		Now: w.clock, Search: engine.Twin, Patient: patient, Record: true,
		Hold: pick(w, []int64{0, 0, 30 * second, 600 * second}),
	}
	restarted := func(*engine.Outcome) error { return nil }
	if w.chance(20) {
		var err error
		if restarted, err = w.afterRestart(options); err != nil {
			return err
		}
	}
	out, err := w.run(options)
	if err != nil {
		return err
	}
	if err := restarted(&out); err != nil {
		return err
	}
	w.Refusals += len(out.Refusals)
	for _, check := range []func() error{
		func() error { return w.checkNames(&out) },
		func() error { return w.checkLimits(before.held) },
		func() error { return w.checkGangs(before, &out) },
		func() error { return w.checkStarts(&out) },
		func() error { return w.checkTopology(before.at) },
		func() error { return w.checkRefusals(out) },
		func() error { return w.checkEvictions(before, &out) },
		func() error { return w.checkPatience(patient, &out) },
		func() error { return w.checkSets(true) },
		func() error { return w.checkHomes(before.at) },
		func() error { return w.checkRankings(&out) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	acted := w.log.lines.Len()
	if err := w.writeLog(out.Changes...); err != nil {
		return err
	}
	if w.chance(5) {
		return w.Die(acted) // before any decision is carried out
	}
	dies := w.chance(8)
	if !dies || w.chance(50) { // a crash may be before or after the retirements are stored
		w.site.retire(out.Rankings)
	}
	return w.carryOut(out.Decisions, dies)
}

func (w *World) run(o engine.Options) (engine.Outcome, error) {
	s := w.engine.Open(w.State, o)
	defer s.Close()
	return s.Run()
}

// checkNames checks that the tasks and jobs that the outcome names exist.
func (w *World) checkNames(out *engine.Outcome) error {
	for i := range out.Decisions {
		if d := &out.Decisions[i]; w.State.Task(d.Task) == nil {
			return fmt.Errorf("%s of %s, which does not exist", d.Action, d.Task.ID())
		}
	}
	for _, r := range out.Refusals {
		if w.State.Job(r.Job) == nil {
			return fmt.Errorf("%s was refused, and does not exist", r.Job)
		}
	}
	for _, r := range out.Rankings {
		for _, x := range r.Jobs {
			if w.State.Job(x.Job) == nil {
				return fmt.Errorf("%s was ranked, and does not exist", x.Job)
			}
		}
	}
	return nil
}

// carryOut carries out the decisions one after the other. A scheduler that crashes
// does not carry out the remaining ones, and its successor does not know them. Some
// bindings fail, some are answered later, and some evictions are refused.
func (w *World) carryOut(decisions []engine.Decision, dies bool) error {
	w.Decisions += len(decisions)
	done := len(decisions)
	if dies {
		done = w.dice.Roll(done + 1)
	}
	for i := range decisions[:done] {
		d := &decisions[i]
		t := w.State.Task(d.Task)
		var err error
		switch {
		case d.Action == engine.Bind && t.Status == cluster.Assumed:
			err = w.bind(t, d)
		case d.Action == engine.EvictTask && t.Status == cluster.Releasing && w.site.runs[t.ID] == nil && w.sent[t.ID] == nil:
			err = w.apply(cluster.TaskSeen{Task: d.Task}) // it was assigned in the session that evicted it, and never started
		case d.Action == engine.EvictTask && t.Status == cluster.Releasing:
			err = w.evict(t)
		}
		if err != nil {
			return err
		}
	}
	if !dies {
		w.findTorn() // part of a gang may have been refused
		return nil
	}
	w.Crashes++
	w.Lost += len(decisions) - done
	return w.boot()
}

// bind starts an assigned task.
func (w *World) bind(t *cluster.Task, d *engine.Decision) error {
	switch {
	case w.chance(4):
		w.Refused++
		return w.apply(cluster.BindFailed{Task: d.Task, Attempt: t.Attempt})
	case w.chance(4):
		w.Unanswered++
		return w.send(t, d)
	}
	if err := w.site.start(t, d.Node, d.Claims, w.clock); err != nil {
		return err
	}
	return w.apply(cluster.TaskSeen{Task: d.Task, Node: d.Node, Started: w.clock})
}

// send sends the binding of an assigned task, which is answered later.
func (w *World) send(t *cluster.Task, d *engine.Decision) error {
	w.sent[t.ID] = w.site.process(t, d.Node, d.Claims, w.clock)
	return w.apply(cluster.BindSent{Task: d.Task, Attempt: t.Attempt})
}

// evict stops a task.
func (w *World) evict(t *cluster.Task) error {
	if w.sent[t.ID] != nil { // its binding is not answered yet, so that it is deleted
		delete(w.sent, t.ID)
		return w.apply(cluster.TaskGone{Task: t.Ref()})
	}
	if w.chance(3) {
		w.Refused++
		maps.DeleteFunc(w.displaced, func(pair [2]string, _ bool) bool { return pair[1] == t.Job.ID })
		return w.apply(cluster.EvictionRefused{Task: t.Ref(), Attempt: t.Attempt, ProtectedUntil: w.clock + 30*second})
	}
	return w.site.stop(t)
}

// Answer answers all bindings that were sent. A binding to a node that was removed
// fails, even if another node has the same name now.
func (w *World) Answer() error {
	for _, id := range sorted(w.sent) {
		p := w.sent[id]
		delete(w.sent, id)
		t := w.State.Task(p.task)
		if t == nil || t.Status != cluster.Assumed || t.Attempt != p.attempt {
			continue // the task is in another attempt now
		}
		var err error
		if w.chance(30) || !w.site.canStart(p) {
			err = w.apply(cluster.BindFailed{Task: p.task, Attempt: p.attempt})
		} else {
			w.site.runs[id] = p
			err = w.apply(cluster.TaskSeen{Task: p.task, Node: p.node, Started: p.started})
		}
		if err != nil {
			return err
		}
	}
	return w.restartTorn()
}

// checkGangs checks that a session leaves no gang below its minimum, and that gangs
// that fell below it because of reported facts are completed or evicted in time.
func (w *World) checkGangs(before *prior, out *engine.Outcome) error {
	for _, e := range out.Events {
		if _, torn := w.torn[e.Job]; e.Kind == engine.Withdrawn && !torn && !before.started[w.State.Job(e.Job)] {
			w.torn[e.Job] = 0 // a reservation was part of its minimum
		}
	}
	for _, j := range w.State.Jobs() {
		if j.Placed() == 0 || j.HasMinimum() {
			if err := checkSubgroups(j); err != nil {
				return err
			}
			delete(w.torn, j.ID)
			continue
		}
		since, torn := w.torn[j.ID]
		if !torn || !j.Running() {
			return fmt.Errorf("%s: %d tasks hold room, the minimum is %d: %s", j.ID, j.Placed(), j.Alternatives[j.Chosen].Min, describe(j))
		}
		switch missing := hasPending(j); {
		case missing && since == 0:
			w.torn[j.ID] = w.clock
		case missing && w.clock-since >= staleGrace(j):
			return fmt.Errorf("%s has been running below its minimum since %d, and now is %d: %s", j.ID, since, w.clock, describe(j))
		}
	}
	return nil
}

func staleGrace(j *cluster.Job) int64 {
	if j.StaleGrace != nil {
		return *j.StaleGrace
	}
	return grace
}

// checkStarts checks that a task is bound only together with the minimum of its job,
// unless a task of the job was evicted afterwards, and that no task is bound to a node
// that is not ready.
func (w *World) checkStarts(out *engine.Outcome) error {
	evicted := map[string]bool{}
	for i := range out.Decisions {
		if d := &out.Decisions[i]; d.Action == engine.EvictTask {
			evicted[d.Task.Job] = true
		}
	}
	for i := range out.Decisions {
		d := &out.Decisions[i]
		if d.Action != engine.Bind {
			continue
		}
		t := w.State.Task(d.Task)
		if !evicted[t.Job.ID] && !started(t.Job) {
			return fmt.Errorf("%s was started, and the minimum of its job was not: %s", t.ID, describe(t.Job))
		}
		if t.Node != nil && t.Node.Name == d.Node && !t.Node.Ready() {
			return fmt.Errorf("%s was started on %s, which is %s", t.ID, d.Node, t.Node.Phase)
		}
	}
	return nil
}

// checkRefusals checks that no task of a refused job is placed, and that the counts of
// rejections add up to the number of nodes.
func (w *World) checkRefusals(out engine.Outcome) error {
	for _, r := range out.Refusals {
		if r.Surplus {
			continue
		}
		job := w.State.Job(r.Job)
		for _, t := range job.Tasks() {
			if job.Chosen < 0 && t.Node != nil {
				return fmt.Errorf("%s was refused, yet %s is on %s", r.Job, t.ID, t.Node.Name)
			}
		}
		if r.Reason == "" || len(r.Attempts) == 0 {
			return fmt.Errorf("%s was refused without a reason", r.Job)
		}
		for _, a := range r.Attempts {
			sum := 0
			for _, c := range a.Counts {
				sum += c.Nodes
			}
			if a.Before == nil && len(a.Groups) == 0 && (a.Level == "" || len(a.Domains) > 0) && sum != a.Nodes {
				return fmt.Errorf("%s: rejections of %d nodes were counted, there are %d", r.Job, sum, a.Nodes)
			}
		}
	}
	return nil
}

// describe lists the tasks of a job with their status.
func describe(j *cluster.Job) string {
	out := ""
	for _, t := range j.Tasks() {
		out += fmt.Sprintf("%s %s", t.Name, t.Status)
		if t.Landing() != nil {
			out += " moving"
		}
		out += "; "
	}
	return out
}

// hasPending reports whether a task of the job is pending. Stale gangs are only looked
// for among such jobs.
func hasPending(j *cluster.Job) bool {
	return slices.ContainsFunc(j.Tasks(), func(t *cluster.Task) bool { return t.Status == cluster.Pending })
}
