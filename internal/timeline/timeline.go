// Package timeline runs the engine cycle after cycle on a virtual clock and keeps
// what happened: jobs arrive, start, are evicted, start over and end.
//
// It decides nothing, and it reads no clock: equal input gives an equal course.
// Everything happens at the cycles; what is over between two of them is over at
// the second. It keeps changes, never copies of the books: a cycle in which
// nothing happens costs no memory.
package timeline

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/sim"
)

// Options are what a course gets from outside. Times are in nanoseconds.
type Options struct {
	Cycles int
	// Start of the clock, since 1970. Jobs created after it arrive later.
	Start int64
	// Every is how far the clock goes from cycle to cycle.
	Every int64
	// Grace is how long an evicted task takes to leave; it is gone in the next cycle at the earliest.
	Grace  int64
	Search engine.Search
	// Awaits are the nodes that are to be made at the start; a course does not make them.
	Awaits explain.Awaits
	// Watch, where given, sees the course after every session.
	Watch func(*Course)
}

// The bounds of a course.
const (
	MaxCycles = 1_000_000
	// maxChanges are kept, at some 200 bytes each.
	maxChanges = 4_000_000
)

// latest is the end of what the clock can show.
var latest = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()

// Check reports options that make no sense, and what to write instead.
func (o *Options) Check() error {
	switch {
	case o.Cycles < 1 || o.Cycles > MaxCycles:
		return fmt.Errorf("cycles: want from 1 to %d, have %d", MaxCycles, o.Cycles)
	case o.Every <= 0:
		return fmt.Errorf("every: want more than 0, such as 1m, have %s", Span(o.Every))
	case o.Grace < 0:
		return fmt.Errorf("grace: want 0 or more, such as 30s, have %s", Span(o.Grace))
	case o.Start < 0 || o.Start > latest:
		return fmt.Errorf("start: want a time from 1970 to 2200")
	case int64(o.Cycles) > (latest-o.Start)/o.Every:
		return fmt.Errorf("cycles: %d of %s go beyond the year 2200; give fewer or shorter ones", o.Cycles, Span(o.Every))
	}
	return nil
}

// Course is what happened.
type Course struct {
	State        *cluster.State // as it stands after the last cycle
	Start, Every int64
	Cycle        int // the last one that was run, counted from 1
	// Settled: nothing can change any more. The course then ends before its time.
	Settled bool
	// Wake is when time alone may next change a decision, although nothing happens, as
	// where past use fades; 0: it does not.
	Wake     int64
	Frames   []*Frame          // of the cycles in which something happened
	Lives    []*Life           // one for each job, by ID
	Refusals []*engine.Refusal // once it has ended: what waits, and why
	Phrases  explain.Phrases   // of the engine that ran it

	used, lost int64 // thousandths of a device, times cycles
	devices    int64 // thousandths of all devices
	evictions  int
}

// Now is the clock of the last cycle.
func (c *Course) Now() int64 { return c.at(max(1, c.Cycle)) }

func (c *Course) at(cycle int) int64 { return c.Start + int64(cycle-1)*c.Every }

// Rest is the last cycle in which anything happened; once the course has settled
// it stays as it was then.
func (c *Course) Rest() int {
	if len(c.Frames) == 0 {
		return 1
	}
	return c.Frames[len(c.Frames)-1].Cycle
}

// Life finds a job's life, nil if there never was such a job.
func (c *Course) Life(id string) *Life {
	i, ok := slices.BinarySearchFunc(c.Lives, id, func(l *Life, id string) int { return strings.Compare(l.Job.ID, id) })
	if !ok {
		return nil
	}
	return c.Lives[i]
}

// runner makes the course.
type runner struct {
	*Course
	engine  *engine.Engine
	options Options
	coming  []*Life // that have not arrived, first come first
	leaving []departure
	since   map[*cluster.Task]int // the cycle in which a bound task started
	usage   usage
	told    map[string]told
	waiting []*cluster.Job // after the last cycle, in the order of their turns
	changes int
}

// Run runs the cycles over the state, which it changes. It ends early once
// nothing can change any more.
func Run(e *engine.Engine, state *cluster.State, o Options) (*Course, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	r := begin(e, state, o)
	for r.Cycle < o.Cycles && !r.Settled {
		if err := r.step(); err != nil {
			return nil, err
		}
		if o.Watch != nil {
			o.Watch(r.Course)
		}
	}
	return r.Course, nil
}

// step is one cycle.
func (r *runner) step() error {
	if r.Cycle > 0 {
		r.pass()
	}
	r.Cycle++
	f := &Frame{Cycle: r.Cycle, Time: Stamp(r.Now())}
	r.end(f)                            // 1. jobs whose run time is over end
	if err := r.depart(f); err != nil { // 2. tasks that were evicted leave
		return err
	}
	if err := r.arrive(f); err != nil { // 3. jobs whose time has come arrive
		return err
	}
	out, err := r.session(true) // 4. the engine decides
	asked := false
	if err == nil && len(out.Decisions) == 0 && r.settled() {
		// Before anybody says that nothing changes any more, all are asked again.
		events := out.Events
		asked = true
		out, err = r.session(false)
		out.Events = append(events, out.Events...)
		r.Wake = out.NextWake
	}
	if err == nil {
		err = sim.Settle(r.State, out.Decisions)
	}
	if err != nil {
		return err
	}
	r.record(f, &out)
	r.retire(f)
	r.observe(&out)
	if !f.empty() || r.Cycle == 1 {
		f.Queues = r.usage.changes(r.State)
	}
	r.Settled = len(f.Decisions)+len(f.Withdrawn) == 0 && r.settled()
	switch {
	case asked:
		r.Refusals = nil
		for _, x := range out.Refusals {
			r.Refusals = append(r.Refusals, r.refusal(x))
			r.Refusals[len(r.Refusals)-1].Settled = r.Settled
		}
	case r.Cycle == r.options.Cycles:
		r.Refusals = r.lastSaid(r.waiting)
	}
	if f.empty() {
		return nil
	}
	r.Wake = 0
	r.Frames = append(r.Frames, f)
	if r.changes += f.changes(); r.changes > maxChanges {
		return fmt.Errorf("more than %d things have happened by cycle %d; give fewer cycles, or longer ones", maxChanges, r.Cycle)
	}
	return nil
}

// leastHold is how long room is held for somebody at least: ten minutes, or twice
// what those take who leave it.
const leastHold = int64(600_000_000_000)

func (r *runner) session(patient bool) (engine.Outcome, error) {
	now := r.Now()
	if r.Start == 0 {
		now++ // in every cycle: a task that started at 0 would count as one that ran before anybody looked
	}
	s := r.engine.Open(r.State, engine.Options{Now: now, Search: r.options.Search, Patient: patient, Hold: max(leastHold, 2*r.options.Grace)})
	out, err := s.Run()
	if r.Cycle == r.options.Cycles {
		r.waiting = s.Order(r.State.Pending())
	}
	return out, errors.Join(err, s.Close())
}

// settled reports whether the next cycles cannot differ from this one, which has
// decided nothing: nothing is to come, and time alone changes nothing. What it
// could change is who is protected by a minimum run time, and only for the sake
// of somebody who waits, and what plugins ask for another session for, such as
// shares that move while past use fades.
func (r *runner) settled() bool {
	if len(r.coming) > 0 || len(r.leaving) > 0 || len(r.State.View().Nominated()) > 0 || r.Wake > r.Now() {
		return false
	}
	for _, l := range r.Lives {
		if l.here() && (l.Began >= 0 && l.Job.RunFor > 0 || l.Began < 0 && l.Job.Running()) {
			return false
		}
	}
	pending := r.State.Pending()
	if len(pending) == 0 {
		return true
	}
	if slices.ContainsFunc(pending, func(j *cluster.Job) bool { return j.DelayEnds() > r.Now() }) {
		return false
	}
	protected := int64(0)
	for _, q := range r.State.Queues() {
		protected = max(protected, q.MinRunBeforePreempt, q.MinRunBeforeReclaim)
	}
	last := 0
	for _, cycle := range r.since {
		last = max(last, cycle)
	}
	return last == 0 || r.Now()-r.at(last) >= protected
}
