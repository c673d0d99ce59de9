package cures

import "testing"

// TestCures checks the answers of berth why about 200 refused workloads of random clusters.
func TestCures(t *testing.T) {
	const refusals = 200
	var all Report
	for seed := uint64(1); all.Refusals < refusals; seed++ {
		in, err := Random(seed)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, in.JSON())
		}
		all.Add(Check(in, refusals-all.Refusals))
	}
	for _, p := range all.Problems {
		t.Errorf("%s: %s\n%s", p.Workload, p.Text, p.Input.JSON())
	}
	if len(all.Missed)*100 > all.Curable {
		t.Errorf("%d of %d workloads that one change would cure got no change that helps, such as %s: %s\n%s", len(all.Missed), all.Curable, all.Missed[0].Workload, all.Missed[0].Text, all.Missed[0].Input.JSON())
	}
	if all.Cures < refusals {
		t.Errorf("only %d changes for %d refused workloads, which is too few for this test", all.Cures, all.Refusals)
	}
	t.Logf("%d refused workloads, %d changes that help, %d curable by one change", all.Refusals, all.Cures, all.Curable)
}
