package engine

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// Session is one pass over the pending jobs.
type Session struct {
	State *cluster.State
	Now   int64

	engine    *Engine
	options   Options
	hooks     hooks
	opening   *weighted // the plugin that is registering hooks
	wake      int64     // when the next session is wanted; 0: at no time
	heaps     *heaps
	victims   *victims
	searched  int // steps that exact searches took
	denied    denied
	fault     *fault
	finder    *finder
	accounts  *accounts
	explainer *explainer
	clerk     *clerk
}

// Outcome is what a session decided.
type Outcome struct {
	Decisions []Decision
	// Refusals are those of the jobs that were tried; in a patient session, those that
	// are new or differ from what was said of the job before: see Engine.Refusal.
	Refusals []*Refusal
	Events   []Record
	// Changes are what the session did to the State, where it records that.
	Changes []cluster.Change
	// Tried are the jobs that had their turn, by ID and in that order. A patient
	// session leaves those alone that nothing changed for.
	Tried []string
	// NextWake is when the next session should be run if nothing changes before, in
	// nanoseconds; 0: no time alone changes anything.
	NextWake int64
	// Rankings are the sets that had more jobs than are desired.
	Rankings []Ranking
}

// Run makes one pass over the pending jobs, once sets that are too large have shrunk.
// A turn is for the minimum of a job, or for one task beyond it. An error means that a
// plugin broke its contract; what was committed before that stands and is in the outcome.
func (s *Session) Run() (Outcome, error) {
	var out Outcome
	s.openState()
	s.withdrawLost()
	if s.retire(&out); s.fault.err != nil {
		out.Events, out.Changes = s.clerk.events, s.clerk.changes
		return out, s.fault.err
	}
	out.Decisions = append(out.Decisions, s.bindNominated()...)
	s.withdrawExpired()
	if s.options.Patient {
		s.passParked(&out)
	} else {
		s.passAll(&out)
	}
	if s.fault.err == nil {
		out.Decisions = append(out.Decisions, s.sweep()...)
		s.withdrawLost() // promises to surplus whose job was evicted meanwhile
	}
	out.Events, out.Changes, out.NextWake = s.clerk.events, s.clerk.changes, s.nextWake()
	return out, s.fault.err
}

// passAll gives every pending job its turns, in queue order, then job order.
func (s *Session) passAll(out *Outcome) {
	t := s.lineUp(s.State.Pending())
	for job := t.next(); job != nil && s.fault.err == nil; job = t.next() {
		if again := s.decide(job, out); again {
			t.contender(s.State.Queue(job.Queue)).line.(*list).insert(turnOf(job))
		}
	}
}

// Changes are what the session did to the State so far, where it records that.
func (s *Session) Changes() []cluster.Change { return s.clerk.changes }

// openState moves the clock of the State.
func (s *Session) openState() {
	opened := cluster.SessionOpened{Now: s.Now}
	if err := s.State.Apply(opened); err != nil {
		s.fault.fail("engine", "%v", err)
	}
	if s.options.Record {
		s.clerk.changes = append(s.clerk.changes, opened)
	}
}

// passParked gives those their turn that were not tried before or that something
// changed for: what is parked, and not woken, would be refused.
func (s *Session) passParked(out *Outcome) {
	b := s.engine.backlog
	if b == nil || b.state != s.State {
		b = newBacklog(s.State)
		s.engine.backlog = b
	}
	b.open(s)
	b.begin()
	for job := b.next(); job != nil && s.fault.err == nil; job = b.next() {
		before := len(out.Decisions)
		s.decide(job, out)
		if made := out.Decisions[before:]; len(made) > 0 {
			b.committed(slices.ContainsFunc(made, func(d Decision) bool { return d.Action == EvictIt }))
		}
	}
	b.close()
	if s.fault.err != nil {
		s.engine.backlog = nil // what was not tried is not known to wait
	}
}

// decide places a job's minimum or, where it has that, one task more, or has it wait.
// It reports whether the job is to have another turn. A patient session tells of a
// refusal only what is new.
func (s *Session) decide(job *cluster.Job, out *Outcome) (again bool) {
	out.Tried = append(out.Tried, job.ID)
	stmt := s.clerk.begin()
	placed := job.Placed()
	stmt.aim.minimal = true
	if job.Stands() {
		stmt.aim.growing, stmt.aim.goal = job, placed+1
	}
	refusal := s.toldBefore(job)
	if refusal == nil {
		place := s.placer(stmt)
		if len(s.hooks.means) > 0 && len(s.hooks.adapters) == 1 { // MakeRoom does not ask for them
			place.aim.later = s.State.Version()
		}
		refusal = place.place(job)
		if refusal != nil && (!refusal.Surplus || s.hooks.deserved(job, place.shortage.lacks(job))) {
			refusal = s.adapt(stmt, job, refusal)
		}
		if refusal != nil {
			s.explainer.tellNearest(job, refusal)
		}
	}
	if refusal == nil && job.Placed() == placed && s.State.Waits(job) {
		s.fault.fail("engine", "%s was not refused, and nothing of it was placed", job.ID)
	}
	if s.fault.err != nil {
		stmt.Discard()
		return false
	}
	if refusal != nil {
		s.denied.add(job, refusal)
	}
	news := refusal != nil
	if s.options.Patient {
		news = s.engine.backlog.settle(job, refusal)
	}
	if news {
		s.clerk.record(Record{Kind: Refused, Job: job.ID, Refusal: refusal})
		out.Refusals = append(out.Refusals, refusal)
	}
	if refusal == nil || refusal.Surplus {
		out.Decisions = append(out.Decisions, stmt.Commit()...)
	} else {
		stmt.Discard()
	}
	if s.options.Patient {
		s.writeBackOff(job)
	}
	return refusal == nil && s.State.Waits(job)
}

// met reports whether what Place says is that the job has what its turn is for.
func (a *aim) met(job *cluster.Job, r *Refusal) bool {
	return r == nil || r.Surplus && a.growing != job
}

// deserved reports whether room may be made for the job's next task beyond its minimum.
func (h *hooks) deserved(job *cluster.Job, lacks []*cluster.Task) bool {
	return slices.ContainsFunc(h.surpluses, func(h hook[SurplusFn]) bool { return h.fn(job, lacks) })
}

// Close ends the session.
func (s *Session) Close() {
	for _, p := range s.engine.plugins {
		p.OnSessionClose(s)
	}
}

// fault is why the session is void: a plugin broke its contract. Nil: it is not.
type fault struct{ err error }

// fail voids the session; the first failure counts.
func (x *fault) fail(plugin string, format string, args ...any) {
	if x.err == nil {
		x.err = fmt.Errorf("plugin %s: %s", plugin, fmt.Sprintf(format, args...))
	}
}

// adapt asks the adapters, in order, to cure the refusal. A plan that does not place
// what the job's turn is for is taken back, so that nothing is evicted for nothing.
func (s *Session) adapt(stmt *Statement, job *cluster.Job, r *Refusal) *Refusal {
	if until := job.DelayEnds(); until > s.Now {
		r.Delayed = until
		s.WakeAt(until)
		return r
	}
	if s.options.Patient && len(s.hooks.adapters) > 0 && s.State.Preemptible() > 0 {
		s.engine.backlog.pass(job)
	}
	for _, h := range s.hooks.adapters {
		mark := stmt.Checkpoint()
		left := h.fn(stmt, job, r)
		if s.fault.err != nil {
			return r
		}
		if stmt.aim.met(job, left) {
			if job.Stands() && (stmt.aim.growing != job || job.Placed() >= stmt.aim.goal) {
				return left
			}
			s.fault.fail(h.plugin, "the adapter says that %s is placed, but its minimum is not", job.ID)
			return r
		}
		stmt.Rollback(mark)
	}
	return r
}

// withdrawLost releases, in a statement of its own, reservations that cannot be kept.
func (s *Session) withdrawLost() {
	stmt := s.clerk.begin()
	s.withdrawUnkept(stmt)
	stmt.Commit()
}

// withdrawUnkept releases reservations that their node cannot keep any more, or that
// are of a gang which has lost others.
func (s *Session) withdrawUnkept(stmt *Statement) {
	for _, t := range s.State.Nominated() {
		if t.Status == cluster.Nominated && (!s.keeps(t) || torn(t.Job)) {
			stmt.withdraw(t.Job, true)
		}
	}
	for _, t := range s.State.Moving() {
		if l := t.Landing(); l != nil && (!s.keeps(l) || torn(t.Job)) {
			stmt.withdraw(t.Job, true)
		}
	}
}

// keeps reports whether the node still has what the task was promised, and is
// still one that it may go to.
func (s *Session) keeps(t *cluster.Task) bool {
	if !t.Node.Keeps(t) {
		return false
	}
	for _, h := range s.hooks.shapePredicates {
		if h.static && (h.shapes == nil || h.shapes(t.Shape)) && h.fn(t.Shape, t.Node) != nil {
			return false
		}
	}
	return true
}

// withdrawExpired releases reservations that have been held for too long, once
// those that can be bound are bound. An evicted task that has not left by then is
// overdue: its room counts as held, and jobs that wait for it look elsewhere. The
// statement withdraws what is reserved on that room as well: apart from it, the room
// would be held and reserved at once.
func (s *Session) withdrawExpired() {
	if s.options.Hold <= 0 {
		return
	}
	expired := func(t *cluster.Task) bool { return s.Now-t.Promised > s.options.Hold }
	stmt := s.clerk.begin()
	for _, t := range s.State.Nominated() {
		if t.Status == cluster.Nominated && expired(t) {
			stmt.withdraw(t.Job, !t.Job.Running()) // a gang of which nothing runs is withdrawn as a whole
		}
	}
	for _, t := range s.State.Moving() {
		if l := t.Landing(); l != nil && expired(l) {
			stmt.withdraw(t.Job, true)
		}
	}
	late := false
	for _, t := range s.State.Releasing() {
		if at, evicted := t.EvictedAt(); evicted && !t.Overdue() && s.Now-at > s.options.Hold {
			stmt.overdue(t)
			late = true
		}
	}
	if late {
		s.withdrawUnkept(stmt)
	}
	stmt.Commit()
}

// bindNominated binds the tasks whose reserved room is free by now: of a gang, the
// minimum together or none.
func (s *Session) bindNominated() []Decision {
	stmt := s.clerk.begin()
	for _, tasks := range byJob(s.State.Nominated()) {
		job, mark := tasks[0].Job, stmt.Checkpoint()
		for _, t := range tasks {
			stmt.Bind(t)
		}
		if alt := &job.Alternatives[max(0, job.Chosen)]; job.Chosen >= 0 && (!startable(alt) || inPart(alt, tasks)) {
			stmt.Rollback(mark)
		}
	}
	return stmt.Commit()
}

// byJob groups tasks by job, in the order in which each job's first task comes. The
// IDs of tasks do not group them: job/ml/mnist/worker-0 sorts between tasks of job/ml.
func byJob(tasks []*cluster.Task) [][]*cluster.Task {
	var out [][]*cluster.Task
	at := map[*cluster.Job]int{}
	for _, t := range tasks {
		i, known := at[t.Job]
		if !known {
			i = len(out)
			at[t.Job] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], t)
	}
	return out
}

// torn reports whether a gang with no running task has lost part of its
// reservations. The remaining ones are useless and must be released.
func torn(j *cluster.Job) bool { return !j.Running() && !j.Stands() }

// CompareTasks orders tasks of a job: by the hooks, then as they were written.
func (l *shortage) compare(a, b *cluster.Task) int {
	for _, h := range l.hooks.taskOrders {
		if c := h.fn(a, b); c != 0 {
			return c
		}
	}
	return 0
}

// milli rounds a score to thousandths. The conversion keeps machines that would
// fuse the product and the sum from rounding differently.
func milli(score float64) int64 { return int64(float64(score*1000) + 0.5) }

// points turns a score into weighted milli-points and holds plugins to the range.
func (f *finder) points(plugin string, weight int64, score float64) int64 {
	if !(score >= 0 && score <= 100) { // NaN included
		f.fault.fail(plugin, "a score of %v is not between 0 and 100", score)
		return 0
	}
	return weight * milli(score)
}
