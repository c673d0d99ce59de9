package soak

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// controller is a program outside the scheduler that restarts gangs which run below
// their minimum. If it is not enabled, the scheduler has to evict or complete them.
type controller struct {
	enabled   bool
	site      *site
	scheduler *scheduler
	executor  *executor
	history   *history
}

// restartGangs is called after facts were reported. It updates the gangs that run
// below their minimum, and restarts them if the controller is enabled. A gang that has
// only reservations is left to the engine.
func (c *controller) restartGangs() error {
	c.history.updateGangs(c.scheduler.state)
	if !c.enabled {
		return nil
	}
	for _, j := range c.scheduler.state.Jobs() {
		if _, below := c.history.belowMinimum[j.ID]; !below {
			continue
		}
		if err := c.restart(j); err != nil {
			return err
		}
		c.history.forgetGang(j.ID)
	}
	return nil
}

// restart stops a job so that it can be placed again with any alternative: its
// reservations are withdrawn and its running tasks are stopped.
func (c *controller) restart(j *cluster.Job) error {
	for _, t := range slices.Clone(j.Tasks()) {
		if t.Landing() != nil {
			if err := c.withdraw(cluster.Withdraw{Task: t.Ref(), Landing: true}); err != nil {
				return err
			}
		}
		var err error
		switch {
		case t.Status == cluster.Nominated:
			err = c.withdraw(cluster.Withdraw{Task: t.Ref()})
		case c.site.sent[t.ID] != nil:
			err = c.executor.evict(t)
		case t.Runs():
			if err = c.site.stop(t); err == nil {
				err = c.scheduler.apply(cluster.TaskSeen{Task: t.Ref(), Node: t.Node.Name, Releasing: true})
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *controller) withdraw(w cluster.Withdraw) error {
	return c.scheduler.apply(cluster.Decided{Changes: []cluster.Change{w}})
}
