package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// rival is a task that might be evicted or moved for a job, with what rivals are ordered by.
type rival struct {
	task    *cluster.Task
	tier    int
	cost    int64 // the VictimCost of all tasks that are evicted with it
	surplus bool
	// evicts and moves say whether it may be evicted or moved, as far as that is known.
	evicts, moves bool
}

func (v *victims) rival(t *cluster.Task) rival {
	c := rival{task: t, tier: v.tierOf(t.Job.Queue).Rank(), surplus: t.Job.IsSurplus(t) || t.Job.SurplusSubgroup(t) != nil}
	if v.priced() {
		c.cost = v.costOfTasks(VictimOf(t).Tasks)
	}
	return c
}

// compare orders rivals by which is evicted first: weaker tier, lower priority, lower cost,
// surplus tasks, later start, ID.
func (c *rival) compare(o *rival) int {
	switch {
	case c.tier != o.tier:
		return cmp.Compare(o.tier, c.tier)
	case c.task.Job.Priority != o.task.Job.Priority:
		return cmp.Compare(c.task.Job.Priority, o.task.Job.Priority)
	case c.cost != o.cost:
		return cmp.Compare(c.cost, o.cost)
	case c.surplus != o.surplus:
		return trueFirst(c.surplus, o.surplus)
	case c.task.Started != o.task.Started:
		return cmp.Compare(o.task.Started, c.task.Started)
	}
	return strings.Compare(c.task.ID, o.task.ID)
}

// rivals returns, in order, all tasks that might be victims for the job and for which may
// returns true. It returns nil if there are none, or more than most. A nil may accepts all
// tasks.
func (v *victims) rivals(job *cluster.Job, most int, may func(*cluster.Task) bool) []rival {
	var line []rival
	for _, n := range v.view.Nodes() {
		for _, t := range n.Tasks {
			if v.mayBeVictim(t, job) && (may == nil || may(t)) {
				if len(line) == most {
					return nil
				}
				line = append(line, v.rival(t))
			}
		}
	}
	slices.SortFunc(line, func(a, b rival) int { return a.compare(&b) })
	return line
}
