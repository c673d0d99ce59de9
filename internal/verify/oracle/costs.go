package oracle

import (
	"strconv"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// costLabel is the label with the cost of evicting one task of a job.
const costLabel = "cost"

// costs is a plugin that reads the cost of victims from the labels of their jobs.
type costs struct{}

func (costs) Name() string { return string(Costs) }
func (costs) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddVictimCost(func(t *cluster.Task) int64 { return costOf(t.Job) })
}

// costOf returns the cost of evicting one task of the job, or 0 if it has no label.
func costOf(j *cluster.Job) int64 {
	cost, err := strconv.ParseInt(j.Labels[costLabel], 10, 64)
	if err != nil {
		return 0
	}
	return cost
}

// setCost gives the job a random cost. It also reduces the number of different
// priorities, so that costs decide more often.
func (d *drawing) setCost(j *cluster.Job) {
	j.Priority /= 2
	if j.Labels == nil {
		j.Labels = map[string]string{}
	}
	j.Labels[costLabel] = strconv.Itoa(d.IntN(10))
}

// costsDecide reports whether another plan would be the cheapest if victims had no costs.
func (g *checker) costsDecide(j *job, cheapest *plan) bool {
	saved := make([]int64, len(g.booked.jobs))
	for i, k := range g.booked.jobs {
		saved[i], k.cost = k.cost, 0
	}
	other, found, err := g.better(j, nil, false)
	for i, k := range g.booked.jobs {
		k.cost = saved[i]
	}
	return found && err == nil && other.evicted != cheapest.evicted
}
