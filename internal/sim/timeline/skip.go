package timeline

import (
	"github.com/berth-project/berth/cluster"
)

// skip moves the clock to the cycle before the next one in which anything can happen. It is
// called after a cycle in which nothing happened. The cycles between are counted, and no
// session is run in them: a patient session before its NextWake decides nothing if State has
// not changed. The last cycle is never skipped. So the number of sessions depends on what
// happens, and not on the number of cycles.
func (r *runner) skip(wake int64) {
	last := r.options.Cycles - 1
	if at := r.nextChange(wake); at > 0 {
		due := (at - r.Start + r.Every - 1) / r.Every // cycles before the first one at or after the time
		last = int(min(int64(last), due))
	}
	if n := last - r.Cycle; n > 0 {
		r.countCycles(int64(n))
		r.Cycle = last
	}
}

// nextChange returns the earliest time after now at which a job arrives or ends, a task stops,
// the engine wants a session, or the simulation may settle. It returns 0 if there is none.
func (r *runner) nextChange(wake int64) int64 {
	next := int64(0)
	add := func(at int64) {
		if at > r.Now() && (next == 0 || at < next) {
			next = at
		}
	}
	if wake > 0 {
		add(wake - r.clockOffset())
	}
	add(r.NextWake)
	if len(r.notArrived) > 0 {
		add(r.notArrived[0].Job.Created)
	}
	for _, d := range r.releasing {
		add(max(d.evicted+r.options.Grace, r.Now()+1))
	}
	for _, h := range r.Histories {
		if h.present() && h.Began >= 0 && h.Job.RunFor > 0 {
			add(h.Began + h.Job.RunFor)
		}
	}
	for _, j := range r.State.Pending() {
		if j.PreemptionDelay != cluster.Forever {
			add(j.DelayEnds())
		}
	}
	add(r.protectionEnds())
	return next
}

// protectionEnds returns when the last task that was started is no longer protected by the
// minimum run time of any queue, or 0 if no task was started.
func (r *runner) protectionEnds() int64 {
	last := 0
	for _, cycle := range r.startCycle {
		last = max(last, cycle)
	}
	if last == 0 {
		return 0
	}
	return r.at(last) + longestProtection(r.State)
}

func longestProtection(s *cluster.State) int64 {
	longest := int64(0)
	for _, q := range s.Queues() {
		longest = max(longest, q.MinRunBeforePreempt, q.MinRunBeforeReclaim)
	}
	return longest
}
