package soak

import (
	"testing"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/standard"
)

// TestInvariantsWithDomains runs sequences with DomainScorer for the racks and zones of the nodes. A
// session that checks the index computes the states of domains from all their nodes.
func TestInvariantsWithDomains(t *testing.T) {
	t.Parallel()
	weight := int64(5)
	profile, err := standard.Merge(standard.Profile(), []standard.Override{{Name: "DomainScorer", Weight: &weight, Arguments: enginetest.Arguments(`{"levels": ["rack", "zone"]}`)}}, false)
	if err != nil {
		t.Fatal(err)
	}
	var total Counts
	for seed := uint64(3001); seed <= 3020; seed++ {
		counts, failure := Sequence{Seed: seed, Steps: 200, Profiles: []engine.NamedProfile{{Name: "standard", Plugins: profile}}}.Run()
		if failure != nil {
			t.Fatal(failure.Shrink())
		}
		total.Add(counts)
	}
	t.Log(total)
	if total.Decisions < 400 || total.Crashes < 50 || total.Untried < 100 {
		t.Errorf("too little happened: %v", total)
	}
}
