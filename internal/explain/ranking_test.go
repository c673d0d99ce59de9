package explain

import (
	"testing"

	"github.com/berth-project/berth/engine"
)

func TestReplicaScoreText(t *testing.T) {
	s := engine.Score{Total: 10_000_000, Parts: []engine.ScorePart{{Plugin: "StatusScorer", Score: 100, Weight: 100}, {Plugin: "PlacementScorer", Score: 0, Weight: 1}}}
	if got := ReplicaScoreText(&s); got != "worth 100: StatusScorer 100, PlacementScorer 0" {
		t.Error(got)
	}
	if got := ReplicaScoreText(&engine.Score{}); got != "worth 0" {
		t.Error(got)
	}
}
