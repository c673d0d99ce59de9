package soak

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// grace is how long the standard profile lets a gang run below its minimum.
const grace = 60 * second

// moment is how things stand before a session.
type moment struct {
	held           map[string]held
	at             map[*cluster.Task]*cluster.Node
	bound          map[*cluster.Task]int64 // when those that run have started
	stood, started map[*cluster.Job]bool   // started: without what is only promised
	tasks          map[*cluster.Job]int
}

func (w *World) moment() *moment {
	m := &moment{held: w.held(), at: w.standing(), bound: map[*cluster.Task]int64{}, stood: map[*cluster.Job]bool{}, started: map[*cluster.Job]bool{}, tasks: map[*cluster.Job]int{}}
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

// started reports whether the tasks that run make the job's minimum.
func started(j *cluster.Job) bool {
	return j.Chosen >= 0 && j.Alternatives[j.Chosen].Enough(func(t *cluster.Task) bool { return t.Runs() })
}

// Schedule runs a session and does what it decided, unless the scheduler dies
// half way. The scan checks each decision of the index.
func (w *World) Schedule() error {
	w.clock += second
	w.Sessions++
	before := w.moment()
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
	if err := w.write(out.Changes...); err != nil {
		return err
	}
	if w.chance(5) {
		return w.Die(acted) // before anything of it was done
	}
	dies := w.chance(8)
	if !dies || w.chance(50) { // it is written down first
		w.site.retire(out.Rankings)
	}
	return w.carryOut(out.Decisions, dies)
}

func (w *World) run(o engine.Options) (engine.Outcome, error) {
	s := w.engine.Open(w.State, o)
	defer s.Close()
	return s.Run()
}

// checkNames makes sure that the tasks and jobs that the outcome names are there.
func (w *World) checkNames(out *engine.Outcome) error {
	for i := range out.Decisions {
		if d := &out.Decisions[i]; w.State.Task(d.Task) == nil {
			return fmt.Errorf("%s of %s, which is not there", d.Action, d.Task.ID())
		}
	}
	for _, r := range out.Refusals {
		if w.State.Job(r.Job) == nil {
			return fmt.Errorf("%s was refused, which is not there", r.Job)
		}
	}
	for _, r := range out.Rankings {
		for _, x := range r.Jobs {
			if w.State.Job(x.Job) == nil {
				return fmt.Errorf("%s was ranked, which is not there", x.Job)
			}
		}
	}
	return nil
}

// carryOut does what was decided, one after the other. A scheduler that dies
// leaves the rest undone, and its successor knows nothing of it. Some bindings are
// refused, of some the answer takes its time, and some evictions are refused.
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
		case d.Action == engine.EvictIt && t.Status == cluster.Releasing && w.site.runs[t.ID] == nil && w.sent[t.ID] == nil:
			err = w.tell(cluster.TaskSeen{Task: d.Task}) // it was assigned in the same session, and never started
		case d.Action == engine.EvictIt && t.Status == cluster.Releasing:
			err = w.evict(t)
		}
		if err != nil {
			return err
		}
	}
	if !dies {
		w.tear() // part of a gang may have been refused
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
		return w.tell(cluster.BindFailed{Task: d.Task, Attempt: t.Attempt})
	case w.chance(4):
		w.Unanswered++
		return w.send(t, d)
	}
	if err := w.site.start(t, d.Node, d.Claims, w.clock); err != nil {
		return err
	}
	return w.tell(cluster.TaskSeen{Task: d.Task, Node: d.Node, Started: w.clock})
}

// send binds an assigned task; the answer comes later.
func (w *World) send(t *cluster.Task, d *engine.Decision) error {
	w.sent[t.ID] = w.site.process(t, d.Node, d.Claims, w.clock)
	return w.tell(cluster.BindSent{Task: d.Task, Attempt: t.Attempt})
}

// evict stops a task.
func (w *World) evict(t *cluster.Task) error {
	if w.sent[t.ID] != nil { // it was sent and not answered: what was to run is deleted
		delete(w.sent, t.ID)
		return w.tell(cluster.TaskGone{Task: t.Ref()})
	}
	if w.chance(3) {
		w.Refused++
		maps.DeleteFunc(w.displaced, func(pair [2]string, _ bool) bool { return pair[1] == t.Job.ID })
		return w.tell(cluster.EvictionRefused{Task: t.Ref(), Attempt: t.Attempt, ProtectedUntil: w.clock + 30*second})
	}
	return w.site.stop(t)
}

// Answer brings the answers to bindings that were sent. Those to a node that is gone
// fail, also where another node has its name by now.
func (w *World) Answer() error {
	for _, id := range sorted(w.sent) {
		p := w.sent[id]
		delete(w.sent, id)
		t := w.State.Task(p.task)
		if t == nil || t.Status != cluster.Assumed || t.Attempt != p.attempt {
			continue // it is of another attempt by now
		}
		var err error
		if w.chance(30) || !w.site.startable(p) {
			err = w.tell(cluster.BindFailed{Task: p.task, Attempt: p.attempt})
		} else {
			w.site.runs[id] = p
			err = w.tell(cluster.TaskSeen{Task: p.task, Node: p.node, Started: p.started})
		}
		if err != nil {
			return err
		}
	}
	return w.whole()
}

// checkGangs makes sure that no session tears a gang, and that those that were
// torn by what happened are completed or dissolved in time.
func (w *World) checkGangs(before *moment, out *engine.Outcome) error {
	for _, e := range out.Events {
		if _, torn := w.torn[e.Job]; e.Kind == engine.Withdrawn && !torn && !before.started[w.State.Job(e.Job)] {
			w.torn[e.Job] = 0 // it counted on a promise
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
		switch missing := missing(j); {
		case missing && since == 0:
			w.torn[j.ID] = w.clock
		case missing && w.clock-since >= graceOf(j):
			return fmt.Errorf("%s runs below its minimum since %d, and it is %d: %s", j.ID, since, w.clock, describe(j))
		}
	}
	return nil
}

func graceOf(j *cluster.Job) int64 {
	if j.StaleGrace != nil {
		return *j.StaleGrace
	}
	return grace
}

// checkStarts makes sure that gangs start as a whole: what was bound runs with
// at least the minimum of its job, unless somebody was evicted after that. And
// nothing starts on a node that is not ready.
func (w *World) checkStarts(out *engine.Outcome) error {
	evicted := map[string]bool{}
	for i := range out.Decisions {
		if d := &out.Decisions[i]; d.Action == engine.EvictIt {
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
			return fmt.Errorf("%s was started, and its job is not: %s", t.ID, describe(t.Job))
		}
		if t.Node != nil && t.Node.Name == d.Node && !t.Node.Ready() {
			return fmt.Errorf("%s was started on %s, which is %s", t.ID, d.Node, t.Node.Phase)
		}
	}
	return nil
}

// checkRefusals makes sure that nothing was half placed by a refused job and
// that its sums add up to the nodes there are.
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

// describe lists where a job's tasks stand.
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

// missing reports whether a task of the job is nowhere: sweeps look at no others.
func missing(j *cluster.Job) bool {
	return slices.ContainsFunc(j.Tasks(), func(t *cluster.Task) bool { return t.Status == cluster.Pending })
}
