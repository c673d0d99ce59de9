package explain

import (
	"fmt"
	"io"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/numeral"
)

// Ranking is a set that had more replicas than are desired: who goes and who stays.
type Ranking struct {
	Set      string    `json:"set"`
	Desired  int       `json:"desired"`
	Replicas []Replica `json:"replicas"` // those worth most first
}

// Replica is one of them, and what it is worth to keep.
type Replica struct {
	Workload string `json:"workload"`
	// Score is the sum of Scores: each plugin's 0 to 100, times its weight in hundredths.
	Score   float64            `json:"score"`
	Scores  map[string]float64 `json:"scores"`
	Retired bool               `json:"retired"` // it goes
}

func ranking(r *engine.Ranking) Ranking {
	out := Ranking{Set: r.Set, Desired: r.Desired, Replicas: []Replica{}}
	for i := range r.Jobs {
		out.Replicas = append(out.Replicas, replica(&r.Jobs[i]))
	}
	return out
}

func replica(r *engine.Ranked) Replica {
	out := Replica{Workload: r.Job, Score: worth(r.Score.Total), Scores: map[string]float64{}, Retired: r.Retired}
	for _, p := range r.Score.Parts {
		out.Scores[p.Plugin] = worth(p.Weight * int64(p.Score*1000+0.5))
	}
	return out
}

// worth turns weighted milli-points into points.
func worth(points int64) float64 { return float64(points) / 100_000 }

// Title is "model/chat: 2 of 4 replicas stay".
func (r *Ranking) Title() string {
	return fmt.Sprintf("%s: %d of %s %s", r.Set, r.Desired, numeral.Count(len(r.Replicas), "replica"), r.stay())
}

func (r *Ranking) stay() string { return ifOne(r.Desired, "stays", "stay") }

// Fate says whether the replica stays.
func (r *Replica) Fate() string {
	if r.Retired {
		return "goes"
	}
	return "stays"
}

// Worth says what a replica was worth to keep, and by whose account.
func Worth(s *engine.Score) string {
	r := replica(&engine.Ranked{Score: *s})
	text := "worth " + decimal(r.Score, 1)
	if len(r.Scores) > 0 {
		text += ": " + Scores(r.Scores)
	}
	return text
}

// ranked says how the workload did among those of its set, where some had to go.
func (r *Report) ranked(w io.Writer) {
	if r.Ranking == nil {
		return
	}
	for i := range r.Ranking.Replicas {
		x := &r.Ranking.Replicas[i]
		if x.Workload != r.Workload {
			continue
		}
		verb := "Stays"
		if x.Retired {
			verb = "Retired"
		}
		text := fmt.Sprintf("%s: %d of %s of %s %s, and it ranks %d with %s", verb, r.Ranking.Desired,
			numeral.Count(len(r.Ranking.Replicas), "replica"), r.Ranking.Set, r.Ranking.stay(), i+1, decimal(x.Score, 1))
		if len(x.Scores) > 0 {
			text += " (" + Scores(x.Scores) + ")"
		}
		wrapped(w, text+".", "", "  ")
	}
}
