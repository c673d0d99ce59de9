package oracle

import (
	"strconv"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// costLabel is the label with the cost of evicting one task of a job.
const costLabel = "cost"

// costPlugin reads the costs of victims from the labels of their jobs.
type costPlugin struct{}

func (costPlugin) Name() string { return string(Costs) }
func (costPlugin) OnSessionOpen(s *engine.Session) {
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
