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

// scores compares the scores that nodes and groups got for a task.
func (c *checker) scores(id string, expected map[string]map[string]float64) {
	t := c.task(id)
	if t == nil {
		return
	}
	d := c.decisions[t.ID]
	if d == nil {
		c.mismatch("scores of "+id, "a decision", "no decision")
		return
	}
	each(expected, func(name string, plugins map[string]float64) {
		score, problem := scoreOf(d, name)
		if score == nil {
			c.mismatch("scores of "+id+" on "+name, "a candidate", problem)
			return
		}
		each(plugins, func(plugin string, want float64) { c.pluginScore(id+" on "+name, score, plugin, want) })
	})
}

// scoreOf returns the score of the node or group with the name. If there is none, it
// returns nil and the reason.
func scoreOf(d *engine.Decision, name string) (score *engine.Score, problem string) {
	for i := range d.Candidates {
		if d.Candidates[i].Node == name {
			return &d.Candidates[i].Score, ""
		}
	}
	var key cluster.GroupKey
	for i := range d.Groups {
		switch g := &d.Groups[i]; {
		case !isGroupName(name, g.Group):
		case score == nil:
			score, key = &g.Score, g.Group
		case g.Group != key:
			return nil, fmt.Sprintf("several groups; write %q or %q", explain.GroupTitle(key), explain.GroupTitle(g.Group))
		}
	}
	if score == nil {
		return nil, "no such node or group, or it was rejected"
	}
	return score, ""
}

// isGroupName reports whether the text is a name of the group: as it is printed, with
// "x" or "×" and with or without the memory, or the product alone.
func isGroupName(text string, k cluster.GroupKey) bool {
	return text == k.Product || slices.Contains([]string{k.String(), explain.GroupTitle(k)}, strings.ReplaceAll(text, " x ", " × "))
}

// pluginScore compares the score that one plugin gave.
func (c *checker) pluginScore(where string, score *engine.Score, plugin string, want float64) {
	what := fmt.Sprintf("score of %s by %s", where, plugin)
	have, hooks := 0.0, 0
	for _, p := range score.Parts {
		if p.Plugin == plugin { // a plugin may have several score hooks
			have += p.Score
			hooks++
		}
	}
	switch {
	case hooks == 0:
		c.mismatch(what, number(want), "no score by this plugin")
	case math.Abs(have-want) >= 0.0005*float64(hooks): // the score of each hook is rounded to thousandths
		c.mismatch(what, number(want), number(have))
	}
}
