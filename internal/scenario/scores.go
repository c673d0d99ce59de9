package scenario

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
)

// scores compares those of nodes and of groups.
func (c *checker) scores(id string, expected map[string]map[string]float64) {
	t := c.task(id)
	if t == nil {
		return
	}
	d := c.decisions[t.ID]
	if d == nil {
		c.differ("scores of "+id, "a decision", "none was made")
		return
	}
	each(expected, func(name string, plugins map[string]float64) {
		score, problem := scoreOf(d, name)
		if score == nil {
			c.differ("scores of "+id+" on "+name, "a candidate", problem)
			return
		}
		each(plugins, func(plugin string, want float64) { c.part(id+" on "+name, score, plugin, want) })
	})
}

// scoreOf is the score of the node or group of that name, or why there is none.
func scoreOf(d *engine.Decision, name string) (score *engine.Score, problem string) {
	for i := range d.Candidates {
		if d.Candidates[i].Node == name {
			return &d.Candidates[i].Score, ""
		}
	}
	var key cluster.GroupKey
	for i := range d.Groups {
		switch g := &d.Groups[i]; {
		case !names(name, g.Group):
		case score == nil:
			score, key = &g.Score, g.Group
		case g.Group != key:
			return nil, fmt.Sprintf("several groups; write %q or %q", explain.GroupTitle(key), explain.GroupTitle(g.Group))
		}
	}
	if score == nil {
		return nil, "the node or group was turned down or is not there"
	}
	return score, ""
}

// names reports whether the text means the group: as it is printed, with "x" for
// "×" and with or without the memory, or the product alone.
func names(text string, k cluster.GroupKey) bool {
	return text == k.Product || slices.Contains([]string{k.String(), explain.GroupTitle(k)}, strings.ReplaceAll(text, " x ", " × "))
}

// part compares what one plugin gave.
func (c *checker) part(where string, score *engine.Score, plugin string, want float64) {
	what := fmt.Sprintf("score of %s by %s", where, plugin)
	have, hooks := 0.0, 0
	for _, p := range score.Parts {
		if p.Plugin == plugin { // some have several hooks
			have += p.Score
			hooks++
		}
	}
	switch {
	case hooks == 0:
		c.differ(what, number(want), "no score by it")
	case math.Abs(have-want) >= 0.0005*float64(hooks): // each counts in thousandths
		c.differ(what, number(want), number(have))
	}
}
