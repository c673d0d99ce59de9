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

// Mark is the status of a job after a cycle. Its value is the character that shows it in
// a picture.
type Mark rune

// The marks. Tasks that succeeded count as running, unless all of them succeeded.
const (
	Absent        Mark = ' ' // the job has not arrived
	Waiting       Mark = '·' // none of its tasks is placed
	Nominated     Mark = '○' // some of its tasks are nominated, and none runs
	PartlyRunning Mark = '▄' // some of its tasks run
	Running       Mark = '█' // all of its tasks run
	Evicted       Mark = '~' // some of its tasks were evicted and have not stopped
	Done          Mark = '✓' // the job has ended, or all of its tasks succeeded
)

// JobHistory is what happened to one job in a simulation over time.
type JobHistory struct {
	Job     *cluster.Job
	Arrived int // the cycle in which it arrived; 0 if it has not
	Ended   int // the cycle in which it ended; 0 if it has not
	// Began is the time at which its minimum last started, or -1 if its minimum does
	// not run.
	Began     int64
	Waited    int // number of cycles in which its minimum did not run
	Evictions int // number of its tasks that were evicted

	marks             []markChange
	held              int64 // thousandths of devices that its bound tasks hold
	notRunningAtStart bool  // its minimum did not run when the clock started
}

// markChange is a new mark and the first cycle that it applies to.
type markChange struct {
	cycle int
	mark  Mark
}

// Mark returns the mark of the job after the cycle. Cycle 0 is before the first one.
func (h *JobHistory) Mark(cycle int) Mark {
	i, found := slices.BinarySearchFunc(h.marks, cycle, func(c markChange, at int) int { return cmp.Compare(c.cycle, at) })
	switch {
	case found:
		return h.marks[i].mark
	case i == 0:
		return Absent
	}
	return h.marks[i-1].mark
}

func (h *JobHistory) setMark(cycle int, m Mark) {
	if len(h.marks) == 0 || h.marks[len(h.marks)-1].mark != m {
		h.marks = append(h.marks, markChange{cycle, m})
	}
}

// present reports whether the job has arrived and has not ended.
func (h *JobHistory) present() bool { return h.Arrived > 0 && h.Ended == 0 }

// stoppingTask is a task that is releasing: it still holds its room.
type stoppingTask struct {
	task    *cluster.Task
	evicted int64 // when it was evicted
	endsJob bool  // it was already releasing when the clock started: its job ends with it
}

// newRunner prepares the first cycle. It removes the jobs from State that are created after
// the start of the clock; addArrivals adds them again when they arrive.
func newRunner(e *engine.Engine, state *cluster.State, o Options) *runner {
	r := &runner{
		Timeline: &Timeline{State: state, Start: o.Start, Every: o.Every, Phrases: explain.PhrasesOf(e)}, engine: e, options: o,
		startCycle: map[*cluster.Task]int{}, usage: newUsage(state), reported: map[string]reported{},
	}
	for _, n := range state.Nodes() {
		for i := range n.Devices {
			if !n.Devices[i].Lost {
				r.devices += int64(cluster.Whole)
			}
		}
	}
	for _, j := range state.Jobs() {
		h := &JobHistory{Job: j, Began: -1, Arrived: 1, notRunningAtStart: true}
		r.Histories = append(r.Histories, h)
		started := false
		for _, t := range j.Tasks() {
			started = started || t.Node != nil || t.Ended()
			switch t.Status {
			case cluster.Releasing:
				r.releasing = append(r.releasing, stoppingTask{t, o.Start, true})
			case cluster.Bound, cluster.Assumed:
				r.startCycle[t] = 1
			}
		}
		if !started && j.Created > o.Start {
			h.Arrived = 0
			r.notArrived = append(r.notArrived, h)
			continue
		}
		if r.update(h); h.Began >= 0 {
			h.notRunningAtStart, h.Began = false, startTime(j, o.Start)
		}
	}
	for _, h := range r.notArrived {
		_ = state.Apply(cluster.JobGone{Job: h.Job.ID}) // the only error is a malformed name, and this one is valid
	}
	slices.SortStableFunc(r.notArrived, func(a, b *JobHistory) int {
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

// countCycles counts the time of n cycles, from the last cycle on: as use of devices, and
// as waiting time of the jobs that lack their minimum.
func (r *runner) countCycles(n int64) {
	for _, h := range r.Histories {
		if !h.present() {
			continue
		}
		r.used += h.held * n
		if h.Began < 0 {
			h.Waited += int(n)
		}
	}
}

// endJobs removes the jobs that have run for their run time.
func (r *runner) endJobs(f *Frame) {
	for _, h := range r.Histories {
		if j := h.Job; h.present() && h.Began >= 0 && j.RunFor > 0 && r.Now()-h.Began >= j.RunFor {
			r.remove(h)
			f.Ends = append(f.Ends, j.ID)
		}
	}
}

// remove removes the job from State and marks it as ended.
func (r *runner) remove(h *JobHistory) {
	for _, t := range h.Job.Tasks() {
		delete(r.startCycle, t)
	}
	_ = r.State.Apply(cluster.JobGone{Job: h.Job.ID}) // the only error is a malformed name, and this one is valid
	h.Ended, h.Began, h.held = r.Cycle, -1, 0
	h.setMark(r.Cycle, Done)
}

// release removes evicted tasks from their nodes when their grace period is over, at the
// earliest one cycle after their eviction. A task that was already releasing when the
// clock started counts as deleted: when no task of its job is placed any more, the job ends.
func (r *runner) release(f *Frame) error {
	stay := r.releasing[:0]
	for _, d := range r.releasing {
		t := d.task
		switch {
		case t.Status != cluster.Releasing: // its job has ended
		case d.evicted == r.Now() || r.Now()-d.evicted < r.options.Grace:
			stay = append(stay, d)
		default:
			if err := sim.ReportStopped(r.State, t.Ref()); err != nil {
				return err
			}
			f.Stopped = append(f.Stopped, t.ID)
			if d.endsJob && t.Job.Placed() == 0 {
				r.remove(r.History(t.Job.ID))
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
	for len(r.notArrived) > 0 && r.notArrived[0].Job.Created <= r.Now() {
		h := r.notArrived[0]
		r.notArrived = r.notArrived[1:]
		if err := r.State.Apply(cluster.JobPut{Job: *h.Job}); err != nil {
			return err
		}
		h.Job = r.State.Job(h.Job.ID)
		h.Arrived = r.Cycle
		f.Arrivals = append(f.Arrivals, h.Job.ID)
	}
	return nil
}

// updateHistories updates the histories of all jobs after the session.
func (r *runner) updateHistories(out *engine.Outcome) {
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
		delete(r.startCycle, t)
		r.History(d.Task.Job).Evictions++
		r.evictions++
		r.releasing = append(r.releasing, stoppingTask{task: t, evicted: r.Now()})
	}
	for _, h := range r.Histories {
		if h.present() {
			r.update(h)
		}
	}
}

// endRetired ends the retired replicas that have no task on a node any more.
func (r *runner) endRetired(f *Frame) {
	for _, h := range r.Histories {
		if h.present() && h.Job.Retired && !slices.ContainsFunc(h.Job.Tasks(), func(t *cluster.Task) bool { return t.Node != nil }) {
			r.remove(h)
			f.Ends = append(f.Ends, h.Job.ID)
		}
	}
}

// addLost adds the device time that a task has used since it started to the lost work, in
// thousandths of a device × cycles.
func (r *runner) addLost(t *cluster.Task, claims []cluster.Claim) {
	if from, ok := r.startCycle[t]; ok {
		r.lost += milli(claims) * int64(r.Cycle-from)
	}
}

// milli returns how much of devices the claims hold, in thousandths of a device.
func milli(claims []cluster.Claim) int64 {
	sum := int64(0)
	for _, c := range claims {
		sum += int64(c.Milli)
	}
	return sum
}

// update sets the mark, the start and the held devices of a job from State. If the minimum
// of a job does not run any more, the job has to start again from the beginning, so the
// work of its remaining tasks counts as lost.
func (r *runner) update(h *JobHistory) {
	j := h.Job
	bound, nominated, releasing, succeeded := 0, 0, 0, 0
	h.held = 0
	for _, t := range j.Tasks() {
		switch t.Status {
		case cluster.Bound, cluster.Assumed:
			bound++
			h.held += milli(t.Claims)
			if _, known := r.startCycle[t]; !known {
				r.startCycle[t] = r.Cycle
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
	case hasMinimum && h.Began < 0:
		h.Began = r.Now()
	case !hasMinimum && h.Began >= 0:
		h.Began = -1
		for _, t := range j.Tasks() {
			if t.Runs() {
				r.addLost(t, t.Claims)
				r.startCycle[t] = r.Cycle
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
		m = PartlyRunning
	case nominated > 0:
		m = Nominated
	}
	h.setMark(r.Cycle, m)
}
