package soak

import (
	"testing"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

// TestInvariantsWithPacking runs sequences with the policies that learn from what has arrived. A
// session after a restart must decide as the session before would have.
func TestInvariantsWithPacking(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"fill-value", "fgd"} {
		profile, err := standard.Pack(standard.Profile(), word)
		if err != nil {
			t.Fatal(err)
		}
		var total Counts
		for seed := uint64(2001); seed <= 2020; seed++ {
			counts, failure := Sequence{Seed: seed, Steps: 200, Profiles: []engine.NamedProfile{{Name: "standard", Plugins: profile}}}.Run()
			if failure != nil {
				t.Fatalf("%s: %v", word, failure.Shrink())
			}
			total.Add(counts)
		}
		t.Logf("%s: %v", word, total)
		if total.Decisions < 400 || total.Crashes < 50 || total.Untried < 100 {
			t.Errorf("%s: too little happened: %v", word, total)
		}
	}
}
