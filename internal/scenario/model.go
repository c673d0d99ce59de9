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

// form is the alternative that the workload took.
func (c *checker) form(id, want string) {
	j := c.job(id)
	if j == nil {
		return
	}
	got := "none: nothing of it is placed"
	if j.Chosen >= 0 {
		got = j.Alternatives[j.Chosen].Name
	}
	if got != want {
		c.differ("form of "+id, want, got)
	}
}

// keep is what the workload counted for when its set had too many.
func (c *checker) keep(id string, plugins map[string]float64) {
	j := c.job(id)
	if j == nil {
		return
	}
	var score *engine.Score
	for _, r := range c.sim.Rankings {
		for k := range r.Jobs {
			if r.Jobs[k].Job == j.ID {
				score = &r.Jobs[k].Score
			}
		}
	}
	if score == nil {
		c.differ("worth of "+id, "a ranking", "its set was not ranked")
		return
	}
	each(plugins, func(plugin string, want float64) {
		at := slices.IndexFunc(score.Parts, func(p engine.ScorePart) bool { return p.Plugin == plugin })
		switch what := fmt.Sprintf("worth of %s by %s", id, plugin); {
		case at < 0:
			c.differ(what, number(want), "no score by it")
		case math.Abs(score.Parts[at].Score-want) >= 0.0005:
			c.differ(what, number(want), number(score.Parts[at].Score))
		}
	})
}

// provision is what a provisioner is to do for the model.
func (c *checker) provision(id string, want v1alpha1.ExpectedProvision) {
	var there []string
	for _, v := range model.Provisions(c.requests, c.sim.State) {
		if there = append(there, v.Model); v.Model != id {
			continue
		}
		if v.Create != want.Create {
			c.differ("NodeClaims to create for "+id, fmt.Sprint(want.Create), fmt.Sprint(v.Create))
		}
		if !slices.Equal(v.Remove, want.Remove) {
			c.differ("NodeClaims to remove for "+id, orNone(want.Remove), orNone(v.Remove))
		}
		return
	}
	c.differ("model "+id, "to have an instance type", "no such model"+nearest.Hint(id, there))
}
