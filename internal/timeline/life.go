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

// Mark is how a job stands after a cycle.
type Mark rune

// The marks.
const (
	Absent   Mark = ' ' // not there yet
	Waiting  Mark = '·'
	Promised Mark = '○'
	Part     Mark = '▄' // some of its tasks run
	Running  Mark = '█'
	Evicted  Mark = '~' // some of its tasks were evicted and have not left
	Done     Mark = '✓'
)

// Life is how one job fared.
type Life struct {
	Job     *cluster.Job
	Arrived int // the cycle it came with; 0: it is still to come
	Ended   int // the cycle it ended with; 0: it has not
	// Began is the clock when its minimum last started; -1: it does not run.
	Began     int64
	Waited    int // cycles in which its minimum did not run
	Evictions int // of its tasks

	marks []change
	held  int64 // thousandths of devices that its bound tasks have
	fresh bool  // it did not run when the clock started
}

// change is a new mark and the cycle from which it holds.
type change struct {
	cycle int
	mark  Mark
}

// Mark is how the job stood after the cycle; 0 is before the first.
func (l *Life) Mark(cycle int) Mark {
	i, found := slices.BinarySearchFunc(l.marks, cycle, func(c change, at int) int { return cmp.Compare(c.cycle, at) })
	switch {
	case found:
		return l.marks[i].mark
	case i == 0:
		return Absent
	}
	return l.marks[i-1].mark
}

func (l *Life) mark(cycle int, m Mark) {
	if len(l.marks) == 0 || l.marks[len(l.marks)-1].mark != m {
		l.marks = append(l.marks, change{cycle, m})
	}
}

func (l *Life) here() bool { return l.Arrived > 0 && l.Ended == 0 }

// departure is a task on its way out.
type departure struct {
	task *cluster.Task
	from int64
	last bool // it was already leaving when the clock started: it does not come back
}

func begin(e *engine.Engine, state *cluster.State, o Options) *runner {
	r := &runner{
		Course: &Course{State: state, Start: o.Start, Every: o.Every, Phrases: explain.PhrasesOf(e)}, engine: e, options: o,
		since: map[*cluster.Task]int{}, usage: newUsage(state), told: map[string]told{},
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
		there := false
		for _, t := range j.Tasks() {
			there = there || t.Node != nil || t.Ended()
			switch t.Status {
			case cluster.Releasing:
				r.leaving = append(r.leaving, departure{t, o.Start, true})
			case cluster.Bound, cluster.Assumed:
				r.since[t] = 1
			}
		}
		if !there && j.Created > o.Start {
			l.Arrived = 0
			r.coming = append(r.coming, l)
			continue
		}
		if r.look(l); l.Began >= 0 {
			l.fresh, l.Began = false, started(j, o.Start)
		}
	}
	for _, l := range r.coming {
		_ = state.Apply(cluster.JobGone{Job: l.Job.ID}) // a name that is known cannot be malformed
	}
	slices.SortStableFunc(r.coming, func(a, b *Life) int {
		return cmp.Or(cmp.Compare(a.Job.Created, b.Job.Created), strings.Compare(a.Job.ID, b.Job.ID))
	})
	return r
}

// started is when the job's tasks that run had all started; unless that is
// known, when the clock did.
func started(j *cluster.Job, clock int64) int64 {
	last := int64(0)
	for _, t := range j.Tasks() {
		if t.Runs() && t.Started == 0 {
			return clock
		}
		last = max(last, t.Started)
	}
	return last
}

// pass accounts for the time from one cycle to the next.
func (r *runner) pass() {
	for _, l := range r.Lives {
		if !l.here() {
			continue
		}
		r.used += l.held
		if l.Began < 0 {
			l.Waited++
		}
	}
}

func (r *runner) end(f *Frame) {
	for _, l := range r.Lives {
		if j := l.Job; l.here() && l.Began >= 0 && j.RunFor > 0 && r.Now()-l.Began >= j.RunFor {
			r.remove(l)
			f.Ends = append(f.Ends, j.ID)
		}
	}
}

func (r *runner) remove(l *Life) {
	for _, t := range l.Job.Tasks() {
		delete(r.since, t)
	}
	_ = r.State.Apply(cluster.JobGone{Job: l.Job.ID}) // a name that is known cannot be malformed
	l.Ended, l.Began, l.held = r.Cycle, -1, 0
	l.mark(r.Cycle, Done)
}

// depart lets tasks go whose grace is over. What was already leaving when the
// clock started was ended by somebody, and its job ends with it.
func (r *runner) depart(f *Frame) error {
	stay := r.leaving[:0]
	for _, d := range r.leaving {
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
	clear(r.leaving[len(stay):])
	r.leaving = stay
	return nil
}

func (r *runner) arrive(f *Frame) error {
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

// observe brings the lives up to what the session has done.
func (r *runner) observe(out *engine.Outcome) {
	for i := range out.Decisions {
		d := &out.Decisions[i]
		if d.Action != engine.EvictTask {
			continue
		}
		// A task that was evicted is in the State until it has left its node.
		t := r.State.Task(d.Task)
		if d.Reason != engine.ScaledDown { // its work is done
			r.lose(t, d.Claims)
		}
		delete(r.since, t)
		r.Life(d.Task.Job).Evictions++
		r.evictions++
		r.leaving = append(r.leaving, departure{task: t, from: r.Now()})
	}
	for _, l := range r.Lives {
		if l.here() {
			r.look(l)
		}
	}
}

// retire ends the jobs that their set has enough without, once nothing of them is there.
func (r *runner) retire(f *Frame) {
	for _, l := range r.Lives {
		if l.here() && l.Job.Retired && !slices.ContainsFunc(l.Job.Tasks(), func(t *cluster.Task) bool { return t.Node != nil }) {
			r.remove(l)
			f.Ends = append(f.Ends, l.Job.ID)
		}
	}
}

// lose counts the work that a task has done since it started: it was for nothing.
func (r *runner) lose(t *cluster.Task, claims []cluster.Claim) {
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

// look reads off the books how the job stands. A job whose minimum does not run
// any more starts over: what its other tasks have done is lost as well.
func (r *runner) look(l *Life) {
	j := l.Job
	bound, promised, leaving, succeeded := 0, 0, 0, 0
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
			promised++
		case cluster.Releasing:
			leaving++
		case cluster.Succeeded:
			succeeded++
		}
	}
	stands := j.Chosen >= 0 && j.Alternatives[j.Chosen].Enough(func(t *cluster.Task) bool { return t.Runs() })
	switch {
	case stands && l.Began < 0:
		l.Began = r.Now()
	case !stands && l.Began >= 0:
		l.Began = -1
		for _, t := range j.Tasks() {
			if t.Runs() {
				r.lose(t, t.Claims)
				r.since[t] = r.Cycle
			}
		}
	}
	m := Waiting
	switch {
	case leaving > 0:
		m = Evicted
	case succeeded == len(j.Tasks()):
		m = Done
	case bound+succeeded == len(j.Tasks()):
		m = Running
	case bound > 0:
		m = Part
	case promised > 0:
		m = Promised
	}
	l.mark(r.Cycle, m)
}
