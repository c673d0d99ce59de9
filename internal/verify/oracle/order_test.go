package oracle

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// TestOrderOfVictims has victims that may be evicted only after another victim. Until that
// victim is evicted, queue a exceeds its quota with the job, so that its tier is not stronger
// than the tier of queue b. An earlier version of the search did not end in this case.
func TestOrderOfVictims(t *testing.T) {
	gpus := resourceNames[gpu]
	s := enginetest.State(node("n", 2), node("m", 1),
		enginetest.Queue("a").Tier(cluster.TierGuaranteed).Quota(gpus, 3*device), enginetest.Queue("b").Tier(cluster.TierGuaranteed).Quota(gpus, 0),
		enginetest.Job("small").Queue("b").Share(1, 300).Preemptible().On("n"),
		enginetest.Job("other").Queue("b").Share(1, 500).Preemptible().On("n"),
		enginetest.Job("spare").Queue("a").Gang(2).Min(1).Devices(1).Preemptible().On("m", "n"),
		enginetest.Job("w").Queue("a").Priority(1).Devices(2).Preemptible(),
	)
	before := s.Clone()
	e, err := Engine(Preempt)
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.Open(s, engine.Options{Now: 1000 * minute}).Run()
	if err != nil {
		t.Fatal(err)
	}
	if broken := Legal(Preempt, before, 1000*minute, out); len(broken) > 0 {
		t.Errorf("rules that were broken: %v", broken)
	}
}
