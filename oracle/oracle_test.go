package oracle

import (
	"flag"
	"fmt"
	"testing"

	"github.com/berth-project/berth/plugins/standard"
)

var (
	cases  = flag.Int("oracle.cases", 300, "relevant cases a kind")
	replay = flag.String("oracle.replay", "", "the kind and number of one case to show, as Preempt/1234")
)

// goals are the least that must be placed and be minimal, in percent of the relevant cases.
var goals = map[Kind]struct{ placed, minimal float64 }{
	Allocate:    {5, 100}, // the engine tries one order of tasks alone
	Consolidate: {90, 0},
	Reclaim:     {97, 90},
	Preempt:     {97, 90},
}

// ships reports whether the standard profile has what the kind is about.
func ships(k Kind) bool {
	for _, c := range standard.Profile() {
		if c.Name == string(k) {
			return true
		}
	}
	return k == Allocate
}

func TestOracle(t *testing.T) {
	if *replay != "" {
		t.Skip("one case is shown")
	}
	var reports []*Report
	for _, k := range Kinds {
		if !ships(k) {
			continue
		}
		r, err := Survey(k, *cases, 2000**cases)
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, r)
		if r.Relevant < *cases {
			t.Errorf("%s: only %d of %d cases were relevant", k, r.Relevant, r.Drawn)
		}
		if len(r.Violations) > 0 {
			t.Errorf("%s: rules were broken:\n%s", k, Groups(r.Violations, 10))
		}
		if goal := goals[k]; r.PlacedRate() < goal.placed || r.MinimalRate() < goal.minimal {
			t.Errorf("%s: %.2f %% placed and %.2f %% minimal, below %v and %v", k, r.PlacedRate(), r.MinimalRate(), goal.placed, goal.minimal)
		}
		t.Logf("%s, not placed:\n%s", k, Groups(r.Misses, 10))
		t.Logf("%s, not minimal:\n%s", k, Groups(r.Dearer, 10))
	}
	t.Log("\n" + Table(reports))
}

// TestReplay shows one case and what came of it.
func TestReplay(t *testing.T) {
	if *replay == "" {
		t.Skip("no case is asked for")
	}
	var kind Kind
	var number int
	for _, k := range Kinds {
		if _, err := fmt.Sscanf(*replay, string(k)+"/%d", &number); err == nil {
			kind = k
		}
	}
	if kind == "" {
		t.Fatalf("-oracle.replay=%s is no case; write a kind of %v and a number, as Preempt/1234", *replay, Kinds)
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
