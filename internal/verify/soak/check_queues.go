package soak

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
)

// queueSums adds up what tasks use of each queue, independently of the sums in State.
type queueSums struct {
	state      *cluster.State
	named      map[string]bool    // resources that a queue has a quota, limit or weight for; some are names of products
	used, firm map[string]amounts // by queue; firm is the part that is not preemptible
}

func newQueueSums(state *cluster.State) *queueSums {
	s := &queueSums{state: state, named: map[string]bool{}, used: map[string]amounts{}, firm: map[string]amounts{}}
	for _, q := range state.Queues() {
		for _, list := range []cluster.Resources{q.Quota, q.Limits, q.OverQuotaWeight} {
			for _, a := range list {
				s.named[a.Name] = true
			}
		}
	}
	return s
}

// add adds what the task holds to the use of its queue and of all its ancestors.
func (s *queueSums) add(t *cluster.Task) {
	s.charge(s.used, t)
	if !t.Job.Preemptible {
		s.charge(s.firm, t)
	}
}

// charge adds what the task holds to one of the two sums.
func (s *queueSums) charge(sums map[string]amounts, t *cluster.Task) {
	s.chargeResource(sums, t, cluster.Memory, hostMemory(t.Node, t.Shape, t.Claims))
	for _, a := range t.Shape.Resources {
		s.chargeResource(sums, t, a.Name, a.Value)
	}
	for _, c := range t.Claims {
		d := &t.Node.Devices[c.Device]
		s.chargeResource(sums, t, d.Resource, int64(c.Milli))
		if product := d.Resource + ":" + d.Product; s.named[product] {
			s.chargeResource(sums, t, product, int64(c.Milli))
		}
		if d.Profile == "1g.10gb" { // one of the seven slices of a GPU
			s.chargeQueues(sums, t, cluster.DefaultDeviceResource, max(1, int64(c.Milli)*142/1000), func(q *cluster.Queue) bool { return !q.Names(d.Resource) })
		}
	}
}

func (s *queueSums) chargeResource(sums map[string]amounts, t *cluster.Task, resource string, amount int64) {
	s.chargeQueues(sums, t, resource, amount, func(*cluster.Queue) bool { return true })
}

// chargeQueues adds the amount to the queue of the task and to the ancestors of the
// queue, as far as selected returns true for them.
func (s *queueSums) chargeQueues(sums map[string]amounts, t *cluster.Task, resource string, amount int64, selected func(*cluster.Queue) bool) {
	for name := t.Job.Queue; name != ""; name = s.state.Queue(name).Parent {
		if sums[name] == nil {
			sums[name] = amounts{}
		}
		if selected(s.state.Queue(name)) {
			sums[name][resource] += amount
		}
	}
}

// check compares the sums with those of State.
func (s *queueSums) check() error {
	for _, q := range s.state.Queues() {
		if !s.used[q.Name].equal(q.Used) {
			return fmt.Errorf("queue %s: State has a use of %v, and its tasks use %v", q.Name, q.Used, s.used[q.Name])
		}
		if !s.firm[q.Name].equal(q.UsedByFirm) {
			return fmt.Errorf("queue %s: State has a firm use of %v, and its firm tasks use %v", q.Name, q.UsedByFirm, s.firm[q.Name])
		}
	}
	return nil
}

// amounts maps resources to amounts.
type amounts map[string]int64

// equal compares the amounts with those of State, which leave out zeros.
func (a amounts) equal(r cluster.Resources) bool {
	nonzero := 0
	for name, v := range a {
		if r.Of(name) != v {
			return false
		}
		if v != 0 {
			nonzero++
		}
	}
	return nonzero == len(r)
}

// checkLimits checks that no decision made the use of a queue exceed its limit, nor
// its firm use exceed its quota. If a limit or quota was lowered below the use, the
// use may stay as it is, but must not grow.
func checkLimits(state *cluster.State, before map[string]queueUse) error {
	for _, q := range state.Queues() {
		for _, l := range q.Limits {
			if used := q.Used.Of(l.Name) - overdueUse(state, q, l.Name, true); used > l.Value && used > before[q.Name].used.Of(l.Name) {
				return fmt.Errorf("queue %s uses %d of %s, its limit is %d", q.Name, used, l.Name, l.Value)
			}
		}
		for _, l := range q.Quota {
			if firm := q.UsedByFirm.Of(l.Name) - overdueUse(state, q, l.Name, false); firm > l.Value && firm > before[q.Name].firm.Of(l.Name) {
				return fmt.Errorf("queue %s: jobs that are not preemptible use %d of %s, its quota is %d", q.Name, firm, l.Name, l.Value)
			}
		}
	}
	return nil
}

// overdueUse returns what overdue tasks of the queue hold. They were evicted and did
// not stop in time, so that their room counts as used again without a decision. Tasks
// of preemptible jobs are included only if preemptible is true.
func overdueUse(state *cluster.State, q *cluster.Queue, resource string, preemptible bool) (sum int64) {
	for _, t := range state.View().Releasing() {
		if !t.Overdue() || t.Job.Preemptible && !preemptible {
			continue
		}
		for above := state.Queue(t.Job.Queue); above != nil; above = state.View().Parent(above) {
			if above == q {
				sum += q.ChargeOf(t, resource)
			}
		}
	}
	return sum
}
