package oracle

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/fairshare"
)

// The limits of the search of Entitled.
const (
	maxRunning  = 8      // preemptible tasks that run
	maxFitSteps = 20_000 // steps of the search for a placement, for one set of victims
)

// Entitled lists the pending jobs that the quotas of their queues entitle to room that
// other jobs hold, with the victims: rules 1 and 4 of docs/designs/0004 allow the victims
// to be evicted, and the job's minimum fits if they are evicted and any preemptible tasks
// move. It tries every set of victims. If there are too many sets, it tries none and returns
// false.
func Entitled(s *cluster.State) (found []string, tried bool) {
	c := &quotaCheck{state: s, divided: (&fairshare.Settings{}).Divided(s.View())}
	for _, j := range s.Jobs() {
		for _, t := range j.Tasks() {
			if t.Runs() && j.Preemptible {
				c.running = append(c.running, t)
			}
		}
	}
	if len(c.running) > maxRunning {
		return nil, false
	}
	for _, j := range s.Pending() {
		tasks := j.Alternatives[0].Tasks
		if j.Placed() > 0 || slices.ContainsFunc(tasks, func(t *cluster.Task) bool { return t.Shape != tasks[0].Shape }) {
			continue // if tasks differ, many sets of tasks make the minimum, and MakeRoom tries only two of them
		}
		if victims := c.findVictims(j, tasks[:j.Alternatives[0].Min]); victims != "" {
			found = append(found, fmt.Sprintf("%s of %s is pending, and its quota entitles it to the room of %s", j.ID, j.Queue, victims))
		}
	}
	return found, true
}

// quotaCheck looks for pending jobs that are entitled to room.
type quotaCheck struct {
	state   *cluster.State
	divided map[string]bool // the resources that queues divide
	running []*cluster.Task // all preemptible tasks that run
}

// quotaRequest is a job with the tasks that make its minimum, and the tasks that would be
// evicted for it.
type quotaRequest struct {
	job     *cluster.Job
	minimum []*cluster.Task
	names   []string // the names under which queues are charged for the minimum
	evicted []*cluster.Task
}

// findVictims returns the victims that may be evicted so that the minimum fits, or "" if
// there are none. Smaller sets are tried first.
func (c *quotaCheck) findVictims(j *cluster.Job, minimum []*cluster.Task) string {
	p := &quotaRequest{job: j, minimum: minimum}
	for _, t := range minimum {
		for _, a := range t.Shape.Resources {
			p.names = append(p.names, a.Name)
		}
		if d := c.state.View().DeviceEstimate(t.Shape); d.Value > 0 {
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
		if !c.isAllowed(p) {
			continue
		}
		for _, moving := range [...]bool{false, true} {
			if moving && c.exceedsLimit(p) {
				break // MakeRoom moves no tasks for a job that exceeds a limit
			}
			if c.fits(p, moving) {
				var ids []string
				for _, t := range p.evicted {
					ids = append(ids, fmt.Sprintf("%s of %s", t.ID, t.Job.Queue))
				}
				return fmt.Sprintf("%s (other tasks move: %v)", strings.Join(ids, ", "), moving)
			}
		}
	}
	return ""
}

// isAllowed reports whether rules 1 and 4 allow all evictions, and whether the limits of the
// job's queues allow the job. A job that is not preemptible must also be within the quotas.
func (c *quotaCheck) isAllowed(p *quotaRequest) bool {
	for _, t := range p.evicted {
		stay := 0
		for _, o := range t.Job.Tasks() {
			if o.Runs() && !slices.Contains(p.evicted, o) {
				stay++
			}
		}
		if stay > 0 && stay < t.Job.Alternatives[0].Min || !c.isReclaimable(p, t, stay == 0) {
			return false
		}
	}
	for q := c.state.Queue(p.job.Queue); q != nil; q = c.state.View().Parent(q) {
		for _, l := range q.Limits {
			if c.charge(p, q, l.Name) > 0 && c.heldAfter(p, q, l.Name) > l.Value {
				return false
			}
		}
		for _, l := range q.Quota {
			if more := c.charge(p, q, l.Name); !p.job.Preemptible && more > 0 && q.UsedByFirm.Of(l.Name)+more > l.Value {
				return false
			}
		}
	}
	return true
}

// exceedsLimit reports whether the job would exceed a limit of its queues if nothing is
// evicted.
func (c *quotaCheck) exceedsLimit(p *quotaRequest) bool {
	for q := c.state.Queue(p.job.Queue); q != nil; q = c.state.View().Parent(q) {
		for _, l := range q.Limits {
			if q.Used.Of(l.Name)+c.charge(p, q, l.Name) > l.Value {
				return true
			}
		}
	}
	return false
}

// isReclaimable reports whether rules 1 and 4 allow the victim, which is a task or, if whole
// is set, all running tasks of its job.
func (c *quotaCheck) isReclaimable(p *quotaRequest, t *cluster.Task, whole bool) bool {
	a, b := c.state.View().Fork(c.state.Queue(p.job.Queue), c.state.Queue(t.Job.Queue))
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
	for q := c.state.View().Parent(a); q != nil; q = c.state.View().Parent(q) {
		for _, quota := range c.state.View().Quotas(q) {
			if q.Tier == cluster.TierGuaranteed && held(q, quota.Name) > 0 && c.charge(p, q, quota.Name) == 0 && c.heldAfter(p, q, quota.Name) < quota.Value {
				return false // the job of the victim could take the room back because of this quota
			}
		}
	}
	common := false
	for _, resource := range p.names {
		if !c.divided[resource] {
			continue
		}
		for q := c.state.Queue(p.job.Queue); ; q = c.state.View().Parent(q) {
			if c.charge(p, q, resource) > 0 && c.heldAfter(p, q, resource) > c.quota(q, resource) {
				return false
			}
			if q == a {
				break
			}
		}
		if c.charge(p, a, resource) == 0 || held(b, resource) == 0 {
			continue
		}
		common = true
		for q := c.state.Queue(t.Job.Queue); ; q = c.state.View().Parent(q) {
			if held(q, resource) > 0 && c.heldAfter(p, q, resource)+c.largestVictim(p, q, resource) <= c.quota(q, resource) {
				return false
			}
			if q == b {
				break
			}
		}
	}
	return common
}

// tiersAllow reports whether rule 1 allows the victim. A Guaranteed queue beyond its quota
// counts as Standard.
func (c *quotaCheck) tiersAllow(p *quotaRequest, a, b *cluster.Queue, held func(*cluster.Queue, string) int64) bool {
	own, other := a.Tier, b.Tier
	for _, quota := range c.state.View().Quotas(a) {
		if own == cluster.TierGuaranteed && c.charge(p, a, quota.Name) > 0 && c.heldAfter(p, a, quota.Name) > quota.Value {
			own = cluster.TierStandard
		}
	}
	if other == cluster.TierGuaranteed {
		for _, quota := range c.state.View().Quotas(b) {
			if held(b, quota.Name) == 0 {
				continue
			}
			if c.heldAfter(p, b, quota.Name) < quota.Value {
				return false
			}
			other = cluster.TierStandard
		}
	}
	return other.Rank() >= own.Rank()
}

// quota returns the quota of the queue, or 0 if it has none.
func (c *quotaCheck) quota(q *cluster.Queue, resource string) int64 {
	return c.state.View().Quotas(q).Of(resource)
}

// charge returns how much of the resource the queue is charged for the minimum.
func (c *quotaCheck) charge(p *quotaRequest, q *cluster.Queue, resource string) int64 {
	sum := int64(0)
	for _, t := range p.minimum {
		sum += t.Shape.Resources.Of(resource)
		switch d := c.state.View().DeviceEstimate(t.Shape); {
		case d.Name == resource:
			sum += d.Value
		case resource == cluster.DefaultDeviceResource && !q.Names(d.Name):
			sum += d.OfGPU
		}
	}
	return sum
}

// heldAfter returns how much of the resource the queue holds after the evictions, with the
// minimum.
func (c *quotaCheck) heldAfter(p *quotaRequest, q *cluster.Queue, resource string) int64 {
	sum := q.Used.Of(resource)
	for _, t := range p.evicted {
		if c.contains(q, t.Job.Queue) {
			sum -= q.ChargeOf(t, resource)
		}
	}
	if c.contains(q, p.job.Queue) {
		sum += c.charge(p, q, resource)
	}
	return sum
}

// largestVictim returns how much of the resource the largest victim of the queue holds. A
// victim is one surplus task. If a job is evicted as a whole, its last victim is the set of
// tasks that are left after its surplus tasks.
func (c *quotaCheck) largestVictim(p *quotaRequest, q *cluster.Queue, resource string) (most int64) {
	held := map[*cluster.Job][]int64{}
	for _, t := range p.evicted {
		if c.contains(q, t.Job.Queue) {
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

// contains reports whether the queue is the named one or one of its ancestors.
func (c *quotaCheck) contains(q *cluster.Queue, name string) bool {
	for o := c.state.Queue(name); o != nil; o = c.state.View().Parent(o) {
		if o == q {
			return true
		}
	}
	return false
}
