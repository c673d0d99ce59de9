package soak

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
)

// stateCheck is run after every step. It compares State with the site, and the sums in
// State with the tasks.
type stateCheck struct {
	site      *site
	scheduler *scheduler
}

// run makes all checks and returns the first failure.
func (c *stateCheck) run() error {
	state := c.scheduler.state
	siteCheck := &siteCheck{c.site}
	if err := siteCheck.checkProcesses(); err != nil {
		return err
	}
	if err := siteCheck.compareState(state); err != nil {
		return err
	}
	for _, n := range state.Nodes() {
		if err := c.checkNode(n); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	sums := newQueueSums(state)
	for _, j := range state.Jobs() {
		for a := range j.Alternatives {
			for _, t := range j.Alternatives[a].Tasks {
				if err := c.checkTask(t, a); err != nil {
					return err
				}
				if t.Node == nil {
					continue
				}
				if l := t.Landing(); l != nil {
					sums.add(l)
				}
				if !isFreeing(t) {
					sums.add(t)
				}
			}
		}
	}
	if err := checkSets(state, false); err != nil {
		return err
	}
	return sums.check()
}

// checkTask checks the status, node and landing of a task of the given alternative.
func (c *stateCheck) checkTask(t *cluster.Task, alternative int) error {
	if (t.Node == nil) != (t.Status == cluster.Pending || t.Ended()) {
		return fmt.Errorf("%s is %s on node %v", t.ID, t.Status, t.Node)
	}
	if t.Node == nil {
		return nil
	}
	if alternative != t.Job.Chosen {
		return fmt.Errorf("%s is placed, but alternative %d was chosen", t.ID, t.Job.Chosen)
	}
	if c.scheduler.state.Node(t.Node.Name) != t.Node && c.site.sent[t.ID] == nil {
		return fmt.Errorf("%s is on a node that does not exist any more", t.ID)
	}
	if l := t.Landing(); l != nil && (t.Status != cluster.Releasing || l.Status != cluster.Nominated || l.ShadowOf() != t) {
		return fmt.Errorf("%s is %s, and its landing is %s", t.ID, t.Status, l.Status)
	}
	return nil
}

// checkNode checks that the tasks of the node fit on it, and compares what they hold
// with the sums in State. If reported facts made tasks exceed the node, they need not
// fit until they have fitted once.
func (c *stateCheck) checkNode(n *cluster.Node) error {
	for _, t := range n.Tasks {
		if t.Node != n {
			return fmt.Errorf("%s is in the list of this node, but is on another one", t.ID)
		}
	}
	sums := newNodeSums(n)
	if err := sums.compareResources(); err != nil {
		return err
	}
	if err := sums.excess(); err == nil {
		delete(c.site.overcommitted, n.Name)
	} else if !c.site.overcommitted[n.Name] {
		return err
	}
	return sums.compareDevices()
}
