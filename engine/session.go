package engine

import (
	"errors"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// Session is one pass over the pending jobs. Run has its steps; each is done by a part
// that is given what it needs. Calls between the parts go one way: from whose turn it is
// and from making room to placing, from placing to finding nodes and to explaining why
// there is none, and from all of them to the statement and the State.
type Session struct {
	View  cluster.View // the cluster as it is, with what statements have changed
	Now   int64        // the time of the session, in nanoseconds since 1970
	Hooks *Hooks       // where plugins register, in OnSessionOpen

	engine   *Engine
	options  Options
	wake     int64 // when the next session is wanted; 0: at no time
	searched int   // steps that exact searches took
	denied   denied
	fault    *fault

	order      *order     // whose turn it is
	finder     *finder    // nodes for tasks
	explainer  *explainer // why jobs are refused
	accounts   *accounts  // what tasks ask for
	clerk      *clerk     // statements, and what they commit
	victims    *victims   // which tasks might leave for a job
	heaps      *nodeHeaps // nodes by what room costs on them
	promises   promises   // what earlier sessions reserved
	retirement retirement // of jobs that their sets have too many of
	sweeping   sweeping   // what hooks do once all jobs have had their turn
}

// Outcome is what a session decided.
type Outcome struct {
	// Decisions are bindings, nominations and evictions, in the order in which they are
	// to be carried out.
	Decisions []Decision
	// Refusals are those of the jobs that were tried; in a patient session, those that
	// are new or differ from what was said of the job before: see Engine.Refusal.
	Refusals []*Refusal
	Events   []Record // what happened for good, in order
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

// Run makes one pass over the pending jobs. A turn is for the minimum of a job, or for
// one task beyond it. An error means that a plugin broke its contract; what was committed
// before that stands and is in the outcome.
func (s *Session) Run() (Outcome, error) {
	var out Outcome
	func() {
		defer s.contain()
		s.run(&out)
	}()
	out.Events, out.Changes, out.NextWake = s.clerk.events, s.clerk.changes, s.nextWake()
	return out, s.fault.err
}

func (s *Session) run(out *Outcome) {
	if s.fault.err != nil {
		return // a plugin broke its contract when the session was opened
	}
	// 1. The clock of the State is moved.
	s.advanceClock()
	// 2. Reservations that cannot be kept are withdrawn.
	s.promises.withdrawLost()
	// 3. Sets that have too many jobs shrink.
	if s.retirement.run(out); s.fault.err != nil {
		return
	}
	// 4. Reservations whose room is free by now are bound, and those held for too long
	// are withdrawn.
	out.Decisions = append(out.Decisions, s.promises.bindReady()...)
	s.promises.withdrawExpired()
	// 5. The pending jobs have their turns: see decide.
	if s.options.Patient {
		s.tryWoken(out)
	} else {
		s.tryAll(out)
	}
	if s.fault.err != nil {
		return
	}
	// 6. Hooks act on their own account.
	out.Decisions = append(out.Decisions, s.sweeping.run()...)
	// 7. Reservations for surplus of jobs that were evicted meanwhile are withdrawn.
	s.promises.withdrawLost()
	if b := s.engine.backlog; b != nil {
		b.alarm = s.wake
	}
}

// passAll gives every pending job its turns, in queue order, then job order.
func (s *Session) tryAll(out *Outcome) {
	t := s.order.lineUp(s.View.Pending())
	for job := t.next(); job != nil && s.fault.err == nil; job = t.next() {
		if again := s.decide(job, out); again {
			t.contender(s.View.Queue(job.Queue)).line.(*jobList).insert(turnOf(job))
		}
	}
}

// openState moves the clock of the State.
func (s *Session) advanceClock() {
	opened := cluster.SessionOpened{Now: s.Now}
	if err := s.clerk.state.Apply(opened); err != nil {
		s.fault.fail("engine", "%v", err)
	}
	if s.options.Record {
		s.clerk.changes = append(s.clerk.changes, opened)
	}
}

// passParked gives those their turn that were not tried before or that something
// changed for: what is parked, and not woken, would be refused.
func (s *Session) tryWoken(out *Outcome) {
	b := s.engine.backlog
	if b == nil || b.view != s.View {
		b = newBacklog(s.View)
		s.engine.backlog = b
	}
	b.open(s.order, s.finder, s.Now)
	b.beginTurns()
	for job := b.next(); job != nil && s.fault.err == nil; job = b.next() {
		before := len(out.Decisions)
		s.decide(job, out)
		if made := out.Decisions[before:]; len(made) > 0 {
			b.afterCommit(slices.ContainsFunc(made, func(d Decision) bool { return d.Action == EvictIt }))
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
	stmt.aim.minimumOnly = true
	if job.Stands() {
		stmt.aim.growing, stmt.aim.target = job, placed+1
	}
	refusal := s.denied.told(job, s.clerk.decided)
	if refusal == nil {
		place := s.placer(stmt)
		if len(s.Hooks.means) > 0 && len(s.Hooks.adapters) == 1 { // MakeRoom does not ask for them
			place.aim.deferMissesAt = s.View.Version()
		}
		refusal = place.place(job)
		if refusal != nil && (!refusal.Surplus || len(s.Hooks.adapters) > 0 && mayMakeRoomForSurplus(s.Hooks.surpluses, job, place.shortage.lacks(job))) {
			refusal = s.adapt(stmt, job, refusal)
		}
		if refusal != nil {
			s.explainer.tellNearest(job, refusal)
		}
	}
	if refusal == nil && job.Placed() == placed && s.View.Waits(job) {
		s.fault.fail("engine", "%s was not refused, and nothing of it was placed", job.ID)
	}
	if s.fault.err != nil {
		stmt.Discard()
		return false
	}
	if refusal != nil {
		s.denied.add(job, refusal, s.clerk.decided)
	}
	news := refusal != nil
	if s.options.Patient {
		news = s.engine.backlog.fileAfterTurn(job, refusal)
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
		s.engine.backlog.saveBackOff(s.clerk, job)
	}
	return refusal == nil && s.View.Waits(job)
}

// met reports whether what Place says is that the job has what its turn is for.
func (a *aim) met(job *cluster.Job, r *Refusal) bool {
	return r == nil || r.Surplus && a.growing != job
}

// deserved reports whether room may be made for the job's next task beyond its minimum.
func mayMakeRoomForSurplus(rules []hook[SurplusRule], job *cluster.Job, lacks []*cluster.Task) bool {
	return slices.ContainsFunc(rules, func(h hook[SurplusRule]) bool { return h.fn(job, lacks) })
}

// Close ends the session: plugins are told. The error is that of a plugin that panicked
// at it; the others are told all the same.
func (s *Session) Close() error {
	run := s.fault.err
	s.fault.err = nil
	var errs []error
	for _, p := range s.engine.plugins {
		if c, ok := p.Plugin.(Closer); ok {
			func() {
				defer s.contain()
				c.OnSessionClose(s)
			}()
			errs = append(errs, s.fault.err)
			s.fault.err = nil
		}
	}
	s.fault.err, s.clerk.closed = run, true
	return errors.Join(errs...)
}

// adapt asks the adapters, in order, to cure the refusal. A plan that does not place
// what the job's turn is for is taken back, so that nothing is evicted for nothing.
func (s *Session) adapt(stmt *Statement, job *cluster.Job, r *Refusal) *Refusal {
	if until := job.DelayEnds(); until > s.Now {
		r.Delayed = until
		s.WakeAt(until)
		return r
	}
	if s.options.Patient && len(s.Hooks.adapters) > 0 && s.View.Classes().Preemptible() > 0 {
		s.engine.backlog.markPassed(job)
	}
	for _, h := range s.Hooks.adapters {
		mark := stmt.Checkpoint()
		left := h.fn(stmt, job, r)
		if s.fault.err != nil {
			return r
		}
		if stmt.aim.met(job, left) {
			if job.Stands() && (stmt.aim.growing != job || job.Placed() >= stmt.aim.target) {
				return left
			}
			s.fault.fail(h.plugin, "the adapter says that %s is placed, but its minimum is not", job.ID)
			return r
		}
		stmt.Rollback(mark)
	}
	return r
}
