package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// The functions in this file check JSON input: Decode calls checkChange, and
// Snapshot.State checks a snapshot. A value that no State can have is an error, so that it
// causes no panic later. Apply calls only checkHoldings and the check methods of Job, Task
// and TaskGone, which do not check all amounts. Facts that are built in Go must therefore
// be valid; package internal/convert checks the API objects from which it builds facts.

// maxAmount is the largest amount that is accepted. It is small enough that the sum of
// a few amounts does not overflow.
const maxAmount = 1 << 60

func checkAmount[T ~int | ~int64](what string, v T) error {
	if v < 0 || int64(v) > maxAmount {
		return fmt.Errorf("%s is %d; it must be from 0 to %d", what, v, int64(maxAmount))
	}
	return nil
}

// maxTime is the latest time that is accepted, in nanoseconds since 1970. It is in the year
// 2116. A duration of maxAmount can be added to it.
const maxTime = 1 << 62

func checkTime(what string, v int64) error {
	if v < 0 || v > maxTime {
		return fmt.Errorf("%s is %d; it must be from 0 to %d", what, v, int64(maxTime))
	}
	return nil
}

func (r Resources) check() error {
	for _, a := range r {
		if err := checkAmount(a.Name, a.Value); err != nil {
			return err
		}
	}
	return nil
}

func (s *Shape) check() error {
	if s == nil {
		return errors.New("a shape is missing")
	}
	n := &s.Need
	err := cmp.Or(s.Resources.check(), s.LeftOut.check(), checkAmount("devices", n.Devices), checkAmount("memory", n.Memory), checkAmount("share", n.Share), checkAmount("sumAtLeast", n.SumAtLeast))
	for _, sum := range n.Sums {
		err = cmp.Or(err, checkAmount("sum on "+sum.Product, sum.AtLeast))
	}
	if l := n.Layers; l != nil && err == nil {
		err = l.check()
	}
	return err
}

func (n *Node) check() error {
	err := cmp.Or(checkAmount("isolable cores", n.SupportedIsolation.IsolableCores), checkAmount("replicas", n.Sharing.Replicas))
	names := map[string]bool{}
	for _, l := range n.Resources {
		if err == nil && names[l.Name] {
			err = fmt.Errorf("resource %q is listed twice", l.Name)
		}
		names[l.Name] = true
		err = cmp.Or(err, checkAmount(l.Name, l.Capacity))
	}
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.DeviceSpec == nil { // nothing is reported of it
			d.DeviceSpec = &DeviceSpec{}
		}
		err = cmp.Or(err, checkAmount("memory", d.Memory), checkAmount("reserved memory", d.Reserved), checkAmount("foreign memory", d.Foreign))
	}
	for _, a := range n.Avoids {
		err = cmp.Or(err, a.Shape.check())
	}
	if err != nil {
		return fmt.Errorf("node %q: %w", n.Name, err)
	}
	return nil
}

func (q *Queue) check() error {
	err := cmp.Or(q.OverQuotaWeight.check(), q.checkQuota(), q.Limits.check(), checkAmount("weight", q.Weight),
		checkAmount("minRunBeforePreempt", q.MinRunBeforePreempt), checkAmount("minRunBeforeReclaim", q.MinRunBeforeReclaim))
	for _, u := range q.Past {
		err = cmp.Or(err, u.Resources.check())
		if u.From > u.To || u.From < 0 {
			err = cmp.Or(err, fmt.Errorf("past use from %d to %d is not an interval", u.From, u.To))
		}
	}
	if err != nil {
		return fmt.Errorf("queue %q: %w", q.Name, err)
	}
	return nil
}

// checkQuota is Resources.check for the quota, which may also be Unlimited.
func (q *Queue) checkQuota() error {
	for _, a := range q.Quota {
		if err := checkAmount(a.Name, a.Value); err != nil && a.Value != Unlimited {
			return err
		}
	}
	return nil
}

// checkAmounts returns an error for amounts that are negative or too large. check
// returns other errors.
func (j *Job) checkAmounts() error {
	d := j.details()
	err := cmp.Or(checkAmount("runFor", j.RunFor), checkAmount("preemptionDelay", d.PreemptionDelay), checkAmount("desired", d.Set.Desired))
	if d.StaleGrace != nil {
		err = cmp.Or(err, checkAmount("staleGrace", max(0, *d.StaleGrace)))
	}
	if d.Earmarked != nil {
		err = cmp.Or(err, d.Earmarked.check())
	}
	if !slices.IsSorted(d.Displaced) {
		err = cmp.Or(err, errors.New("the displaced jobs are not sorted"))
	}
	for a := range j.Alternatives {
		alt := &j.Alternatives[a]
		if w := alt.Whole; w != nil {
			err = cmp.Or(err, checkAmount("replicas", w.Replicas), checkAmount("nodesPerReplica", w.NodesPerReplica), checkAmount("memory", w.Memory), checkAmount("usable", w.Usable))
		}
		for _, t := range alt.Tasks {
			if t != nil && t.Shape != nil && err == nil {
				err = t.Shape.check()
			}
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", j.ID, err)
	}
	return nil
}

// checkHoldings returns an error for holdings that no task can have: more than a
// device, or one device twice.
func checkHoldings(list []Holding) error {
	devices := make(map[string]bool, len(list))
	for _, h := range list {
		if err := cmp.Or(checkAmount("milli", h.Milli), checkAmount("memory", h.Memory), checkAmount("layers", h.Layers)); err != nil {
			return fmt.Errorf("device %q: %w", h.Device, err)
		}
		if h.Device == "" || h.Milli > Whole || h.Memory > MaxDeviceMemory {
			return fmt.Errorf("device %q: it has no name, or %d thousandths and %d bytes are more than a device has", h.Device, h.Milli, h.Memory)
		}
		if devices[h.Device] {
			return fmt.Errorf("device %q is held twice", h.Device)
		}
		devices[h.Device] = true
	}
	return nil
}

// checkChange returns an error if the change has a value that no State can have.
func checkChange(c Change) error {
	switch c := c.(type) {
	case NodePut:
		return c.Node.check()
	case QueuePut:
		return c.Queue.check()
	case BudgetPut:
		return checkAmount("bound", c.Budget.Bound)
	case JobPut:
		return cmp.Or(c.Job.check(), c.Job.checkAmounts())
	case TaskPut:
		return cmp.Or(c.Task.check(c.Task.Subgroup), c.Task.Shape.check())
	case TaskSeen:
		return checkHoldings(c.Devices)
	case TaskGone:
		return c.check()
	case Assign:
		return checkHoldings(c.Devices)
	case Nominate:
		return checkHoldings(c.Devices)
	case Move:
		return checkHoldings(c.Devices)
	case Learn:
		return c.check()
	case Earmark:
		if len(c.Rooms) > 0 {
			return c.Earmarked.check()
		}
	}
	return nil
}
