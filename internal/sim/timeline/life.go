package timeline

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/sim"
)

// Mark is the status of a job after a cycle, and the character that shows it in a
// picture.
type Mark rune

// The marks.
const (
	Absent   Mark = ' ' // has not arrived
	Waiting  Mark = '·' // none of its tasks is placed
	Promised Mark = '○' // some of its tasks are nominated, and none runs
	Part     Mark = '▄' // some of its tasks run
	Running  Mark = '█' // all of its tasks run
	Evicted  Mark = '~' // some of its tasks were evicted and have not stopped
	Done     Mark = '✓'
)

// Life is the history of one job.
type Life struct {
	Job     *cluster.Job
	Arrived int // the cycle in which it arrived; 0 if it has not
	Ended   int // the cycle in which it ended; 0 if it has not
	// Began is the time at which its minimum last started, or -1 if its minimum does
	// not run.
	Began     int64
	Waited    int // number of cycles in which its minimum did not run
	Evictions int // number of its tasks that were evicted

	marks []markChange
	held  int64 // thousandths of devices that its bound tasks hold
	fresh bool  // it did not run when the clock started
}

// markChange is a new mark and the first cycle that it applies to.
type markChange struct {
	cycle int
	mark  Mark
}

// Mark returns the mark of the job after the cycle. Cycle 0 is before the first one.
func (l *Life) Mark(cycle int) Mark {
	i, found := slices.BinarySearchFunc(l.marks, cycle, func(c markChange, at int) int { return cmp.Compare(c.cycle, at) })
	switch {
	case found:
		return l.marks[i].mark
	case i == 0:
		return Absent
	}
	return l.marks[i-1].mark
}

func (l *Life) setMark(cycle int, m Mark) {
	if len(l.marks) == 0 || l.marks[len(l.marks)-1].mark != m {
		l.marks = append(l.marks, markChange{cycle, m})
	}
}

// present reports whether the job has arrived and has not ended.
func (l *Life) present() bool { return l.Arrived > 0 && l.Ended == 0 }

// release is a task that is stopping and still holds its room.
type release struct {
	task *cluster.Task
	from int64 // when it was evicted
	last bool  // it was already stopping when the clock started, and is not placed again
}

func newRunner(e *engine.Engine, state *cluster.State, o Options) *runner {
	r := &runner{
		Course: &Course{State: state, Start: o.Start, Every: o.Every, Phrases: explain.PhrasesOf(e)}, engine: e, options: o,
		since: map[*cluster.Task]int{}, usage: newUsage(state), reported: map[string]reported{},
	}
	for _, n := range state.Nodes() {
		for i := range n.Devices {
			if !n.Devices[i].Lost {
				r.devices += int64(cluster.Whole)
			}
		}
	}
	for _, j := range state.Jobs() {
		l := &Life{Job: j, Began: -1, Arrived: 1, fresh: true}
		r.Lives = append(r.Lives, l)
		started := false
		for _, t := range j.Tasks() {
			started = started || t.Node != nil || t.Ended()
			switch t.Status {
			case cluster.Releasing:
				r.releasing = append(r.releasing, release{t, o.Start, true})
			case cluster.Bound, cluster.Assumed:
				r.since[t] = 1
			}
		}
		if !started && j.Created > o.Start {
			l.Arrived = 0
			r.coming = append(r.coming, l)
			continue
		}
		if r.update(l); l.Began >= 0 {
			l.fresh, l.Began = false, startTime(j, o.Start)
		}
	}
	for _, l := range r.coming {
		_ = state.Apply(cluster.JobGone{Job: l.Job.ID}) // the only error is a malformed name, and this one is valid
	}
	slices.SortStableFunc(r.coming, func(a, b *Life) int {
		return cmp.Or(cmp.Compare(a.Job.Created, b.Job.Created), strings.Compare(a.Job.ID, b.Job.ID))
	})
	return r
}

// startTime returns the time at which the last of the job's running tasks started.
// If the start of one of them is not known, it returns the start of the clock.
func startTime(j *cluster.Job, clockStart int64) int64 {
	last := int64(0)
	for _, t := range j.Tasks() {
		if t.Runs() && t.Started == 0 {
			return clockStart
		}
		last = max(last, t.Started)
	}
	return last
}

// countCycle adds the time from one cycle to the next to the use of devices and to
// the waiting times.
func (r *runner) countCycle() {
	for _, l := range r.Lives {
		if !l.present() {
			continue
		}
		r.used += l.held
		if l.Began < 0 {
			l.Waited++
		}
	}
}

// endJobs ends the jobs that have run for their run time.
func (r *runner) endJobs(f *Frame) {
	for _, l := range r.Lives {
		if j := l.Job; l.present() && l.Began >= 0 && j.RunFor > 0 && r.Now()-l.Began >= j.RunFor {
			r.remove(l)
			f.Ends = append(f.Ends, j.ID)
		}
	}
}

func (r *runner) remove(l *Life) {
	for _, t := range l.Job.Tasks() {
		delete(r.since, t)
	}
	_ = r.State.Apply(cluster.JobGone{Job: l.Job.ID}) // the only error is a malformed name, and this one is valid
	l.Ended, l.Began, l.held = r.Cycle, -1, 0
	l.setMark(r.Cycle, Done)
}

// release removes evicted tasks from their nodes when their grace period is over. A
// task that was already stopping when the clock started was deleted before; its job
// ends with its last task.
func (r *runner) release(f *Frame) error {
	stay := r.releasing[:0]
	for _, d := range r.releasing {
		t := d.task
		switch {
		case t.Status != cluster.Releasing: // its job has ended
		case d.from == r.Now() || r.Now()-d.from < r.options.Grace:
			stay = append(stay, d)
		default:
			if err := sim.Leave(r.State, t.Ref()); err != nil {
				return err
			}
			f.Left = append(f.Left, t.ID)
			if d.last && t.Job.Placed() == 0 {
				r.remove(r.Life(t.Job.ID))
				f.Ends = append(f.Ends, t.Job.ID)
			}
		}
	}
	clear(r.releasing[len(stay):])
	r.releasing = stay
	return nil
}

// addArrivals adds the jobs that were created up to now to State.
func (r *runner) addArrivals(f *Frame) error {
	for len(r.coming) > 0 && r.coming[0].Job.Created <= r.Now() {
		l := r.coming[0]
		r.coming = r.coming[1:]
		if err := r.State.Apply(cluster.JobPut{Job: *l.Job}); err != nil {
			return err
		}
		l.Job = r.State.Job(l.Job.ID)
		l.Arrived = r.Cycle
		f.Arrivals = append(f.Arrivals, l.Job.ID)
	}
	return nil
}

// updateLives updates the lives of all jobs after the session.
func (r *runner) updateLives(out *engine.Outcome) {
	for i := range out.Decisions {
		d := &out.Decisions[i]
		if d.Action != engine.EvictTask {
			continue
		}
		// A task that was evicted is in State until it has stopped.
		t := r.State.Task(d.Task)
		if d.Reason != engine.ScaledDown { // a retired replica is not restarted, so that no work is lost
			r.addLost(t, d.Claims)
		}
		delete(r.since, t)
		r.Life(d.Task.Job).Evictions++
		r.evictions++
		r.releasing = append(r.releasing, release{task: t, from: r.Now()})
	}
	for _, l := range r.Lives {
		if l.present() {
			r.update(l)
		}
	}
}

// endRetired ends the retired replicas that have no task on a node any more.
func (r *runner) endRetired(f *Frame) {
	for _, l := range r.Lives {
		if l.present() && l.Job.Retired && !slices.ContainsFunc(l.Job.Tasks(), func(t *cluster.Task) bool { return t.Node != nil }) {
			r.remove(l)
			f.Ends = append(f.Ends, l.Job.ID)
		}
	}
}

// addLost adds the device time that a task has used since it started to the lost
// work.
func (r *runner) addLost(t *cluster.Task, claims []cluster.Claim) {
	if from, ok := r.since[t]; ok {
		r.lost += milli(claims) * int64(r.Cycle-from)
	}
}

func milli(claims []cluster.Claim) int64 {
	sum := int64(0)
	for _, c := range claims {
		sum += int64(c.Milli)
	}
	return sum
}

// update sets the mark and the start of a job from State. If the minimum of a job does
// not run any more, the job starts again from the beginning, so that the work of its
// remaining tasks is lost as well.
func (r *runner) update(l *Life) {
	j := l.Job
	bound, nominated, releasing, succeeded := 0, 0, 0, 0
	l.held = 0
	for _, t := range j.Tasks() {
		switch t.Status {
		case cluster.Bound, cluster.Assumed:
			bound++
			l.held += milli(t.Claims)
			if _, known := r.since[t]; !known {
				r.since[t] = r.Cycle
			}
		case cluster.Nominated:
			nominated++
		case cluster.Releasing:
			releasing++
		case cluster.Succeeded:
			succeeded++
		}
	}
	hasMinimum := j.Chosen >= 0 && j.Alternatives[j.Chosen].Enough(func(t *cluster.Task) bool { return t.Runs() })
	switch {
	case hasMinimum && l.Began < 0:
		l.Began = r.Now()
	case !hasMinimum && l.Began >= 0:
		l.Began = -1
		for _, t := range j.Tasks() {
			if t.Runs() {
				r.addLost(t, t.Claims)
				r.since[t] = r.Cycle
			}
		}
	}
	m := Waiting
	switch {
	case releasing > 0:
		m = Evicted
	case succeeded == len(j.Tasks()):
		m = Done
	case bound+succeeded == len(j.Tasks()):
		m = Running
	case bound > 0:
		m = Part
	case nominated > 0:
		m = Promised
	}
	l.setMark(r.Cycle, m)
}
