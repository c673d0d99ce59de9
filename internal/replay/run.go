package replay

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/heap"
	"github.com/berth-project/berth/internal/sim"
)

// Options are the settings of Run.
type Options struct {
	Engine *engine.Engine
	// Drop removes a job that cannot be placed when it arrives. Otherwise it waits.
	Drop bool
	// KnownRunTimes lets the engine know how long jobs run. Otherwise it does not.
	KnownRunTimes bool
	// WarmUp is the part of the trace, from its beginning, that is not measured, in nanoseconds.
	WarmUp int64
	// Until ends the replay, in nanoseconds since the trace began; 0: it ends when all jobs have
	// arrived.
	Until int64
	// CheckEvery compares each decision of this number with a scan of all nodes; 0: none.
	CheckEvery int
	// Pauses are made between two arrivals, in this order.
	Pauses []Pause
	// Preemptible makes all jobs preemptible.
	Preemptible bool
	// Points is how many points of the course are kept for a plot.
	Points int
	// Clock returns a time of which only differences count. It measures decisions.
	Clock func() time.Duration
	// Log, if it is not nil, gets every change of the State, from the first nodes on.
	Log func(cluster.Change) error
	// Progress, if it is not nil, is called now and then with the number of jobs that have arrived.
	Progress func(arrived int)
}

// Pause calls a function with the State when jobs have arrived that request At percent of the devices
// of the cluster. The function may move tasks.
type Pause struct {
	At int
	Do func(s *cluster.State, now int64) error
}

// Run is what was measured in one replay.
type Run struct {
	Arrived  int           // how many jobs arrived
	Failed   int           // how many could not be placed: they were dropped, or still wait
	Milli    int64         // thousandths of devices that are allocated at the end
	Took     []int64       // for each arrival: how long the decision took, in nanoseconds
	Spent    time.Duration // all decisions together
	Checked  int           // how many decisions were compared with a scan
	Points   []Point       // the course, for a plot
	Waits    []Wait        // of the jobs that arrived in the measured time
	Mean     float64       // the mean share of devices that was allocated in the measured time
	FailedBy map[int]int   // how many jobs failed, by the number of devices of each task
	State    *cluster.State
}

// Wait is how long a job waited.
type Wait struct {
	Job  int   // its number in the trace
	Time int64 // in nanoseconds
	// Pending is true if the job still waits when the replay ends. Time is how long it has waited.
	Pending bool
}

// Point is the state of a replay after some arrivals.
type Point struct {
	Time       int64
	Arrived    float64 // what arrived so far, as a share of all devices
	Allocated  float64 // what is allocated, as a share of all devices
	Fragmented float64 // what is free and of no use to the workload, as a share of all devices; see FGD
	Waiting    int     // how many jobs wait
}

// end is the end of a job.
type end struct {
	at  int64
	job int
}

func (e end) before(o end) bool { return e.at < o.at || e.at == o.at && e.job < o.job }

// runner replays one trace.
type runner struct {
	*Run
	trace   *Trace
	options Options
	state   *cluster.State
	ends    heap.Heap[end]
	now     int64
	waiting map[int]bool     // jobs that have not started
	used    int64            // thousandths of devices that are allocated
	arrived int64            // thousandths of devices that arrived
	area    float64          // thousandths of devices × nanoseconds that were allocated in the measured time
	total   int64            // thousandths of all devices
	next    int              // the number of arrivals at which the next point is kept
	log     []cluster.Change // what is not written to the log yet
	observe func(*Point, *cluster.State)
	memory  arrival // of the last job
}

// Replay runs the trace. It ends early, with an error, when the context is cancelled.
func Replay(ctx context.Context, t *Trace, o Options) (*Run, error) {
	state, err := t.State()
	if err != nil {
		return nil, err
	}
	r := &runner{
		Run:   &Run{State: state, FailedBy: map[int]int{}, Took: make([]int64, 0, t.Len()), Waits: make([]Wait, 0, t.Len())},
		trace: t, options: o, state: state, waiting: map[int]bool{}, total: max(1, t.Milli()),
	}
	r.ends.Before = end.before
	if o.Log != nil {
		r.log = append(t.changes(), cluster.SessionOpened{})
	}
	if o.Points > 0 {
		r.observe = fragmentationOf(t)
	}
	if err := o.Engine.Open(state, engine.Options{}).Close(); err != nil { // a scheduler runs before the first job arrives
		return nil, err
	}
	for i := range t.Len() {
		at := t.Job(i).Arrival
		if at < r.now {
			return nil, fmt.Errorf("job %s arrives before the job that precedes it; sort the jobs by their arrival", t.jobName(i))
		}
		if o.Until > 0 && at > o.Until {
			break
		}
		if i%256 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if o.Progress != nil {
				o.Progress(i)
			}
		}
		if err := r.endJobs(at); err != nil {
			return nil, err
		}
		r.advance(at)
		if err := r.arrive(i); err != nil {
			return nil, fmt.Errorf("job %s: %w", t.jobName(i), err)
		}
		if err := r.writeLog(); err != nil {
			return nil, err
		}
	}
	if o.Until > 0 {
		if err := r.endJobs(o.Until); err != nil {
			return nil, err
		}
		r.advance(o.Until)
	}
	r.tick()
	if err := r.writeLog(); err != nil {
		return nil, err
	}
	r.finish()
	return r.Run, nil
}

// advance moves the clock.
func (r *runner) advance(to int64) {
	if from := max(r.now, r.options.WarmUp); to > from {
		r.area += float64(r.used) * float64(to-from)
	}
	r.now = max(r.now, to)
}

// endJobs ends the jobs whose run time is over, and starts jobs that waited for their room.
func (r *runner) endJobs(until int64) error {
	for len(r.ends.Items) > 0 && r.ends.Items[0].at <= until {
		e := r.ends.Pop()
		r.advance(e.at)
		r.used -= r.trace.Job(e.job).Milli()
		if err := r.apply(cluster.JobGone{Job: jobID(e.job)}); err != nil {
			return err
		}
		switch {
		case len(r.ends.Items) > 0 && r.ends.Items[0].at == e.at:
		case len(r.waiting) == 0:
			r.tick()
		default:
			if err := r.session(); err != nil {
				return err
			}
		}
	}
	return nil
}

// arrive adds a job and runs a session.
func (r *runner) arrive(number int) error {
	j := r.trace.Job(number)
	search := engine.Indexed
	if n := r.options.CheckEvery; n > 0 && number%n == n-1 {
		search = engine.Twin
		r.Checked++
	}
	change := r.arrival(number)
	r.waiting[number] = true
	r.yield()
	begin := r.options.Clock()
	if err := r.apply(change); err != nil {
		return err
	}
	out, err := r.decide(search)
	took := r.options.Clock() - begin
	if err != nil {
		return err
	}
	if search == engine.Indexed {
		r.Took = append(r.Took, int64(took))
		r.Spent += took
	}
	if err := r.carryOut(&out); err != nil {
		return err
	}
	r.Arrived++
	r.arrived += j.Milli()
	if r.options.Drop && r.waiting[number] {
		delete(r.waiting, number)
		r.Failed++
		r.FailedBy[j.Devices]++
		if err := r.apply(cluster.JobGone{Job: jobID(number)}); err != nil {
			return err
		}
		r.tick()
	}
	r.keepPoint(false)
	return r.pause()
}

// yield lets the garbage collector have the processor before a decision is measured. If there is only one
// processor, the collector otherwise interrupts some decision for 10 to 20 ms. The time counts as spent.
func (r *runner) yield() {
	begin := r.options.Clock()
	runtime.Gosched()
	r.Spent += r.options.Clock() - begin
}

// arrival returns the change that adds the job with the number. Without a log, it is changed by the next call.
func (r *runner) arrival(number int) cluster.Change {
	a := &r.memory
	if r.options.Log != nil {
		a = &arrival{}
	}
	a.fill(r.trace.Job(number), number, r.options.KnownRunTimes || r.options.Log != nil)
	a.Job.Preemptible = r.options.Preemptible
	if r.options.Log != nil {
		return a.JobPut
	}
	return &a.JobPut // a JobPut is large, and would be copied to be a Change
}

// pause makes the pauses for which it is time.
func (r *runner) pause() error {
	for o := &r.options; len(o.Pauses) > 0 && r.arrived*100 >= int64(o.Pauses[0].At)*r.total; {
		do := o.Pauses[0].Do
		o.Pauses = o.Pauses[1:]
		if err := do(r.state, r.now); err != nil {
			return err
		}
	}
	return nil
}

// session runs one session and carries out what it decides.
func (r *runner) session() error {
	out, err := r.decide(engine.Indexed)
	if err != nil {
		return err
	}
	return r.carryOut(&out)
}

// apply makes a change.
func (r *runner) apply(c cluster.Change) error {
	if r.options.Log != nil {
		r.log = append(r.log, c)
	}
	return r.state.Apply(c)
}

// tick notes the time if no session is run for the facts before it: in a log, a fact has the time of the
// next session.
func (r *runner) tick() {
	if r.options.Log != nil {
		r.log = append(r.log, cluster.SessionOpened{Now: r.now})
	}
}

// writeLog writes the changes that were made to the log. It is not called while decisions are measured.
func (r *runner) writeLog() error {
	for _, c := range r.log {
		if err := r.options.Log(c); err != nil {
			return err
		}
	}
	r.log = r.log[:0]
	return nil
}

// decide runs one session.
func (r *runner) decide(search engine.Search) (engine.Outcome, error) {
	s := r.options.Engine.Open(r.state, engine.Options{Now: r.now, Patient: true, Search: search, Record: r.options.Log != nil})
	out, err := s.Run()
	r.log = append(r.log, out.Changes...)
	return out, errors.Join(err, s.Close())
}

// carryOut reports that placed tasks run, and notes which jobs start.
func (r *runner) carryOut(out *engine.Outcome) error {
	if err := sim.Confirm(r.state, out.Decisions, r.apply); err != nil {
		return err
	}
	for i := range out.Decisions {
		d := &out.Decisions[i]
		if d.Action != engine.Bind {
			return fmt.Errorf("%s %s: jobs of a trace are not preemptible, and nothing is evicted for them", d.Action, d.Task.ID())
		}
		number, err := jobNumber(d.Task.Job)
		if err != nil {
			return err
		}
		if r.waiting[number] { // the tasks of a job start together
			r.start(number)
		}
	}
	return nil
}

// start notes that a job starts now.
func (r *runner) start(number int) {
	delete(r.waiting, number)
	j := r.trace.Job(number)
	r.used += j.Milli()
	if j.RunTime > 0 {
		r.ends.Push(end{r.now + j.RunTime, number})
	}
	if j.Arrival >= r.options.WarmUp {
		r.Waits = append(r.Waits, Wait{Job: number, Time: r.now - j.Arrival})
	}
}

// finish completes what was measured.
func (r *runner) finish() {
	r.keepPoint(true)
	r.Milli = r.used
	if span := r.now - r.options.WarmUp; span > 0 {
		r.Mean = r.area / float64(span) / float64(r.total)
	}
	for number := range r.trace.Len() { // in their order, not in that of the map
		if !r.waiting[number] {
			continue
		}
		j := r.trace.Job(number)
		r.Failed++
		r.FailedBy[j.Devices]++
		if j.Arrival >= r.options.WarmUp {
			r.Waits = append(r.Waits, Wait{Job: number, Time: r.now - j.Arrival, Pending: true})
		}
	}
}

// keepPoint keeps a point of the course if it is time for one.
func (r *runner) keepPoint(last bool) {
	if r.options.Points == 0 || r.Arrived < r.next && !last {
		return
	}
	r.next = r.Arrived + max(1, r.trace.Len()/r.options.Points)
	p := Point{
		Time: r.now, Arrived: float64(r.arrived) / float64(r.total), Allocated: float64(r.used) / float64(r.total), Waiting: len(r.waiting),
	}
	r.observe(&p, r.state)
	r.Points = append(r.Points, p)
}
