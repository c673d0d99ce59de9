package oracle

import (
	"flag"
	"fmt"
	"math"
	"testing"
)

var (
	caseCount  = flag.Int("oracle.cases", 250, "number of relevant cases of each kind")
	onlyKind   = flag.String("oracle.kind", "", "run only this kind")
	replayCase = flag.String("oracle.replay", "", "kind and number of one case to show, such as Preempt/1234")
)

// goals has the percentages of relevant cases that must be placed and minimal.
var goals = map[Kind]struct{ placed, minimal float64 }{
	Allocate:     {100, 100},
	Consolidate:  {99, 99},
	Reclaim:      {99, 99},
	Preempt:      {99, 99},
	Combined:     {99, 99},
	Topology:     {99, 99},
	Alternatives: {99, 99},
	Whole:        {99, 99},
	Costs:        {99, 99},
}

// tolerance returns by how much a rate may be below the goal in a sample of this size: two
// standard errors, in percent. For a large sample it returns 0.
func tolerance(goal float64, cases int) float64 {
	if cases >= 4000 {
		return 0
	}
	return 2 * math.Sqrt(goal*(100-goal)/float64(max(1, cases)))
}

// TestOracle draws cases of every kind, and fails if the engine breaks a rule or a rate is
// below its goal.
func TestOracle(t *testing.T) {
	if *replayCase != "" {
		t.Skip("-oracle.replay shows one case")
	}
	var reports []*Report
	for _, k := range Kinds {
		if *onlyKind != "" && Kind(*onlyKind) != k {
			continue
		}
		r, err := Survey(k, *caseCount, 2000**caseCount)
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, r)
		if r.Relevant < *caseCount {
			t.Errorf("%s: only %d of %d cases were relevant", k, r.Relevant, r.Drawn)
		}
		for _, v := range r.Violations {
			for _, broken := range v.Illegal {
				t.Errorf("%s/%d: a rule was broken: %+v", k, v.Number, broken)
			}
		}
		if len(r.Violations) > 0 {
			t.Logf("%s, rules that were broken:\n%s", k, Groups(r.Violations, 10))
		}
		if goal := goals[k]; r.PlacedRate() < goal.placed-tolerance(goal.placed, r.Relevant) || r.MinimalRate() < goal.minimal-tolerance(goal.minimal, r.Placed) {
			t.Errorf("%s: %.2f %% placed and %.2f %% minimal, below %v and %v", k, r.PlacedRate(), r.MinimalRate(), goal.placed, goal.minimal)
		}
		t.Logf("%s, not placed:\n%s", k, Groups(r.NotPlaced, 10))
		t.Logf("%s, not minimal:\n%s", k, Groups(r.NotMinimal, 10))
		t.Logf("%s, of the last resort:\n%s", k, Groups(r.LastFailed, 10))
	}
	t.Log("\n" + Table(reports))
}

// TestReplay prints one case and its verdicts.
func TestReplay(t *testing.T) {
	if *replayCase == "" {
		t.Skip("-oracle.replay is not set")
	}
	var kind Kind
	var number int
	for _, k := range Kinds {
		if _, err := fmt.Sscanf(*replayCase, string(k)+"/%d", &number); err == nil {
			kind = k
		}
	}
	if kind == "" {
		t.Fatalf("-oracle.replay=%s is not a case; write a kind of %v and a number, such as Preempt/1234", *replayCase, Kinds)
	}
	c, err := Draw(kind, number)
	if err != nil {
		t.Fatal(err)
	}
	shown := c.String()
	e, err := Engine(kind)
	if err != nil {
		t.Fatal(err)
	}
	verdicts, err := c.Judge(e)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", shown)
	for _, v := range verdicts {
		t.Logf("%+v", v)
	}
}
