package oracle

import (
	"strconv"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// costLabel says what each task of a job costs if it is evicted.
const costLabel = "cost"

// costs is a plugin that says what victims cost, by the label of their jobs.
type costs struct{}

func (costs) Name() string { return string(Costs) }
func (costs) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddVictimCost(func(t *cluster.Task) int64 { return costOf(t.Job) })
}

// costOf is what each task of the job costs, 0 where that is not known.
func costOf(j *cluster.Job) int64 {
	cost, err := strconv.ParseInt(j.Labels[costLabel], 10, 64)
	if err != nil {
		return 0
	}
	return cost
}

// price says what the job costs. Fewer priorities leave more to that.
func (d *drawing) price(j *cluster.Job) {
	j.Priority /= 2
	if j.Labels == nil {
		j.Labels = map[string]string{}
	}
	j.Labels[costLabel] = strconv.Itoa(d.IntN(10))
}

// costsDecide reports whether another plan than the cheapest would be taken if victims
// cost nothing.
func (g *game) costsDecide(j *job, cheapest *plan) bool {
	said := make([]int64, len(g.promised.jobs))
	for i, k := range g.promised.jobs {
		said[i], k.cost = k.cost, 0
	}
	other, found, err := g.better(j, nil, false)
	for i, k := range g.promised.jobs {
		k.cost = said[i]
	}
	return found && err == nil && other.evicted != cheapest.evicted
}
