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

	engine  *Engine
	options Options
	hooks   hooks
	opening *weighted // the plugin that is registering hooks
	events  []Record
	changes []cluster.Change
	// spareLog is the log of a statement that has ended, for the next one.
	spareLog       []operation
	spareDecisions []Decision
	wake           int64 // when the next session is wanted; 0: at no time
	heaps          map[heapKey]*heap
	asks           map[*cluster.Shape]cluster.DeviceAsk
	still          still
	served         map[*cluster.Job]bool  // others were evicted for them in this session
	bound          map[*cluster.Task]bool // in this session, of preemptible jobs: they are no victims in it
	quiet          bool                   // what fails is only tried, and needs no explanation
	gangs          gangs
	denied         denied
	misses         map[*cluster.Shape]*misses // what was found out for refusals
	later          uint64                     // at this version of the nodes, nearest misses are put off; 0: they are not
	growing        *cluster.Job               // whose turn is for a task beyond its minimum
	goal           int                        // how many of its tasks are placed then
	minimal        bool                       // jobs are placed without surplus: that has turns of its own
	err            error                      // a plugin broke its contract: the session is void
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
	if s.retire(&out); s.err != nil {
		out.Events, out.Changes = s.events, s.changes
		return out, s.err
	}
	out.Decisions = append(out.Decisions, s.bindNominated()...)
	s.withdrawExpired()
	if s.options.Patient {
		s.passParked(&out)
	} else {
		s.passAll(&out)
	}
	if s.err == nil {
		out.Decisions = append(out.Decisions, s.sweep()...)
		s.withdrawLost() // promises to surplus whose job was evicted meanwhile
	}
	out.Events, out.Changes, out.NextWake = s.events, s.changes, s.nextWake()
	return out, s.err
}

// passAll gives every pending job its turns, in queue order, then job order.
func (s *Session) passAll(out *Outcome) {
	t := s.lineUp(s.State.Pending())
	for job := t.next(); job != nil && s.err == nil; job = t.next() {
		if again := s.decide(job, out); again {
			t.contender(s.State.Queue(job.Queue)).line.(*list).insert(turnOf(job))
		}
	}
}

// Changes are what the session did to the State so far, where it records that.
func (s *Session) Changes() []cluster.Change { return s.changes }

// openState moves the clock of the State.
func (s *Session) openState() {
	opened := cluster.SessionOpened{Now: s.Now}
	if err := s.State.Apply(opened); err != nil {
		s.fail("engine", "%v", err)
	}
	if s.options.Record {
		s.changes = append(s.changes, opened)
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
	for job := b.next(); job != nil && s.err == nil; job = b.next() {
		before := len(out.Decisions)
		s.decide(job, out)
		if made := out.Decisions[before:]; len(made) > 0 {
			b.committed(slices.ContainsFunc(made, func(d Decision) bool { return d.Action == EvictIt }))
		}
	}
	b.close()
	if s.err != nil {
		s.engine.backlog = nil // what was not tried is not known to wait
	}
}

// decide places a job's minimum or, where it has that, one task more, or has it wait.
// It reports whether the job is to have another turn. A patient session tells of a
// refusal only what is new.
func (s *Session) decide(job *cluster.Job, out *Outcome) (again bool) {
	out.Tried = append(out.Tried, job.ID)
	stmt := s.Begin()
	placed := job.Placed()
	s.minimal = true
	if job.Stands() {
		s.growing, s.goal = job, placed+1
	}
	refusal := s.toldBefore(job)
	if refusal == nil {
		if len(s.hooks.means) > 0 && len(s.hooks.adapters) == 1 { // MakeRoom does not ask for them
			s.later = s.State.Version()
		}
		refusal = s.Place(stmt, job)
		s.later = 0
		if refusal != nil && (!refusal.Surplus || s.deserved(job)) {
			refusal = s.adapt(stmt, job, refusal)
		}
		if refusal != nil {
			s.tellNearest(job, refusal)
		}
	}
	s.minimal, s.growing = false, nil
	if refusal == nil && job.Placed() == placed && s.State.Waits(job) {
		s.fail("engine", "%s was not refused, and nothing of it was placed", job.ID)
	}
	if s.err != nil {
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
		s.record(Record{Kind: Refused, Job: job.ID, Refusal: refusal})
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

// fits reports whether what Place says is that the job has what its turn is for.
func (s *Session) fits(job *cluster.Job, r *Refusal) bool {
	return r == nil || r.Surplus && s.growing != job
}

// deserved reports whether room may be made for the job's next task beyond its minimum.
func (s *Session) deserved(job *cluster.Job) bool {
	lacks := s.Lacks(job)
	return slices.ContainsFunc(s.hooks.surpluses, func(h hook[SurplusFn]) bool { return h.fn(job, lacks) })
}

// Close ends the session.
func (s *Session) Close() {
	for _, p := range s.engine.plugins {
		p.OnSessionClose(s)
	}
}

// fail voids the session; the first failure counts.
func (s *Session) fail(plugin string, format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("plugin %s: %s", plugin, fmt.Sprintf(format, args...))
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
		if s.err != nil {
			return r
		}
		if s.fits(job, left) {
			if job.Stands() && (s.growing != job || job.Placed() >= s.goal) {
				return left
			}
			s.fail(h.plugin, "the adapter says that %s is placed, but its minimum is not", job.ID)
			return r
		}
		stmt.Rollback(mark)
	}
	return r
}

// withdrawLost releases, in a statement of its own, reservations that cannot be kept.
func (s *Session) withdrawLost() {
	stmt := s.Begin()
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
	stmt := s.Begin()
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
	stmt := s.Begin()
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
func (s *Session) CompareTasks(a, b *cluster.Task) int {
	for _, h := range s.hooks.taskOrders {
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
func (s *Session) points(plugin string, weight int64, score float64) int64 {
	if !(score >= 0 && score <= 100) { // NaN included
		s.fail(plugin, "a score of %v is not between 0 and 100", score)
		return 0
	}
	return weight * milli(score)
}
