// Package timeline simulates a period of time. It runs one session of the engine in
// each cycle of a virtual clock, and records what happens: jobs arrive, start, are
// evicted, start again and end.
//
// It makes no decisions of its own and does not read the clock of the machine, so
// that equal input gives an equal course. Everything happens at a cycle: a run time
// that ends between two cycles ends at the later one. The package records changes
// and never copies State, so that a cycle in which nothing happens needs no memory.
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

// Options are the settings of Run. Times are in nanoseconds.
type Options struct {
	// Cycles is the maximum number of cycles.
	Cycles int
	// Start is the time of the first cycle, since 1970. A job that is created after it
	// arrives in a later cycle.
	Start int64
	// Every is the time between two cycles.
	Every int64
	// Grace is how long an evicted task takes to stop. It has stopped in the next cycle
	// at the earliest.
	Grace  int64
	Search engine.Search
	// Awaits lists the nodes that a provisioner is expected to create. They are
	// mentioned in refusals; Run does not create them.
	Awaits explain.Awaits
	// Watch is called after every cycle, if it is not nil.
	Watch func(*Course)
}

// The limits of a course.
const (
	MaxCycles = 1_000_000
	// maxChanges is the number of changes that are recorded. One takes about 200 bytes.
	maxChanges = 4_000_000
)

// latest is the latest time that the clock can show.
var latest = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()

// Check returns an error if an option is out of range.
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
		return fmt.Errorf("cycles: %d cycles of %s end after the year 2200; use fewer or shorter cycles", o.Cycles, Span(o.Every))
	}
	return nil
}

// Course records what happened in a simulation over time.
type Course struct {
	State        *cluster.State // after the last cycle
	Start, Every int64
	Cycle        int // the last cycle that was run, counted from 1
	// Settled reports that nothing can change any more. The course then ends before
	// Options.Cycles is reached.
	Settled bool
	// Wake is the next time at which a decision may change although nothing happens,
	// for example because past use counts less and less. It is 0 if there is none.
	Wake     int64
	Frames   []*Frame          // of the cycles in which something happened
	Lives    []*Life           // one for each job, sorted by ID
	Refusals []*engine.Refusal // of the jobs that are pending after the last cycle
	Phrases  explain.Phrases   // of the engine that ran the course

	used, lost int64 // thousandths of a device, multiplied by cycles
	devices    int64 // thousandths of all devices
	evictions  int
}

// Now returns the time of the last cycle.
func (c *Course) Now() int64 { return c.at(max(1, c.Cycle)) }

func (c *Course) at(cycle int) int64 { return c.Start + int64(cycle-1)*c.Every }

// Rest returns the last cycle in which anything happened, or 1. A settled course
// does not change after this cycle.
func (c *Course) Rest() int {
	if len(c.Frames) == 0 {
		return 1
	}
	return c.Frames[len(c.Frames)-1].Cycle
}

// Life returns the life of a job, or nil if the course has no such job.
func (c *Course) Life(id string) *Life {
	i, ok := slices.BinarySearchFunc(c.Lives, id, func(l *Life, id string) int { return strings.Compare(l.Job.ID, id) })
	if !ok {
		return nil
	}
	return c.Lives[i]
}

// runner runs a course.
type runner struct {
	*Course
	engine    *engine.Engine
	options   Options
	coming    []*Life               // the jobs that have not arrived, in the order in which they will
	releasing []release             // the evicted tasks that have not stopped
	since     map[*cluster.Task]int // the cycle in which a bound task started
	usage     usage
	reported  map[string]reported // by the ID of the job
	waiting   []*cluster.Job      // pending after the last cycle, in the order of their turns
	changes   int
}

// Run runs the cycles over the state, which it changes. It ends early when
// nothing can change any more.
func Run(e *engine.Engine, state *cluster.State, o Options) (*Course, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	r := newRunner(e, state, o)
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

// step runs one cycle.
func (r *runner) step() error {
	if r.Cycle > 0 {
		r.countCycle()
	}
	r.Cycle++
	f := &Frame{Cycle: r.Cycle, Time: Stamp(r.Now())}
	r.endJobs(f)                         // 1. jobs that have run for their run time end
	if err := r.release(f); err != nil { // 2. tasks that were evicted stop
		return err
	}
	if err := r.addArrivals(f); err != nil { // 3. jobs that were created since the last cycle arrive
		return err
	}
	out, err := r.session(true) // 4. the engine decides
	triedAll := false
	if err == nil && len(out.Decisions) == 0 && r.canSettle() {
		// A patient session does not try parked jobs. Before the course is declared
		// settled, a second session tries all jobs.
		events := out.Events
		triedAll = true
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
	r.endRetired(f)
	r.updateLives(&out)
	if !f.empty() || r.Cycle == 1 {
		f.Queues = r.usage.changes(r.State)
	}
	r.Settled = len(f.Decisions)+len(f.Withdrawn) == 0 && r.canSettle()
	switch {
	case triedAll:
		r.Refusals = nil
		for _, x := range out.Refusals {
			r.Refusals = append(r.Refusals, r.refusal(x))
			r.Refusals[len(r.Refusals)-1].Settled = r.Settled
		}
	case r.Cycle == r.options.Cycles:
		r.Refusals = r.lastRefusals(r.waiting)
	}
	if f.empty() {
		return nil
	}
	r.Wake = 0
	r.Frames = append(r.Frames, f)
	if r.changes += f.changes(); r.changes > maxChanges {
		return fmt.Errorf("more than %d changes have happened by cycle %d; use fewer or longer cycles", maxChanges, r.Cycle)
	}
	return nil
}

// minHold is how long a reservation is kept at least. If the victims take more than
// half of this time to stop, it is kept for twice the time that they take.
const minHold = int64(10 * time.Minute)

func (r *runner) session(patient bool) (engine.Outcome, error) {
	now := r.Now()
	if r.Start == 0 {
		// A start at 0 means that the start is not known. One nanosecond is added in
		// every cycle, so that the time between cycles is right.
		now++
	}
	s := r.engine.Open(r.State, engine.Options{Now: now, Search: r.options.Search, Patient: patient, Hold: max(minHold, 2*r.options.Grace)})
	out, err := s.Run()
	if r.Cycle == r.options.Cycles {
		r.waiting = s.Order(r.State.Pending())
	}
	return out, errors.Join(err, s.Close())
}

// canSettle reports whether all later cycles are equal to this one, provided that
// this cycle has made no decision: no job will arrive or end, no task will stop, and
// time alone changes nothing. Time alone could end the protection of a task by a
// minimum run time, which matters only if a job is pending. It could also change
// what made a plugin request another session, such as shares that depend on past use.
func (r *runner) canSettle() bool {
	if len(r.coming) > 0 || len(r.releasing) > 0 || len(r.State.View().Nominated()) > 0 || r.Wake > r.Now() {
		return false
	}
	for _, l := range r.Lives {
		if l.present() && (l.Began >= 0 && l.Job.RunFor > 0 || l.Began < 0 && l.Job.Running()) {
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
