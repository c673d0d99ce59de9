package engine

import (
	"errors"
	"math"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// Session is one pass over the pending jobs. Run lists its steps. Each step is done by a
// component with a type of its own, and calls between components have one direction: the
// order of turns and the search for room call the placer, the placer calls the finder and
// the explainer, and all of them change the State only through statements. The session makes
// one other change itself: advanceClock sets the clock of the State.
type Session struct {
	View cluster.View // the cluster, including changes of statements that are still open
	Now  int64        // the time of the session, in nanoseconds since 1970
	// Earmarks is for plugins that earmark room for jobs.
	Earmarks Earmarks
	Hooks    *Hooks // plugins register their hooks here, in OnSessionOpen

	engine   *Engine
	closed   bool
	changes  []cluster.Change // of a closed session
	wake     int64            // the earliest time that WakeAt was called with; 0: none
	searched int              // steps that exact searches have used in this session
	rooms    int              // searches for room in this session
	// searchedFurther is like searched, for searches that only explain refusals.
	searchedFurther int
	fault           *fault
	*sessionParts
}

// sessionParts are the parts of a session that nothing needs when it is closed. The next session
// uses their memory.
type sessionParts struct {
	options Options
	denied  denied
	refused []Starving // the refusals of minima in this session; in a patient session only of jobs that were not refused before

	order        order        // decides which job has the next turn
	finder       finder       // finds nodes for tasks
	explainer    explainer    // finds out why jobs are refused
	accounts     accounts     // adds up what tasks request
	clerk        clerk        // opens statements and keeps what they commit
	victims      victims      // decides which tasks may be evicted or moved for a job
	heaps        nodeHeaps    // nodes, ordered by the cost of making room on them
	reservations reservations // reservations of earlier sessions
	retirement   retirement   // retires jobs of sets that have too many
	sweeping     sweeping     // calls the Sweep hooks after all turns
	learning     learning     // calls the Learner hooks

	open [2]*Statement // memory for clerk.open
}

// Outcome is what a session decided.
type Outcome struct {
	// Decisions are bindings, nominations and evictions, in the order in which they are
	// to be carried out.
	Decisions []Decision
	// Refusals are the refusals of the jobs that were tried. A patient session lists a
	// refusal only if it differs from the job's previous one; Engine.Refusal returns the
	// latest refusal of any job.
	Refusals []*Refusal
	Events   []Record // what was committed, in order
	// Changes are the changes that the session made to the State. They are listed only
	// if Options.Record is set.
	Changes []cluster.Change
	// Tried lists the IDs of the jobs that had a turn, in the order of their turns. A
	// patient session does not try parked jobs that no change may have helped.
	Tried []string
	// NextWake is when the next session should run if nothing changes before, in
	// nanoseconds since 1970. 0 means that time alone changes nothing.
	NextWake int64
	// RetirementOrders has one entry for each set that had more jobs than desired.
	RetirementOrders []RetirementOrder
	// Steps is a rough measure of the work of all searches for room and of exact searches, which
	// is the same on every machine. A step takes about as long as a change of the State.
	Steps int
}

// Run makes one pass over the pending jobs. Each turn tries to place the minimum of a job
// or, if the job has its minimum, one surplus task. An error means that a plugin broke its
// contract. Decisions that were committed before the error are final and are in the
// outcome.
func (s *Session) Run() (Outcome, error) {
	var out Outcome
	if s.closed {
		return out, errClosed
	}
	func() {
		defer s.contain()
		s.run(&out)
	}()
	const ofRoom, ofExact = 60, 8 // a search for room takes about 60 steps, and 8 steps of an exact search are about one
	out.Steps = ofRoom*s.rooms + s.searched/ofExact
	out.Events, out.Changes, out.NextWake = s.clerk.events, s.clerk.changes, s.nextWake()
	return out, s.fault.err
}

// run does the steps of a session. It returns early if a plugin breaks its contract.
func (s *Session) run(out *Outcome) {
	if s.fault.err != nil {
		return // a plugin broke its contract while the session was opened
	}
	// 1. Set the clock of the State to the time of the session.
	s.advanceClock()
	// 2. Withdraw reservations that their nodes cannot keep, and earmarks without a purpose.
	s.reservations.withdrawLost()
	s.Earmarks.withdrawEnded()
	// 3. Retire jobs of sets that have more jobs than desired.
	if s.retirement.run(out); s.fault.err != nil {
		return
	}
	// 4. Bind nominated tasks if their reserved room is free now, and withdraw reservations
	// that have been held for too long.
	out.Decisions = append(out.Decisions, s.reservations.bindReady()...)
	s.reservations.withdrawExpired()
	s.learning.run()
	// 5. Give the pending jobs their turns: see decide.
	if s.options.Patient {
		s.tryWoken(out)
	} else {
		s.tryAll(out)
	}
	if s.fault.err != nil {
		return
	}
	// 6. Call the Sweep hooks.
	out.Decisions = append(out.Decisions, s.sweeping.run()...)
	// 7. Withdraw reservations for surplus tasks of jobs that this session evicted.
	s.reservations.withdrawLost()
	if b := s.engine.backlog; b != nil {
		b.alarm = s.wake
	}
}

// tryAll gives every pending job its turns. Queues are compared first, then the jobs of the
// queue that comes first. With Options.Turns, it gives these turns and no others.
func (s *Session) tryAll(out *Outcome) {
	if s.options.Turns != nil {
		for _, id := range s.options.Turns {
			if job := s.View.Job(id); job != nil && s.View.IsPending(job) && s.fault.err == nil {
				s.decide(job, out)
			}
		}
		return
	}
	t := s.order.lineUp(s.View.Pending())
	for job := t.next(); job != nil && s.fault.err == nil; job = t.next() {
		if again := takeTurn(s, job, out); again {
			t.contender(s.View.Queue(job.Queue)).line.(*jobList).insert(turnOf(job))
		}
		if n := len(out.Refusals); job.ID == s.options.Until && n > 0 && out.Refusals[n-1].Job == job.ID {
			return
		}
	}
}

// advanceClock sets the clock of the State to the time of the session.
func (s *Session) advanceClock() {
	opened := cluster.SessionOpened{Now: s.Now}
	if err := s.clerk.state.Apply(opened); err != nil {
		s.fault.fail("engine", "%v", err)
	}
	if s.options.Record {
		s.clerk.changes = append(s.clerk.changes, opened)
	}
}

// tryWoken gives turns to the jobs that were not tried before and to parked jobs that are
// woken. All other parked jobs would be refused again.
func (s *Session) tryWoken(out *Outcome) {
	b := s.engine.backlog
	if b == nil || b.view != s.View {
		b = newBacklog(s.View)
		s.engine.backlog = b
	}
	b.open(&s.order, &s.finder, s.Now)
	b.beginTurns()
	for job := b.next(); job != nil && s.fault.err == nil; job = b.next() {
		before := len(out.Decisions)
		b.markPassed()
		takeTurn(s, job, out)
		if made := out.Decisions[before:]; len(made) > 0 {
			b.afterCommit(slices.ContainsFunc(made, func(d Decision) bool { return d.Action == EvictTask }))
		}
	}
	b.close()
	if s.fault.err != nil {
		s.engine.backlog = nil // it does not know which jobs were not tried any more
	}
}

// takeTurn calls decide, and measures the turn if the options say so.
func takeTurn(s *Session, job *cluster.Job, out *Outcome) (again bool) {
	m := s.options.Timings
	if m == nil || !m.PerTurn {
		return s.decide(job, out)
	}
	end, before := m.beginTurn(job.ID), len(out.Decisions)
	again = s.decide(job, out)
	end(len(out.Decisions) - before)
	return again
}

// decide is one turn: it places the minimum of the job or, if the job has its minimum, one
// surplus task. If that fails, the adapters are called, and if they fail too, the job is
// refused. It reports whether the job has another turn in this session. A patient session
// parks every refused job, but adds the refusal to the outcome and its events only if it
// differs from the job's previous one.
func (s *Session) decide(job *cluster.Job, out *Outcome) (again bool) {
	out.Tried = append(out.Tried, job.ID)
	stmt := s.clerk.beginStep()
	placed := job.Placed()
	stmt.aim.minimumOnly = true
	if job.HasMinimum() {
		stmt.aim.growing, stmt.aim.target = job, placed+1
	}
	refusal := shareRefusal(s, job, func() *Refusal { return try(s, stmt, job) })
	if refusal == nil && job.Placed() == placed && s.View.IsPending(job) {
		s.fault.fail("engine", "%s was not refused, but no task of it was placed", job.ID)
	}
	if s.fault.err != nil {
		stmt.Discard()
		return false
	}
	news := refusal != nil
	first := true
	if s.options.Patient {
		first = s.engine.backlog.waiters.At(job.Slot()).refusal == nil
		news = s.engine.backlog.fileAfterTurn(job, refusal)
	}
	if first && refusal != nil && !refusal.Surplus && !refusal.Permanent {
		s.refused = append(s.refused, Starving{job, refusal})
	}
	if news {
		s.clerk.record(Record{Kind: Refused, Job: job.ID, Refusal: refusal})
		out.Refusals = append(out.Refusals, refusal)
	}
	if refusal == nil || refusal.Surplus {
		made := stmt.Commit()
		if out.Decisions == nil {
			out.Decisions = made
		} else {
			out.Decisions = append(doubled(out.Decisions, len(made)), made...)
		}
		if len(made) > 0 {
			s.learning.run()
		}
	} else {
		stmt.Discard()
	}
	s.clerk.endStep(stmt)
	if s.options.Patient {
		s.engine.backlog.saveBackOff(&s.clerk, job)
	}
	return refusal == nil && s.View.IsPending(job)
}

// doubled returns the list with room for n more elements. A list that is full gets twice its
// capacity: append adds only a quarter to a long list, so that it would be copied more often.
func doubled[T any](list []T, n int) []T {
	if cap(list)-len(list) < n {
		list = slices.Grow(list, max(n, len(list)))
	}
	return list
}

// try places what the turn of the job is for. If that fails, it calls the adapters. It returns
// why the job is refused, or nil.
func try(s *Session, stmt *Statement, job *cluster.Job) *Refusal {
	stmt.placer = s.placer(stmt)
	place := &stmt.placer
	if onlyMakesRoom(s.Hooks) { // MakeRoom does not read the nearest misses
		place.aim.deferMissesAt = s.View.Version()
	}
	refusal := place.place(job)
	if refusal != nil && (!refusal.Surplus || len(s.Hooks.adapters) > 0 && mayMakeRoomForSurplus(s.Hooks.surpluses, job, place.shortage.lacks(job))) {
		refusal = s.adapt(stmt, job, refusal)
	}
	if refusal == nil {
		return nil
	}
	s.explainer.tellNearest(job, refusal)
	if s.options.LookFurther && !refusal.Permanent {
		refusal = lookFurther(s, stmt, job, refusal)
	}
	return refusal
}

// met reports whether the refusal that Place returned means that the turn succeeded. A
// refusal of surplus alone is a success, unless the turn is for a surplus task of the job.
func (a *aim) met(job *cluster.Job, r *Refusal) bool {
	return r == nil || r.Surplus && a.growing != job
}

// onlyMakesRoom reports whether MakeRoom is the only adapter.
func onlyMakesRoom(h *Hooks) bool { return len(h.evictionPurposes) > 0 && len(h.adapters) == 1 }

// mayMakeRoomForSurplus reports whether a SurplusRule allows evictions for the next surplus
// task of the job.
func mayMakeRoomForSurplus(rules []hook[SurplusRule], job *cluster.Job, lacks []*cluster.Task) bool {
	return slices.ContainsFunc(rules, func(h hook[SurplusRule]) bool { return h.profiles.decide(job) && h.fn(job, lacks) })
}

// Close ends the session and calls OnSessionClose of each plugin that is a Closer. If a
// plugin panics, the remaining plugins are still called, and the error names the plugin.
// Closing a session again does nothing.
func (s *Session) Close() error {
	if s.closed {
		return nil
	}
	run := s.fault.err
	s.fault.err = nil
	var errs []error
	for _, c := range s.engine.closers {
		func() {
			defer s.contain()
			c.OnSessionClose(s)
		}()
		if s.fault.err != nil {
			errs = append(errs, s.fault.err)
		}
		s.fault.err = nil
	}
	s.fault.err, s.closed, s.changes = run, true, s.clerk.changes
	s.engine.hooks.keep(s, run != nil || len(errs) > 0)
	s.engine.parts = s.sessionParts
	return errors.Join(errs...)
}

// adapt calls the adapters in profile order until one of them places what the turn is for.
// The changes of an adapter that fails are rolled back, so that no task is evicted without
// need. It returns the refusal if all adapters fail. While the preemption delay of the job
// lasts, no adapter is called.
func (s *Session) adapt(stmt *Statement, job *cluster.Job, r *Refusal) *Refusal {
	if until := job.DelayEnds(); until > s.Now {
		if r.Delayed = until; until != math.MaxInt64 {
			s.WakeAt(until)
		}
		return r
	}
	if s.options.Patient && len(s.Hooks.adapters) > 0 && s.View.Classes().Preemptible() > 0 {
		s.engine.backlog.searching = job
		if !onlyMakesRoom(s.Hooks) { // another adapter may evict at any time
			s.engine.backlog.markPassed()
		}
	}
	for _, h := range s.Hooks.adapters {
		mark := stmt.Checkpoint()
		left := h.fn(stmt, job, r)
		if s.fault.err != nil {
			return r
		}
		if stmt.aim.met(job, left) {
			if job.HasMinimum() && (stmt.aim.growing != job || job.Placed() >= stmt.aim.target) {
				return left
			}
			s.fault.fail(h.plugin, "the adapter returned that %s is placed, but it is not; return what Session.Place returned last", job.ID)
			return r
		}
		stmt.Rollback(mark)
	}
	return r
}
