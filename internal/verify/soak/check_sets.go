package soak

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// checkSets checks that no Set has more replicas than desired, that retired replicas
// are neither pending nor in their Set, and that replicas on whole nodes are on
// different nodes of one group. Only a session makes Sets smaller: if afterSession is
// false, a Set may still be too large and retired replicas may still be placed.
func checkSets(state *cluster.State, afterSession bool) error {
	sets := state.View().Sets()
	for _, j := range state.Jobs() {
		if !j.Retired {
			continue
		}
		for _, t := range j.Tasks() {
			if afterSession && t.Placed() {
				return fmt.Errorf("%s is retired, and %s is %s", j.ID, t.ID, t.Status)
			}
		}
		if slices.Contains(state.Pending(), j) || slices.Contains(sets.Jobs(j.Set.Name), j) {
			return fmt.Errorf("%s is retired, and is pending or in its Set", j.ID)
		}
	}
	for _, name := range sets.Names() {
		replicas, desired := len(sets.Jobs(name)), sets.Desired(name)
		if afterSession && replicas > desired {
			return fmt.Errorf("%s has %d replicas, and %d are desired", name, replicas, desired)
		}
		if tooLarge := slices.Contains(sets.Excess(), name); tooLarge != (replicas > desired) {
			return fmt.Errorf("%s has %d replicas of %d, and is listed as too large: %v", name, replicas, desired, tooLarge)
		}
		if err := checkWholeNodes(sets, name); err != nil {
			return err
		}
	}
	return nil
}

// checkWholeNodes checks that the replicas of a Set that use whole nodes are on
// different nodes of one group.
func checkWholeNodes(sets cluster.Sets, name string) error {
	var group *cluster.GroupKey
	taskOn := map[*cluster.Node]string{}
	for _, j := range sets.Jobs(name) {
		if j.Chosen < 0 || j.Alternatives[j.Chosen].Whole == nil {
			continue
		}
		if only := j.Alternatives[j.Chosen].Whole.Only; group == nil {
			group = only
		} else if *only != *group {
			return fmt.Errorf("%s is on %v, and other replicas of %s are on %v", j.ID, *only, name, *group)
		}
		for _, t := range j.Tasks() {
			if !t.Placed() {
				continue
			}
			if other := taskOn[t.At()]; other != "" {
				return fmt.Errorf("%s and %s share node %s", other, t.ID, t.At().Name)
			}
			taskOn[t.At()] = t.ID
		}
	}
	if chosen := sets.Home(name); group != nil && (chosen == nil || *chosen != *group) {
		return fmt.Errorf("%s is on %v, and the group that was chosen for it is %v", name, *group, chosen)
	}
	return nil
}

// checkGroups checks that tasks that the session placed on whole nodes are on nodes of
// the group of their alternative.
func (c *sessionCheck) checkGroups() error {
	for _, j := range c.state.Jobs() {
		if j.Chosen < 0 || j.Alternatives[j.Chosen].Whole == nil || j.Alternatives[j.Chosen].Whole.Only == nil {
			continue
		}
		only := *j.Alternatives[j.Chosen].Whole.Only
		for _, t := range j.Tasks() {
			n := t.At()
			if !t.Placed() || n == c.before.nodes[t] {
				continue
			}
			if c.counts.WholeNodes++; n.Group().Key != only {
				return fmt.Errorf("%s is on %s of %v, and its alternative is for %v", t.ID, n.Name, n.Group().Key, only)
			}
		}
	}
	return nil
}

// checkRankings checks that as many replicas are kept as are desired, and that the
// kept ones are sorted by score. The scores of retired replicas are not compared:
// each of them had the lowest score when it was retired, and scores change with every
// retirement.
func (c *sessionCheck) checkRankings() error {
	for _, r := range c.out.RetirementOrders {
		c.counts.Retired += len(r.Jobs) - r.Desired
		for i, x := range r.Jobs {
			if x.Retired != (i >= r.Desired) || x.Retired != c.state.Job(x.Job).Retired || i > 0 && i <= r.Desired && x.Score.Total > r.Jobs[i-1].Score.Total {
				return fmt.Errorf("%s: of %d replicas %d are desired, and %s is number %d with a score of %d, retired: %v", r.Set, len(r.Jobs), r.Desired, x.Job, i+1, x.Score.Total, x.Retired)
			}
		}
	}
	return nil
}
