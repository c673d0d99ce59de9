package whatif

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/berth-project/berth/internal/wire"
)

// claimer gives the workload a better claim: higher bounds and quotas of its queues,
// a higher priority, more time.
type claimer struct {
	lab      *lab
	workload *workload
	found    *finder
	claim    *explain.Entitlement // nil where only surplus is missing: nothing is evicted for that
}

// deserve raises the quotas that keep the workload from its share, in its queue
// and in all above it, so far that it is deserved.
func (c *claimer) deserve() {
	if c.claim == nil || !slices.Contains(c.claim.Sought, engine.Reclaim) {
		return
	}
	type raise struct {
		queue, resource string
		to              int64
	}
	var all []raise
	var texts []string
	asked := false // a quota that does not exist is of no interest where it does not help
	for i := range c.claim.Standings {
		st := &c.claim.Standings[i]
		to := st.Used + c.claim.Asks.Of(st.Resource)
		if to <= st.Share || st.Quota >= to {
			continue
		}
		all = append(all, raise{st.Queue, st.Resource, to})
		if c.declares(st) {
			asked = true
			texts = append(texts, fmt.Sprintf("queue %s's quota raised from %s to %s", st.Queue, quantity.Resource(st.Resource, st.Quota), quantity.Resource(st.Resource, to)))
		} else {
			texts = append(texts, fmt.Sprintf("a quota of %s for queue %s", quantity.Resource(st.Resource, to), st.Queue))
		}
	}
	if len(all) == 0 || c.lab.spent() {
		return
	}
	change := &change{wire.RaiseLimit, "with " + strings.Join(texts, " and "), 25, func(s *cluster.State) error {
		for _, x := range slices.Backward(all) { // from the top down
			q := *s.Queue(x.queue)
			q.Quota = q.Quota.With(x.resource, x.to)
			if err := s.Apply(cluster.QueuePut{Queue: q}); err != nil {
				return err
			}
		}
		return nil
	}}
	if v := c.found.try(change); !v.fits && asked {
		c.found.no(change, v)
	}
}

// declares reports whether the quota is the queue's own.
func (c *claimer) declares(st *engine.Standing) bool {
	return slices.ContainsFunc(c.workload.state.Queue(st.Queue).Quota, func(a cluster.Amount) bool { return a.Name == st.Resource })
}

// outrank gives the workload a priority above others of its queue that are not
// lower, the lowest that is enough.
func (c *claimer) outrank() {
	const most = 4
	if c.claim == nil || !slices.Contains(c.claim.Sought, engine.Preempt) {
		return
	}
	var levels []int32
	for _, j := range c.workload.state.Jobs() {
		if j.Queue == c.workload.job().Queue && j.ID != c.workload.id && j.Preemptible && j.Running() && j.Priority >= c.workload.job().Priority && j.Priority < 1<<31-1 {
			levels = append(levels, j.Priority)
		}
	}
	slices.Sort(levels)
	levels = slices.Compact(levels)
	for _, p := range levels[:min(len(levels), most)] {
		if c.lab.spent() {
			return
		}
		higher := &change{wire.HigherPriority, fmt.Sprintf("with a priority above %d", p), 28, c.workload.rewrite(func(j *cluster.Job) {
			j.Priority = p + 1
		})}
		if c.found.try(higher).fits {
			return
		}
	}
}

// wait lets time pass until others have run for as long as they are left alone, or
// the job has waited for as long as it evicts nothing.
func (c *claimer) wait() {
	const most = 4
	if c.claim == nil {
		return
	}
	type moment struct {
		at, span int64
		who      string
	}
	var all []moment
	for _, p := range c.claim.Sought {
		for _, x := range c.claim.Census[p].Spared {
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
						m.who = t.ID
					}
					all = append(all, m)
				}
			}
		}
	}
	if at := c.workload.refusal.Delayed; at > 0 {
		all = append(all, moment{at: at})
	}
	slices.SortStableFunc(all, func(a, b moment) int { return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.who, b.who)) })
	all = slices.Compact(all)
	for _, m := range all[:min(len(all), most)] {
		if c.lab.spent() {
			return
		}
		text := fmt.Sprintf("once %s has run for %s, at %s", m.who, quantity.Span(m.span), quantity.Time(m.at))
		if m.who == "" {
			text = "once its preemption delay is over, at " + quantity.Time(m.at)
		}
		later := &change{wire.Wait, text, 1, func(*cluster.State) error { return nil }}
		c.lab.at[later] = m.at
		if c.found.try(later).fits {
			return
		}
	}
}

// firstStart is when the first of the job's tasks began to run.
func firstStart(j *cluster.Job) int64 {
	first := int64(math.MaxInt64)
	for _, t := range j.Tasks() {
		if t.Runs() {
			first = min(first, t.Started)
		}
	}
	return first
}
