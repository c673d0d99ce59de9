package replay

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// watcher measures a State while it changes: what is allocated, how long jobs wait, and for how
// long jobs and tasks have run. It reads only what changed.
type watcher struct {
	*LogRun
	state       *cluster.State
	nodes, jobs cluster.Since
	uses        map[int]nodeUse     // by the slot of the node
	bySlot      map[int]*watchedJob // by the slot of the job
	byID        map[string]*watchedJob
	used, total int64 // thousandths of devices that are allocated, and of all devices
	now         int64
	warmUp      int64   // what is before this time is not measured
	area        float64 // used × nanoseconds
	room        float64 // total × nanoseconds
	waiting     int     // how many jobs have arrived and have not started
	opening     bool    // the jobs of the first State are read
	points      pointKeeper
}

// nodeUse is how much of the devices of a node is allocated, and how much it has.
type nodeUse struct{ used, total int64 }

// watchedJob is a job of the State, from its arrival until it is removed. A later job with the same
// ID is another watchedJob.
type watchedJob struct {
	job     *cluster.Job
	open    bool
	removed bool
	arrived int64
	initial bool  // it was there from the beginning, and ran
	started bool  // its minimum has run
	began   int64 // since when its minimum runs; -1: it does not run
	members int   // how many of its tasks ran when its minimum began to run
	done    int64 // for how long its minimum has run, without the time since began
	ran     bool  // a task ran when it was removed
	ended   bool  // all its tasks had ended when it was removed
	tasks   map[taskKey]*watchedTask
	devices int   // of its first task
	milli   int64 // what its minimum requests of devices, in thousandths
	course  *course
}

// taskKey tells the tasks of a job apart. Only one alternative of a job runs at a time.
type taskKey struct{ name, uid string }

// watchedTask is a task of a watchedJob.
type watchedTask struct {
	ref     cluster.TaskRef
	started int64 // since when it runs; -1: it does not run
	done    int64 // for how long it has run before
	ran     bool  // it has run
	ended   cluster.Status
	present bool // its job has it
}

func newWatcher(s *cluster.State, warmUp int64) *watcher {
	return &watcher{
		LogRun: &LogRun{FailedBy: map[int]int{}}, state: s, warmUp: warmUp,
		uses: map[int]nodeUse{}, bySlot: map[int]*watchedJob{}, byID: map[string]*watchedJob{},
	}
}

// advance moves the clock. What is allocated counts until then.
func (w *watcher) advance(to int64) {
	if from := max(w.now, w.warmUp); to > from {
		w.area += float64(w.used) * float64(to-from)
		w.room += float64(w.total) * float64(to-from)
	}
	w.now = max(w.now, to)
}

// follow reads what changed, and returns the jobs that changed in the order of their slots.
func (w *watcher) follow() []*watchedJob {
	v := w.state.View()
	w.nodes.Nodes(v, func() {}, func(slot int) {
		use := useOf(v.At(slot))
		w.used += use.used - w.uses[slot].used
		w.total += use.total - w.uses[slot].total
		w.uses[slot] = use
	})
	var slots []int
	w.jobs.Jobs(v, func() {}, func(slot int) { slots = append(slots, slot) })
	slices.Sort(slots)
	var out []*watchedJob
	for _, slot := range slots {
		j, known := v.JobAt(slot), w.bySlot[slot]
		if known != nil && known.job != j {
			w.remove(known)
			delete(w.bySlot, slot)
			out = append(out, known)
			known = nil
		}
		if j == nil {
			continue
		}
		if known == nil {
			known = w.arrive(j)
			w.bySlot[slot], w.byID[j.ID] = known, known
		}
		w.read(known)
		out = append(out, known)
	}
	return out
}

// useOf returns how much of the node is allocated to tasks that run or have not stopped yet.
func useOf(n *cluster.Node) nodeUse {
	var out nodeUse
	if n == nil {
		return out
	}
	for i := range n.Devices {
		if d := &n.Devices[i]; !d.Lost && !d.Gone {
			out.total += int64(cluster.Whole)
		}
	}
	for _, t := range n.Tasks {
		if !t.Runs() && t.Status != cluster.Releasing {
			continue
		}
		for _, c := range t.Claims {
			out.used += int64(c.Milli)
		}
	}
	return out
}

func (w *watcher) arrive(j *cluster.Job) *watchedJob {
	k := &watchedJob{job: j, open: j.Open, initial: w.opening && j.Running(), arrived: w.now, began: -1, tasks: map[taskKey]*watchedTask{}}
	k.devices, k.milli = requested(j)
	w.waiting++
	if !k.initial {
		w.Arrived++
		w.points.arrived += k.milli
	}
	return k
}

// read takes in the status of the job and of its tasks.
func (w *watcher) read(k *watchedJob) {
	if k.open { // its tasks arrive one after the other
		k.devices, _ = requested(k.job)
	}
	for _, t := range k.tasks {
		t.present = false
	}
	running, last := 0, int64(0)
	for a := range k.job.Alternatives {
		for _, t := range k.job.Alternatives[a].Tasks {
			key := taskKey{t.Name, t.UID}
			s := k.tasks[key]
			if s == nil {
				s = &watchedTask{started: -1}
				k.tasks[key] = s
			}
			if s.present && !t.Runs() && t.Status != cluster.Releasing {
				continue // a task of another alternative with the same name
			}
			s.ref, s.present, s.ended = t.Ref(), true, cluster.Pending
			if t.Ended() {
				s.ended = t.Status
			}
			switch {
			case t.Runs():
				s.started, s.ran = w.since(t, s.started), true
				running++
				last = max(last, s.started)
			case s.started >= 0:
				s.stop(w.now)
			}
		}
	}
	for _, s := range k.tasks {
		if !s.present && s.started >= 0 {
			s.stop(w.now)
		}
	}
	enough := k.job.Chosen >= 0 && k.job.Alternatives[k.job.Chosen].Enough((*cluster.Task).Runs)
	switch {
	case enough && k.began < 0:
		k.began, k.members = last, running
		w.startJob(k)
	case enough && running == k.members: // no task was added: their start may be corrected when it is confirmed
		k.began = last
	case !enough && k.began >= 0:
		k.done += max(0, w.now-k.began)
		k.began = -1
	}
}

// since returns since when the task runs.
func (w *watcher) since(t *cluster.Task, known int64) int64 {
	switch {
	case t.Started > 0:
		return min(t.Started, w.now)
	case known >= 0:
		return known
	}
	return w.now
}

func (s *watchedTask) stop(now int64) {
	s.done += max(0, now-s.started)
	s.started = -1
}

// startJob notes that the job has started, unless it did before.
func (w *watcher) startJob(k *watchedJob) {
	if k.started {
		return
	}
	k.started = true
	w.waiting--
	if !k.initial && k.arrived >= w.warmUp {
		w.Waits = append(w.Waits, LogWait{Devices: k.devices, Time: w.now - k.arrived})
	}
}

// remove notes that the job is not in the State any more.
func (w *watcher) remove(k *watchedJob) {
	k.removed, k.ended = true, k.allEnded()
	if w.byID[k.job.ID] == k {
		delete(w.byID, k.job.ID)
	}
	for _, s := range k.tasks {
		s.present = false
		if s.started >= 0 {
			k.ran = true
			s.stop(w.now)
		}
	}
	if k.began >= 0 {
		k.done += max(0, w.now-k.began)
		k.began = -1
	}
	w.fail(k)
}

// fail notes that the job was not placed until now, unless it has started or ended.
func (w *watcher) fail(k *watchedJob) {
	if k.started {
		return
	}
	w.waiting--
	if k.ended {
		return
	}
	w.Failed++
	w.FailedBy[k.devices]++
	if k.arrived >= w.warmUp {
		w.Waits = append(w.Waits, LogWait{Devices: k.devices, Time: w.now - k.arrived, Pending: true})
	}
}

// allEnded reports whether all tasks of the job have ended, or were removed.
func (k *watchedJob) allEnded() bool {
	for _, s := range k.tasks {
		if s.present && s.ended == cluster.Pending {
			return false
		}
	}
	return true
}

// runs reports whether a task of the job runs.
func (k *watchedJob) runs() bool {
	for _, s := range k.tasks {
		if s.started >= 0 {
			return true
		}
	}
	return false
}

// finish completes what was measured: jobs that still wait have failed.
func (w *watcher) finish() {
	for _, j := range w.state.Jobs() {
		k := w.byID[j.ID]
		k.ended = k.allEnded()
		w.fail(k)
	}
	w.points.keep(w, true)
	w.Points = w.points.list
	w.Devices = int(w.total / int64(cluster.Whole))
	w.Nodes = len(w.state.Nodes())
	for _, n := range w.state.Nodes() {
		w.Largest = max(w.Largest, len(n.Devices))
	}
	if w.room > 0 {
		w.Mean = w.area / w.room
	}
}

// requested returns how many devices the first task of a job requests, and how much the tasks of its
// first alternative request together, in thousandths of a device.
func requested(j *cluster.Job) (devices int, milli int64) {
	for i, t := range j.Tasks() {
		milli += int64(t.Shape.Need.Devices) * int64(t.Shape.Need.Milli())
		if i == 0 {
			devices = t.Shape.Need.Devices
		}
	}
	return devices, milli
}

// pointKeeper keeps points of the course for a plot. It keeps at most 2 × most of them: when there
// are more, it drops every second one and keeps fewer from then on.
type pointKeeper struct {
	most    int // 0: none are kept
	list    []Point
	every   int // arrivals between two points
	next    int
	arrived int64 // thousandths of devices that have arrived
	observe func(*Point, *cluster.State)
}

func (p *pointKeeper) keep(w *watcher, last bool) {
	if p.most == 0 || w.Arrived < p.next && !last {
		return
	}
	if len(p.list) >= 2*p.most {
		half := p.list[:0]
		for i := 0; i < len(p.list); i += 2 {
			half = append(half, p.list[i])
		}
		p.list, p.every = half, 2*max(1, p.every)
	}
	p.next = w.Arrived + max(1, p.every)
	total := float64(max(1, w.total))
	at := Point{Time: w.now, Arrived: float64(p.arrived) / total, Allocated: float64(w.used) / total, Waiting: w.waiting}
	p.observe(&at, w.state)
	p.list = append(p.list, at)
}
