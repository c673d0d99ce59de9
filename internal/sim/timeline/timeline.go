// Package timeline simulates a period of time. It runs one session of the engine in
// each cycle of a virtual clock, and records what happens: jobs arrive, start, are
// evicted, start again and end.
//
// It makes no decisions of its own and does not read the clock of the machine, so
// that equal input gives equal output. Everything happens at a cycle: a run time that
// is over between two cycles ends at the later one. The package records changes and
// never copies State, so that a cycle in which nothing happens needs no memory. Such cycles
// are skipped, unless a caller watches them.
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
	// AwaitedNodes lists the nodes that a provisioner is expected to create. They are
	// mentioned in refusals; Run does not create them.
	AwaitedNodes explain.AwaitedNodes
	// Watch is called after every cycle, if it is not nil. Without it, cycles in which nothing
	// can happen are counted and not run.
	Watch func(*Timeline)
}

// The limits of a simulation over time.
const (
	// MaxCycles is the largest value of Options.Cycles.
	MaxCycles = 1_000_000
	// maxChanges is how many entries all frames may have together. An entry takes about
	// 200 bytes. If there are more, Run returns an error.
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

// Timeline is what happened in a simulation over time.
type Timeline struct {
	State        *cluster.State // after the last cycle
	Start, Every int64          // those of Options
	Cycle        int            // the last cycle that was run, counted from 1
	// Settled reports that nothing can change any more. Run then runs no further cycle.
	Settled bool
	// NextWake is the next time at which a decision may change although nothing happens,
	// for example because past use counts less and less. It is 0 if there is none.
	NextWake  int64
	Frames    []*Frame          // of the cycles in which something happened
	Histories []*JobHistory     // one for each job, sorted by ID
	Refusals  []*engine.Refusal // of the jobs that are pending after the last cycle
	Phrases   explain.Phrases   // of the engine that made the decisions

	used, lost int64 // thousandths of a device, multiplied by cycles
	devices    int64 // thousandths of all devices
	evictions  int
}

// Now returns the time of the last cycle, in nanoseconds since 1970.
func (c *Timeline) Now() int64 { return c.at(max(1, c.Cycle)) }

func (c *Timeline) at(cycle int) int64 { return c.Start + int64(cycle-1)*c.Every }

// LastActiveCycle returns the last cycle in which anything happened, or 1 if nothing did.
func (c *Timeline) LastActiveCycle() int {
	if len(c.Frames) == 0 {
		return 1
	}
	return c.Frames[len(c.Frames)-1].Cycle
}

// History returns the history of the job with the ID, or nil if there is no such job.
func (c *Timeline) History(id string) *JobHistory {
	i, ok := slices.BinarySearchFunc(c.Histories, id, func(h *JobHistory, id string) int { return strings.Compare(h.Job.ID, id) })
	if !ok {
		return nil
	}
	return c.Histories[i]
}

// runner runs the cycles.
type runner struct {
	*Timeline
	engine     *engine.Engine
	options    Options
	notArrived []*JobHistory         // the jobs that have not arrived, in the order in which they will
	releasing  []stoppingTask        // the evicted tasks that have not stopped
	startCycle map[*cluster.Task]int // the cycle in which a bound task started
	usage      usage
	reported   map[string]reported // by the ID of the job
	waiting    []*cluster.Job      // pending after the last cycle, in the order of their turns
	changes    int
}

// Run runs the cycles over the state, which it changes. It ends early when
// nothing can change any more.
func Run(e *engine.Engine, state *cluster.State, o Options) (*Timeline, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	r := newRunner(e, state, o)
	for r.Cycle < o.Cycles && !r.Settled {
		if err := r.step(); err != nil {
			return nil, err
		}
		if o.Watch != nil {
			o.Watch(r.Timeline)
		}
	}
	return r.Timeline, nil
}

// step runs one cycle.
func (r *runner) step() error {
	if r.Cycle > 0 {
		r.countCycles(1)
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
		// A patient session does not try parked jobs. Before the simulation is declared
		// settled, a second session tries all jobs.
		events := out.Events
		triedAll = true
		out, err = r.session(false)
		out.Events = append(events, out.Events...)
		r.NextWake = out.NextWake
	}
	if err == nil {
		err = sim.ConfirmBindings(r.State, out.Decisions)
	}
	if err != nil {
		return err
	}
	r.record(f, &out)
	r.endRetired(f)
	r.updateHistories(&out)
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
		if r.options.Watch == nil && !r.Settled && !triedAll {
			r.skip(out.NextWake)
		}
		return nil
	}
	r.NextWake = 0
	r.Frames = append(r.Frames, f)
	if r.changes += f.changes(); r.changes > maxChanges {
		return fmt.Errorf("more than %d changes have happened by cycle %d; use fewer or longer cycles", maxChanges, r.Cycle)
	}
	return nil
}

// minReservation is the least time for which a reservation is kept, in nanoseconds. If
// the grace period of victims is more than half of it, a reservation is kept for twice
// the grace period.
const minReservation = int64(10 * time.Minute)

func (r *runner) session(patient bool) (engine.Outcome, error) {
	s := r.engine.Open(r.State, engine.Options{Now: r.Now() + r.clockOffset(), Search: r.options.Search, Patient: patient, Hold: max(minReservation, 2*r.options.Grace)})
	out, err := s.Run()
	if r.Cycle == r.options.Cycles {
		r.waiting = s.Order(r.State.Pending())
	}
	return out, errors.Join(err, s.Close())
}

// clockOffset returns what is added to the time of every session. A start at 0 means that the
// start is not known. One nanosecond is added then, so that the time between cycles is right.
func (r *runner) clockOffset() int64 {
	if r.Start == 0 {
		return 1
	}
	return 0
}

// canSettle reports whether all later cycles are equal to this one, provided that no
// decision was made in this cycle: no job will arrive or end, no task will stop, and time
// alone changes nothing. Time alone changes something at NextWake, when a preemption delay
// ends, and when a task has run for the minimum run time that protects it. The last two
// matter only if a job is pending.
func (r *runner) canSettle() bool {
	if len(r.notArrived) > 0 || len(r.releasing) > 0 || len(r.State.View().Nominated()) > 0 || r.NextWake > r.Now() {
		return false
	}
	for _, h := range r.Histories {
		if h.present() && (h.Began >= 0 && h.Job.RunFor > 0 || h.Began < 0 && h.Job.Running()) {
			return false
		}
	}
	pending := r.State.Pending()
	if len(pending) == 0 {
		return true
	}
	if slices.ContainsFunc(pending, func(j *cluster.Job) bool { return j.DelayEnds() > r.Now() && j.PreemptionDelay != cluster.Forever }) {
		return false
	}
	return r.protectionEnds() <= r.Now()
}
