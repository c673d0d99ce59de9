package soak

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// checkSets checks that no Set has more replicas than desired, that retired replicas
// are neither pending nor in their Set, and that replicas on whole nodes are on
// different nodes of one group. If settled is false, a Set may still be too large and
// retired replicas may still be placed.
func checkSets(state *cluster.State, settled bool) error {
	sets := state.View().Sets()
	for _, j := range state.Jobs() {
		if !j.Retired {
			continue
		}
		for _, t := range j.Tasks() {
			if settled && t.Placed() {
				return fmt.Errorf("%s is retired, and %s is %s", j.ID, t.ID, t.Status)
			}
		}
		if slices.Contains(state.Pending(), j) || slices.Contains(sets.Jobs(j.Set.Name), j) {
			return fmt.Errorf("%s is retired, and is pending or in its Set", j.ID)
		}
	}
	for _, name := range sets.Names() {
		jobs := sets.Jobs(name)
		desired := sets.Desired(name)
		if settled && len(jobs) > desired {
			return fmt.Errorf("%s has %d replicas, and %d are desired", name, len(jobs), desired)
		}
		if large := slices.Contains(sets.Excess(), name); large != (len(jobs) > desired) {
			return fmt.Errorf("%s has %d replicas of %d, and is listed as too large: %v", name, len(jobs), desired, large)
		}
		var home *cluster.GroupKey
		hosts := map[*cluster.Node]string{}
		for _, j := range jobs {
			if j.Chosen < 0 || j.Alternatives[j.Chosen].Whole == nil {
				continue
			}
			if only := j.Alternatives[j.Chosen].Whole.Only; home == nil {
				home = only
			} else if *only != *home {
				return fmt.Errorf("%s is on %v, and other replicas of %s are on %v", j.ID, *only, name, *home)
			}
			for _, t := range j.Tasks() {
				if !t.Placed() {
					continue
				}
				if other := hosts[t.At()]; other != "" {
					return fmt.Errorf("%s and %s share node %s", other, t.ID, t.At().Name)
				}
				hosts[t.At()] = t.ID
			}
		}
		if at := sets.Home(name); home != nil && (at == nil || *at != *home) {
			return fmt.Errorf("%s is on %v, and belongs on %v", name, *home, at)
		}
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
	for _, r := range c.out.Rankings {
		c.counts.Retired += len(r.Jobs) - r.Desired
		for i, x := range r.Jobs {
			if x.Retired != (i >= r.Desired) || x.Retired != c.state.Job(x.Job).Retired || i > 0 && i <= r.Desired && x.Score.Total > r.Jobs[i-1].Score.Total {
				return fmt.Errorf("%s: of %d replicas %d are desired, and %s is number %d with a score of %d, retired: %v", r.Set, len(r.Jobs), r.Desired, x.Job, i+1, x.Score.Total, x.Retired)
			}
		}
	}
	return nil
}
