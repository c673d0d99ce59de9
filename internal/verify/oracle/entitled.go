package oracle

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/fairshare"
)

// What Entitled tries at most.
const (
	maxHolders = 8      // preemptible tasks that run
	maxSeats   = 20_000 // seats for one set of victims
)

// Entitled names the pending jobs that the quotas of their queues entitle to room that
// others hold, with the victims: rules 1 and 4 of docs/designs/0004 let these be
// evicted, and then the job's minimum fits, where all preemptible tasks may move. It
// tries every set of victims, and reports false where there are too many.
func Entitled(s *cluster.State) (found []string, tried bool) {
	c := &court{State: s, divided: (&fairshare.Settings{}).Divided(s.View())}
	for _, j := range s.Jobs() {
		for _, t := range j.Tasks() {
			if t.Runs() && j.Preemptible {
				c.running = append(c.running, t)
			}
		}
	}
	if len(c.running) > maxHolders {
		return nil, false
	}
	for _, j := range s.Pending() {
		tasks := j.Alternatives[0].Tasks
		if j.Placed() > 0 || slices.ContainsFunc(tasks, func(t *cluster.Task) bool { return t.Shape != tasks[0].Shape }) {
			continue // where tasks differ, there are many minima, and MakeRoom tries two of them
		}
		if victims := c.sentence(j, tasks[:j.Alternatives[0].Min]); victims != "" {
			found = append(found, fmt.Sprintf("%s of %s waits, and its quota entitles it to the room of %s", j.ID, j.Queue, victims))
		}
	}
	return found, true
}

// court judges what a State has come to.
type court struct {
	*cluster.State
	divided map[string]bool
	running []*cluster.Task // preemptible
}

// plea is a job with the tasks that make its minimum, and the tasks that would be
// evicted for it.
type plea struct {
	job     *cluster.Job
	minimum []*cluster.Task
	names   []string // of the resources that these request, whatever queue they are charged to
	evicted []*cluster.Task
}

// sentence are the victims that may be evicted so that the minimum fits; "" where
// there are none.
func (c *court) sentence(j *cluster.Job, minimum []*cluster.Task) string {
	p := &plea{job: j, minimum: minimum}
	for _, t := range minimum {
		for _, a := range t.Shape.Resources {
			p.names = append(p.names, a.Name)
		}
		if d := c.View().DeviceEstimate(t.Shape); d.Value > 0 {
			p.names = append(p.names, d.Name)
			if d.OfGPU > 0 {
				p.names = append(p.names, cluster.DefaultDeviceResource)
			}
		}
	}
	slices.Sort(p.names)
	p.names = slices.Compact(p.names)
	masks := make([]uint, 0, 1<<len(c.running))
	for mask := uint(1); mask < 1<<len(c.running); mask++ {
		masks = append(masks, mask)
	}
	slices.SortStableFunc(masks, func(a, b uint) int { return bits.OnesCount(a) - bits.OnesCount(b) })
	for _, mask := range masks {
		p.evicted = p.evicted[:0]
		for i, t := range c.running {
			if mask>>i&1 == 1 {
				p.evicted = append(p.evicted, t)
			}
		}
		if !c.allowed(p) {
			continue
		}
		for _, moving := range [...]bool{false, true} {
			if moving && c.limited(p) {
				break // MakeRoom moves nothing for a job that a limit is in the way of
			}
			if c.fits(p, moving) {
				var ids []string
				for _, t := range p.evicted {
					ids = append(ids, fmt.Sprintf("%s of %s", t.ID, t.Job.Queue))
				}
				return fmt.Sprintf("%s (others move: %v)", strings.Join(ids, ", "), moving)
			}
		}
	}
	return ""
}

// allowed reports whether all of the evicted may be by rules 1 and 4, and the job by
// the limits and, where it is not preemptible, the quotas of its queues.
func (c *court) allowed(p *plea) bool {
	for _, t := range p.evicted {
		stay, all := 0, 0
		for _, o := range t.Job.Tasks() {
			if o.Runs() {
				all++
				if !slices.Contains(p.evicted, o) {
					stay++
				}
			}
		}
		if stay > 0 && stay < t.Job.Alternatives[0].Min || !c.reclaimable(p, t, stay == 0) {
			return false
		}
	}
	for q := c.Queue(p.job.Queue); q != nil; q = c.View().Parent(q) {
		for _, l := range q.Limits {
			if c.asks(p, q, l.Name) > 0 && c.ends(p, q, l.Name) > l.Value {
				return false
			}
		}
		for _, l := range q.Quota {
			if ask := c.asks(p, q, l.Name); !p.job.Preemptible && ask > 0 && q.UsedByFirm.Of(l.Name)+ask > l.Value {
				return false
			}
		}
	}
	return true
}

// limited reports whether a limit is in the way of the job as things are.
func (c *court) limited(p *plea) bool {
	for q := c.Queue(p.job.Queue); q != nil; q = c.View().Parent(q) {
		for _, l := range q.Limits {
			if q.Used.Of(l.Name)+c.asks(p, q, l.Name) > l.Value {
				return true
			}
		}
	}
	return false
}

// reclaimable is rules 1 and 4 for the victim: a task, or all tasks of its job.
func (c *court) reclaimable(p *plea, t *cluster.Task, whole bool) bool {
	a, b := c.View().Fork(c.Queue(p.job.Queue), c.Queue(t.Job.Queue))
	if a == nil {
		return false
	}
	held := func(q *cluster.Queue, resource string) int64 {
		if !whole {
			return q.ChargeOf(t, resource)
		}
		sum := int64(0)
		for _, o := range t.Job.Tasks() {
			if o.Runs() {
				sum += q.ChargeOf(o, resource)
			}
		}
		return sum
	}
	if !c.tiersAllow(p, a, b, held) {
		return false
	}
	for q := c.View().Parent(a); q != nil; q = c.View().Parent(q) {
		for _, quota := range c.View().Quotas(q) {
			if q.Tier == cluster.TierGuaranteed && held(q, quota.Name) > 0 && c.asks(p, q, quota.Name) == 0 && c.ends(p, q, quota.Name) < quota.Value {
				return false // the victim would take it back from other tiers
			}
		}
	}
	common := false
	for _, resource := range p.names {
		if !c.divided[resource] {
			continue
		}
		for q := c.Queue(p.job.Queue); ; q = c.View().Parent(q) {
			if c.asks(p, q, resource) > 0 && c.ends(p, q, resource) > c.quota(q, resource) {
				return false
			}
			if q == a {
				break
			}
		}
		if c.asks(p, a, resource) == 0 || held(b, resource) == 0 {
			continue
		}
		common = true
		for q := c.Queue(t.Job.Queue); ; q = c.View().Parent(q) {
			if held(q, resource) > 0 && c.ends(p, q, resource)+c.largest(p, q, resource) <= c.quota(q, resource) {
				return false
			}
			if q == b {
				break
			}
		}
	}
	return common
}

// tiersAllow is rule 1, by effective tiers.
func (c *court) tiersAllow(p *plea, a, b *cluster.Queue, held func(*cluster.Queue, string) int64) bool {
	own, theirs := a.Tier, b.Tier
	for _, quota := range c.View().Quotas(a) {
		if own == cluster.TierGuaranteed && c.asks(p, a, quota.Name) > 0 && c.ends(p, a, quota.Name) > quota.Value {
			own = cluster.TierStandard
		}
	}
	if theirs == cluster.TierGuaranteed {
		for _, quota := range c.View().Quotas(b) {
			if held(b, quota.Name) == 0 {
				continue
			}
			if c.ends(p, b, quota.Name) < quota.Value {
				return false
			}
			theirs = cluster.TierStandard
		}
	}
	return theirs.Rank() >= own.Rank()
}

// quota is what the queue deserves; 0 where it has none.
func (c *court) quota(q *cluster.Queue, resource string) int64 {
	return c.View().Quotas(q).Of(resource)
}

// asks is what the minimum would be charged in the queue's account of the resource.
func (c *court) asks(p *plea, q *cluster.Queue, resource string) int64 {
	sum := int64(0)
	for _, t := range p.minimum {
		sum += t.Shape.Resources.Of(resource)
		switch d := c.View().DeviceEstimate(t.Shape); {
		case d.Name == resource:
			sum += d.Value
		case resource == cluster.DefaultDeviceResource && !q.Names(d.Name):
			sum += d.OfGPU
		}
	}
	return sum
}

// ends is what the queue holds of the resource at the end of the plan.
func (c *court) ends(p *plea, q *cluster.Queue, resource string) int64 {
	sum := q.Used.Of(resource)
	for _, t := range p.evicted {
		if c.above(q, t.Job.Queue) {
			sum -= q.ChargeOf(t, resource)
		}
	}
	if c.above(q, p.job.Queue) {
		sum += c.asks(p, q, resource)
	}
	return sum
}

// largest is the most that a victim of the queue holds of the resource: a task that its
// job can spare or, of a job that is evicted as a whole, what is left of it once those
// have been.
func (c *court) largest(p *plea, q *cluster.Queue, resource string) (most int64) {
	held := map[*cluster.Job][]int64{}
	for _, t := range p.evicted {
		if c.above(q, t.Job.Queue) {
			held[t.Job] = append(held[t.Job], q.ChargeOf(t, resource))
		}
	}
	for j, each := range held {
		slices.Sort(each)
		together := int64(0)
		for _, one := range each[:min(len(each), j.Alternatives[0].Min)] {
			together += one
		}
		if len(each) < j.Placed() {
			together = each[len(each)-1]
		}
		most = max(most, together)
	}
	return most
}

// above reports whether the queue is the named one or above it.
func (c *court) above(q *cluster.Queue, name string) bool {
	for o := c.Queue(name); o != nil; o = c.View().Parent(o) {
		if o == q {
			return true
		}
	}
	return false
}
