package explain

import (
	"fmt"
	"io"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/berth-project/berth/internal/wire"
)

// RankingTitle returns "model/chat: 2 of 4 replicas are kept".
func RankingTitle(r *wire.Ranking) string {
	return fmt.Sprintf("%s: %d of %s %s", r.Set, r.Desired, english.Count(len(r.Replicas), "replica"), keptText(r))
}

func keptText(r *wire.Ranking) string { return ifOne(r.Desired, "is kept", "are kept") }

// ReplicasByRank returns the replicas in the order of their ranks. Those with equal scores, of which
// either all or none are retired, are sorted by name.
func ReplicasByRank(r *wire.Ranking) []wire.Replica {
	return NaturalRuns(r.Replicas, func(x *wire.Replica) string { return x.Workload }, func(a, b *wire.Replica) bool {
		return a.Score == b.Score && a.Retired == b.Retired
	})
}

// KeptOrRetired returns "kept" or "retired".
func KeptOrRetired(r *wire.Replica) string {
	if r.Retired {
		return "retired"
	}
	return "kept"
}

// ReplicaScoreText returns the score by which a replica is ranked, and the scores of the
// plugins: "worth 100: StatusScorer 100".
func ReplicaScoreText(s *engine.Score) string {
	r := wire.NewReplica(&engine.Ranked{Score: *s})
	text := "worth " + quantity.Decimal(r.Score, 1)
	if len(r.Scores) > 0 {
		text += ": " + ScoresText(r.Scores)
	}
	return text
}

// rankedText writes the rank of the workload in its set, if replicas of the set were retired.
func (r *Report) rankedText(w io.Writer) {
	if r.Ranking == nil {
		return
	}
	for i, x := range ReplicasByRank(r.Ranking) {
		if x.Workload != r.Workload {
			continue
		}
		verb := "Kept"
		if x.Retired {
			verb = "Retired"
		}
		text := fmt.Sprintf("%s: %d of %s of %s %s, and it ranks %d with %s", verb, r.Ranking.Desired,
			english.Count(len(r.Ranking.Replicas), "replica"), r.Ranking.Set, keptText(r.Ranking), i+1, quantity.Decimal(x.Score, 1))
		if len(x.Scores) > 0 {
			text += " (" + ScoresText(x.Scores) + ")"
		}
		wrapped(w, text+".", "", "  ")
	}
}
