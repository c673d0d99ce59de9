package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/heap"
	"github.com/berth-project/berth/internal/sim"
)

// LogRun is what was measured in a recorded log, or in a replay of one.
type LogRun struct {
	Arrived        int
	Failed         int         // jobs that were removed before they were placed, or still waited at the end
	FailedBy       map[int]int // by the number of devices of the first task
	Evicted        int         // tasks
	Took           []int64     // for each session with an arrival: how long it took, in nanoseconds
	Spent          time.Duration
	Checked        int
	Waits          []LogWait
	Mean           float64 // the mean share of devices that was allocated
	Nodes, Devices int     // at the end
	Largest        int     // devices of the largest node at the end
	Points         []Point
	State          *cluster.State
}

// LogWait is how long a job waited until its minimum started.
type LogWait struct {
	Devices int   // of its first task
	Time    int64 // in nanoseconds
	Pending bool  // it was not placed; Time is how long it waited
}

// LogOptions are the settings of Recording.Replay.
type LogOptions struct {
	Engine     *engine.Engine
	WarmUp     int64 // see RecordOptions
	CheckEvery int   // compare each session of this number with a scan of all nodes; 0: none
	Points     int   // see RecordOptions
	Clock      func() time.Duration
	Progress   func(done float64) // called now and then, if it is not nil
	// Decided, if it is not nil, is called after each session that decided something.
	Decided func(now int64, decisions []engine.Decision)
}

// logEnd is the time at which a task ends or, if the task is nil, a job.
type logEnd struct {
	at     int64
	number int // of the job, in the order of arrivals
	job    *watchedJob
	key    taskKey
	ofTask bool
}

func (e logEnd) before(o logEnd) bool {
	return cmp.Or(cmp.Compare(e.at, o.at), cmp.Compare(e.number, o.number), cmp.Compare(e.key.name, o.key.name), cmp.Compare(e.key.uid, o.key.uid)) < 0
}

// logPlayer replays a recording.
type logPlayer struct {
	*watcher
	recording *Recording
	options   LogOptions
	ends      heap.Heap[logEnd]
	numbers   map[*watchedJob]int
	ids       map[*course]string        // the ID that the job of the course has in the replay
	courses   map[string]*course        // by this ID
	left      map[*watchedJob]eventKind // jobs that were removed in the log and are still needed
	wake      int64                     // when the next session runs if nothing happens before; 0: none
	fruitless int                       // sessions that only time has caused, since something happened
	sessions  int
}

// maxRounds bounds the sessions at one time, in which tasks are evicted and their room is used.
const maxRounds = 100

// minWake is the least time until a session that nothing but time causes. After manyWakes of them it is
// longWake, so that a log that spans centuries can be replayed.
const (
	minWake   = int64(time.Second)
	manyWakes = 10_000
	longWake  = int64(24 * time.Hour)
)

// Replay makes the decisions of the recording anew, and carries them out at once.
func (r *Recording) Replay(ctx context.Context, o LogOptions) (*LogRun, error) {
	state := r.first.Clone()
	p := &logPlayer{
		watcher: newWatcher(state, 0), recording: r, options: o,
		numbers: map[*watchedJob]int{}, ids: map[*course]string{}, courses: map[string]*course{}, left: map[*watchedJob]eventKind{},
	}
	p.ends.Before = logEnd.before
	if p.points.most = o.Points; o.Points > 0 {
		p.points.observe = fragmentationIn(r.demand)
	}
	if err := p.begin(); err != nil {
		return nil, err
	}
	for i, n := 0, len(r.events); i < n; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if o.Progress != nil {
			o.Progress(float64(i) / float64(n))
		}
		end := i
		for end < n && r.events[end].batch == r.events[i].batch && r.events[end].at == r.events[i].at {
			end++
		}
		if err := p.batch(r.events[i:end]); err != nil {
			return nil, err
		}
		i = end
	}
	if err := p.until(r.end); err != nil {
		return nil, err
	}
	p.advance(r.end)
	p.finish()
	p.State = state
	return p.LogRun, nil
}

// begin confirms what was assigned or evicted when the log began.
func (p *logPlayer) begin() error {
	r := p.recording
	for id, c := range r.courses {
		p.ids[c], p.courses[id] = id, c
	}
	p.now = r.start
	p.warmUp = r.start + p.options.WarmUp
	p.opening = true
	p.follow()
	p.opening = false
	for _, n := range p.state.Nodes() {
		for _, t := range slices.Clone(n.Tasks) {
			var err error
			switch t.Status {
			case cluster.Assumed:
				err = p.state.Apply(cluster.TaskSeen{Task: t.Ref(), Node: n.Name})
			case cluster.Releasing:
				err = sim.ReportStopped(p.state, t.Ref())
			}
			if err != nil {
				return err
			}
		}
	}
	for _, j := range p.state.Jobs() {
		p.schedule(p.byID[j.ID])
	}
	p.changed()
	return nil
}

// batch applies the facts that were reported before one session, and runs a session.
func (p *logPlayer) batch(events []event) error {
	at := events[0].at
	if err := p.until(at); err != nil {
		return err
	}
	p.advance(at)
	arrived := p.Arrived
	p.fruitless = 0
	begin := p.options.Clock()
	for i := range events {
		if err := p.event(&events[i]); err != nil {
			return err
		}
	}
	if err := p.settle(begin, p.Arrived > arrived); err != nil {
		return err
	}
	p.points.keep(p.watcher, false)
	return nil
}

// until ends tasks and jobs whose run time is over, and runs the sessions that are due.
func (p *logPlayer) until(to int64) error {
	for {
		next := int64(-1)
		if len(p.ends.Items) > 0 {
			next = p.ends.Items[0].at
		}
		if p.wake > 0 && (next < 0 || p.wake < next) {
			next = p.wake
		}
		if next < 0 || next > to {
			return nil
		}
		p.advance(next)
		if p.wake > 0 && p.wake <= next {
			p.wake = 0
			p.fruitless++
		}
		for len(p.ends.Items) > 0 && p.ends.Items[0].at <= next {
			if err := p.end(p.ends.Pop()); err != nil {
				return err
			}
		}
		if err := p.settle(0, false); err != nil {
			return err
		}
	}
}

// end ends a task or a job, unless its end has changed since it was scheduled.
func (p *logPlayer) end(e logEnd) error {
	k := e.job
	if k.removed {
		return nil
	}
	if !e.ofTask {
		if at, known := k.due(); !known || at > e.at {
			return nil
		}
		return p.apply(cluster.JobGone{Job: k.job.ID})
	}
	s := k.tasks[e.key]
	if at, known := k.taskDue(e.key); !known || at > e.at {
		return nil
	}
	if err := p.apply(cluster.TaskGone{Task: s.ref, UID: e.key.uid, Ended: k.course.tasks[e.key].ended}); err != nil {
		return err
	}
	return p.clean(k)
}

// due returns when the job ends if nothing changes.
func (k *watchedJob) due() (at int64, known bool) {
	run := int64(-1)
	if k.course != nil {
		run = k.course.runTime
	}
	if run < 0 && !k.open && k.job.RunFor > 0 {
		run = k.job.RunFor
	}
	if k.began < 0 || run < 0 {
		return 0, false
	}
	return k.began + max(0, run-k.done), true
}

// taskDue returns when the task ends if nothing changes.
func (k *watchedJob) taskDue(key taskKey) (at int64, known bool) {
	s := k.tasks[key]
	if s == nil || s.started < 0 || k.course == nil {
		return 0, false
	}
	w, known := k.course.tasks[key]
	if !known || w.runTime < 0 {
		return 0, false
	}
	return s.started + max(0, w.runTime-s.done), true
}

// schedule notes when the job and its tasks end.
func (p *logPlayer) schedule(k *watchedJob) {
	if k.removed {
		return
	}
	if k.course == nil {
		k.course = p.courses[k.job.ID]
	}
	number, numbered := p.numbers[k]
	if !numbered {
		number = len(p.numbers)
		p.numbers[k] = number
	}
	if at, known := k.due(); known {
		p.ends.Push(logEnd{at: max(at, p.now), number: number, job: k})
	}
	if k.course == nil || len(k.course.tasks) == 0 {
		return
	}
	for _, key := range k.keys() {
		if at, known := k.taskDue(key); known {
			p.ends.Push(logEnd{at: max(at, p.now), number: number, job: k, key: key, ofTask: true})
		}
	}
}

// changed reads what changed, and notes when jobs and tasks end.
func (p *logPlayer) changed() {
	for _, k := range p.follow() {
		p.schedule(k)
	}
}

func (p *logPlayer) apply(c cluster.Change) error {
	if err := p.state.Apply(c); err != nil {
		return fmt.Errorf("%s: %w", c.Kind(), err)
	}
	p.changed()
	return nil
}

// event carries out one event.
func (p *logPlayer) event(e *event) error {
	switch e.kind {
	case nodeGone:
		name := e.change.(cluster.NodeGone).Name
		if p.state.Node(name) == nil {
			return nil
		}
		if err := sim.RemoveNode(p.state, name); err != nil {
			return err
		}
		p.changed()
		return nil
	case memoryRead:
		n := p.state.Node(e.change.(cluster.NodeRead).Name)
		if n == nil {
			return nil
		}
		return p.apply(cluster.NodeRead{Name: n.Name, Free: cluster.FreeBeside(n, e.memory)})
	case jobFact:
		return p.apply(p.renamed(e))
	case taskPlaced:
		c := p.renamed(e).(cluster.TaskSeen)
		if t := p.state.Task(c.Task); t != nil && t.Node != nil && t.Status != cluster.Nominated {
			return nil // it was placed already, by a decision
		}
		return p.apply(c)
	case taskLeft:
		return p.apply(p.renamed(e))
	case jobLeft, jobCleaned:
		if k := p.byID[p.ids[e.course]]; k != nil {
			p.left[k] = e.kind
			return p.clean(k)
		}
		return nil
	}
	return p.apply(e.change)
}

// clean removes a job that was removed in the log, once it has ended as there. A job that waits, or
// of which it is not known how long it runs, is removed at once if users removed it.
func (p *logPlayer) clean(k *watchedJob) error {
	kind, left := p.left[k]
	if !left || k.removed {
		return nil
	}
	_, wait := k.due()
	for key, s := range k.tasks {
		_, known := k.taskDue(key)
		wait = wait || known || kind == jobCleaned && s.present && s.ended == cluster.Pending && k.course.tasks[key].runTime >= 0
	}
	if wait {
		return nil
	}
	delete(p.left, k)
	if err := p.apply(cluster.JobGone{Job: k.job.ID}); err != nil || !k.open {
		return err
	}
	for _, key := range k.keys() { // the tasks of an open job are not removed with it
		if s := k.tasks[key]; s.present {
			if err := p.apply(cluster.TaskGone{Task: s.ref, UID: key.uid}); err != nil {
				return err
			}
		}
	}
	return nil
}

// renamed returns the change of the event with the ID that the job has in the replay. A job whose ID
// another job still has, because that one ended earlier in the log, gets another ID.
func (p *logPlayer) renamed(e *event) cluster.Change {
	if e.course == nil {
		return e.change
	}
	id, known := p.ids[e.course]
	if !known {
		id = e.course.id
		for n := 2; p.state.Job(id) != nil; n++ {
			id = fmt.Sprintf("%s~%d", e.course.id, n)
		}
		p.ids[e.course], p.courses[id] = id, e.course
	}
	switch c := e.change.(type) {
	case cluster.JobPut:
		c.Job.ID = id
		return c
	case cluster.JobSeen:
		c.Job = id
		return c
	case cluster.TaskPut:
		c.Job = id
		return c
	case cluster.TaskSeen:
		c.Task.Job = id
		return c
	case cluster.TaskGone:
		c.Task.Job = id
		return c
	}
	return e.change
}

// settle runs sessions until no task is evicted any more. The first is timed from begin if it decides
// about an arrival.
func (p *logPlayer) settle(begin time.Duration, timed bool) error {
	for range maxRounds {
		v := p.state.View()
		if len(v.Pending()) == 0 && len(v.Nominated()) == 0 && len(v.Sets().Excess()) == 0 {
			p.wake = 0
			return nil
		}
		search := engine.Indexed
		if p.sessions++; p.options.CheckEvery > 0 && p.sessions%p.options.CheckEvery == 0 {
			search, timed = engine.Twin, false
			p.Checked++
		}
		s := p.options.Engine.Open(p.state, engine.Options{Now: p.now, Patient: true, Search: search})
		out, err := s.Run()
		if err := errors.Join(err, s.Close()); err != nil {
			return err
		}
		if timed {
			took := p.options.Clock() - begin
			p.Took, p.Spent, timed = append(p.Took, int64(took)), p.Spent+took, false
		}
		evicted, err := p.carryOut(&out)
		if err != nil {
			return err
		}
		if len(out.Decisions) > 0 {
			p.fruitless = 0
		}
		wait := minWake
		if p.fruitless > manyWakes {
			wait = longWake
		}
		if p.wake = 0; out.NextWake > 0 {
			p.wake = max(out.NextWake, p.now+wait)
		}
		if !evicted {
			return nil
		}
	}
	return fmt.Errorf("decisions still change after %d sessions at one time: the plugins of this profile undo each other's work", maxRounds)
}

// carryOut reports that placed tasks run and that evicted tasks have stopped. It returns whether
// tasks were evicted.
func (p *logPlayer) carryOut(out *engine.Outcome) (evicted bool, err error) {
	if p.options.Decided != nil && len(out.Decisions) > 0 {
		p.options.Decided(p.now, out.Decisions)
	}
	if err := sim.ConfirmBindings(p.state, out.Decisions); err != nil {
		return false, err
	}
	p.changed()
	for i := range out.Decisions {
		if d := &out.Decisions[i]; d.Action == engine.EvictTask {
			evicted = true
			p.Evicted++
			if err := sim.ReportStopped(p.state, d.Task); err != nil {
				return false, err
			}
		}
	}
	p.changed()
	for _, j := range p.state.View().Retired() {
		if k := p.byID[j.ID]; !k.runs() {
			if err := p.apply(cluster.JobGone{Job: j.ID}); err != nil {
				return false, err
			}
		}
	}
	return evicted, nil
}
