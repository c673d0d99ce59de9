package wire

import (
	"github.com/berth-project/berth/engine"
)

// Ranking is a set that had more replicas than are desired, and says which were retired.
type Ranking struct {
	Set      string    `json:"set"`
	Desired  int       `json:"desired"`
	Replicas []Replica `json:"replicas"` // highest score first
}

// Replica is one replica of a set. Those with the lowest scores are retired.
type Replica struct {
	Workload string `json:"workload"`
	// Score is the sum of Scores. Each of them is the score of a plugin, 0 to 100, times a
	// hundredth of its weight.
	Score   float64            `json:"score"`
	Scores  map[string]float64 `json:"scores"`
	Retired bool               `json:"retired"`
}

// NewRanking is a ranking as JSON.
func NewRanking(r *engine.RetirementOrder) Ranking {
	out := Ranking{Set: r.Set, Desired: r.Desired, Replicas: []Replica{}}
	for i := range r.Jobs {
		out.Replicas = append(out.Replicas, NewReplica(&r.Jobs[i]))
	}
	return out
}

// NewReplica is a ranked job as JSON.
func NewReplica(r *engine.Ranked) Replica {
	out := Replica{Workload: r.Job, Score: scorePoints(r.Score.Total), Scores: map[string]float64{}, Retired: r.Retired}
	for _, p := range r.Score.Parts {
		out.Scores[p.Plugin] = scorePoints(p.Weight * int64(p.Score*1000+0.5))
	}
	return out
}

// scorePoints turns a weighted score in thousandths into points.
func scorePoints(points int64) float64 { return float64(points) / 100_000 }
