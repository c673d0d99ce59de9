package whatif

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/berth-project/berth/internal/wire"
)

// promoter tries changes that entitle the workload to more: higher limits and quotas of its
// queues, a higher priority, a later time.
type promoter struct {
	lab         *lab
	workload    *workload
	found       *finder
	entitlement *explain.Entitlement // nil if only surplus was refused (see Why); only bounds are then raised
	raisedQuota bool                 // raiseBounds found that a higher quota helps
}

// raiseQuotas tries one change that raises the quotas of the workload's queue and of the queues
// above it. It raises the quota of each resource of which the queue would hold more than its
// fair share with the workload. The new quota is what the queue holds plus what the workload
// lacks. Nothing is tried if the engine did not search for victims to reclaim, or if it is known
// that a higher quota of one queue helps.
func (c *promoter) raiseQuotas() {
	if c.entitlement == nil || c.raisedQuota || !slices.Contains(c.entitlement.Purposes, engine.Reclaim) {
		return
	}
	type raise struct {
		queue, resource string
		to              int64
	}
	var all []raise
	var texts, briefs []string
	// declared is set if one of the queues itself has the quota that is raised. If none has,
	// the change would add quotas, and is reported only if it helps.
	declared := false
	for i := range c.entitlement.Standings {
		st := &c.entitlement.Standings[i]
		to := st.Used + c.entitlement.Lacking.Of(st.Resource)
		if to <= st.Share {
			continue
		}
		if to = c.withinLimit(st.Queue, st.Resource, to); st.Quota >= to {
			continue
		}
		all = append(all, raise{st.Queue, st.Resource, to})
		briefs = append(briefs, raiseBrief("quota", st.Queue, quantity.Resource(st.Resource, st.Quota), quantity.Resource(st.Resource, to)))
		if c.declares(st) {
			declared = true
			texts = append(texts, fmt.Sprintf("queue %s's quota raised from %s to %s", st.Queue, quantity.Resource(st.Resource, st.Quota), quantity.Resource(st.Resource, to)))
		} else {
			texts = append(texts, fmt.Sprintf("a quota of %s for queue %s", quantity.Resource(st.Resource, to), st.Queue))
		}
	}
	if len(all) == 0 || c.lab.noTriesLeft() {
		return
	}
	change := newChange(wire.RaiseLimit, "with "+strings.Join(texts, " and "), 25, func(s *cluster.State) error {
		for _, x := range slices.Backward(all) { // from the top down
			q := *s.Queue(x.queue)
			q.Quota = q.Quota.With(x.resource, x.to)
			if err := s.Apply(cluster.QueuePut{Queue: q}); err != nil {
				return err
			}
		}
		return nil
	})
	change.brief = strings.Join(briefs, ", ")
	if v := c.found.try(change); !v.fits && declared {
		c.found.addFailure(change, v)
	}
}

// declares reports whether the queue itself has a quota of the resource. Otherwise its quota
// is the sum of the quotas of the queues below it.
func (c *promoter) declares(st *engine.Standing) bool {
	return slices.ContainsFunc(c.workload.state.Queue(st.Queue).Quota, func(a cluster.Amount) bool { return a.Name == st.Resource })
}

// raisePriority tries priorities just above those of preemptible workloads of the same queue
// that run and have at least the priority of the workload.
func (c *promoter) raisePriority() {
	if c.entitlement == nil || !slices.Contains(c.entitlement.Purposes, engine.Preempt) {
		return
	}
	c.tryPriorities(func(j *cluster.Job) bool { return j.Preemptible && j.Running() })
}

// overtake tries priorities just above those of workloads of the same queue that the simulation
// placed, so that the workload has its turn before them. It is called only if nothing else helps,
// because another workload may be pending instead.
func (c *promoter) overtake() {
	if c.entitlement == nil {
		return
	}
	c.tryPriorities(func(j *cluster.Job) bool {
		before := c.lab.state.Job(j.ID)
		return j.Placed() > 0 && before != nil && before.Placed() == 0
	})
}

// mostPriorities is how many priorities tryPriorities tries.
const mostPriorities = 4

// tryPriorities tries priorities just above those of the workloads of the same queue that have at
// least the priority of the workload and for which counts returns true. It tries the lowest
// first, and stops at the first that helps.
func (c *promoter) tryPriorities(counts func(*cluster.Job) bool) {
	own := c.workload.job()
	var levels []int32
	for _, j := range c.workload.state.Jobs() {
		if j.Queue == own.Queue && j.ID != own.ID && j.Priority >= own.Priority && j.Priority < 1<<31-1 && counts(j) {
			levels = append(levels, j.Priority)
		}
	}
	slices.Sort(levels)
	levels = slices.Compact(levels)
	for _, p := range levels[:min(len(levels), mostPriorities)] {
		if c.lab.noTriesLeft() {
			return
		}
		higher := newChange(wire.HigherPriority, fmt.Sprintf("with a priority above %d", p), 28, c.workload.editJob(func(j *cluster.Job) {
			j.Priority = p + 1
		}))
		higher.brief = fmt.Sprintf("priority %d", p+1)
		if c.found.try(higher).fits {
			return
		}
	}
}

// waitForTime tries later times: the times at which the minimum run times of other workloads
// end, and the end of the preemption delay of the workload. It tries the earliest first, and
// stops at the first that helps.
func (c *promoter) waitForTime() {
	const most = 4
	if c.entitlement == nil {
		return
	}
	type moment struct {
		at, span int64  // the time, and how long the other workload must run before it may be evicted
		name     string // the other workload or a task of it; "" for the preemption delay of the workload itself
	}
	var all []moment
	for _, p := range c.entitlement.Purposes {
		for _, x := range c.entitlement.Census[p].Protected {
			span := c.found.phrases[x.Reason].Span
			if span == nil {
				continue
			}
			for _, id := range x.Jobs {
				j := c.workload.state.Job(id)
				least, first := span(c.workload.state.View(), j, p), firstStart(j)
				for _, t := range j.Tasks() {
					if !t.Runs() || t.Started+least <= c.lab.now {
						continue
					}
					m := moment{t.Started + least, least, id}
					if t.Started > first {
						m.name = t.ID
					}
					all = append(all, m)
				}
			}
		}
	}
	if at := c.workload.refusal.Delayed; at > 0 && at != math.MaxInt64 {
		all = append(all, moment{at: at})
	}
	slices.SortStableFunc(all, func(a, b moment) int { return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.name, b.name)) })
	all = slices.Compact(all)
	for _, m := range all[:min(len(all), most)] {
		if c.lab.noTriesLeft() {
			return
		}
		text := fmt.Sprintf("once %s has run for %s, at %s", m.name, quantity.Span(m.span), quantity.Time(m.at))
		if m.name == "" {
			text = "once its preemption delay is over, at " + quantity.Time(m.at)
		}
		later := newChange(wire.Wait, text, 1, func(*cluster.State) error { return nil })
		const second = int64(time.Second)
		later.brief = "wait " + quantity.Span((m.at-c.lab.now+second-1)/second*second)
		later.arguments = []string{"--wait-until", quantity.ExactTime(m.at)}
		c.lab.laterTime[later] = m.at
		if c.found.try(later).fits {
			return
		}
	}
}

// firstStart returns the earliest start time of the tasks of the job that run.
func firstStart(j *cluster.Job) int64 {
	first := int64(math.MaxInt64)
	for _, t := range j.Tasks() {
		if t.Runs() {
			first = min(first, t.Started)
		}
	}
	return first
}
