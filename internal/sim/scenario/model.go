package scenario

import (
	"fmt"
	"math"
	"slices"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/internal/nearest"
)

// form compares the name of the alternative that was chosen for the workload.
func (c *checker) form(id, want string) {
	j := c.job(id)
	if j == nil {
		return
	}
	got := "none: no task of it is placed"
	if j.Chosen >= 0 {
		got = j.Alternatives[j.Chosen].Name
	}
	if got != want {
		c.mismatch("form of "+id, want, got)
	}
}

// keep compares the scores by which the replicas of a Set with too many were ranked.
func (c *checker) keep(id string, plugins map[string]float64) {
	j := c.job(id)
	if j == nil {
		return
	}
	var score *engine.Score
	for _, r := range c.sim.RetirementOrders {
		for k := range r.Jobs {
			if r.Jobs[k].Job == j.ID {
				score = &r.Jobs[k].Score
			}
		}
	}
	if score == nil {
		c.mismatch("worth of "+id, "a ranking", "the replicas of its Set were not ranked")
		return
	}
	each(plugins, func(plugin string, want float64) {
		at := slices.IndexFunc(score.Parts, func(p engine.ScorePart) bool { return p.Plugin == plugin })
		switch what := fmt.Sprintf("worth of %s by %s", id, plugin); {
		case at < 0:
			c.mismatch(what, number(want), "no score by this plugin")
		case math.Abs(score.Parts[at].Score-want) >= 0.0005:
			c.mismatch(what, number(want), number(score.Parts[at].Score))
		}
	})
}

// provision compares the nodes that a provisioner has to create or remove for a model.
func (c *checker) provision(id string, want v1alpha1.ExpectedProvision) {
	var known []string
	for _, v := range model.Provisions(c.requests, c.sim.State) {
		if known = append(known, v.Model); v.Model != id {
			continue
		}
		if v.Create != want.Create {
			c.mismatch("NodeClaims to create for "+id, fmt.Sprint(want.Create), fmt.Sprint(v.Create))
		}
		if !slices.Equal(v.Remove, want.Remove) {
			c.mismatch("NodeClaims to remove for "+id, orNone(want.Remove), orNone(v.Remove))
		}
		return
	}
	c.mismatch("model "+id, "to have an instance type", "no such model"+nearest.Hint(id, known))
}
