package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/heap"
	"github.com/berth-project/berth/internal/paged"
)

// backlog holds the pending jobs between patient sessions: the jobs to be tried, and the
// refused jobs, which are parked in buckets until something changes that may help them.
// Each session updates it with what changed since the last. It serves one State at a time.
// If it is lost, the next session tries all jobs again, and no decision is lost.
type backlog struct {
	order  *order
	finder *finder
	now    int64
	view   cluster.View

	// The versions of jobs, nodes, queues and queue specs, and the epochs of the index, that
	// the backlog is up to date with.
	jobs, nodes, queues, revision, epoch, scoreEpoch uint64

	waiters paged.Table[waiter]       // by slot of the job; nil if the job is not pending
	moved   movedSets                 // since the last session
	lanes   []*lane                   // by slot of the queue; nil if the queue has had no pending job
	asked   map[*cluster.Shape]*asked // the shapes that parked jobs request
	freeIDs []int                     // values of asked.id that are free for reuse
	timers  heap.Heap[*bucket]
	blocked map[string][]*bucket // by the queue that prevented the placement, by its limit or share
	replica map[string][]*bucket // by set
	kinds   []cluster.Device
	byBid   laneOrder

	shapeIDs      map[*cluster.Shape]uint64
	lastShapeID   uint64
	keyBuffer     []byte
	refusalNumber uint64 // the number of refusals so far

	sessions uint64 // the number of sessions so far
	alarm    int64  // the earliest time for which a plugin or the preemption delay of a job requested a session; 0 if there is none
	alarmDue bool   // that time has come

	starvesAt    int64 // see Earmarks.Starving: when the next refused job has waited for long; 0 if there is none
	starvesAgain int64 // see Earmarks.Starving: when jobs that were returned are returned again; 0 if none were
	earmarks     int   // how many earmarks there were when Earmarks.Starving last examined all jobs

	// The fields below are used while a session runs.
	turns           *turns
	waiting         int          // how many of the lanes in joined have not ended their turn
	joined          []*lane      // the lanes that have arrivals, or buckets that queueForCheck put in line
	inLine          []*lane      // all lanes that have been in line in this session
	joining         []*lane      // the lanes that are in line at the beginning; kept to reuse its memory
	freshShapes     []*asked     // shapes for which a node has got room since the last session
	freshIDs        bitset       // the IDs of the shapes in freshShapes
	guardShapes     bitset       // a copy of freshIDs that the guards of several lanes share; it is never modified
	stillFreshIDs   bitset       // the IDs of the fresh shapes for which a node still has room
	stillFreshCount int          // how many IDs are in stillFreshIDs
	evicts          bool         // tasks may be evicted in this session
	searching       *cluster.Job // the job for which room was last searched for; nil after markPassed
	passedRanked    []*lane      // lanes that are passed and not marked as such yet, except those in unranked
	unranked        []*lane      // the lanes that had been in line when passedRanked was set
	seen            uint64       // the version of State as of which freshShapes was last updated
}

func newBacklog(s cluster.View) *backlog {
	return &backlog{
		view: s, timers: newTimers(), asked: map[*cluster.Shape]*asked{}, blocked: map[string][]*bucket{}, replica: map[string][]*bucket{},
		shapeIDs: map[*cluster.Shape]uint64{}, moved: movedSets{sets: map[string]bool{}},
	}
}

// open updates the backlog with what changed since the last session, and puts in line the
// jobs that these changes may help.
func (b *backlog) open(o *order, f *finder, now int64) {
	first := b.order == nil
	b.order, b.finder, b.now, b.waiting = o, f, now, 0
	b.alarmDue, b.alarm = b.alarm > 0 && now >= b.alarm, 0
	b.sessions++
	if b.turns == nil || b.revision != b.view.Recent().QueueSpecsVersion() {
		b.turns = o.newTurns() // the specs of queues changed, and with them perhaps their parents
		b.refreshQueues()
	} else {
		b.turns.reopen(o)
	}
	moved := b.takeChangedJobs()
	if first {
		b.nodes, b.queues = b.view.Version(), b.view.Recent().QueuesVersion() // nothing is parked yet
	}
	b.wake(moved)
	b.jobs, b.nodes, b.queues = b.view.Recent().JobsVersion(), b.view.Version(), b.view.Recent().QueuesVersion()
	b.revision, b.epoch, b.scoreEpoch = b.view.Recent().QueueSpecsVersion(), f.index.epoch, f.index.scoreEpoch
}

// refreshQueues looks up the queue of each lane again: State replaces the object of a queue
// when its spec changes.
func (b *backlog) refreshQueues() {
	for _, l := range b.lanes {
		if l == nil {
			continue
		}
		if q := b.view.Queue(l.queue.Name); q != nil {
			l.queue = q
		}
	}
}

// takeChangedJobs updates the waiters with the jobs that changed. It returns the sets that
// have such a job.
func (b *backlog) takeChangedJobs() (moved map[string]bool) {
	clear(b.moved.sets)
	b.view.Recent().Jobs(b.jobs, func(slot int) {
		b.waiters.Grow(slot + 1)
		job, e := b.view.JobAt(slot), b.waiters.At(slot)
		b.moved.note(job, slot)
		if e != nil && (job != e.job || !b.view.IsPending(job)) {
			b.remove(e)
			b.waiters.Set(slot, nil)
			e = nil
		}
		switch {
		case job == nil || !b.view.IsPending(job):
		case e == nil:
			e = &waiter{turn: turnOf(job)}
			if job.Parked != nil { // the back-off continues after a restart
				e.parked = *job.Parked
			}
			b.addArrival(e)
		case e.bucket == nil || e.taskCounts != taskCountsOf(job) || e.turn != turnOf(job) || !sameEarmark(e.earmarked, job.Earmarked) || job.SpecVersion() > b.jobs:
			b.remove(e)
			e.turn = turnOf(job)
			b.addArrival(e)
		}
	})
	return b.moved.sets
}

// movedSets are the sets that have a job that changed.
type movedSets struct {
	sets  map[string]bool
	names []string // by slot of the job: the name of its set; shorter if the last jobs have no set
}

// note adds the set of the job at the slot, and that of the job that was at the slot before.
func (m *movedSets) note(job *cluster.Job, slot int) {
	name := ""
	if job != nil {
		name = job.Set.Name
	}
	if slot >= len(m.names) {
		if name == "" {
			return
		}
		m.names = append(m.names, make([]string, slot+1-len(m.names))...)
	}
	for _, set := range [...]string{m.names[slot], name} {
		if set != "" {
			m.sets[set] = true
		}
	}
	m.names[slot] = name
}

// addArrival adds the job to the arrivals of its lane, so that it is tried in this session.
func (b *backlog) addArrival(e *waiter) {
	b.waiters.Set(e.job.Slot(), e)
	e.earmarked = e.job.Earmarked
	e.lane = b.lane(e.job)
	e.lane.arrivals, e.inArrivals = append(e.lane.arrivals, e), true
	b.joinLine(e.lane)
}

// again gives the job another turn in this session, for one surplus task.
func (b *backlog) again(job *cluster.Job) {
	e := &waiter{turn: turnOf(job)}
	b.addArrival(e)
	l := e.lane
	i, _ := slices.BinarySearchFunc(l.arrivals[:len(l.arrivals)-1], e, b.compareWaiters)
	copy(l.arrivals[i+1:], l.arrivals[i:])
	l.arrivals[i] = e
}

func (b *backlog) compareWaiters(x, y *waiter) int { return b.order.compareTurns(x.turn, y.turn) }

// lane returns the lane of the job's queue, and creates it if there is none.
func (b *backlog) lane(j *cluster.Job) *lane {
	q := b.view.Queue(j.Queue)
	for q.Slot() >= len(b.lanes) {
		b.lanes = append(b.lanes, nil)
	}
	l := b.lanes[q.Slot()]
	if l == nil {
		l = &lane{backlog: b, buckets: map[string]*bucket{}, byShape: map[*asked][]*bucket{}}
		l.inLine.Before = func(x, y *bucket) bool { return b.compareWaiters(x.toTry, y.toTry) < 0 }
		l.parked.lane = l
		l.parked.buckets.Before = func(x, y *bucket) bool { return b.compareWaiters(x.ahead, y.ahead) < 0 }
		b.lanes[q.Slot()] = l
	}
	l.queue = q
	return l
}

// joinLine puts the lane in line for this session, even if no node has got room for a shape
// that its parked jobs request.
func (b *backlog) joinLine(l *lane) {
	if !l.joined {
		l.joined = true
		b.joined = append(b.joined, l)
		b.waiting++
	}
}

// remove takes the job out of its bucket, or out of the arrivals of its lane. The job keeps
// its back-off.
func (b *backlog) remove(e *waiter) {
	k := e.bucket
	if k == nil {
		if e.inArrivals {
			e.lane.arrivals = without(e.lane.arrivals, e)
		}
		e.inArrivals = false
		return
	}
	e.bucket, e.parked = nil, k.parked
	i, found := k.index(b.order, e.turn)
	if !found || k.jobs[i] != e { // the job's place in the order has changed since it was added
		i = slices.Index(k.jobs, e)
	}
	k.jobs = slices.Delete(k.jobs, i, i+1)
	if i == 0 {
		k.lane.reorder()
	}
	if len(k.jobs) > 0 {
		return
	}
	k.lane.unlist(k)
	b.unblock(k)
	b.stop(k)
	delete(k.lane.buckets, k.key)
	if k.set != "" { // the set of the job may be another one now
		if b.replica[k.set] = without(b.replica[k.set], k); len(b.replica[k.set]) == 0 {
			delete(b.replica, k.set)
		}
	}
}

func without[T comparable](list []T, item T) []T {
	return slices.DeleteFunc(list, func(o T) bool { return o == item })
}

// unblock removes the bucket from the lists of the queues that prevented its placement.
func (b *backlog) unblock(k *bucket) {
	for _, name := range k.blockers {
		if b.blocked[name] = without(b.blocked[name], k); len(b.blocked[name]) == 0 {
			delete(b.blocked, name)
		}
	}
	k.blockers = k.blockers[:0]
}

// ask returns the entry of the task's shape among the shapes that parked jobs request, and
// adds it if there is none.
func (b *backlog) ask(t *cluster.Task) *asked {
	a := b.asked[t.Shape]
	if a == nil {
		copied := *t // the task itself may get another shape later
		a = &asked{id: len(b.asked) + len(b.freeIDs), task: &copied}
		if n := len(b.freeIDs); n > 0 {
			a.id, b.freeIDs = b.freeIDs[n-1], b.freeIDs[:n-1]
		}
		b.asked[t.Shape] = a
	}
	return a
}

// dropShape removes a shape that no parked job requests any more.
func (b *backlog) dropShape(a *asked) {
	b.freeIDs = append(b.freeIDs, a.id)
	delete(b.asked, a.task.Shape)
	if len(a.freshNodes) > 0 {
		a.freshNodes = nil
		b.stillFreshCount--
	}
}

// close resets the fields that are used while a session runs.
func (b *backlog) close() {
	for _, l := range b.inLine {
		l.endSession()
	}
	clear(b.inLine)
	b.inLine = b.inLine[:0]
	for _, l := range b.joined {
		l.endSession()
	}
	clear(b.joined)
	b.joined = b.joined[:0]
	for _, a := range b.freshShapes {
		a.freshNodes = a.freshNodes[:0]
	}
	b.freshShapes, b.stillFreshCount = b.freshShapes[:0], 0
	b.searching, b.passedRanked, b.unranked = nil, b.passedRanked[:0], b.unranked[:0]
	clear(b.stillFreshIDs)
	clear(b.freshIDs)
	b.turns.clear()
}
