package wire

import (
	"github.com/berth-project/berth/engine"
)

// Ranking is the order of the replicas of a Set that had more replicas than are desired. The
// replicas at its end were retired.
type Ranking struct {
	Set      string    `json:"set"`
	Desired  int       `json:"desired"`
	Replicas []Replica `json:"replicas"` // highest score first
}

// Replica is one replica in a ranking.
type Replica struct {
	Workload string `json:"workload"`
	// The sum of scores. Each of these is the score of a plugin, 0 to 100, times a hundredth
	// of the weight of the plugin.
	Score   float64            `json:"score"`
	Scores  map[string]float64 `json:"scores"`
	Retired bool               `json:"retired"`
}

// NewRanking converts the order in which replicas of a Set are retired.
func NewRanking(r *engine.RetirementOrder) Ranking {
	out := Ranking{Set: r.Set, Desired: r.Desired, Replicas: []Replica{}}
	for i := range r.Jobs {
		out.Replicas = append(out.Replicas, NewReplica(&r.Jobs[i]))
	}
	return out
}

// NewReplica converts a ranked job.
func NewReplica(r *engine.Ranked) Replica {
	out := Replica{Workload: r.Job, Score: scorePoints(r.Score.Total), Scores: map[string]float64{}, Retired: r.Retired}
	for _, p := range r.Score.Parts {
		out.Scores[p.Plugin] = scorePoints(p.Weight * int64(p.Score*1000+0.5))
	}
	return out
}

// scorePoints converts a score of a replica: the engine has it in thousandths and times the
// whole weight of the plugin, JSON in units and times a hundredth of the weight.
func scorePoints(points int64) float64 { return float64(points) / 100_000 }
